// Timestamps of a multi-version concurrency control, and every worker's published begin and end timestamp: which
// snapshot it may be reading, and when it commits.
//
// A transaction with begin timestamp B sees the versions committed at or below B. Two questions are answered from the
// slots of the workers, each written by its worker alone:
//
//  1. Will the worker that has locked a row commit at or below B? Before it draws its end timestamp it stores kDrawing,
//     and the timestamp afterwards. The counter only ever rises by such draws, one after the other, so a B that is not
//     below an end timestamp was loaded from the value of that draw or a later one: a reader that has loaded such a B,
//     and then the slot, finds kDrawing or the timestamp (release of the draw, acquire of the load). A reader that
//     finds neither may rely on an end above B. kDrawing does not tell: wait.
//  2. Which versions are garbage? Those that ended at or below the watermark: the minimum over the slots and the
//     counter, loaded before them. A worker stores a timestamp that is no larger than its B before it loads B (both
//     sequentially consistent, as are the loads of the watermark): either the watermark includes the stored timestamp,
//     or its B is not below the counter that the watermark was computed from.
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
  // The last end timestamp that was drawn is kept in `last`, which outlives this.
  SnapshotClock(uint32_t workers, Atomic<uint64_t>& last) : last_(last), slots_(workers) {}
  SnapshotClock(const SnapshotClock&) = delete;
  SnapshotClock& operator=(const SnapshotClock&) = delete;

  // Before the first transaction: timestamps are larger than `timestamp`, or for a snapshot no smaller.
  void StartAfter(Timestamp timestamp) {
    first_ = timestamp;
    last_.store(timestamp.value());
  }
  Timestamp first() const { return first_; }

  // The begin timestamp of a transaction of this worker, from now to End.
  Timestamp Begin(WorkerId worker) {
    Slot& slot = slots_[worker.value()].value;
    // The worker's last known timestamp is low enough, so the counter's cache line, which all write, is not waited for
    // here: the processor continues until the timestamp is compared.
    slot.begin.exchange(slot.known.value());
    return slot.known = Timestamp(last_.load());
  }
  // A later begin timestamp for the same transaction.
  Timestamp Now() const { return Timestamp(last_.load()); }

  // The end timestamp of a transaction that has locked its write set. Others see it until EndWriting.
  Timestamp Draw(WorkerId worker) {
    Slot& slot = slots_[worker.value()].value;
    // Release: with the draw, if not before it.
    slot.end.store(kDrawing.value(), std::memory_order_release);
    const Timestamp end(last_.fetch_add(1) + 1);
    slot.end.store(end.value(), std::memory_order_release);
    return slot.known = end;
  }
  // There will be a draw soon: fetches the counter's line, to be written.
  void PrepareToDraw() const { PrefetchToWrite(&last_); }
  // After unlocking. Release: a worker that sees it sees the installed rows.
  void EndWriting(WorkerId worker) { slots_[worker.value()].value.end.store(kNone.value(), std::memory_order_release); }

  // The worker reads no more. Release: a worker that sees it sees these accesses as done.
  void End(WorkerId worker) { slots_[worker.value()].value.begin.store(kNone.value(), std::memory_order_release); }

  // The published end timestamp of `worker`, which holds a lock: kNone, kDrawing, or the timestamp.
  Timestamp EndOf(WorkerId worker) const {
    return Timestamp(slots_[worker.value()].value.end.load(std::memory_order_acquire));
  }

  // No transaction has, or will have, a begin timestamp below this.
  Timestamp Watermark() const {
    uint64_t least = last_.load();
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

  CachePadded<Atomic<uint64_t>> own_last_{uint64_t{0}};
  Atomic<uint64_t>& last_ = own_last_.value;  // the last end timestamp that was drawn
  Timestamp first_;
  std::vector<CachePadded<Slot>> slots_;
};

}  // namespace dbx
