#include "system/series.h"

#include <algorithm>
#include <utility>

namespace dbx {
namespace {

WaitTotals Since(const WaitTotals& before, const WaitTotals& now) {
  return {now.count - before.count, now.nanos - before.nanos};
}

// The reading of a wait that was just ending may be the older one (live_counter.h).
void KeepGrowing(const WaitTotals& before, WaitTotals& now) { now.nanos = std::max(now.nanos, before.nanos); }

}  // namespace

void Series::EndStep(double seconds, const SeriesTotals& totals) {
  SeriesStep step;
  step.begin_seconds = last_seconds_;
  step.end_seconds = seconds;
  step.acknowledged = totals.acknowledged - last_.acknowledged;
  step.executed = totals.executed - last_.executed;
  step.aborts = totals.aborts - last_.aborts;
  step.p50_nanos = totals.latency.PercentileNanosSince(last_.latency, 0.5);
  step.p99_nanos = totals.latency.PercentileNanosSince(last_.latency, 0.99);
  if (totals.log_bytes) step.log_bytes = *totals.log_bytes - last_.log_bytes.value_or(0);
  step.flushes = totals.flushes - last_.flushes;
  step.flush_nanos = totals.flush_nanos - last_.flush_nanos;
  step.checkpoints = {totals.checkpoints.begun - last_.checkpoints.begun,
                      totals.checkpoints.ended - last_.checkpoints.ended};
  const SeriesTotals before = std::exchange(last_, totals);
  KeepGrowing(before.log_full, last_.log_full);
  KeepGrowing(before.acks_full, last_.acks_full);
  step.log_full = Since(before.log_full, last_.log_full);
  step.acks_full = Since(before.acks_full, last_.acks_full);
  steps_.push_back(step);
  last_seconds_ = seconds;
  // Intervals that have passed meanwhile have no step of their own.
  while (DueSeconds() <= seconds) ++due_;
}

}  // namespace dbx
