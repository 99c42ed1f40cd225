// What a run of several masters has measured, by process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "multi_master/lock/global_locks.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/master/master_pages.h"
#include "multi_master/master/read_views.h"
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
  uint64_t log_bytes = 0;     // with LFBs and PADs
  uint64_t record_bytes = 0;  // of PAGES, END and LFB records
  uint64_t splits = 0;
  LatencyHistogram latency;

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
    log_bytes -= before.log_bytes, record_bytes -= before.record_bytes, splits -= before.splits;
  }
};

struct ClusterResult {
  std::vector<MasterResult> masters;
  mm::GlobalLockCounters lock_process;
  mm::PageStoreCounters page_store;
  std::string directory;  // of the Log Stores' files
  std::string verified;   // "consistent", or what is not; "": not asked for
  bool interrupted = false;
};

}  // namespace dbx
