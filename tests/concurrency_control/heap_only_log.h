// A log scheme that logs nothing, over rows whose versions lie in a persistent heap: for tests of the concurrency
// control's side of write-behind logging. One of two leaves the clock to the concurrency control.
#pragma once

#include <functional>

#include "base/host.h"
#include "concurrency_control/log_observer.h"
#include "logging/none/no_log.h"

namespace dbx::testing {

class HeapOnlyLog : public LogDefaults {
 public:
  static constexpr LogTraits kTraits = [] {
    LogTraits traits = NoLog::kTraits;
    traits.name = "HEAP_ONLY";
    traits.version_heap = true;
    return traits;
  }();
  struct TxnState {};

  Timestamp durable_until() const { return durable_until_; }
  void SetDurableUntil(Timestamp stamp) { durable_until_ = stamp; }

 private:
  Timestamp durable_until_{~uint64_t{0}};
};

// The same, which draws the stamps, and tells the test of each step of a commit.
class HeapStampsLog : public HeapOnlyLog {
 public:
  static constexpr LogTraits kTraits = [] {
    LogTraits traits = HeapOnlyLog::kTraits;
    traits.name = "HEAP_STAMPS";
    traits.draws_stamps = true;
    return traits;
  }();
  enum class Step { kAnnounced, kDrawn, kInstalled, kUndrawn };
  using Listener = std::function<void(Step step, const HeapSlot* slot)>;

  // nullptr: the test is not told.
  void ListenBy(Listener listener) { listener_ = std::move(listener); }

  Atomic<uint64_t>& clock() { return clock_; }
  void Announce(TxnState&) { Tell(Step::kAnnounced); }
  void Drawn(TxnState&, Timestamp) { Tell(Step::kDrawn); }
  void Installed(TxnState&, const HeapSlot* slot, size_t) { Tell(Step::kInstalled, slot); }
  void Undrawn(TxnState&) { Tell(Step::kUndrawn); }

 private:
  void Tell(Step step, const HeapSlot* slot = nullptr) {
    if (listener_) listener_(step, slot);
  }

  Atomic<uint64_t> clock_{heap_format::kLoadStamp};
  Listener listener_;
};

}  // namespace dbx::testing
