// A run of several masters over one database on this host (multi_master/): one process each for the masters, the lock
// process, three Log Stores and a Page Store, which talk over TCP on the loopback interface.
//
//   load -> fork all -> ports -> start -> warm-up -> go -> results -> [verify] -> end
//
// If a process ends before its time all others are ended, and the run fails: the survivors of a dead master cannot go
// on without it here.
//
// Threads: main's, which has started no other.
#pragma once

#include "system/cluster/cluster_result.h"
#include "system/command_line/options.h"

namespace dbx {

// Throws Error (kUsage) for options that a cluster does not know, (kIo) where a process was lost.
ClusterResult RunCluster(const Options& options);

}  // namespace dbx
