// The rows of a master's trees as rows of tables: what a workload judges.
#pragma once

#include <vector>

#include "multi_master/master/mm_transaction.h"
#include "storage/database.h"

namespace dbx::mm {

// The present rows of all trees, which the transaction locks, become the rows of `to`, which has the tables only.
// kConflict: the transaction has to end, and some rows are there.
inline Outcome CopyRows(MmTransaction& txn, Database& to) {
  for (size_t i = 0; i < to.table_count(); ++i) {
    Table& table = to.table(Database::IdOf(i));
    std::vector<std::byte> image(table.tuple_bytes());
    const auto load = [&](Key key, const TupleReader& tuple) {
      tuple.CopyAt(0, image);
      table.LoadRow(WorkerId(0), key, image);
      return true;
    };
    const Outcome outcome = txn.Scan(table, 0, UINT64_MAX, ScanOrder::kAscending, load);
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

}  // namespace dbx::mm
