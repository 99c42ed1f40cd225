// Whole records in memory, one behind the other, as readers of chunks of a log cut them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

// A part of a log that is visited.
struct LogRange {
  Lsn low;   // records that start below are not visited
  Lsn high;  // the end of the valid prefix
};

// The header and the body of the record at `at`, among bytes in memory that begin at `from`.
void RecordIn(const std::byte* bytes, Lsn from, Lsn at, format::RecordHeader& header, std::span<const std::byte>& body);

// Where no record follows the one before.
struct ChainBreak {
  Lsn at;
  const char* why;
};

// Appends the starts of the records from `first` to `end`, among bytes that begin at `from`. Returns where they do not
// lead from one to the other.
std::optional<ChainBreak> CutChain(const RecordCheck& check, const std::byte* bytes, Lsn from, Lsn first, Lsn end,
                                   std::vector<Lsn>& records);

}  // namespace dbx
