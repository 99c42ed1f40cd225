// A copy of a file that a run writes to through a mapping, such as that of its acknowledgements.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/host.h"

namespace dbx::testing {

// Word by word from its beginning: each word of 8 bytes is old or new, and none is older than one before it. The reads
// of a stream may end within a word, and one that is stored between two of them would be half old, half new: an id that
// no transaction has, or another. Empty: there is no such file, or it is empty. It must not shrink meanwhile.
inline std::vector<char> CopyOfLiveFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat info {};
  void* at = MAP_FAILED;
  if (::fstat(fd, &info) == 0 && info.st_size > 0) {
    at = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  if (at == MAP_FAILED) return {};
  const auto size = static_cast<size_t>(info.st_size);
  std::vector<char> bytes(size / sizeof(uint64_t) * sizeof(uint64_t));
  auto* const words = static_cast<uint64_t*>(at);
  for (size_t i = 0; i < bytes.size() / sizeof(uint64_t); ++i) {
    const uint64_t word = AtomicRef<uint64_t>(words[i]).load(std::memory_order_acquire);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  ::munmap(at, size);
  return bytes;
}

}  // namespace dbx::testing
