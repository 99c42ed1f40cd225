// Reads a log backward, from the end of its valid prefix on, chunk by chunk. Records hold their own LSN, so they need
// no trailer and no pointer to the record before: the first valid header at a chunk's begin or behind it is where a
// record starts, as its LSN, salt and checksum are right by no accident, and from there the records must lead to the
// start that is known from the chunk behind:
//
//     low                                                                            high
//     | chunk 2              | chunk 1               | chunk 0                       |
//     |[rec][rec][rec     ][ | rec ][rec ][rec   ][r | ec ][rec][rec]                |
//                          ^ start 2               ^ start 1
//
// A record that crosses a chunk's begin is in the chunk where it starts, whose bytes are completed by the chunk behind.
// Where the records do not lead there a part of the log is damaged, as all of it was durable once.
//
// With read-ahead the chunk below is read in the background while one is visited. A chunk is about as long as
// some blocks of `block_bytes` on each disk of the device, or as its longest record.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/types.h"
#include "logging/device/background_read.h"
#include "logging/differential/record_chain.h"
#include "logging/log_reader.h"

namespace dbx {

class BackwardChunks {
 public:
  // Whole records.
  struct Chunk {
    std::unique_ptr<ReadBuffer> buffer;
    Lsn from;  // of the buffer's bytes
    std::vector<Lsn> records;
    size_t room = 0;  // of the buffer

    const std::byte* bytes() const { return buffer->data(); }
  };

  // A record starts at range.low, and one ends at range.high.
  BackwardChunks(const LogSource& source, const LogRange& range, size_t block_bytes, bool read_ahead);

  // Reads the chunk below the last one into `chunk`, whose memory is used again, and starts to read the one below that.
  // False: there is none. Throws Error: kIo from the device, kCorrupt where records do not lead to those behind.
  bool Load(Chunk& chunk);
  // Starts to read the chunk that Load will be asked for first.
  void ReadAhead();

  // Of the chunks so far, descending: where their first records start.
  const std::vector<Lsn>& starts() const { return starts_; }
  // Spent in waiting for the device.
  uint64_t read_ticks() const { return read_ticks_; }

 private:
  void StartReading(Chunk& to, bool ahead);
  void TakePiece(Chunk& chunk);
  std::optional<Lsn> FirstStart(const Chunk& chunk) const;
  void KeepFor(Lsn until, const Chunk& chunk);

  const LogSource source_;
  const LogRange range_;
  const size_t chunk_bytes_;
  const bool read_ahead_;  // not from memory: a copy gains nothing from another thread
  const uint64_t record_bytes_max_;
  const RecordCheck check_;
  Lsn known_;                         // where the records that were handed over begin
  Lsn unread_;                        // the end of the blocks that were not read
  Lsn unread_behind_;                 // the same before the last piece
  std::vector<std::byte> completes_;  // what lies from unread_ up to known_
  std::vector<Lsn> starts_;
  Chunk next_;  // is read ahead
  uint64_t read_ticks_ = 0;
  BackgroundRead read_;  // behind the buffer, which it must not outlive
};

}  // namespace dbx
