// A master's log in memory (models MasterLog): a flush is durable at once, and is handed to those that read the log.
//
// What it hands on are encoded records, which the readers decode, as over a disk.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/host.h"
#include "multi_master/master/applier.h"
#include "multi_master/master/master_log.h"

namespace dbx::mm {

struct MemoryFlush {
  struct End {
    TxnName txn;
    VsTime time;
    EndKind kind;
    TxnId id;
  };
  LfbStamp lfb;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> pages;  // bodies of PAGES records
  std::vector<End> ends;
};

class MemoryLog final : public MasterLog {
 public:
  // Called by flushes, one after the other.
  using Reader = std::function<void(const MemoryFlush& flush)>;

  MemoryLog(MasterId self, Reader reader) : clock_(self), reader_(std::move(reader)) {}

  Lsn AppendPages(std::span<PageChange> changes) override {
    const std::lock_guard latch(latch_);
    StampChanges(clock_, changes);
    last_record_ = clock_.now();
    auto body = std::make_shared<const std::vector<std::byte>>(EncodePages(changes));
    bytes_ += body->size();
    flush_.pages.push_back(std::move(body));
    return Lsn(bytes_);
  }
  VsTime AppendEnd(const TxnName& txn, EndKind kind, TxnId id) override {
    const std::lock_guard latch(latch_);
    last_record_ = clock_.Tick();
    flush_.ends.push_back({txn, last_record_, kind, id});
    return last_record_;
  }
  void OnGrant(const PageLsn& page, const AfterList& after) override {
    const std::lock_guard latch(latch_);
    clock_.OnGrant(page, after);
  }
  bool MayApply(const LfbStamp& lfb) const override {
    const std::lock_guard latch(latch_);
    return clock_.MayApply(lfb);
  }
  void OnApplied(const LfbStamp& lfb) override {
    const std::lock_guard latch(latch_);
    clock_.OnApplied(lfb);
  }
  VsVector applied() const override {
    const std::lock_guard latch(latch_);
    return clock_.applied();
  }
  ReadView View() const override {
    const std::lock_guard latch(latch_);
    return clock_.View();
  }
  VsTime last_record() const override {
    const std::lock_guard latch(latch_);
    return last_record_;
  }
  VsTime durable_until() const override {
    const std::lock_guard latch(latch_);
    return durable_;
  }
  void AwaitDurable(VsTime time) override {
    if (durable_until().value() < time.value()) Flush();
  }
  // As the writer of a log does, now and then.
  void FlushIfAny() {
    bool any;
    {
      const std::lock_guard latch(latch_);
      any = !flush_.pages.empty() || !flush_.ends.empty();
    }
    if (any) Flush();
  }
  void Flush() {
    const std::lock_guard one(flushing_);
    MemoryFlush flush;
    {
      const std::lock_guard latch(latch_);
      flush = std::move(flush_);
      flush_ = {};
      flush.lfb = clock_.StampLfb();
    }
    reader_(flush);
    const std::lock_guard latch(latch_);
    durable_ = flush.lfb.time();
  }

 private:
  mutable Mutex latch_;
  VsClock clock_;
  MemoryFlush flush_;  // that is being filled
  VsTime last_record_;
  VsTime durable_;
  uint64_t bytes_ = 0;
  Mutex flushing_;
  const Reader reader_;
};

}  // namespace dbx::mm
