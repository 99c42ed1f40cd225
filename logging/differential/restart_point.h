// The checkpoint from whose backup a database is restored, as one log has it, and which ends of attempts count.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "logging/differential_methods.h"
#include "logging/records/record_type.h"

namespace dbx {

struct RestartPoint {
  uint32_t number = 0;  // 0: the backup with which the run begins, which has no BEGIN and END
  Lsn begin;            // where BEGIN starts
  Lsn end;              // where END starts
  Lsn needed;           // nothing below is needed
  // By worker: all of its transactions with lower sequence numbers had ended before the checkpoint.
  std::span<const uint64_t> ended_below{};
  DiffMethod method = DiffMethod::kDl1p;
};

// Calls visit(log, element) for what the LSN vector of a COMMIT or ABORT stores. What LV compression leaves out was
// durable when the anchor was written, and a log that ends below is refused.
void ForEachElement(const RecordView& record, auto&& visit) {
  size_t offset = sizeof(TxnId);
  for (uint32_t mask = record.header.lv_mask; mask != 0; mask &= mask - 1) {
    visit(static_cast<uint32_t>(std::countr_zero(mask)), *FieldOf<Lsn>(record.body, offset));
    offset += sizeof(Lsn);
  }
}

// Whether all logs, which end at `ends`, reach what the COMMIT or ABORT of log `own` depends on (Taurus, section 3.3).
inline bool IsCovered(const RecordView& record, uint32_t own, std::span<const Lsn> ends) {
  bool covered = true;
  ForEachElement(record, [&](uint32_t log, Lsn until) { covered &= log == own || until <= ends[log]; });
  return covered;
}

}  // namespace dbx
