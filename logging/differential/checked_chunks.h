// The chunks of a log that a LogReader has checked: that pass knows where the valid prefix ends, and where in each
// block of the log the first record starts. A chunk is read from one such start to the next, and cut forward into
// records:
//
//     start 0            start 1                start 2          end
//     |  chunk 0         |  chunk 1             |  chunk 2       |
//     |[rec][rec][rec   ]|[rec][rec ][rec][rec ]|[rec][rec]      |
//
// Starts that are known were preferred to a search for the first valid header of each chunk: a record that crosses a
// block's end is in one chunk by construction, and no bytes of an older record can pass for one. A chain of records
// that does not lead from one start to the next means that the device returned other bytes than before: damage.
//
// Readers go through the chunks forward (forward_reader.h) or backward (backward_reader.h). With read-ahead the next
// chunk is read in the background while one is visited. Memory is bounded by two chunks; a chunk is about as long as a
// block of the LogReader, or as its longest record.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/device/background_read.h"
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

class CheckedChunks {
 public:
  // `starts` are places where records start, ascending from the log's start on (LogReader::block_starts). The last
  // chunk ends at `end`, which is range.high or below.
  CheckedChunks(const LogSource& source, std::span<const Lsn> starts, const LogRange& range, Lsn end, bool read_ahead);

  size_t count() const { return starts_.size(); }
  // Reads the chunk, unless a read of it was started, and appends its records' places. What the last call read is gone.
  // The read of chunk `next`, if there is one, is started. Throws Error: kIo from the device, kCorrupt if the records
  // are not those that were checked.
  void Load(size_t chunk, std::optional<size_t> next, std::vector<Lsn>& records);
  // Starts to read the chunk that Load will be asked for first.
  void ReadAhead(size_t chunk);

  // Of the chunk that was loaded, and where they begin.
  const std::byte* bytes() const { return chunks_[current_].buffer.data(); }
  Lsn bytes_from() const { return chunks_[current_].from; }
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return read_ticks_; }

 private:
  struct Chunk {
    ReadBuffer buffer;
    Lsn from;  // the block that the buffer begins with
    size_t bytes = 0;
  };

  Lsn EndOf(size_t chunk) const { return chunk + 1 == starts_.size() ? end_ : starts_[chunk + 1]; }
  void StartReading(size_t chunk, Chunk& to, bool ahead);
  void Cut(size_t chunk, std::vector<Lsn>& records) const;
  [[noreturn]] void Refuse(Lsn at, const char* why) const;

  const LogSource source_;
  const Lsn end_;
  const bool read_ahead_;  // not from memory: a copy gains nothing from another thread
  const RecordCheck check_;
  std::vector<Lsn> starts_;
  Chunk chunks_[2];
  int current_ = 0;  // the other is read ahead
  uint64_t read_ticks_ = 0;
  BackgroundRead read_;  // behind the buffers, which it must not outlive
};

}  // namespace dbx
