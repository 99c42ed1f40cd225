#include "system/series_sampler.h"

#include <algorithm>

#include "base/clock.h"
#include "base/live_counter.h"

namespace dbx {
namespace {

void Add(const LiveWaits::Reading& waits, WaitTotals& totals) {
  totals.count += waits.count;
  totals.nanos += Clock::ToNanos(waits.ticks);
}

}  // namespace

SeriesSampler::SeriesSampler(const Options& options, Node& node,
                             const std::vector<std::unique_ptr<WorkerThread>>& workers,
                             const Checkpointer* checkpointer, LogInterval& interval)
    : thread_cnt_(options.thread_cnt),
      node_(node),
      workers_(workers),
      checkpointer_(checkpointer),
      interval_(interval) {
  if (!options.series_file.empty()) series_.emplace(options.series_interval_ms);
}

void SeriesSampler::Begin() {
  if (!series_) return;
  interval_.End();
  series_->Begin(Read());
}

double SeriesSampler::SecondsLeft(double seconds, double most) const {
  return series_ ? std::min(most, series_->SecondsLeft(seconds)) : most;
}

void SeriesSampler::Look(double seconds) {
  if (!series_ || series_->SecondsLeft(seconds) > 0) return;
  interval_.End();
  series_->EndStep(seconds, Read());
}

void SeriesSampler::Stop() {
  if (series_) at_stop_ = Read();
}

std::vector<SeriesStep> SeriesSampler::End(double seconds) {
  if (!series_) return {};
  // The workers' own counts anew: a worker may have been about to count at the stop.
  SeriesTotals totals = Read();
  if (at_stop_) {
    totals.flushes = at_stop_->flushes;
    totals.flush_nanos = at_stop_->flush_nanos;
    totals.checkpoints = at_stop_->checkpoints;
    totals.log_full = at_stop_->log_full;
    totals.acks_full = at_stop_->acks_full;
  }
  series_->EndStep(seconds, totals);
  return series_->TakeSteps();
}

SeriesTotals SeriesSampler::Read() const {
  SeriesTotals totals;
  const uint64_t now_ticks = Clock::NowTicks();
  for (const auto& worker : workers_) {
    // It has failed before it was made, and the run ends by that.
    if (!worker) continue;
    const WorkerStats& stats = worker->stats();
    totals.acknowledged += ReadLive(stats.acknowledged);
    totals.executed += ReadLive(stats.executed);
    for (const uint64_t& aborts : stats.aborts) totals.aborts += ReadLive(aborts);
    totals.latency.Add(worker->latency());
    Add(worker->ack_waits(now_ticks), totals.acks_full);
  }
  if (node_.logs() != nullptr) ReadLogs(totals, now_ticks);
  totals.checkpoints = checkpointer_ != nullptr ? checkpointer_->marks() : node_.checkpoint_marks();
  return totals;
}

void SeriesSampler::ReadLogs(SeriesTotals& totals, uint64_t now_ticks) const {
  totals.log_bytes = interval_.bytes();
  for (uint32_t i = 0; i < node_.logs()->count(); ++i) {
    const LogStream& stream = node_.logs()->stream(i);
    totals.flushes += ReadLive(stream.counters().flushes);
    totals.flush_nanos += ReadLive(stream.counters().flush_nanos);
    for (uint32_t w = 0; w < thread_cnt_; ++w) Add(stream.SpaceWaits(w, now_ticks), totals.log_full);
  }
}

}  // namespace dbx
