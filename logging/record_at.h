// Reads single records of a log by their LSN, as a restart does that follows the records of a row. Each is checked as
// when the log was read as a whole: what the device returns now may be something else.
//
// Threads: any, each with its own RecordBuffer; reads of one log wait for each other, as its device wants one reader.
#pragma once

#include <cstddef>
#include <span>

#include "base/host.h"
#include "base/types.h"
#include "logging/device/aligned_buffer.h"
#include "logging/log_reader.h"

namespace dbx {

// The blocks of the last record that was read into it.
class RecordBuffer {
 private:
  friend class RecordsAt;
  AlignedBuffer blocks_;
  size_t bytes_ = 0;
  size_t loaded_ = 0;  // of them, from the block of the record's start on
};

class RecordsAt {
 public:
  // Up to `end`, where recovery ended the log. The source's device outlives this.
  RecordsAt(const LogSource& source, Lsn end) : source_(source), check_(source, end), end_(end) {}

  // The record at `lsn`, header and body, valid until the buffer is used again. Throws Error: kCorrupt if there is
  // none, kIo of the device.
  std::span<const std::byte> Read(Lsn lsn, RecordBuffer& buffer) const;
  const LogSource& source() const { return source_; }

 private:
  // `bytes` of the stream from `lsn` on.
  const std::byte* Load(Lsn lsn, size_t bytes, RecordBuffer& buffer) const;

  const LogSource source_;
  const RecordCheck check_;
  const Lsn end_;
  mutable Mutex device_mutex_;
};

}  // namespace dbx
