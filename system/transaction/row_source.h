// Where a checkpoint gets the rows of a database from, beside the transactions of a run (row_copier.h).
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/types.h"

namespace dbx {

class RowSource {
 public:
  using Take = std::function<void(TableId, Key, std::span<const std::byte> tuple)>;

  virtual ~RowSource() = default;

  // Calls `take` with each row. A key that is deleted and inserted again meanwhile may come twice. `before_batch` is
  // called before some rows are read, and before they are tried again; what it throws ends the copying.
  virtual void CopyTable(TableId table, const Take& take, const std::function<void()>& before_batch) = 0;
};

}  // namespace dbx
