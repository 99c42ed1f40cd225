// Finds whole records anywhere in a log, for readers that do not come from its start.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

class RecordFinder {
 public:
  // No record reaches beyond `end`, and none is asked for that starts there.
  RecordFinder(const LogSource& source, Lsn end) : source_(source), check_(source, end) {}

  // Reads the piece of the stream from `at` on, the start of a block; returns how many bytes there are.
  size_t Load(uint64_t at, size_t bytes) {
    piece_.Reserve(0, bytes);
    piece_at_ = at;
    piece_bytes_ = source_.device->Read(source_.OffsetOf(Lsn(at)), {piece_.data(), bytes});
    return piece_bytes_;
  }
  std::span<const std::byte> piece() const { return {piece_.data(), piece_bytes_}; }

  // The valid header at a place in the piece, if there is one.
  bool HeaderAt(uint64_t at, format::RecordHeader& header) const;

  // The valid body behind it, in the piece or read for it alone.
  std::optional<std::span<const std::byte>> BodyOf(const format::RecordHeader& header);

 private:
  const LogSource& source_;
  RecordCheck check_;
  ReadBuffer piece_;
  uint64_t piece_at_ = 0;
  size_t piece_bytes_ = 0;
  ReadBuffer long_record_;
};

}  // namespace dbx
