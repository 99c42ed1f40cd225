#include "logging/taurus/taurus_recovery.h"

#include <bit>

#include "base/host.h"

namespace dbx {

namespace {

// With fewer workers replaying at a time while this share of all workers' time is lost in waiting, one worker alone
// is faster. Measured with two workers on YCSB commands: at theta 1.2 it is 1.3 times as fast with one log and 1.7
// times with two (1.0 and 1.25 workers were replaying), at theta 0.9 only 0.7 times (1.45 and 1.55 workers).
constexpr double kParallelismMin = 1.35;
constexpr double kWaitingShareMin = 0.2;
constexpr uint64_t kSampleRecords = 1 << 16;  // some 20 ms: longer than a thread is kept off its core
constexpr uint32_t kLowSamplesMin = 3;

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
        if (lanes_->IsTimeToDecode(*lane)) break;
        BeginStreak(me);
        return ready;
      }
    }
    lanes_->MoveOn(worker);
  }
  lanes_->LetGo(worker);
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
  if (record.kind == format::RecordKind::kStamped) {
    ThrowDamaged(source(record.log), record.lsn, "a stamp instead of an LSN vector");
  }
  const LsnPerLog& anchor = lane.anchors[record.anchor];
  if (lane.covered_anchor != &anchor) {
    // The whole anchor, stored elements or not: it only holds what was durable before the record, so that waiting for
    // all of it is safe, and a log that ends below it is damaged.
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
      ThrowDamaged(source(j), record.lsn, "transaction that depends on its own log's future");
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

// With no other worker active, a round over all lanes and logs without progress proves that there never will be any.
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
    ThrowDamaged(source(waiting->log), waiting->lsn, "the LSN vectors of this and other records wait for each other");
  });
  checking_for_deadlock_ = false;
}

void TaurusRecovery::ConsiderGoingSerial() {
  if (settings_.serially != ReplaySettings::Serially::kAuto || settings_.workers == 1 || went_serial_) return;
  const uint64_t now = host::TimeStamp();
  const Work work = SumUp(now);
  if (work.recovered - last_.work.recovered < kSampleRecords) return;
  const auto ticks = static_cast<double>(now - last_.ticks);
  const double replaying = static_cast<double>(work.replay_ticks - last_.work.replay_ticks) / ticks;
  const double decoding = static_cast<double>(work.decode_ticks - last_.work.decode_ticks) / ticks;
  const double waiting_share = 1 - (replaying + decoding) / settings_.workers;
  const bool counts = last_.work.recovered != 0;  // the first sample includes thread starts and page faults
  const bool is_low = counts && replaying < kParallelismMin && waiting_share > kWaitingShareMin;
  const uint32_t low = is_low ? last_.low_in_a_row + 1 : 0;
  last_ = {work, now, low};
  if (low < kLowSamplesMin) return;
  went_serial_ = true;
  serially_.store(true, std::memory_order_relaxed);
}

}  // namespace dbx
