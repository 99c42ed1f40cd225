#include "tests/simulation/rows.h"

#include <atomic>

#include "tests/simulation/allocation.h"

namespace dbx::sim {

std::vector<RowVersion> RowsOf(const Database& database) {
  const Exempt exempt;
  std::vector<RowVersion> rows;
  for (size_t i = 0; i < database.table_count(); ++i) {
    const Table& table = database.table(TableId(static_cast<uint16_t>(i)));
    table.ForEachRow([&](const Row& row) {
      if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;
      rows.push_back({table.id(), row.key, HashOf({table.tuple(&row), table.tuple_bytes()})});
    });
  }
  return rows;
}

}  // namespace dbx::sim
