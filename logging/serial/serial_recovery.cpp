#include "logging/serial/serial_recovery.h"

#include "base/check.h"

namespace dbx {

void SerialRecovery::Open(const std::vector<LogSource>& logs) {
  CHECK(logs.size() == 1);
  OpenLanes(logs, 1);
}

TxnRecord* SerialRecovery::NextReady(WorkerId worker) {
  Worker& me = workers_[worker.value()];
  ReplayLanes::Lane* lane = lanes_->Hold(worker);
  TxnRecord* head = lane == nullptr ? nullptr : lanes_->Head(*lane);
  if (head == nullptr || lanes_->IsTimeToDecode(*lane)) {
    lanes_->LetGo(worker);
    EndStreak(me);
    return nullptr;
  }
  if (head->lv_mask != 0) {
    ThrowDamaged(source(0), head->lsn, "LSN vector in a serial log");
  }
  if (head->kind == format::RecordKind::kStamped) ThrowDamaged(source(0), head->lsn, "stamp in a serial log");
  BeginStreak(me);
  return head;
}

}  // namespace dbx
