// Visits the records of a log backward, over bytes that a LogReader has checked: that pass knows where the valid prefix
// ends, and where in each block of the log the first record starts. A chunk is read from one such start to the next,
// cut forward into records, and visited backward:
//
//     start 0            start 1                start 2          end
//     |  chunk 0         |  chunk 1             |  chunk 2       |
//     |[rec][rec][rec   ]|[rec][rec ][rec][rec ]|[rec][rec]      |
//                  <--------------------------------- visits ----
//
// Starts that are known were preferred to a search for the first valid header of each chunk: a record that crosses a
// block's end is in one chunk by construction, and no bytes of an older record can pass for one. A chain of records
// that does not lead from one start to the next means that the device returned other bytes than before: damage.
//
// Records hold their own LSN, so that they need no trailer and no pointer to the record before.
//
// What the LogReader's pass has kept in memory is visited first, and not read again (kept_log.h).
//
// With read-ahead the chunk before is read in the background while one is visited. Memory is bounded by two chunks; a
// chunk is about as long as a block of the LogReader, or as its longest record.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/device/background_read.h"
#include "logging/differential/kept_log.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

class BackwardReader {
 public:
  struct Range {
    Lsn low;   // records that start below are not visited
    Lsn high;  // the end of the valid prefix
  };

  // `starts` are places where records start, ascending from the log's start on (LogReader::block_starts). `kept`, if it
  // is not null, has the end of the valid prefix; it is used up.
  BackwardReader(const LogSource& source, std::span<const Lsn> starts, const Range& range, bool read_ahead,
                 KeptLog* kept = nullptr);

  // The record before the last one; false if there is none. The body stays until the next call. Throws Error: kIo from
  // the device, kCorrupt if the records are not those that were checked.
  bool Previous(format::RecordHeader& header, std::span<const std::byte>& body);
  // The record that Previous will return after `more` others; false if it is not in memory yet.
  bool Ahead(size_t more, format::RecordHeader& header, std::span<const std::byte>& body) const;
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return read_ticks_; }

 private:
  struct Chunk {
    ReadBuffer buffer;
    Lsn from;  // the block that the buffer begins with
    size_t bytes = 0;
  };

  Lsn EndOf(size_t chunk) const { return chunk + 1 == starts_.size() ? file_end_ : starts_[chunk + 1]; }
  bool Load();
  bool LoadKept();
  void StartReading(size_t chunk, Chunk& to, bool ahead);
  void CutChunk();
  [[noreturn]] void Refuse(Lsn at, const char* why) const;
  void RecordAt(Lsn at, format::RecordHeader& header, std::span<const std::byte>& body) const;

  const LogSource source_;
  const Lsn low_, high_;
  const bool read_ahead_;  // not from memory: a copy gains nothing from another thread
  KeptLog* kept_;
  Lsn file_end_;  // what lies behind is kept
  const RecordCheck check_;
  std::vector<Lsn> starts_;   // of the chunks in the file
  size_t chunks_left_ = 0;    // of these, not loaded yet
  std::vector<Lsn> records_;  // of the current chunk, not visited yet
  // The current chunk: a kept one, or that of chunks_.
  const std::byte* bytes_ = nullptr;
  Lsn bytes_from_;
  KeptLog::Chunk kept_chunk_;
  Chunk chunks_[2];
  int current_ = 0;  // the other is read ahead
  uint64_t read_ticks_ = 0;
  BackgroundRead read_;  // behind the buffers, which it must not outlive
};

}  // namespace dbx
