// A row: header, log metadata and tuple in one allocation.
//
//   offset 0   control word   lock or version; the meaning of the upper bits is the concurrency control's
//   offset 8   key
//   offset 16  log metadata   RowLayout::log_bytes, the log scheme's
//   then       CC's part      RowLayout::cc_bytes, the concurrency control's (HEKATON: the head of the version chain)
//   then       tuple          Schema::tuple_bytes
//
// Absent rows (tombstones and placeholders): a row whose control word says kAbsent is in the index, can be locked,
// carries a version and log metadata, and reads as "no such key". A miss creates one, an insert turns it present, a
// delete turns a present row absent. It is unlinked (kGone) only once no transaction needs its version and metadata. A
// thread that finds kGone looks the key up again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host.h"
#include "base/types.h"

namespace dbx {

// The log metadata of one row, the log scheme's own bytes.
using Meta = std::byte*;

constexpr size_t RoundedUpToWords(size_t bytes) { return (bytes + 7) / 8 * 8; }

// The parts between the header and the tuple of every row, and in every leaf of an ordered table. In bytes; the parts
// begin at whole words.
struct RowLayout {
  size_t log_bytes = 0;       // the log scheme's metadata of the row
  size_t cc_bytes = 0;        // the concurrency control's own
  size_t leaf_log_bytes = 0;  // the log scheme's metadata of the gaps in a leaf

  constexpr size_t bytes() const { return RoundedUpToWords(log_bytes) + RoundedUpToWords(cc_bytes); }
};

struct Row {
  // The bits of the control word that every concurrency control shares.
  static constexpr uint64_t kLocked = 1;  // a writer holds the row
  static constexpr uint64_t kAbsent = 2;  // reads as a missing key
  static constexpr uint64_t kGone = 4;    // unlinked from the index
  static constexpr uint64_t kQueued = 8;  // absent at some time; in one worker's list of rows to unlink
  static constexpr int kSharedBits = 4;   // the concurrency control's own bits start here

  Atomic<uint64_t> control;
  Key key;

  Meta meta() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* meta() const { return reinterpret_cast<const std::byte*>(this + 1); }
  std::byte* cc_part(size_t log_bytes) { return meta() + RoundedUpToWords(log_bytes); }
};
static_assert(sizeof(Row) == 16);

class Table;

// A row as a log scheme sees it: its table and key, and the metadata beside it or in its place in a lock table.
struct RowRef {
  const Table& table;
  Key key;
  Meta meta;
};

}  // namespace dbx
