// Two-phase locking in which the older waits and the younger aborts (WAIT_DIE; Rosenkrantz, Stearns and Lewis, "System
// Level Concurrency Control for Distributed Database Systems", TODS 1978).
//
// A transaction's age counts from its first attempt, by its worker's clock, and equals are ordered by worker: no
// counter is shared, ages are never equal, and a transaction that is retried gets ever older compared with the others
// until it is the oldest, which no lock aborts. Nor do phantoms abort it without end: after a few failed validations of
// its scans it holds the leaves, and a held leaf is a lock (held_leaves.h). Clocks that disagree between processors
// cost fairness, nothing else.
//
// Why no cycle arises: a request waits only if its transaction is older than all that it waits for, holders and
// requests ahead of it alike, and asks again when a holder that it did not wait for upgrades ahead of it
// (queued_locks.h). So along waits, age decreases strictly. Asking again aborts no transaction: the upgrader already
// holds a shared lock, a waiter for the exclusive lock is older than every holder, and those queued behind it are older
// still.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/types.h"
#include "concurrency_control/queued_locks.h"

namespace dbx {

class WaitDie {
 public:
  static constexpr std::string_view kName = "WAIT_DIE";
  static constexpr bool kDetectsDeadlocks = false;
  static constexpr bool kWaits = true;

  template <class Places>
  using Locks = QueuedLocks<Places, WaitDie>;

  // The start time of each worker's transaction, which is its age. Written by the worker before it takes a lock, read
  // by others under the latch of a queue in which it stands: the latch orders them, so relaxed accesses do.
  class Shared {
   public:
    explicit Shared(uint32_t workers) : starts_(workers) {}

   private:
    friend class WaitDie;
    std::vector<CachePadded<Atomic<uint64_t>>> starts_;
  };

  WaitDie(Shared& shared, WorkerId worker) : shared_(shared), worker_(worker) {}

  // The locks that a worker takes between two transactions are the youngest: every transaction waits for them.
  void BeginSweep() { StartOf(worker_).store(UINT64_MAX, std::memory_order_relaxed); }
  void Begin(TxnId txn) {
    if (txn != txn_) {
      txn_ = txn;
      own_start_ = Clock::NowTicks();
    }
    StartOf(worker_).store(own_start_, std::memory_order_relaxed);
  }

  void StartAsking() {}
  bool MayWaitFor(WorkerId other) {
    return std::pair(own_start_, worker_) < std::pair(StartOf(other).load(std::memory_order_relaxed), other);
  }
  void StartWait() {}
  bool MustGiveUp() const { return false; }
  void EndWait() {}

 private:
  Atomic<uint64_t>& StartOf(WorkerId worker) { return shared_.starts_[worker.value()].value; }

  Shared& shared_;
  const WorkerId worker_;
  std::optional<TxnId> txn_;
  uint64_t own_start_ = 0;
};

}  // namespace dbx
