// Epochs: a coarse global clock, and the epoch that every worker has last seen. Epoch-based reclamation and Silo's
// epochs.
//
// Two uses. Memory: an unlinked object may be reused once every worker has announced a later epoch. Commit (Silo): the
// transactions of an epoch are complete once every worker has announced a later one.
//
// A worker calls Enter before it looks at shared memory, Refresh between two transactions (it then holds no
// pointer into shared memory and no commit epoch) and Leave before it idles or blocks. Refresh is the hot
// path: two loads, as long as the epoch stands still. A slot has one thread at a time.
//
// The announcement must be visible before the worker's next read of shared memory, or SafeEpoch could miss a
// worker that already holds a pointer. An x86 store may be delayed past later loads, so the announcement
// is an exchange, a full barrier; that costs some 5 ns once per epoch instead of once per transaction.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"

namespace dbx {

class EpochClock {
 public:
  static constexpr Epoch kFirst{1};

  // `workers` slots, all of them idle.
  explicit EpochClock(uint32_t workers) : slots_(workers) {}

  // Sequentially consistent: a commit epoch is ordered against Advance and the announcements.
  Epoch Current() const { return Epoch(now_.value.load(std::memory_order_seq_cst)); }

  // Moves the clock on by one and returns the new epoch. Any thread.
  Epoch Advance() { return Epoch(now_.value.fetch_add(1, std::memory_order_seq_cst) + 1); }

  // Before any worker enters: the clock continues above an older run's epochs.
  void StartAfter(Epoch old) { now_.value.store(std::max(now_.value.load(), old.value() + 1)); }

  void Enter(WorkerId worker) { Announce(worker); }

  // The worker holds no pointer that it found earlier.
  void Refresh(WorkerId worker) {
    // Relaxed: a stale epoch only delays the announcement; the slot is written by this thread alone.
    const uint64_t now = now_.value.load(std::memory_order_relaxed);
    if (now != slots_[worker.value()].value.load(std::memory_order_relaxed)) Announce(worker);
  }

  // Release: a thread that sees the slot idle (SafeEpoch) sees all accesses of the section as done.
  void Leave(WorkerId worker) { slots_[worker.value()].value.store(kIdle, std::memory_order_release); }

  // Whether the worker is outside of its section. Sequentially consistent, as Enter is: of a thread that tells workers
  // to stay outside and then looks here, and a worker that enters and then looks whether it may, one sees the other.
  bool IsIdle(WorkerId worker) const { return slots_[worker.value()].value.load(std::memory_order_seq_cst) == kIdle; }

  // The epoch that the worker last announced; only between Enter and Leave, by the worker itself.
  Epoch Announced(WorkerId worker) const { return Epoch(slots_[worker.value()].value.load(std::memory_order_relaxed)); }

  // Every worker is idle or has announced this epoch or a later one, and any commit epoch that is loaded between Enter
  // and Leave from now on is not below it. True for good; a later call may return less, for a worker that was slow to
  // announce, so a caller that needs a frontier keeps the maximum.
  Epoch SafeEpoch() const;

  // The stamp of an object that this worker, within its section, has just unlinked: it may be reused once SafeEpoch()
  // is above the stamp.
  Epoch RetireEpoch(WorkerId worker) {
    // The full barrier keeps the load below from overtaking the store that unlinked. Otherwise the stamp could be an
    // epoch in which a later reader still finds the object.
    auto& slot = slots_[worker.value()].value;
    slot.exchange(slot.load(std::memory_order_relaxed), std::memory_order_seq_cst);
    return Current();
  }

  uint32_t workers() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  static constexpr uint64_t kIdle = std::numeric_limits<uint64_t>::max();

  struct Slot : Atomic<uint64_t> {
    Slot() : Atomic<uint64_t>(kIdle) {}
  };

  void Announce(WorkerId worker) {
    slots_[worker.value()].value.exchange(Current().value(), std::memory_order_seq_cst);
  }

  CachePadded<Atomic<uint64_t>> now_{kFirst.value()};
  std::vector<CachePadded<Slot>> slots_;
};

// A transaction id in the order of commits: its epoch, and a number within it. Zero is never assigned.
struct EpochTid {
  static constexpr int kSequenceBits = 24;

  static constexpr Tid First(Epoch epoch) { return Tid(epoch.value() << kSequenceBits); }
  static constexpr Tid Last(Epoch epoch) { return Tid(First(Epoch(epoch.value() + 1)).value() - 1); }
  static constexpr Epoch EpochOf(Tid tid) { return Epoch(tid.value() >> kSequenceBits); }
};

// A worker's section as a scope.
class EpochSection {
 public:
  EpochSection(EpochClock& clock, WorkerId worker) : clock_(clock), worker_(worker) { clock_.Enter(worker_); }
  ~EpochSection() { clock_.Leave(worker_); }
  EpochSection(const EpochSection&) = delete;
  EpochSection& operator=(const EpochSection&) = delete;

 private:
  EpochClock& clock_;
  WorkerId worker_;
};

// A thread that advances the clock every `period` until it is destroyed.
class EpochTicker {
 public:
  EpochTicker(EpochClock& clock, std::chrono::milliseconds period);
  ~EpochTicker();
  EpochTicker(const EpochTicker&) = delete;
  EpochTicker& operator=(const EpochTicker&) = delete;

 private:
  void Run(EpochClock& clock, std::chrono::milliseconds period);

  Mutex mutex_;
  ConditionVariable wake_;
  bool stop_ = false;  // under mutex_
  Thread thread_;
};

}  // namespace dbx
