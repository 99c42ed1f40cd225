// The measurements of a run or a recovery. All printed lines, and the JSON record, are made from them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/types.h"
#include "concurrency_control/deadlock_counters.h"
#include "logging/backup/checkpoint_counters.h"
#include "logging/central_counters.h"
#include "logging/device/device_profile.h"
#include "logging/log_ends.h"
#include "system/perf_counters.h"
#include "system/series.h"

namespace dbx {

// Reasons for an abort of the concurrency control, counted apart.
enum class AbortReason : uint8_t { kLockConflict, kValidation, kExists, kNotFound, kRecordTooLarge, kCount };

// No workload has more procedures.
inline constexpr size_t kProceduresMax = 8;

// Parts of a worker's time (time_ledger.h).
enum class TimePart : uint8_t { kWork, kTracking, kMetadata, kRecord, kAborted, kRest, kCount };
inline constexpr size_t kTimeParts = static_cast<size_t>(TimePart::kCount);
using TimeParts = std::array<double, kTimeParts>;  // nanoseconds by part

struct WorkerStats {
  // All of the measured interval: a transaction that was still active when it ended is in none of these.
  uint64_t executed = 0;                               // pre-committed transactions, read-only ones too
  std::array<uint64_t, kProceduresMax> executed_of{};  // by procedure id
  uint64_t acknowledged = 0;                           // of these, durable with all they depend on
  uint64_t acknowledged_log_bytes = 0;                 // of their own records
  // Began in the interval, and were found durable behind its end; in no throughput and no latency.
  uint64_t acknowledged_late = 0;
  uint64_t late_nanos_max = 0;  // of these, from taking the call to the acknowledgement
  uint64_t user_rollbacks = 0;
  std::array<uint64_t, static_cast<size_t>(AbortReason::kCount)> aborts{};
  uint64_t max_tries = 0;  // the most attempts of one transaction, including the last and any cut off at the end
  double run_seconds = 0;
  double wait_seconds = 0;                // throttled: log buffer or acknowledgement queue full
  TimeParts time_parts{};                 // all zero: not compiled in
  std::optional<uint64_t> charged_reads;  // of rows, warm-up included; none: not compiled in
};

// The parts of the time to acknowledgement, summed over samples (commit_probe.h).
struct CommitParts {
  uint64_t samples = 0;
  std::array<double, 4> nanos{};  // order, append, flush, dependency

