// One engine in this process: a database, its log, its concurrency control and its workers. The parts that depend on
// the pair of concurrency control and log scheme are behind virtual functions that a run calls a few times; a
// transaction calls none (PairNode in pair_node.h). One thread creates, opens and measures it; each worker has its own.
#pragma once

#include <memory>
#include <optional>

#include "base/epoch.h"
#include "base/live_counter.h"
#include "benchmarks/workload.h"
#include "concurrency_control/contract.h"
#include "concurrency_control/deadlock_counters.h"
#include "logging/contract.h"
#include "logging/log_options.h"
#include "logging/log_set.h"
#include "storage/database.h"
#include "system/result.h"
#include "system/run_control.h"
#include "system/runs/heap_run.h"
#include "system/runs/log_directory.h"
#include "system/transaction/ack_file.h"
#include "system/transaction/row_source.h"
#include "system/workloads.h"

namespace dbx {

// A worker's body and statistics, for any pair.
class WorkerThread {
 public:
  virtual ~WorkerThread() = default;

  // The thread's body. Throws when the log fails.
  virtual void Run(RunControl& control) = 0;

  // While it runs, from any thread: the counters that worker.h names, and the buckets of the histogram.
  // After it has ended: all of them.
  const WorkerStats& stats() const { return stats_; }
  const LatencyHistogram& latency() const { return latency_; }
  virtual const CommitParts& commit_parts() const = 0;
  // Waits for acknowledgements, up to now. From any thread.
  LiveWaits::Reading ack_waits(uint64_t now_ticks) const { return ack_waits_.Read(now_ticks); }
  // Of its first acknowledgement, where there is a heap; 0: there was none.
  uint64_t first_acknowledged_ticks() const { return first_acknowledged_ticks_; }

 protected:
  WorkerStats stats_;
  LatencyHistogram latency_;
  LiveWaits ack_waits_;
  uint64_t first_acknowledged_ticks_ = 0;
};

class Node {
 public:
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Database& database() { return database_; }
  const Database& database() const { return database_; }
  EpochClock& epochs() { return epochs_; }
  RunControl& control() { return control_; }
  // nullptr before OpenLog, and of a scheme that does not log.
  virtual LogSet* logs() = 0;

  virtual const LogTraits& log_traits() const = 0;
  virtual const CcTraits& cc_traits() const = 0;

  // Before a run's files are created. Throws Error (kUsage) if the log scheme cannot log changes of these tables.
  virtual void CheckTables(const LogOptions& options, uint64_t max_record_bytes) const = 0;
  // The locks of the run's directories, until all threads of the log have ended.
  void Hold(RunLocks locks) { locks_ = std::move(locks); }
  // The persistent heap in which the rows have their versions, until all threads have ended.
  void Hold(std::unique_ptr<HeapRun> heap) { heap_ = std::move(heap); }
  // nullptr: there is none.
  HeapRun* heap() const { return heap_.get(); }
  // Starts the writers of `logs`, if there are any. Then OpenControl, then the workers.
  virtual void OpenLog(std::unique_ptr<LogSet> logs, const LogOptions& options) = 0;
  // Timestamps of this run, where there are any, are above `after`.
  virtual void OpenControl(uint64_t lock_table_buckets, Isolation isolation, Timestamp after) = 0;
  // Called by the thread that will run it, so that its memory is on the thread's NUMA node. `ack_file` may be null.
  virtual std::unique_ptr<WorkerThread> MakeWorker(WorkerId id, WorkloadRef workload, CallList calls,
                                                   const WorkerOptions& options, AckFile* ack_file) = 0;

  // Of a scheme with checkpoints of its own: takes them from now on, if there are to be any. Once.
  virtual void StartCheckpoints() = 0;
  // Of a scheme with row checkpoints: what copies rows beside the workers, by a thread whose id is above theirs.
  virtual std::unique_ptr<RowSource> MakeRowCopier(WorkerId id) = 0;

  // Throws the error of a write, or of another thread of the scheme, if there was one. The last word is spoken after
  // logs()->Stop(). From any thread.
  virtual void ThrowIfLogFailed() const = 0;
  // Once all workers have ended: makes the log durable, and its clean end, with the digest of the database if there is
  // one. Throws the error that failed it.
  virtual void EndLog(const std::optional<std::pair<uint64_t, uint64_t>>& digest) = 0;
  virtual std::optional<CentralCounters> central_counters() const = 0;
  virtual std::optional<CheckpointCounters> checkpoint_counters() const = 0;
  // Of a scheme with checkpoints of its own, while it takes them; from any thread.
  virtual CheckpointMarks checkpoint_marks() const = 0;
  virtual std::optional<DeadlockCounters> deadlocks() const = 0;
  // Memory of the concurrency control outside the rows.
  virtual size_t control_bytes() const = 0;

 protected:
  Node(const RowLayout& layout, uint32_t workers) : database_(layout, workers), epochs_(workers) {}

  RunLocks locks_;
  std::unique_ptr<HeapRun> heap_;
  Database database_;
  EpochClock epochs_;
  RunControl control_;
};

}  // namespace dbx
