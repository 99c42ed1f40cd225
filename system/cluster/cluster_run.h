// A run of several masters over one database on this host (multi_master/): one process each for the masters, the lock
// process, three Log Stores and the Page Stores, which talk over TCP on the loopback interface.
//
//   load -> fork all -> ports -> start -> warm-up -> go -> results -> recoveries -> [verify] -> end
//
// A run goes on without processes that have died as long as enough of their kind are left (members.h has the table). It
// then ends as planned: a master that has died before its results came is not counted, the lock process has recovered
// it, and a master that is left reads the rows that are verified.
//
// Threads: main's, which has started no other.
#pragma once

#include "system/cluster/cluster_result.h"
#include "system/command_line/options.h"

namespace dbx {

// Throws Error (kUsage) for options that a cluster does not know, (kIo) where too many processes were lost.
ClusterResult RunCluster(const Options& options);

}  // namespace dbx
