// A recovery of a cluster of masters that are all dead: the newest cluster-NNNN of the log directory, or that of --run.
// It reads the files of the Log Stores and writes nothing.
//
//   `cluster` -> load -> logs of all masters -> pages -> rows without losers -> workload, reference, ack file
//
// Threads: main's, and those that load and compare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multi_master/restart/remaining_database.h"
#include "system/command_line/options.h"

namespace dbx {

struct ClusterRecoveryResult {
  struct OfLog {
    uint64_t end = 0;      // up to here stores have it
    uint64_t durable = 0;  // behind its last LFB
    bool sealed = false;
  };
  std::string directory;
  uint32_t masters = 0, workers = 0;
  mm::RestartCounters counters;
  std::vector<OfLog> logs;
  std::vector<std::string> notices;  // stores that cannot be read
  double open_seconds = 0, load_seconds = 0;
  double replay_seconds = 0;  // logs to pages
  double finish_seconds = 0;  // losers, rows
  double verify_seconds = 0;
  std::string verified;  // "a,c,d"; "": not asked for
  std::string digest;    // if it was verified
};

// Takes the identity of the cluster into `options`. Throws Error.
ClusterRecoveryResult RecoverCluster(Options& options);

}  // namespace dbx
