// Visits the records of a log forward, a second time, over bytes that a pass has checked: for methods of recovery that
// redo forward. The pass knows where the valid prefix ends, and where in each part of the log the first record starts.
// A chunk is read from one such start to the next, and cut into records:
//
//     start 0            start 1                start 2          end
//     |  chunk 0         |  chunk 1             |  chunk 2       |
//     |[rec][rec][rec   ]|[rec][rec ][rec][rec ]|[rec][rec]      |
//
// A record that crosses a block's end is in one chunk by construction. A chain of records that does not lead from one
// start to the next means that the device returned other bytes than before: damage.
//
// With read-ahead the next chunk is read in the background while one is visited. Memory is bounded by two chunks; a
// chunk is about as long as one of the pass, or as its longest record.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/device/background_read.h"
#include "logging/differential/record_chain.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

class ForwardReader {
 public:
  // `starts` are places where records start, ascending. The first is the log's, or at range.low or below.
  ForwardReader(const LogSource& source, std::span<const Lsn> starts, const LogRange& range, bool read_ahead);

  // The next record; false if there is none. The body stays until the next call. Throws Error: kIo from the device,
  // kCorrupt if the records are not those that were checked.
  bool Next(format::RecordHeader& header, std::span<const std::byte>& body);
  // The record that Next will return after `more` others; false if it is not in memory yet.
  bool Ahead(size_t more, format::RecordHeader& header, std::span<const std::byte>& body) const;
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return read_ticks_; }

 private:
  struct Chunk {
    ReadBuffer buffer;
    Lsn from;  // the block that the buffer begins with
    size_t bytes = 0;
  };

  Lsn EndOf(size_t chunk) const { return chunk + 1 == starts_.size() ? range_.high : starts_[chunk + 1]; }
  const Chunk& current() const { return chunks_[loaded_ % 2]; }
  bool Load();
  void StartReading(size_t chunk, bool ahead);
  [[noreturn]] void Refuse(Lsn at, const char* why) const;

  const LogSource source_;
  const LogRange range_;
  const bool read_ahead_;  // not from memory: a copy gains nothing from another thread
  const RecordCheck check_;
  std::vector<Lsn> starts_;
  size_t loaded_ = 0;  // chunks
  Chunk chunks_[2];    // chunk number n is in the one of n + 1, modulo 2
  std::vector<Lsn> records_;
  size_t visited_ = 0;  // of these
  uint64_t read_ticks_ = 0;
  BackgroundRead read_;  // behind the buffers, which it must not outlive
};

}  // namespace dbx
