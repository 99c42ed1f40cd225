// A master's log in the making: a LogStream whose records bear times of the master's VsClock (multi_master.md, sections
// 2 and 3; 14.6).
//
//   Append...    one latch: [wait for ring space] -> tick -> place -> fill      time and place ascend together
//   flush        one latch: LFB at the end of all places; then a PAD; the device; durable_until
//
// Time and place are taken under one latch, which is that of the clock, too: otherwise a record could lie behind an LFB
// whose stamp covers its time, and a receiver of that LFB would take the record for applied. A record is one place, so
// no LFB lies within a mini-transaction.
//
// Durable is what an LFB covers: `durable_until` is the time of the last LFB that lies below what the device has made
// durable. A record that is durable itself, but whose LFB is not, is discarded when the log is sealed. A flush
// therefore must be able to end in an LFB: an append leaves ring space for one, and for PADs, beside its own.
//
// The caller's page lock grants, applied LFBs and stamps go through WithClock. Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/host.h"
#include "logging/device/block_device.h"
#include "logging/log_stream.h"
#include "logging/log_writer.h"
#include "multi_master/log/records.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

struct FlushBufferOptions {
  MasterId self;
  uint32_t salt = 0;  // of the log: rejects bytes of another one (SaltOf)
  Lsn start{};        // where the log goes on; the start of a block
  uint64_t ring_bytes = 16 << 20;
  uint64_t max_record_bytes = 1 << 20;
  LogWriterOptions writer;
};

class FlushBuffer final : public FlushHooks {
 public:
  // `clock` outlives this, and is used under its latch only.
  FlushBuffer(const FlushBufferOptions& options, VsClock& clock, std::unique_ptr<BlockDevice> device);
  ~FlushBuffer() override;

  // Appends a mini-transaction of `changes` changes as one record whose body has `bytes`. `fill(first, to)` writes the
  // body; the changes' times are first, first + 1 ... It runs under the latch: it sets page LSNs, copies, and waits for
  // nothing. Throws the error that failed the log.
  VsTime AppendPages(uint32_t changes, size_t bytes, auto&& fill) {
    std::unique_lock lock(mutex_);
    const Record record = Begin(lock, changes, kPagesLeadBytes + bytes);
    PlacedWriter lead(record.body.data());
    EncodePagesLead(changes, record.first, lead);
    fill(record.first, record.body.subspan(kPagesLeadBytes, bytes));
    Submit(record, kPagesKind);
    return record.first;
  }
  VsTime AppendEnd(const TxnName& txn, TxnOutcome outcome, TxnId id = {});

  // All records up to this time are durable, with the LFB that covers them.
  VsTime DurableUntil() const { return VsTime(durable_.load(std::memory_order_acquire)); }
  bool IsDurable(VsTime time) const { return DurableUntil().value() >= time.value(); }
  // Waits until the record of this time is durable; throws the error that failed the log.
  void WaitDurable(VsTime time);
  // Called with the new DurableUntil, by the writer's thread, before those that wait are woken. Set before use.
  void OnDurable(std::function<void(VsTime)> told) { told_ = std::move(told); }
  // Called after it with each LFB that has become durable, in their order.
  void OnLfbDurable(std::function<void(const LfbStamp&)> told) { lfb_told_ = std::move(told); }

  auto WithClock(auto&& use) {
    const std::lock_guard lock(mutex_);
    return use(clock_);
  }

  // All records are durable when it returns; none is being appended. Throws the error that failed the log.
  void Stop();
  void ThrowIfFailed() const { writer_->ThrowIfFailed(); }
  const LogStream& stream() const { return *stream_; }
  // END and LFB records; within WithClock.
  uint64_t ends() const { return ends_; }
  uint64_t lfbs() const { return lfbs_; }

 private:
  static constexpr uint32_t kSlot = 0;

  // What an LFB and the PADs that end its block take at most.
  static constexpr uint64_t kFlushEndBytes = sizeof(format::RecordHeader) + 8 * kLfbWords + 5 * format::kBlockBytes;

  struct PendingLfb {
    Lsn end;
    LfbStamp lfb;
  };

  struct Record {
    LogStream::Place place;
    VsTime first;
    std::span<std::byte> body;
  };
  // A record of so many times, whose body is to be filled under the latch.
  Record Begin(std::unique_lock<Mutex>& lock, uint32_t changes, size_t bytes);
  void Submit(const Record& record, format::RecordKind kind);
  void AwaitSpace(std::unique_lock<Mutex>& lock, uint32_t bytes);
  bool FlushesEveryRound() const override { return true; }
  // A record that came between an LFB and its flush may be on the device already: its LFB is still due.
  bool WantsFlush(const LogStream&) const override { return has_records_.load(); }
  void BeforeFlush(LogStream& stream) override;
  void AfterFlush(const LogStream& stream) override;

  VsClock& clock_;
  uint64_t persistent_ = 0;  // of the stream
  std::unique_ptr<LogStream> stream_;
  std::unique_ptr<LogWriter> writer_;
  std::function<void(VsTime)> told_;
  std::function<void(const LfbStamp&)> lfb_told_;
  Atomic<uint64_t> durable_{0};

  Mutex mutex_;                      // of the clock and of all places of the stream, and of the following
  Atomic<bool> has_records_{false};  // since the last LFB
  std::deque<PendingLfb> pending_;
  uint64_t ends_ = 0;
  uint64_t lfbs_ = 0;

  Mutex waiting_;
  ConditionVariable durable_moved_;
};

// Of the log of this master's epoch: bytes of its earlier epochs, and of other masters, are not valid in it.
uint32_t SaltOf(uint64_t cluster, MasterId master);

}  // namespace dbx::mm
