// Options converted for the parts of a run.
#pragma once

#include <algorithm>

#include "base/check.h"
#include "concurrency_control/contract.h"
#include "logging/contract.h"
#include "logging/log_options.h"
#include "logging/log_set.h"
#include "system/command_line/options.h"
#include "system/command_line/parse_device.h"
#include "system/run_control.h"
#include "system/runs/log_files.h"

namespace dbx {

inline LogSetOptions LogSetOptionsOf(const Options& options, uint64_t run_id, Lsn start_lsn = {}) {
  LogSetOptions result;
  result.start_lsn = start_lsn;
  result.run_id = run_id;
  result.ring_bytes = options.log_buffer_size;
  result.max_record_bytes = options.max_log_entry_size;
  result.workers = options.thread_cnt;
  result.writer.flush_interval_us = options.log_flush_interval_us;
  result.writer.flush_block_bytes = options.log_flush_block_bytes;
  result.writer.flushes_per_anchor = options.psn_flush_freq;
  return result;
}

// Threads that run transactions: the workers, and behind them the one that copies rows, if there is one.
inline uint32_t TransactionThreads(const Options& options, const LogTraits& traits) {
  return options.thread_cnt + (TakesRowCheckpoints(options, traits) ? 1 : 0);
}

inline LogOptions LogOptionsOf(const Options& options, Stamp first_stamp) {
  LogOptions result;
  result.compress = options.compress_lsn_log;
  result.forget_delta_bytes = options.locktable_evict_buffer;
  result.first_stamp = first_stamp;
  const std::optional<CentralMethod> method = CentralMethodNamed(options.central_log);
  CHECK(method.has_value());
  result.central_method = *method;
  result.hopping_distance_bytes = options.hopping_distance_bytes;
  result.diff_method = DiffMethodNamed(options.diff_method).value();
  result.change_image = options.diff_image == "RUNS" ? ChangeImage::kRuns : ChangeImage::kSlot;
  return result;
}

// REQUIRES: the option has one of the names.
inline FlushInstruction FlushOf(const Options& options) { return FlushInstructionNamed(options.flush).value(); }

inline Isolation IsolationOf(const Options& options) {
  return options.isolation_level == "SNAPSHOT" ? Isolation::kSnapshot : Isolation::kSerializable;
}

inline uint64_t LockTableBuckets(const Options& options) { return options.locktable_modifier * options.thread_cnt; }

inline WorkerOptions WorkerOptionsOf(const Options& options) {
  WorkerOptions result;
  result.txn_count = options.seconds > 0 ? 0 : options.max_txns_per_thread;
  result.warmup_count = options.warmup;
  result.timed_warmup = options.warmup_seconds > 0;
  result.lookahead = options.lookahead;
  result.abort_penalty_ns = options.abort_penalty_ns;
  result.time_breakdown = options.time_breakdown;
  if (const auto device = ParseDevice(options.log_device)) result.read_nanos = device->read_nanos;
  result.latency_hiding = options.latency_hiding;
  return result;
}

// Enough calls that the list does not fit a cache, but no more than the run needs, and fewer where each is long.
inline uint64_t CallListLength(const Options& options) {
  constexpr uint64_t kUncached = 1 << 20, kAccessesMax = kUncached << 4;
  if (options.query_list_len > 0) return options.query_list_len;
  const uint64_t accesses = options.workload == WorkloadKind::kYcsb ? options.req_per_query : 1;
  const uint64_t enough = std::min(kUncached, kAccessesMax / accesses);
  if (options.seconds > 0 || options.warmup_seconds > 0) return enough;
  return std::clamp<uint64_t>(options.max_txns_per_thread + options.warmup, 1, enough);
}

// An upper bound for the sequence numbers of a run's transactions.
inline uint64_t MostTransactionsPerWorker(const Options& options) {
  constexpr double kPerSecond = 20e6;
  const double seconds = options.seconds + options.warmup_seconds;
  const uint64_t timed = seconds > 0 ? static_cast<uint64_t>((seconds + 1) * kPerSecond) : 0;
  return timed + (options.seconds > 0 ? 0 : options.max_txns_per_thread) + options.warmup;
}

}  // namespace dbx
