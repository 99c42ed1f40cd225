#include "logging/lane_recovery.h"

#include <algorithm>

#include "base/clock.h"
#include "base/host.h"
#include "base/parallel.h"

namespace dbx {

namespace {

// How long there must have been no progress. In time and not in rounds of waiting alone: on a busy machine a round,
// which is a sched_yield, may take arbitrarily long.
constexpr uint64_t kNanosToSuspect = 20'000'000;
constexpr uint64_t kRoundsPerLook = 16;  // at the clock

void Merge(ProofPerLog& to, const ProofPerLog& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i].Raise(from[i]);
}

// Below the LSN that is proved to be durable by records, by the run's frontier, or by the ring, whose space is reused
// only then.
Lsn DurableStart(const LogReader& reader, Lsn proved) {
  const LogSource& source = reader.source();
  const uint64_t position = reader.position().value();
  const uint64_t ring = source.ring_bytes == 0 ? position : source.ring_bytes;
  const Lsn by_ring(position - std::min(position, ring));
  return reader.RecordStartUpTo(std::max({proved, by_ring, std::min(source.durable_until, reader.position())}));
}

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
  JudgeEnds(summary);
  return summary;
}

// Whatever one recovery exposed to clients must be in every later recovery.
void LaneRecovery::CheckFrozenEnd(const LogReader& reader) {
  const LogSource& source = reader.source();
  if (!source.frozen() || reader.position() == source.frozen_end) return;
  ThrowDamaged(source, reader.position(),
               std::string(reader.end_reason()) + ", but the run was continued from what its log held up to offset " +
                   std::to_string(source.OffsetOf(source.frozen_end)));
}

void LaneRecovery::CheckDurableEnd(const LogReader& reader) {
  const LogSource& source = reader.source();
  if (reader.position() >= source.durable_until) return;
  ThrowDamaged(source, reader.position(),
               std::string(reader.end_reason()) + ", but the run's frontier shows that it was durable up to offset " +
                   std::to_string(source.OffsetOf(source.durable_until)));
}

// For logs that do not end cleanly, each examined by one thread; the findings of others, and of frozen ones, whose
// tails were judged when they were frozen, stay empty.
std::vector<TailFindings> LaneRecovery::ExamineTails() const {
  std::vector<uint32_t> open;
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    if (!lanes_->reader(log).run_end() && !lanes_->reader(log).source().frozen()) open.push_back(log);
  }
  std::vector<TailFindings> tails(lanes_->log_count());
  const auto threads = std::min(static_cast<uint32_t>(open.size()), settings_.workers);
  const auto examine = [&](uint32_t thread) {
    for (size_t i = thread; i < open.size(); i += threads) {
      const LogReader& reader = lanes_->reader(open[i]);
      tails[open[i]] = ExamineTail(reader.source(), reader.position());
    }
  };
  if (threads > 0) RunInParallel(threads, examine);
  return tails;
}

void LaneRecovery::JudgeEnds(ReplaySummary& summary) const {
  ProofPerLog proofs;
  summary.clean_end = true;
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    CheckFrozenEnd(lanes_->reader(log));
    CheckDurableEnd(lanes_->reader(log));
  }
  const std::vector<TailFindings> tails = ExamineTails();
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    const LogReader& reader = lanes_->reader(log);
    summary.voids += reader.void_count();
    summary.log_bytes += reader.position() - reader.source().start;
    summary.highest_lsn = std::max(summary.highest_lsn, reader.source().FileEnd());
    summary.highest_stamp = std::max(summary.highest_stamp, reader.stamp());
    summary.durable_stamp = std::max(summary.durable_stamp, reader.durable_stamp());
    summary.frontier.push_back(reader.position());
    summary.run_ends.push_back(reader.run_end());
    Merge(proofs, reader.proofs());
    summary.clean_end &= reader.run_end().has_value();
    const TailFindings& tail = tails[log];
    summary.cut_bytes += tail.cut_bytes;
    summary.torn_logs += tail.cut_bytes > 0;
    Merge(proofs, tail.proofs);
    summary.next_sequence = std::max(summary.next_sequence, tail.next_sequence);
    summary.highest_stamp = std::max(summary.highest_stamp, tail.highest_stamp);
    summary.durable_stamp = std::max(summary.durable_stamp, tail.durable_stamp);
  }
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    const LogReader& reader = lanes_->reader(log);
    const DurabilityProof& proof = proofs[log];
    summary.durable.push_back(DurableStart(reader, proof.until));
    if (proof.until <= reader.position()) continue;
    ThrowDamaged(reader.source(), reader.position(),
                 std::string(reader.end_reason()) + ", but the " + proof.what + " at " +
                     PlaceOf(source(proof.shown_in), proof.at) + " shows that it was durable up to offset " +
                     std::to_string(reader.source().OffsetOf(proof.until)));
  }
}

}  // namespace dbx
