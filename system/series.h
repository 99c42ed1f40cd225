// A time series of a run: the measured interval in steps, each with the transactions, flushes and waits of that step.
//
// A step is the difference of two readings of counters that only grow, so that the steps add up to the run's totals.
// Times are seconds since the interval began, as they were: a step is longer than it was to be if the thread that ends
// it came late. Main's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "logging/backup/checkpoint_counters.h"

namespace dbx {

struct WaitTotals {
  uint64_t count = 0;  // that have begun
  uint64_t nanos = 0;
};

// Of everything up to one time.
struct SeriesTotals {
  uint64_t acknowledged = 0;
  uint64_t executed = 0;
  uint64_t aborts = 0;
  LatencyCounts latency;
  std::optional<uint64_t> log_bytes;  // appended and durable; none: there is no log
  uint64_t flushes = 0;
  uint64_t flush_nanos = 0;
  CheckpointMarks checkpoints;
  WaitTotals log_full;   // of workers for space in a log's buffer
  WaitTotals acks_full;  // of workers for acknowledgements
};
// The stacks of fibres, on which copies lie, are small (tests/simulation/scheduler.cpp).
static_assert(sizeof(SeriesTotals) <= 256);

// The same of one step, and its times.
struct SeriesStep {
  double begin_seconds = 0;
  double end_seconds = 0;
  uint64_t acknowledged = 0;
  uint64_t executed = 0;
  uint64_t aborts = 0;
  std::optional<uint64_t> p50_nanos;  // none: nothing was acknowledged
  std::optional<uint64_t> p99_nanos;
  std::optional<uint64_t> log_bytes;
  uint64_t flushes = 0;
  uint64_t flush_nanos = 0;
  CheckpointMarks checkpoints;
  WaitTotals log_full;
  WaitTotals acks_full;
};

class Series {
 public:
  explicit Series(uint32_t interval_ms) : interval_seconds_(interval_ms * 1e-3) {}

  // The interval begins, before anything is counted; other threads may have done something before.
  void Begin(const SeriesTotals& totals) { last_ = totals; }
  // Until the current step is to end; 0: now.
  double SecondsLeft(double seconds) const { return seconds < DueSeconds() ? DueSeconds() - seconds : 0; }
  // Ends the current step, the last one too, whenever that is.
  void EndStep(double seconds, const SeriesTotals& totals);

  std::vector<SeriesStep> TakeSteps() { return std::move(steps_); }

 private:
  double DueSeconds() const { return static_cast<double>(due_) * interval_seconds_; }

  const double interval_seconds_;
  uint64_t due_ = 1;  // intervals from the beginning
  double last_seconds_ = 0;
  SeriesTotals last_;
  std::vector<SeriesStep> steps_;
};

}  // namespace dbx
