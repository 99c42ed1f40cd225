// Memory that a process shares with the children that it forks afterwards: zeros at first. Pages that no process
// touches cost nothing, so it may be far larger than what is used of it.
//
// Threads: any; what lies in it is Atomic.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/error.h"

namespace dbx {

class SharedMemory {
 public:
  // Throws Error (kNoSpace).
  explicit SharedMemory(size_t bytes) : bytes_(bytes) {
    void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      throw Error(ExitStatus::kNoSpace,
                  "no shared memory of " + std::to_string(bytes_) + " bytes: " + std::strerror(errno));
    }
    at_ = static_cast<std::byte*>(at);
  }
  ~SharedMemory() { munmap(at_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return at_; }

 private:
  const size_t bytes_;
  std::byte* at_;
};

}  // namespace dbx
