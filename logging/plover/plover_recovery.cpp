#include "logging/plover/plover_recovery.h"

#include <algorithm>
#include <bit>
#include <string>

namespace dbx {
namespace {

// Mixes transaction ids, so that sums of different sets differ.
uint64_t Mix(const TxnRecord& record) {
  uint64_t x = record.txn_id.value * 0x9E3779B97F4A7C15u ^ record.stamp.value();
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

}  // namespace

void PloverRecovery::Open(const std::vector<LogSource>& logs) {
  parts_.resize(settings_.workers);
  last_stamp_.assign(logs.size(), Stamp());
  OpenLanes(logs, 1);
}

TxnRecord* PloverRecovery::NextReady(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  for (uint32_t lanes = 0; lanes < lanes_->log_count(); ++lanes) {
    ReplayLanes::Lane* lane = lanes_->Hold(worker);
    TxnRecord* head = lane == nullptr || lanes_->IsTimeToDecode(*lane) ? nullptr : lanes_->Head(*lane);
    while (head != nullptr) {
      CheckRecord(*head);
      const Order order = OrderOf(*head);
      if (order == Order::kBlocked) break;
      if (order == Order::kReady) {
        BeginStreak(me);
        return head;
      }
      me.dropped += head->counts;
      last_stamp_[head->log] = head->stamp;
      lanes_->Pop(*lane);
      head = lanes_->Head(*lane);
    }
    lanes_->MoveOn(worker);
  }
  EndStreak(me);
  return nullptr;
}

void PloverRecovery::MarkReplayed(WorkerId worker) {
  const TxnRecord& record = *lanes_->Head(*lanes_->held_lane(worker));
  Parts& parts = parts_[worker.value()];
  const uint64_t name = Mix(record);
  parts.found[record.log] += name;
  last_stamp_[record.log] = record.stamp;
  if (!record.counts) return lanes_->Pop(*lanes_->held_lane(worker));
  for (uint32_t mask = record.lv_mask; mask != 0; mask &= mask - 1) parts.promised[std::countr_zero(mask)] += name;
  LaneRecovery::MarkReplayed(worker);
}

PloverRecovery::Order PloverRecovery::OrderOf(const TxnRecord& record) const {
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    // In this order: a log that has ended has no further stamps.
    const bool ended = lanes_->EndIsKnown(log);
    if (lanes_->StampReadUntil(log) >= record.stamp) continue;
    return ended ? Order::kDropped : Order::kBlocked;
  }
  return Order::kReady;
}

void PloverRecovery::CheckRecord(const TxnRecord& record) {
  if (record.kind != format::RecordKind::kStamped) {
    ThrowDamaged(source(record.log), record.lsn, "a record without a GSN");
  }
  if ((record.lv_mask >> record.log & 1) == 0) {
    ThrowDamaged(source(record.log), record.lsn, "a part of a transaction that has none in this log");
  }
  if (record.stamp <= last_stamp_[record.log]) {
    ThrowDamaged(source(record.log), record.lsn, "the GSN is no larger than that of the record before");
  }
}

ReplaySummary PloverRecovery::Finish() {
  ReplaySummary summary = LaneRecovery::Finish();
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    summary.stamp_end = std::min(summary.stamp_end, lanes_->reader(log).totals().stamp);
  }
  CheckMarks(summary.durable_stamp);
  CheckParts();
  return summary;
}

void PloverRecovery::CheckMarks(Stamp durable_stamp) const {
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    const LogReader& reader = lanes_->reader(log);
    if (reader.totals().stamp >= durable_stamp) continue;
    ThrowDamaged(reader.source(), reader.position(),
                 std::string(reader.end_reason()) + ", but a mark shows that every log was durable up to GSN " +
                     std::to_string(durable_stamp.value()));
  }
}

void PloverRecovery::CheckParts() const {
  for (uint32_t log = 0; log < lanes_->log_count(); ++log) {
    uint64_t promised = 0, found = 0;
    for (const Parts& parts : parts_) {
      promised += parts.promised[log];
      found += parts.found[log];
    }
    if (promised == found) continue;
    const LogReader& reader = lanes_->reader(log);
    ThrowDamaged(reader.source(), reader.position(), "parts of transactions that other logs hold are missing before");
  }
}

}  // namespace dbx
