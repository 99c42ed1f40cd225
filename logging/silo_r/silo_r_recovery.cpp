#include "logging/silo_r/silo_r_recovery.h"

#include <string>

#include "base/error.h"

namespace dbx {

void SiloRRecovery::Open(const std::vector<LogSource>& logs) {
  stamp_end_ = logs.front().stamp_end;
  OpenLanes(logs, settings_.workers);
}

TxnRecord* SiloRRecovery::NextReady(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  for (size_t lanes = 0; lanes < lanes_->lanes().size(); ++lanes) {
    ReplayLanes::Lane* lane = lanes_->Hold(worker);
    TxnRecord* head = lane == nullptr || lanes_->IsTimeToDecode(*lane) ? nullptr : lanes_->Head(*lane);
    for (; head != nullptr; head = lanes_->Head(*lane)) {
      if (head->kind != format::RecordKind::kStamped || head->stamp == Stamp()) {
        ThrowDamaged(source(head->log), head->lsn, "a record without a TID");
      }
      if (head->lv_mask != 0)
        ThrowDamaged(source(head->log), head->lsn, "a part of a transaction, where each is whole");
      if (head->stamp <= stamp_end_) {
        BeginStreak(me);
        return head;
      }
      ++me.dropped;
      lanes_->Pop(*lane);
    }
    lanes_->MoveOn(worker);
  }
  EndStreak(me);
  return nullptr;
}

ReplaySummary SiloRRecovery::Finish() {
  ReplaySummary summary = LaneRecovery::Finish();
  summary.stamp_end = stamp_end_;
  if (summary.durable_stamp > stamp_end_) {
    throw Error(ExitStatus::kCorrupt, "damaged frontier beside " + source(0).device->PlaceOf(0) +
                                          ": it ends at stamp " + std::to_string(stamp_end_.value()) +
                                          ", but a mark shows that " + std::to_string(summary.durable_stamp.value()) +
                                          " was durable");
  }
  return summary;
}

}  // namespace dbx
