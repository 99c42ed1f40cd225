// A BlockDevice over one file of a file system, disk or RAM disk.
//
// Its I/O engine is probed when the file is created and recorded as text in io_engine(): io_uring with several O_DIRECT
// writes in flight, each synced by itself (O_DSYNC); else pwrite, with O_DIRECT and O_DSYNC where the file system takes
// them, else through the page cache with fdatasync in Complete. O_DSYNC is used only where it is known to be honoured
// (posix_file.h); elsewhere fdatasync follows, after O_DIRECT too. On a RAM disk pwrite suffices, and the sync, a no-op
// there, is still called.
//
// Contract beyond BlockDevice: offset, size and address of StartWrite's data are multiples of 4096. With the buffered
// engine it is Complete, with or without `wait`, that syncs the earlier writes. A failed write or sync fails the
// device; a failed read is thrown but changes nothing. A file is created whole (blocks allocated, zeros written, file
// and directory entry synced) or not at all.
//
// Threads: StartWrite and Complete: one at a time. Read, SizeBytes: any.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/host.h"
#include "logging/device/file_system.h"
#include "logging/device/posix_file.h"

namespace dbx {

class FileDevice : public BlockDevice {
 public:
  size_t Read(uint64_t offset, std::span<std::byte> to) final;
  uint64_t SizeBytes() final;
  const std::string& path() const final { return path_; }

  // The I/O engine, e.g. "io_uring, O_DIRECT, O_DSYNC" or "pwrite, buffered, fdatasync".
  const std::string& io_engine() const { return io_engine_; }

 protected:
  // `read_fd` goes through the page cache, so that a reader's memory need not be aligned.
  FileDevice(UniqueFd fd, UniqueFd read_fd, std::string path, std::string io_engine)
      : fd_(std::move(fd)), read_fd_(std::move(read_fd)), path_(std::move(path)), io_engine_(std::move(io_engine)) {}

  int fd() const { return fd_.get(); }
  int read_fd() const { return read_fd_.get(); }
  // Throws the error that failed the device, if there was one.
  void ThrowIfFailed() const;
  // Fails the device with errno value `error` at `offset` and throws.
  [[noreturn]] void Fail(const char* verb, uint64_t offset, int error);

 private:
  UniqueFd fd_;  // for writing
  UniqueFd read_fd_;
  std::string path_;
  std::string io_engine_;
  std::optional<Error> failure_;
  Atomic<bool> failed_{false};  // release after failure_ is set; a thread that reads true may read failure_
};

// Creates the file, which must not exist, and returns once it and its directory entry are durable. Throws Error:
// kNoSpace, kIo; then the file is removed again. A file size limit is an error of the write (IgnoreFileSizeSignal).
std::unique_ptr<FileDevice> CreateFileDevice(const std::string& path, const DeviceOptions& options);

// Opens a file for reading, through the page cache with read-ahead for sequential access (which measured
// faster than O_DIRECT reads without a queue of their own). StartWrite throws.
std::unique_ptr<FileDevice> OpenFileDevice(const std::string& path);

// As FileSystem::Rewrite says, through the page cache: the rewritten pages are dirty, even if their bytes are
// unchanged.
void RewriteFile(const std::string& path, uint64_t from, uint64_t to);

// As FileSystem::Discard says: punches a hole, while other descriptors may write elsewhere in the file.
bool DiscardBlocks(const std::string& path, uint64_t from, uint64_t to);

// Examines a directory; tries the engines on a file that is deleted at once. Throws Error if it is not there.
DirectoryKind Describe(const std::string& directory, const DeviceOptions& options = {});

}  // namespace dbx
