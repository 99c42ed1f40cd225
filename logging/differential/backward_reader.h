// Visits the records of a log backward, over bytes that a LogReader has checked: chunk by chunk from the end
// (checked_chunks.h), and the records of each chunk backward. Records hold their own LSN, so that they need no trailer
// and no pointer to the record before.
//
// What the LogReader's pass has kept in memory is visited first, and not read again (kept_log.h).
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/checked_chunks.h"
#include "logging/differential/kept_log.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

class BackwardReader {
 public:
  // `starts` as for CheckedChunks. `kept`, if it is not null, has the end of the valid prefix; it is used up.
  BackwardReader(const LogSource& source, std::span<const Lsn> starts, const LogRange& range, bool read_ahead,
                 KeptLog* kept = nullptr);

  // The record before the last one; false if there is none. The body stays until the next call. Throws Error, as
  // CheckedChunks.
  bool Previous(format::RecordHeader& header, std::span<const std::byte>& body);
  // The record that Previous will return after `more` others; false if it is not in memory yet.
  bool Ahead(size_t more, format::RecordHeader& header, std::span<const std::byte>& body) const;
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return chunks_.read_ticks(); }

 private:
  bool Load();
  bool LoadKept();

  const Lsn low_;
  KeptLog* kept_;
  CheckedChunks chunks_;      // what lies behind them is kept
  size_t chunks_left_ = 0;    // of these, not loaded yet
  std::vector<Lsn> records_;  // of the current chunk, not visited yet
  // The current chunk: a kept one, or that of chunks_.
  const std::byte* bytes_ = nullptr;
  Lsn bytes_from_;
  KeptLog::Chunk kept_chunk_;
};

}  // namespace dbx
