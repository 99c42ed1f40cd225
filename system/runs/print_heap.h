// Prints a persistent heap of versions and the log of its gaps, for log_dump: heap.pm and gaps.log, and indexes.pm.
// They are checked as a recovery checks them, as far as that needs no schema: to which partition a key belongs is not.
//
// Which versions count is a matter of both files: of a heap that of the records in the gaps.log beside it.
//
// Main's thread only.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/error.h"

namespace dbx {

// The superblock, and of each table how many slots are free, hold a version that counts, and so on. Throws Error for
// superblocks that make no sense; the first damage of the rest goes to `report`.
void PrintHeap(const std::string& path, const std::function<void(const Error&)>& report);

// Every valid record, in order of sequence. Throws Error where there is none.
void PrintGaps(const std::string& path, const std::function<void(const Error&)>& report);

// Of a file of frozen secondary indexes, with these bytes: how many entries each has. Throws Error.
void PrintIndexes(const std::string& path, std::span<const std::byte> bytes);

}  // namespace dbx
