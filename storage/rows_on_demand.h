// Rows that are not in the index of their table yet, after a restart that serves transactions before it has looked at
// all of the database. Asked only where a look-up misses, or a scan begins: a hit in the index tests nothing.
//
// Models: Adoption (storage/heap/adoption.h), of rows whose versions lie in a persistent heap; RowChains
// (system/replay/row_chains.h), of rows that are rebuilt from the log.
//
// Threads: workers beside transactions, each under its own id.
#pragma once

#include "base/types.h"

namespace dbx {

class Table;

class RowsOnDemand {
 public:
  virtual ~RowsOnDemand() = default;

  // False: the table's index has all of its rows, and will from then on.
  virtual bool HasRowsOf(const Table& table) const = 0;
  // Once it returns, the index has the row of the key, or there is none. Throws Error (kCorrupt), and from then on.
  virtual void EnsureRow(WorkerId worker, Table& table, Key key) = 0;
  // The same of all rows with keys in [low, high], and perhaps of others.
  virtual void EnsureRange(WorkerId worker, Table& table, Key low, Key high) = 0;
};

}  // namespace dbx
