#include "logging/mirrored_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

namespace dbx {
namespace {

[[noreturn]] void ThrowNoMemory(size_t bytes, const char* step) {
  throw Error(ExitStatus::kNoSpace, "log buffer of " + std::to_string(bytes) + " bytes: " + step + ": " +
                                        std::strerror(errno) + "; use a smaller -Lb");
}

}  // namespace

MirroredBuffer::MirroredBuffer(size_t bytes) : bytes_(RoundedBytes(bytes)) {
  const int fd = memfd_create("log-buffer", MFD_CLOEXEC);
  if (fd < 0) ThrowNoMemory(bytes_, "memfd_create");
  if (ftruncate(fd, static_cast<off_t>(bytes_)) != 0) {
    close(fd);
    ThrowNoMemory(bytes_, "ftruncate");
  }
  void* reserved = mmap(nullptr, 2 * bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    close(fd);
    ThrowNoMemory(bytes_, "mmap");
  }
  base_ = static_cast<std::byte*>(reserved);
  for (std::byte* half : {base_, base_ + bytes_}) {
    // Fault the pages in now, not in the first transactions.
    if (mmap(half, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
      munmap(reserved, 2 * bytes_);
      close(fd);
      ThrowNoMemory(bytes_, "mmap");
    }
  }
  close(fd);
}

MirroredBuffer::~MirroredBuffer() { munmap(base_, 2 * bytes_); }

}  // namespace dbx
