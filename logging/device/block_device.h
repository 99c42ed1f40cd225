// The device of a log stream. One object per log file.
//
// A write is complete only when its bytes are on stable storage: the device syncs them, by O_DSYNC or by
// fdatasync, before it reports the write. After an error the device is failed for good: nothing more is
// written, the error is thrown again by every call, and a failed sync is never retried (the page cache may
// have dropped the bytes).
//
// Threads: StartWrite and Complete belong to one thread, the stream's writer; one at a time reads. Models: FileDevice,
// StripedDevice, and the files of FaultyFileSystem (tests).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dbx {

class BlockDevice {
 public:
  virtual ~BlockDevice() = default;

  // Starts a durable write of whole blocks. `data` stays untouched until Complete has covered it. Writes
  // are started in ascending, gapless order of offset. May block when too many are in flight.
  // Throws Error (kIo, kNoSpace) with path, offset and errno's text.
  virtual void StartWrite(uint64_t offset, std::span<const std::byte> data) = 0;

  // The end offset of the contiguous prefix of writes that is complete, hence durable. With `wait` it blocks until
  // every started write is complete.
  virtual uint64_t Complete(bool wait) = 0;

  // Reads up to to.size() bytes at `offset`; returns how many there were (short only at the end of file).
  virtual size_t Read(uint64_t offset, std::span<std::byte> to) = 0;
  // The first offset from `offset` on at which there may be non-zero bytes, as far as the device can tell without
  // reading; SizeBytes() or more if there is none.
  virtual uint64_t SkipHole(uint64_t offset) { return offset; }
  // The number of disks that a long read keeps busy.
  virtual size_t disks() const { return 1; }
  // A RAM disk: a read is a copy, so it never waits and another thread gains nothing.
  virtual bool is_memory() const { return false; }

  virtual uint64_t SizeBytes() = 0;
  virtual const std::string& path() const = 0;
  // How an error line names a place: "PATH@OFFSET".
  virtual std::string PlaceOf(uint64_t offset) const { return path() + "@" + std::to_string(offset); }
};

}  // namespace dbx
