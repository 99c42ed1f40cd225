// Timestamps of a multi-version concurrency control, and what every worker says about its transaction: which snapshot
// it may be reading, and when it commits.
//
// A transaction with begin timestamp B sees what ended its writing at or below B. Two questions are answered from the
// slots of the workers, each written by its worker alone:
//
//  1. Will the worker that has locked a row commit at or below B? Before it draws its end timestamp it stores kDrawing,
//     and the timestamp afterwards. The counter only ever rises by such draws, one after the other, so a B that is not
//     below an end timestamp was loaded from what that draw or a later one left: whoever has loaded such a B, and then
//     the slot, finds kDrawing or the timestamp (release of the draw, acquire of the load). Who finds neither may rely
//     on an end above B. kDrawing tells nothing: wait.
//  2. Which versions does nobody need any more? Those that ended at or below the watermark: the least of what the slots
//     hold and of the counter, loaded before them. A worker stores a timestamp that is no larger than its B before it
//     loads B (both sequentially consistent, as are the loads of the watermark): either the watermark includes what it
//     stored, or its B is not below the counter that the watermark was made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"

namespace dbx {

class SnapshotClock {
 public:
  // No transaction; no end timestamp. Larger than any timestamp.
  static constexpr Timestamp kNone{std::numeric_limits<uint64_t>::max()};
  // Not larger than any timestamp.
  static constexpr Timestamp kDrawing{0};

  explicit SnapshotClock(uint32_t workers) : slots_(workers) {}

  // Before the first transaction: timestamps are larger than `timestamp`, or for a snapshot no smaller.
  void StartAfter(Timestamp timestamp) { last_.value.store(timestamp.value()); }

  // The begin timestamp of a transaction of this worker, from now to End.
  Timestamp Begin(WorkerId worker) {
    Slot& slot = slots_[worker.value()].value;
    // What the worker knows is low enough, and the counter's line, which all write, need not be waited for here: until
    // the timestamp is compared with something, the processor goes on.
    slot.begin.exchange(slot.known.value());
    return slot.known = Timestamp(last_.value.load());
  }
  // A later begin timestamp for the same transaction.
  Timestamp Now() const { return Timestamp(last_.value.load()); }

  // The end timestamp of a transaction that has locked all that it writes. Others see it until EndWriting.
  Timestamp Draw(WorkerId worker) {
    Slot& slot = slots_[worker.value()].value;
    // Release: with the draw, if not before it.
    slot.end.store(kDrawing.value(), std::memory_order_release);
    const Timestamp end(last_.value.fetch_add(1) + 1);
    slot.end.store(end.value(), std::memory_order_release);
    return slot.known = end;
  }
  // There will be a draw soon: fetches the counter's line, to be written.
  void PrepareToDraw() const { PrefetchToWrite(&last_.value); }
  // After the locks are gone. Release: whoever sees it sees the rows as they were left.
  void EndWriting(WorkerId worker) { slots_[worker.value()].value.end.store(kNone.value(), std::memory_order_release); }

  // The worker reads nothing any more. Release: its accesses are over for whoever sees it.
  void End(WorkerId worker) { slots_[worker.value()].value.begin.store(kNone.value(), std::memory_order_release); }

  // What `worker`, which holds a lock, says about its end timestamp: kNone, kDrawing, or the timestamp.
  Timestamp EndOf(WorkerId worker) const {
    return Timestamp(slots_[worker.value()].value.end.load(std::memory_order_acquire));
  }

  // No transaction has, or will have, a begin timestamp below this.
  Timestamp Watermark() const {
    uint64_t least = last_.value.load();
    for (const auto& slot : slots_) least = std::min(least, slot.value.begin.load());
    return Timestamp(least);
  }

  uint32_t workers() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  struct Slot {
    Atomic<uint64_t> begin{kNone.value()};  // a timestamp not above the begin timestamp
    Atomic<uint64_t> end{kNone.value()};
    Timestamp known;  // the last timestamp that the worker has seen; its own
  };

  CachePadded<Atomic<uint64_t>> last_{uint64_t{0}};  // the last end timestamp that was drawn
  std::vector<CachePadded<Slot>> slots_;
};

}  // namespace dbx
