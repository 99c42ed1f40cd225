// Visits the records of a log backward: chunk by chunk from the end (backward_chunks.h), and the records of each chunk
// backward. What was kept in memory when the end was searched is visited first, and not read again (kept_log.h).
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/backward_chunks.h"
#include "logging/differential/kept_log.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

class BackwardReader {
 public:
  // A record starts at range.low, and one ends at range.high. `kept`, if it is not null, has the end of the valid
  // prefix; it is used up.
  BackwardReader(const LogSource& source, const LogRange& range, size_t block_bytes, bool read_ahead,
                 KeptLog* kept = nullptr);

  // Reads chunks into memory before they are visited, until they have `bytes_max` bytes or all is read. Throws Error,
  // as BackwardChunks.
  void Fill(size_t bytes_max);
  // The record before the last one; false if there is none. The body stays until the next call. Throws Error, as
  // BackwardChunks.
  bool Previous(format::RecordHeader& header, std::span<const std::byte>& body);
  // The record that Previous will return after `more` others; false if it is not in memory yet.
  bool Ahead(size_t more, format::RecordHeader& header, std::span<const std::byte>& body) const;

  // Of what was read and not kept before, descending: places where records start, one of each chunk.
  const std::vector<Lsn>& starts() const { return chunks_.starts(); }
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return chunks_.read_ticks(); }

 private:
  bool Load();
  bool LoadKept();

  KeptLog* kept_;
  BackwardChunks chunks_;  // what lies behind them is kept
  std::deque<BackwardChunks::Chunk> filled_;
  BackwardChunks::Chunk chunk_;
  KeptLog::Chunk kept_chunk_;
  // The current chunk: a kept one or the other. Its records that were not visited yet.
  const std::byte* bytes_ = nullptr;
  Lsn bytes_from_;
  std::vector<Lsn> records_;
};

}  // namespace dbx
