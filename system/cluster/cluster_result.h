// What a run of several masters has measured, by process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "multi_master/lock/global_locks.h"
#include "multi_master/lock/kept_row_locks.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/log/log_volume.h"
#include "multi_master/master/master_pages.h"
#include "multi_master/master/read_views.h"
#include "multi_master/network.h"
#include "multi_master/store/page_store.h"

namespace dbx {

// Of its measured interval.
struct MasterResult {
  uint64_t executed = 0;
  uint64_t acknowledged = 0;
  uint64_t rollbacks = 0;  // by the procedure
  uint64_t victims = 0;    // of deadlocks
  uint64_t timeouts = 0;
  double seconds = 0;
  mm::LocalLockCounters locks;
  mm::PageCounters pages;
  mm::ReadCounters reads;
  mm::LogVolume log;
  mm::KeptRowLockCounters kept;  // 0 unless they are counted
  uint64_t splits = 0;
  LatencyHistogram latency;
  bool died = false;  // before it had a result: all is 0

  // Of the counters of locks, pages and the log, what was before.
  void Subtract(const MasterResult& before) {
    locks.requests -= before.locks.requests, locks.releases -= before.locks.releases;
    locks.grants -= before.locks.grants, locks.reclaims -= before.locks.reclaims;
    locks.upgrades -= before.locks.upgrades, locks.row_locks -= before.locks.row_locks;
    locks.row_conflicts -= before.locks.row_conflicts, locks.transactions -= before.locks.transactions;
    pages.fetched -= before.pages.fetched, pages.from_buffer -= before.pages.from_buffer;
    pages.evicted -= before.pages.evicted;
    pages.versions_from_buffer -= before.pages.versions_from_buffer;
    pages.versions_from_store -= before.pages.versions_from_store;
    pages.changes_followed -= before.pages.changes_followed, pages.dropped -= before.pages.dropped;
    reads.versioned -= before.reads.versioned, reads.rerun -= before.reads.rerun;
    reads.strict -= before.reads.strict;
    kept.messages -= before.kept.messages, kept.first -= before.kept.first;
    log -= before.log, splits -= before.splits;
  }
};

// What the lock process has done about a dead master; seconds from when it knew of the death.
struct MasterRecovery {
  uint8_t master = 0;
  uint64_t losers = 0;        // transactions that were rolled back
  double freed_seconds = 0;   // until its pages could be granted
  double undone_seconds = 0;  // until its losers were rolled back
};

// Of a process that the run has outlived.
struct ProcessDeath {
  mm::NodeId node;
  double seconds = 0;  // since the processes were forked
  const char* phase;   // of the run: "start", "warm-up", "run", "verification", "end"
  std::string how;     // "log store 1 was ended by signal 9"
  std::optional<MasterRecovery> recovery;
};

struct ClusterResult {
  std::vector<MasterResult> masters;
  std::vector<ProcessDeath> deaths;
  mm::GlobalLockCounters lock_process;
  mm::PageStoreCounters page_store;
  std::string directory;  // of the Log Stores' files
  std::string verified;   // "consistent", or what is not; "": not asked for
  bool interrupted = false;
};

}  // namespace dbx
