// What is compared with the reference: the acknowledged transactions, and the state of two databases.
// Single-threaded; called by rundb --verify and by tests.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "storage/database.h"
#include "system/reference/reference_replay.h"

namespace dbx::reference {

struct AckCheck {
  uint64_t acknowledged = 0;
  uint64_t lost = 0;  // acknowledged, not recovered
  TxnId first_lost;
};

// Are all acknowledged writers in `set`? `acks` is an AckFile, or anything whose ForEachAcknowledged(visit)
// visits TxnIds in ascending order.
template <class Acks>
AckCheck CheckAcknowledged(const Acks& acks, const RecoveredSet& set) {
  AckCheck check;
  auto next = set.txn_ids.begin();
  acks.ForEachAcknowledged([&](TxnId id) {
    ++check.acknowledged;
    while (next != set.txn_ids.end() && *next < id.value) ++next;
    if (next != set.txn_ids.end() && *next == id.value) return;
    if (check.lost++ == 0) check.first_lost = id;
  });
  return check;
}

// The first difference found between two databases with the same tables, or nothing: rows that are present
// in one of them only, and tuples. The control words and the log metadata of rows may differ.
inline std::optional<std::string> FirstDifference(const Database& left, const Database& right) {
  const auto present = [](const Row* row) {
    return row != nullptr && (row->control.load(std::memory_order_relaxed) & Row::kAbsent) == 0;
  };
  std::optional<std::string> difference;
  const auto compare = [&](const Table& from, const Table& to) {
    const auto report = [&](const Row& row, const char* what) {
      difference = "table " + from.schema().name + ", key " + std::to_string(row.key) + ": " + what;
    };
    from.ForEachRow([&](const Row& row) {
      if (difference || !present(&row)) return;
      const Row* other = to.Find(row.key);
      if (!present(other)) return report(row, "the row is in one database only");
      if (std::memcmp(from.tuple(&row), to.tuple(other), from.tuple_bytes()) != 0) report(row, "the tuples differ");
    });
  };
  if (left.table_count() != right.table_count()) return "the numbers of tables differ";
  for (size_t i = 0; i < left.table_count() && !difference; ++i) {
    const TableId id(static_cast<uint16_t>(i));
    compare(left.table(id), right.table(id));
    if (!difference) compare(right.table(id), left.table(id));
  }
  return difference;
}

}  // namespace dbx::reference
