// A master's log in Log Stores (models MasterLog): its clock, its flush buffer, and the device of three stores.
//
// Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "multi_master/log/flush_buffer.h"
#include "multi_master/log/log_volume.h"
#include "multi_master/master/master_log.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

class StoredLog final : public MasterLog {
 public:
  StoredLog(const FlushBufferOptions& options, std::unique_ptr<BlockDevice> device)
      : self_(options.self), clock_(options.self), buffer_(options, clock_, std::move(device)) {}

  Lsn AppendPages(std::span<PageChange> changes) override;
  VsTime AppendEnd(const TxnName& txn, EndKind kind, TxnId id) override;
  void OnGrant(const PageLsn& page, const AfterList& after) override {
    buffer_.WithClock([&](VsClock& clock) { clock.OnGrant(page, after); });
  }
  bool MayApply(const LfbStamp& lfb) const override {
    return buffer_.WithClock([&](VsClock& clock) { return clock.MayApply(lfb); });
  }
  void OnApplied(const LfbStamp& lfb) override {
    buffer_.WithClock([&](VsClock& clock) { clock.OnApplied(lfb); });
  }
  VsVector applied() const override {
    return buffer_.WithClock([](VsClock& clock) { return clock.applied(); });
  }
  ReadView View() const override {
    return buffer_.WithClock([](VsClock& clock) { return clock.View(); });
  }
  VsTime last_record() const override { return VsTime(last_record_.load(std::memory_order_acquire)); }
  VsTime durable_until() const override { return buffer_.DurableUntil(); }
  void AwaitDurable(VsTime time) override { buffer_.WaitDurable(time); }

  // Each LFB that has become durable, in their order: what a reader of the log at the Log Stores would find. Set before
  // use.
  void OnLfbDurable(std::function<void(const LfbStamp&)> told) { buffer_.OnLfbDurable(std::move(told)); }
  // All is durable when it returns; nothing is appended any more.
  void Stop() { buffer_.Stop(); }
  LogVolume volume() const {
    return buffer_.WithClock([this](VsClock&) {
      LogVolume volume = volume_;
      volume.record_bytes = buffer_.stream().slot(0).record_bytes;
      volume.ends = buffer_.ends(), volume.lfbs = buffer_.lfbs();
      volume.bytes = buffer_.stream().reserved_bytes();
      return volume;
    });
  }

 private:
  void Appended(VsTime last);

  const MasterId self_;
  // Release: a transaction that reads what another one's records changed under a page's latch reads their time too.
  Atomic<uint64_t> last_record_{0};
  VsClock clock_;     // used by the buffer, under its latch
  LogVolume volume_;  // under the same latch
  mutable FlushBuffer buffer_;
};

}  // namespace dbx::mm
