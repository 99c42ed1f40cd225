// Walks the rows that a data record holds, checking every bound: the bytes come from a file.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "base/types.h"
#include "logging/format.h"
#include "storage/row.h"

namespace dbx {

struct WriteImage {
  Key key = 0;
  TableId table;
  format::WriteOp op = format::WriteOp::kPut;
  std::span<const std::byte> image;
};

class WriteEntries {
 public:
  explicit WriteEntries(std::span<const std::byte> bytes) : left_(bytes) {}

  // The next row, or false at the end or at malformed bytes: malformed() tells which.
  bool Next(WriteImage& to) {
    if (left_.empty()) return false;
    format::WriteEntry entry;
    malformed_ = true;
    if (left_.size() < sizeof entry) return false;
    std::memcpy(&entry, left_.data(), sizeof entry);
    const size_t padded = RoundedUpToWords(entry.length);
    if (padded > left_.size() - sizeof entry) return false;
    if (entry.op != static_cast<uint8_t>(format::WriteOp::kPut) &&
        entry.op != static_cast<uint8_t>(format::WriteOp::kDelete)) {
      return false;
    }
    malformed_ = false;
    to.key = entry.key;
    to.table = TableId(entry.table);
    to.op = static_cast<format::WriteOp>(entry.op);
    to.image = left_.subspan(sizeof entry, entry.length);
    left_ = left_.subspan(sizeof entry + padded);
    return true;
  }

  bool malformed() const { return malformed_; }

 private:
  std::span<const std::byte> left_;
  bool malformed_ = false;
};

}  // namespace dbx
