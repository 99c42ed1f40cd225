// Whether the changes of rows in a record are ones that a transaction can have left: for what replays them in order and
// for what follows their chains. A checksum shows that the bytes are those that were written, not that a sane engine of
// the same schema wrote them.
#pragma once

#include "logging/records/txn_record.h"
#include "logging/row_changes.h"
#include "storage/database.h"

namespace dbx {

// nullptr: they are.
inline const char* FaultOfChange(const RowChange& change, Lsn record, const Database& database) {
  if (change.table.value() >= database.table_count()) return "a change of an unknown table";
  if (!Fits(change, database.table(change.table).tuple_bytes())) return "a change of other rows than its table's";
  if (!change.previous.IsBelow(record)) return "the previous record of a row is not below it";
  return nullptr;
}
inline const char* FaultOfChanges(const TxnRecord& record, const Database& database) {
  RowChanges changes(record.payload);
  for (RowChange change; changes.Next(change);) {
    if (const char* const why = FaultOfChange(change, record.lsn, database)) return why;
  }
  return changes.malformed() ? "malformed changes of rows" : nullptr;
}

}  // namespace dbx
