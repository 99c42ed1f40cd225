// A transaction's record as recovery replays it. What a kind of record does not have stays as it is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "logging/format.h"

namespace dbx {

// In a replay lane's private memory. Records of one batch are adjacent.
struct TxnRecord {
  Lsn lsn;
  TxnId txn_id;
  Stamp stamp;                   // orders it among the records of all logs
  Timestamp read_timestamp;      // under multi-version replay
  const uint64_t* lv = nullptr;  // the stored elements, one per bit of lv_mask
  // A command: the procedure's arguments, transaction id first, 8-byte aligned. Otherwise: WriteEntry + image ...
  std::span<std::byte> payload;
  uint16_t lv_mask = 0;
  ProcedureId procedure;
  format::RecordKind kind = format::RecordKind::kCommand;
  bool counts = true;      // false: a further part of a transaction that is counted in an earlier log
  bool inspected = false;  // set by replay: the record was inspected ahead of its turn
  uint16_t behind = 0;     // how many records follow it in the array
  uint16_t anchor = 0;     // index of the anchor in force, in the lane's list
  uint32_t log = 0;
};

}  // namespace dbx
