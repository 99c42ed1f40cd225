// Visits the records of a log forward, a second time, over bytes that a LogReader has checked, chunk by chunk
// (checked_chunks.h): for methods of recovery that redo forward. It costs what a BackwardReader costs, so that methods
// compare.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/checked_chunks.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

class ForwardReader {
 public:
  ForwardReader(const LogSource& source, std::span<const Lsn> starts, const LogRange& range, bool read_ahead);

  // The next record; false if there is none. The body stays until the next call. Throws Error, as CheckedChunks.
  bool Next(format::RecordHeader& header, std::span<const std::byte>& body);
  // The record that Next will return after `more` others; false if it is not in memory yet.
  bool Ahead(size_t more, format::RecordHeader& header, std::span<const std::byte>& body) const;
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return chunks_.read_ticks(); }

 private:
  bool Load();

  const Lsn low_;
  CheckedChunks chunks_;
  size_t loaded_ = 0;         // chunks
  std::vector<Lsn> records_;  // of the current chunk
  size_t visited_ = 0;        // of these
};

}  // namespace dbx
