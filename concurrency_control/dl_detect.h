// Two-phase locking that waits and breaks deadlocks (DL_DETECT): a worker that begins to wait searches the waits-for
// graph for cycles through itself and aborts the youngest transaction of each (base/waits_for_graph.h).
//
// A transaction is as old as its first wait and keeps its age when it is run again, so that it is not the victim for
// ever; phantoms do not abort it for ever either (held_leaves.h). A transaction that never waits reads no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/types.h"
#include "base/waits_for_graph.h"
#include "concurrency_control/deadlock_counters.h"
#include "concurrency_control/queued_locks.h"

namespace dbx {

class DlDetect {
 public:
  static constexpr std::string_view kName = "DL_DETECT";
  static constexpr bool kDetectsDeadlocks = true;
  static constexpr bool kWaits = true;

  template <class Places>
  using Locks = QueuedLocks<Places, DlDetect>;

  class Shared {
   public:
    explicit Shared(uint32_t workers) : graph(workers), counters(workers) {}

    // While no worker runs.
    DeadlockCounters deadlocks() const {
      DeadlockCounters sum;
      for (const auto& own : counters) {
        sum.searches += own.value.searches;
        sum.cycles += own.value.cycles;
        sum.search_seconds += own.value.search_seconds;
        sum.wait_seconds += own.value.wait_seconds;
      }
      return sum;
    }

    WaitsForGraph graph;
    std::vector<CachePadded<DeadlockCounters>> counters;  // by worker
  };

  DlDetect(Shared& shared, WorkerId worker)
      : graph_(shared.graph),
        counters_(shared.counters[worker.value()].value),
        worker_(worker),
        search_(shared.graph, worker) {}

  // The locks that a worker takes between two transactions count as the last one's: it waits for no other worker
  // meanwhile.
  void BeginSweep() {}
  void Begin(TxnId txn) {
    graph_.BeginTry(worker_);
    if (txn == txn_) return;
    txn_ = txn;
    started_ = 0;
  }

  void StartAsking() { graph_.ClearEdges(worker_); }
  bool MayWaitFor(WorkerId other) {
    graph_.AddEdge(worker_, other);
    return true;
  }
  void StartWait() {
    const uint64_t now = Clock::NowTicks();
    if (started_ == 0) started_ = now;
    if (waits_since_ == 0) waits_since_ = now;
    graph_.Publish(worker_, started_);
    is_victim_ = !search_.BreakCycles();
    ++counters_.searches;
    counters_.cycles = search_.cycles();
    counters_.search_seconds += Clock::ToSeconds(Clock::NowTicks() - now);
  }
  bool MustGiveUp() const { return is_victim_ || graph_.IsDoomed(worker_); }
  void EndWait() {
    graph_.Retract(worker_);
    counters_.wait_seconds += Clock::ToSeconds(Clock::NowTicks() - std::exchange(waits_since_, 0));
  }

 private:
  WaitsForGraph& graph_;
  DeadlockCounters& counters_;
  const WorkerId worker_;
  WaitsForGraph::Search search_;
  std::optional<TxnId> txn_;
  uint64_t started_ = 0;      // 0: not yet
  uint64_t waits_since_ = 0;  // 0: it does not
  bool is_victim_ = false;
};

}  // namespace dbx
