// The changes of rows in a record of RecordKind::kRowChanges: their bytes, written by a transaction's payload and
// walked by what recovers rows. Each names the row's previous record in the same log, so the records of a row are a
// chain, from the newest back to one that holds the whole row, or none, or to the state before the run.
//
// The walk checks every bound, as the bytes come from a file. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/types.h"
#include "logging/format.h"
#include "logging/padded_entries.h"
#include "storage/byte_range.h"
#include "storage/row.h"

namespace dbx {

// The place of a row's record in its log, or that there is none: bit 0 is set in a link and in no LSN of a record.
class RowLink {
 public:
  constexpr RowLink() = default;
  constexpr explicit RowLink(Lsn record) : word_(record.value() | 1) {}
  static constexpr RowLink FromWord(uint64_t word) {
    RowLink link;
    link.word_ = word;
    return link;
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool is_none() const { return word_ == 0; }
  constexpr Lsn record() const { return Lsn(word_ & ~uint64_t{1}); }
  // Of a record that can name it as a previous one.
  constexpr bool IsBelow(Lsn record_lsn) const { return is_none() || ((word_ & 7) == 1 && record() < record_lsn); }
  friend bool operator==(RowLink, RowLink) = default;

 private:
  uint64_t word_ = 0;
};

struct RowChange {
  Key key = 0;
  TableId table;
  format::RowChangeOp op = format::RowChangeOp::kInsert;
  RowLink previous;
  std::span<const std::byte> bytes;  // kInsert: the tuple; kUpdate: runs of changed bytes

  // Whether the chain goes on behind it.
  bool needs_previous() const { return op == format::RowChangeOp::kUpdate; }
};

class RowChanges : public PaddedEntries<format::RowChangeEntry> {
 public:
  using PaddedEntries::PaddedEntries;

  // The next one, or false at the end or at malformed bytes.
  bool Next(RowChange& to) {
    format::RowChangeEntry entry;
    if (!NextEntry(entry, to.bytes, IsSane)) return false;
    to.key = entry.key;
    to.table = TableId(entry.table);
    to.op = static_cast<format::RowChangeOp>(entry.op);
    to.previous = RowLink::FromWord(entry.previous);
    return true;
  }

 private:
  static bool IsSane(const format::RowChangeEntry& entry) {
    if (entry.op < 1 || entry.op > static_cast<uint8_t>(format::RowChangeOp::kLast)) return false;
    return entry.op != static_cast<uint8_t>(format::RowChangeOp::kDelete) || entry.length == 0;
  }
};

// Calls visit(offset, bytes) for each run of an update; false: they are no runs of a tuple of this size, ascending.
inline bool ForEachRun(std::span<const std::byte> runs, size_t tuple_bytes, auto&& visit) {
  size_t behind = 0;  // the run before
  while (!runs.empty()) {
    format::ByteRun run;
    if (runs.size() < sizeof run) return false;
    std::memcpy(&run, runs.data(), sizeof run);
    const size_t padded = RoundedUpToWords(run.bytes);
    if (padded > runs.size() - sizeof run || run.bytes == 0) return false;
    if (run.offset < behind || run.offset > tuple_bytes || run.bytes > tuple_bytes - run.offset) return false;
    behind = size_t{run.offset} + run.bytes;
    visit(run.offset, runs.subspan(sizeof run, run.bytes));
    runs = runs.subspan(sizeof run + padded);
  }
  return true;
}

// Whether a change is one of a row of `tuple_bytes`.
inline bool Fits(const RowChange& change, size_t tuple_bytes) {
  if (change.op == format::RowChangeOp::kInsert) return change.bytes.size() == tuple_bytes;
  return ForEachRun(change.bytes, tuple_bytes, [](uint32_t, std::span<const std::byte>) {});
}

// An insert or an update that fits, upon the tuple that was there before.
inline void ApplyTo(std::byte* tuple, size_t tuple_bytes, const RowChange& change) {
  if (change.op == format::RowChangeOp::kInsert) {
    std::memcpy(tuple, change.bytes.data(), change.bytes.size());
    return;
  }
  (void)ForEachRun(change.bytes, tuple_bytes, [tuple](uint32_t offset, std::span<const std::byte> bytes) {
    std::memcpy(tuple + offset, bytes.data(), bytes.size());
  });
}

}  // namespace dbx
