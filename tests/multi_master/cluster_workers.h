// Workers that run a workload's calls on all masters of a cluster, and what the cluster's trees hold afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "benchmarks/workload.h"
#include "multi_master/master/copy_rows.h"
#include "multi_master/master/master.h"
#include "storage/database.h"

namespace dbx::mm {

struct Tally {
  uint64_t committed = 0, rolled_back = 0, tries = 0;
  std::map<WaitResult, uint64_t> conflicts;

  Tally& operator+=(const Tally& other) {
    committed += other.committed, rolled_back += other.rolled_back, tries += other.tries;
    for (const auto& [result, count] : other.conflicts) conflicts[result] += count;
    return *this;
  }
};

template <class WorkloadT>
Tally RunWorker(WorkloadT& workload, Master& master, WorkerId worker, uint64_t calls, uint64_t seed) {
  Tally tally;
  CallList list = workload.Generate(worker, calls, seed);
  MmTransaction txn = master.NewTransaction();
  uint64_t sequence = 0;
  for (Call& call : list.calls) {
    call.set_txn_id(TxnId::Make(worker, sequence++));
    const BeginTime begun(host::MonotonicNanos());
    for (Outcome outcome = Outcome::kConflict; outcome == Outcome::kConflict;) {
      ++tally.tries;
      txn.Begin(begun, call.txn_id());
      outcome = workload.Run(txn, call.procedure, call.args);
      if (outcome == Outcome::kConflict) ++tally.conflicts[txn.last_wait()];
      outcome == Outcome::kOk ? (void)txn.Commit() : txn.Abort();
      tally.committed += outcome == Outcome::kOk;
      tally.rolled_back += outcome != Outcome::kOk && outcome != Outcome::kConflict;
    }
  }
  master.log().AwaitDurable(master.log().last_record());
  return tally;
}

// Each worker runs its list of calls once; worker w on master w % masters.
template <class Cluster, class WorkloadT>
Tally RunWorkers(Cluster& cluster, WorkloadT& workload, uint32_t workers, uint64_t calls, uint64_t seed) {
  std::vector<Tally> tallies(workers);
  RunInParallel(workers, [&](uint32_t worker) {
    Master& master = cluster.master(worker % cluster.masters());
    tallies[worker] = RunWorker(workload, master, WorkerId(worker), calls, seed);
  });
  Tally all;
  for (const Tally& tally : tallies) all += tally;
  return all;
}

// Present rows of the trees, read by a transaction of one master, become the rows of `to`, which has the tables only.
inline void CopyTrees(Master& by, Database& to) {
  MmTransaction txn = by.NewTransaction(Isolation::kSerializable);
  txn.Begin(BeginTime(1));
  CHECK(CopyRows(txn, to) == Outcome::kOk);
  txn.Commit();
}

// A workload's database, loaded.
template <class WorkloadT>
struct Loaded {
  explicit Loaded(const auto& config) : db({}, 1), workload(config) {
    db.OrderEveryTable();
    workload.CreateTables(db);
    workload.Load(db, 7, 1);
  }
  // The workload's verdict on the trees of a cluster, as one of its masters sees them.
  std::optional<std::string> Inconsistency(Master& by, const auto& config) const {
    Database left({}, 1);
    left.OrderEveryTable();
    WorkloadT tables(config);
    tables.CreateTables(left);
    CopyTrees(by, left);
    return workload.Inconsistency(left);
  }
  Database db;
  WorkloadT workload;
};

}  // namespace dbx::mm
