#include "logging/taurus/taurus_recovery.h"

#include <bit>

#include "base/error.h"

namespace dbx {

namespace {

// Below this many workers replaying at a time, one worker alone is faster.
constexpr double kParallelismMin = 1.25;
constexpr uint64_t kSampleRecords = 4096;
constexpr uint32_t kLowSamplesMin = 2;

}  // namespace

void TaurusRecovery::Open(const std::vector<LogSource>& logs) {
  const auto count = static_cast<uint32_t>(logs.size());
  OpenLanes(logs, (settings_.workers + count - 1) / count);
  serially_ = went_serial_ = settings_.serially == ReplaySettings::Serially::kAlways;
  last_.ticks = start_ticks_;
}

bool TaurusRecovery::Decode(WorkerId worker) {
  if (SuspectsDeadlock(workers_[worker.value()])) RefuseIfStuck(worker);
  return LaneRecovery::Decode(worker);
}

TxnRecord* TaurusRecovery::NextReady(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  if (worker.value() != 0 && serially_.load(std::memory_order_relaxed)) {
    lanes_->LetGo(worker);
    EndStreak(me);
    return nullptr;
  }
  // The lane in hand, then every other one, once.
  for (size_t visits = lanes_->lanes().size() + 1; visits > 0; --visits) {
    if (ReplayLanes::Lane* lane = lanes_->Hold(worker)) {
      if (TxnRecord* ready = ReadyHead(me, *lane)) {
        BeginStreak(me);
        return ready;
      }
    }
    lanes_->MoveOn(worker);
  }
  EndStreak(me);
  if (worker.value() == 0) ConsiderGoingSerial();
  return nullptr;
}

TxnRecord* TaurusRecovery::ReadyHead(Worker& me, ReplayLanes::Lane& lane) {
  while (TxnRecord* head = lanes_->Head(lane)) {
    switch (OrderOf(me, lane, *head)) {
      case Order::kReady:
        return head;
      case Order::kBlocked:
        return nullptr;
      case Order::kDropped:
        ++me.dropped;
        lanes_->Pop(lane);
        break;
    }
  }
  return nullptr;
}

TaurusRecovery::Order TaurusRecovery::OrderOf(Worker& me, ReplayLanes::Lane& lane, const TxnRecord& record) {
  const LsnPerLog& anchor = lane.anchors[record.anchor];
  if (lane.covered_anchor != &anchor) {
    // The whole anchor, stored elements or not: it only holds what was durable before the record, so that
    // waiting for all of it is safe, and a log that ends below it is damaged.
    for (uint32_t j = 0; j < lanes_->log_count(); ++j) {
      if (!IsReplayed(me, j, anchor[j])) return OrderOfMissing(j, anchor[j]);
    }
    lane.covered_anchor = &anchor;
  }
  const uint64_t* element = record.lv;
  for (uint32_t mask = record.lv_mask; mask != 0; mask &= mask - 1) {
    const auto j = static_cast<uint32_t>(std::countr_zero(mask));
    const Lsn until(*element++);
    if (j == record.log && until > record.lsn) {
      throw Error(ExitStatus::kCorrupt, PlaceOf(source(j), record.lsn) + ": transaction that depends on its own log's future");
    }
    if (!IsReplayed(me, j, until)) return OrderOfMissing(j, until);
  }
  return Order::kReady;
}

bool TaurusRecovery::IsReplayed(Worker& me, uint32_t log, Lsn until) {
  if (until <= me.replayed_until[log]) return true;
  me.replayed_until[log] = lanes_->ReplayedUntil(log);
  return until <= me.replayed_until[log];
}

TaurusRecovery::Order TaurusRecovery::OrderOfMissing(uint32_t log, Lsn until) const {
  return lanes_->EndIsKnown(log) && until > lanes_->EndOf(log) ? Order::kDropped : Order::kBlocked;
}

// With nobody else at work, a round over all lanes and logs that changes nothing proves that nothing ever will.
void TaurusRecovery::RefuseIfStuck(WorkerId worker) {
  if (checking_for_deadlock_.exchange(true)) return;
  Worker& me = workers_[worker.value()];
  lanes_->Alone(worker, [&] {
    const uint64_t before = SumOfProgress();
    bool moves = lanes_->DecodeEveryLog();
    const TxnRecord* waiting = nullptr;
    for (auto& lane : lanes_->lanes()) {
      moves |= ReadyHead(me, *lane) != nullptr;
      if (const TxnRecord* head = lanes_->Head(*lane)) waiting = head;
    }
    if (moves || waiting == nullptr || SumOfProgress() != before) return;
    throw Error(ExitStatus::kCorrupt, PlaceOf(source(waiting->log), waiting->lsn) +
                                          ": the LSN vectors of this and other records wait for each other");
  });
  checking_for_deadlock_ = false;
}

void TaurusRecovery::ConsiderGoingSerial() {
  if (settings_.serially != ReplaySettings::Serially::kAuto || settings_.workers == 1 || went_serial_) return;
  const uint64_t now = __rdtsc();
  uint64_t recovered = 0;
  uint64_t replay_ticks = 0;
  SumUp(now, recovered, replay_ticks);
  if (recovered - last_.recovered < kSampleRecords) return;
  const double parallelism = static_cast<double>(replay_ticks - last_.replay_ticks) / static_cast<double>(now - last_.ticks);
  const bool counts = last_.recovered != 0;  // the first sample sees threads start and pages come in
  const uint32_t low = counts && parallelism < kParallelismMin ? last_.low_in_a_row + 1 : 0;
  last_ = {recovered, replay_ticks, now, low};
  if (low < kLowSamplesMin) return;
  went_serial_ = true;
  serially_.store(true, std::memory_order_relaxed);
}

}  // namespace dbx