  void Add(const CommitParts& other) {
    samples += other.samples;
    for (size_t i = 0; i < nanos.size(); ++i) nanos[i] += other.nanos[i];
  }
};

struct LogDirectoryInfo {
  std::string path;
  std::string kind;         // "real", "ram" or "emulated"
  std::string file_system;  // ext4, tmpfs, ...
  std::string io_engine;    // io_uring+O_DIRECT, pwrite+O_DIRECT, pwrite+fdatasync, ...
  std::optional<DeviceEmulation> emulation{};
};

struct StreamStats {
  uint64_t record_bytes = 0;  // transactions' records
  uint64_t void_bytes = 0;
  uint64_t pad_bytes = 0;
  uint64_t anchor_bytes = 0;
  uint64_t flushes = 0;
  uint64_t flush_nanos = 0;  // sum over flushes, write to sync
};

// The ancestors of a run that continues others.
struct AncestryResult {
  uint32_t parent_run = 0;       // number of the run that it continues; 0: none
  uint64_t runs = 0;             // ancestors that were replayed
  uint64_t recovered = 0;        // their transactions
  uint64_t checkpoint_rows = 0;  // of the checkpoint that the first one starts from; or restored from a backup
};

// The persistent heap of a run, of a scheme that has one.
struct HeapResult {
  std::string memory;  // its kind: persistent, or what stands in for it
  uint64_t bytes = 0;
  uint64_t used_bytes = 0;  // of extents that are in use, at the end
  uint64_t life = 0;        // 1: that in which it was loaded
  uint64_t records = 0;     // of all lives, in its log
  uint64_t gaps = 0;        // in the newest record
  // Of a restart, from the heap's opening on: until transactions could run, until the first was acknowledged (0: none
  // was), and until all was adopted; the last two without the time in which the workers' calls were generated.
  double ready_seconds = 0, first_acknowledged_seconds = 0, adopted_seconds = 0;
  double generation_seconds = 0;
};

// A restart that rebuilds rows from the log when they are needed.
struct RedoResult {
  uint64_t rows = 0;               // that the logs had changed
  uint64_t rebuilt_on_demand = 0;  // of these, before the run's end needed all of them
  uint64_t records_read = 0;       // for all rows
  double analysis_seconds = 0;     // the pass over the logs that finds the chains, before transactions run
};

// Of a run with a replica.
struct ReplicationResult {
  bool synchronous = false;
  uint64_t frames = 0, bytes = 0;  // that were sent
  uint64_t round_trip_ns = 0;      // of the emulated link; 0: as it is
  uint64_t bytes_per_second = 0;   // the same
  std::string lost;                // why the run ended without its replica; "": it did not
};

// Of a run or a recovery whose threads or tables have a place of their own.
struct PlacementResult {
  struct Place {
    std::optional<uint32_t> cpu;  // none: not pinned
    uint32_t node = 0;            // of the CPU
  };
  std::string pin;                     // the policy, or the list
  std::vector<Place> workers;          // empty: none is pinned
  std::vector<Place> writers;          // of logs
  std::vector<Place> buffers;          // of each writer: the CPU by which its buffers were touched first
  std::string memory_asked, memory;    // policies for tables: requested, in force
  std::string memory_refusal;          // why the requested policy is not in force; "": it is
  std::vector<uint32_t> memory_nodes;  // over which it is interleaved
};

struct RunResult {
  std::optional<PlacementResult> placement;
  std::optional<ReplicationResult> replication;
  std::optional<HeapResult> heap;
  std::optional<RedoResult> redo;
  AncestryResult before;
  double recovery_seconds = 0;    // --continue: from opening the old runs to the commit of the new one
  uint64_t checkpoint_bytes = 0;  // --checkpoint
  std::vector<WorkerStats> workers;
  std::vector<std::string> procedure_names;  // by id
  std::vector<StreamStats> streams;
  std::optional<CentralCounters> central_log;
  std::optional<CheckpointCounters> checkpoints;  // of a scheme that takes any
  std::optional<DeadlockCounters> deadlocks;      // of a concurrency control that detects them
  LatencyHistogram latency;  // of those counted as acknowledged: taken from the queue of calls to acknowledgement, ns
  CommitParts commit_parts;
  double seconds = 0;              // the measured interval
  std::vector<SeriesStep> series;  // of it, if it was asked for
  std::optional<PerfResult> perf;  // the same
  // Bytes appended and made durable within it, padding and anchors too (log_interval.h); the streams' counters include
  // warm-up and drain as well.
  uint64_t interval_log_bytes = 0;
  double load_seconds = 0;
  uint64_t logged_txns = 0;         // records of transactions
  uint32_t fixed_record_bytes = 0;  // of each: header, transaction id, fixed parts of scheme and payload
  size_t table_bytes = 0;           // tuples alone: rows x tuple size
  size_t memory_bytes = 0;          // of the tables, indexes and lock tables
  size_t row_meta_bytes = 0;        // of these, LSN vectors in rows
  size_t index_bytes = 0;
  size_t lock_table_bytes = 0;
  size_t version_bytes = 0;  // of superseded versions, and of memory for more
  size_t log_buffer_bytes = 0;
  std::string stop_reason = "done";  // or "log_limit", "signal"
  bool interval_began = true;        // false: stopped before it
  uint32_t run_number = 0;           // run-NNNN
  std::vector<LogDirectoryInfo> directories;
  std::string simd;           // instruction set of the LSN vector operations
  std::string verified;       // checks that passed, e.g. "digest,d"; empty if none was requested
  std::string workload_note;  // TEST: the failure, or empty
};

struct RecoveryResult {
  std::optional<PlacementResult> placement;
  std::optional<HeapResult> heap;
  AncestryResult before;
  uint64_t recovered = 0;
  uint64_t dropped_dependency = 0;  // whole, but a transaction that they depend on is not durable
  uint64_t voids = 0;
  uint64_t torn_logs = 0;             // logs that end in a torn record
  uint64_t cut_bytes = 0;             // non-zero bytes behind the frontier
  bool clean_end = false;             // RUN_END in every log
  uint64_t log_bytes = 0;             // valid prefixes in all
  std::vector<Lsn> frontier;          // end of the valid prefix of each log: the recovery horizon
  std::vector<uint64_t> ended_below;  // ReplaySummary::ended_below
  uint32_t threads = 0;
  bool serial_fallback = false;
  double parallelism = 0;  // measured: mean number of workers that were replaying
  double load_seconds = 0;
  double open_seconds = 0;    // headers, files
  double replay_seconds = 0;  // reading, decoding and replaying, which overlap
  double finish_seconds = 0;  // evidence check
  double verify_seconds = 0;
  std::optional<RestartTimes> restart;  // of a scheme that restarts from a backup
  uint32_t run_number = 0;
  std::vector<LogDirectoryInfo> directories;
  std::string simd;                     // instruction set of the LSN vector operations
  std::string verified;                 // e.g. "a,b,c,d"
  std::string digest;                   // of the recovered state, if it was verified
  std::vector<uint64_t> recovered_ids;  // TxnIds of all runs of the chain, oldest run first; if it was verified
};

}  // namespace dbx
