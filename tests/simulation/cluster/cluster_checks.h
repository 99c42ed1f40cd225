// What must hold of a cluster at rest, when all of its workers are done and all that was broken is mended:
//
//   - dead masters' logs are sealed, their pages free, their losers undone;
//   - all logs become durable, and every master and Page Store has read them to their ends;
//   - what was acknowledged is in the logs, whatever was read was written by a transaction in the logs, and the history
//     is serializable (oracle.h); the rows are what the last of their writers left;
//   - the pages of Page Stores and of the masters' buffers are those of a reference replay of the logs, and trees are
//     well formed;
//   - a transaction of any master reads these rows, and the workload finds them consistent;
//   - the lock process keeps no row lock, and no wait.
//
// Throws Violation. Threads: the body's fibre of the simulation.
#pragma once

#include <vector>

#include "tests/simulation/cluster/log_replay.h"
#include "tests/simulation/cluster/sim_cluster.h"

namespace dbx::sim {

struct CheckedCluster {
  uint64_t committed = 0;
  uint64_t acknowledged = 0;
  uint64_t pages_of_buffers = 0;  // that were compared
  uint64_t records = 0;
  uint64_t splits = 0;
  uint64_t losers = 0;
};

CheckedCluster CheckCluster(SimCluster& cluster, const ClusterDatabase& database);

}  // namespace dbx::sim
