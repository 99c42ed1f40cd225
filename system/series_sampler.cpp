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
                             const Checkpointer* checkpointer, const LogInterval& interval)
    : thread_cnt_(options.thread_cnt),
      node_(node),
      workers_(workers),
      checkpointer_(checkpointer),
      interval_(interval) {
  if (!options.series_file.empty()) series_.emplace(options.series_interval_ms);
}

void SeriesSampler::Begin() {
  if (series_) series_->Begin(Read());
}

double SeriesSampler::SecondsLeft(double seconds, double most) const {
  return series_ ? std::min(most, series_->SecondsLeft(seconds)) : most;
}

void SeriesSampler::Look(double seconds) {
  if (series_ && series_->SecondsLeft(seconds) <= 0) series_->EndStep(seconds, Read());
}

void SeriesSampler::Stop() {
  if (series_) at_stop_ = Read();
}

std::vector<SeriesStep> SeriesSampler::End(double seconds) {
  if (!series_) return {};
  SeriesTotals totals = at_stop_ ? *at_stop_ : Read();
  // Anew: at the stop a worker may have been about to count.
  ReadTransactions(totals);
  if (totals.log_bytes) totals.log_bytes = interval_.bytes();
  series_->EndStep(seconds, totals);
  return series_->TakeSteps();
}

SeriesTotals SeriesSampler::Read() const {
  SeriesTotals totals;
  const uint64_t now_ticks = Clock::NowTicks();
  ReadTransactions(totals);
  for (const auto& worker : workers_) {
    if (worker) Add(worker->ack_waits(now_ticks), totals.acks_full);
  }
  if (node_.logs() != nullptr) ReadLogs(totals, now_ticks);
  totals.checkpoints = checkpointer_ != nullptr ? checkpointer_->marks() : node_.checkpoint_marks();
  return totals;
}

void SeriesSampler::ReadTransactions(SeriesTotals& totals) const {
  totals.acknowledged = totals.executed = totals.aborts = 0;
  totals.latency = {};
  for (const auto& worker : workers_) {
    // It has failed before it was made, and the run ends by that.
    if (!worker) continue;
    const WorkerStats& stats = worker->stats();
    totals.acknowledged += ReadLive(stats.acknowledged);
    totals.executed += ReadLive(stats.executed);
    for (const uint64_t& aborts : stats.aborts) totals.aborts += ReadLive(aborts);
    totals.latency.Add(worker->latency());
  }
}

void SeriesSampler::ReadLogs(SeriesTotals& totals, uint64_t now_ticks) const {
  totals.log_bytes = interval_.BytesUntilNow();
  for (uint32_t i = 0; i < node_.logs()->count(); ++i) {
    const LogStream& stream = node_.logs()->stream(i);
    totals.flushes += ReadLive(stream.counters().flushes);
    totals.flush_nanos += ReadLive(stream.counters().flush_nanos);
    for (uint32_t w = 0; w < thread_cnt_; ++w) Add(stream.SpaceWaits(w, now_ticks), totals.log_full);
  }
}

}  // namespace dbx
