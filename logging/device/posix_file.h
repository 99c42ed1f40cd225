// Common to the devices and file systems over POSIX files: a descriptor that closes itself, errors with path, offset
// and reason, writes that are finished, and the sync of a directory's entries.
// Threads: no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace dbx {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Throws Error "cannot VERB PATH: REASON"; kNoSpace when the disk, a quota or a file size limit is full,
// kIo otherwise.
[[noreturn]] void ThrowErrno(const char* verb, const std::string& path, int error);
// The same as "cannot VERB PATH@OFFSET: REASON".
[[noreturn]] void ThrowErrno(const char* verb, const std::string& path, uint64_t offset, int error);

// Writes all of `data` with the flags of pwritev2, as write_fully.h says: 0 or an errno value, and in `done` the number
// of bytes written.
int WriteFully(int fd, uint64_t offset, std::span<const std::byte> data, int flags, size_t& done);

// From now on SIGXFSZ is ignored in the whole process, unless it is handled already: a file size limit is an error of
// the write, not the end of the process.
void IgnoreFileSizeSignal();

// Makes the entries of a directory durable: files created in it, renamed or deleted. Throws Error.
void SyncDirectory(const std::string& path);

// A file's file system: its name, and whether it is memory only.
struct FileSystemType {
  std::string name;  // "ext4", "tmpfs", ...
  bool is_ram = false;
  // A file system of the kernel's own over local blocks, for which it is known that a write with RWF_DSYNC is durable
  // when it returns. On others (FUSE, networks, overlays) a successful write proves nothing: they need fdatasync.
  bool honours_dsync = false;
};
// By the number that statfs gives.
bool HonoursDsync(uint64_t file_system_magic);
// Throws Error when the path cannot be examined.
FileSystemType FileSystemTypeOf(const std::string& path);

}  // namespace dbx
