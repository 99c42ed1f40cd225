#include "logging/lane_recovery.h"

#include <algorithm>

#include "base/clock.h"
#include "base/host.h"

namespace dbx {

namespace {

// How long there must have been no progress. In time and not in rounds of waiting alone: on a busy machine a round,
// which is a sched_yield, may take arbitrarily long.
constexpr uint64_t kNanosToSuspect = 20'000'000;
constexpr uint64_t kRoundsPerLook = 16;  // at the clock

}  // namespace

void LaneRecovery::OpenLanes(const std::vector<LogSource>& sources, uint32_t lanes_per_log) {
  lanes_ = std::make_unique<ReplayLanes>(sources, settings_.workers, lanes_per_log, settings_.block_bytes);
  start_ticks_ = host::TimeStamp();
}

bool LaneRecovery::Decode(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  const uint64_t start = host::TimeStamp();
  switch (lanes_->Decode(worker)) {
    case ReplayLanes::Decoded::kDone:
      return false;
    case ReplayLanes::Decoded::kBatches:
      AddOwn(me.decode_ticks, host::TimeStamp() - start);
      me.StopWaiting();
      return true;
    case ReplayLanes::Decoded::kReading:
      // No sign of a deadlock, nor of a lack of parallelism.
      me.idle_rounds = 0;
      me.device_wait.Wait();
      AddOwn(me.decode_ticks, host::TimeStamp() - start);
      return true;
    case ReplayLanes::Decoded::kNothing:
      ++me.idle_rounds;
      me.wait.Wait();
      return true;
  }
  return true;
}

uint64_t LaneRecovery::SumOfProgress() const {
  uint64_t sum = 0;
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) sum += lanes_->EndOf(log).value() + lanes_->EndIsKnown(log);
  for (const auto& lane : lanes_->lanes()) sum += lane->progress.load(std::memory_order_relaxed);
  return sum;
}

bool LaneRecovery::SuspectsDeadlock(Worker& worker) const {
  if (worker.idle_rounds == 0 || worker.idle_rounds % kRoundsPerLook != 0) return false;
  const uint64_t now = Clock::MonotonicNanos();
  if (worker.idle_rounds == kRoundsPerLook) worker.looked_nanos = now;
  if (now - worker.looked_nanos < kNanosToSuspect) return false;
  worker.looked_nanos = now;
  const uint64_t progress = SumOfProgress();
  const bool none = progress == worker.seen_progress;
  worker.seen_progress = progress;
  return none;
}

LaneRecovery::Work LaneRecovery::SumUp(uint64_t now) const {
  Work work;
  for (const Worker& worker : workers_) {
    work.recovered += worker.recovered.load(std::memory_order_relaxed);
    work.replay_ticks += worker.replay_ticks.load(std::memory_order_relaxed);
    work.decode_ticks += worker.decode_ticks.load(std::memory_order_relaxed);
    const uint64_t start = worker.streak_start.load(std::memory_order_relaxed);
    if (start != 0 && start < now) work.replay_ticks += now - start;
  }
  return work;
}

ReplaySummary LaneRecovery::Finish() {
  const uint64_t wall_ticks = std::max<uint64_t>(host::TimeStamp() - start_ticks_, 1);
  ReplaySummary summary;
  const Work work = SumUp(start_ticks_ + wall_ticks);
  summary.recovered = work.recovered;
  for (const Worker& worker : workers_) summary.dropped += worker.dropped;
  for (const auto& lane : lanes_->lanes()) summary.next_sequence = std::max(summary.next_sequence, lane->next_sequence);
  summary.parallelism = static_cast<double>(work.replay_ticks) / static_cast<double>(wall_ticks);
  summary.went_serial = went_serial_;
  std::vector<const LogReader*> readers;
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) readers.push_back(&lanes_->reader(log));
  JudgeEnds(readers, settings_.workers, summary);
  return summary;
}

}  // namespace dbx
