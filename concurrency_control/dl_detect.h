// Two-phase locking that waits and breaks deadlocks (DL_DETECT): whoever begins to wait looks for cycles through itself
// and aborts the youngest transaction of each (waits_for_graph.h).
//
// A transaction is as old as its first wait and keeps its age when it is run again, so that it is not the victim for
// ever. A transaction that never waits reads no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/types.h"
#include "concurrency_control/queued_locks.h"
#include "concurrency_control/waits_for_graph.h"

namespace dbx {

class DlDetect {
 public:
  static constexpr std::string_view kName = "DL_DETECT";
  static constexpr bool kWaits = true;

  template <class Places>
  using Locks = QueuedLocks<Places, DlDetect>;
  using Shared = WaitsForGraph;

  DlDetect(Shared& graph, WorkerId worker) : graph_(graph), worker_(worker), search_(graph, worker) {}

  // The locks that a worker takes between two transactions count as the last one's: it waits for nobody meanwhile.
  void BeginSweep() {}
  void Begin(TxnId txn) {
    graph_.BeginTry(worker_);
    if (txn == txn_) return;
    txn_ = txn;
    born_ = 0;
  }

  void StartAsking() { graph_.ClearEdges(worker_); }
  bool MayWaitFor(WorkerId other) {
    graph_.AddEdge(worker_, other);
    return true;
  }
  void StartWait() {
    if (born_ == 0) born_ = Clock::NowTicks();
    graph_.Publish(worker_, born_);
    is_victim_ = !search_.BreakCycles();
  }
  bool MustGiveUp() const { return is_victim_ || graph_.IsDoomed(worker_); }
  void EndWait() { graph_.Retract(worker_); }

 private:
  Shared& graph_;
  const WorkerId worker_;
  WaitsForGraph::Search search_;
  std::optional<TxnId> txn_;
  uint64_t born_ = 0;  // 0: not yet
  bool is_victim_ = false;
};

}  // namespace dbx
