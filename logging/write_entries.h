// Walks the rows that a data record holds, checking every bound: the bytes come from a file.
#pragma once

#include <cstddef>
#include <span>

#include "base/types.h"
#include "logging/format.h"
#include "logging/padded_entries.h"

namespace dbx {

struct WriteImage {
  Key key = 0;
  TableId table;
  format::WriteOp op = format::WriteOp::kPut;
  std::span<const std::byte> image;
};

class WriteEntries : public PaddedEntries<format::WriteEntry> {
 public:
  using PaddedEntries::PaddedEntries;

  // The next row, or false at the end or at malformed bytes.
  bool Next(WriteImage& to) {
    format::WriteEntry entry;
    if (!NextEntry(entry, to.image, IsSane)) return false;
    to.key = entry.key;
    to.table = TableId(entry.table);
    to.op = static_cast<format::WriteOp>(entry.op);
    return true;
  }

 private:
  static bool IsSane(const format::WriteEntry& entry) {
    return entry.op == static_cast<uint8_t>(format::WriteOp::kPut) ||
           entry.op == static_cast<uint8_t>(format::WriteOp::kDelete);
  }
};

}  // namespace dbx
