// The loops around system calls that may write or read less than they were asked to, or nothing because of a signal.
// Files of the operating system and the faulty files of tests use the same loops.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dbx {

// One request at most; the rest of a longer write follows as after a short write.
inline constexpr size_t kRequestBytesMax = size_t{1} << 30;

// Writes all of `data`; returns 0 or an errno value, and in `done` the number of bytes written. `write_some(offset,
// data)` returns how many bytes it wrote, or an errno value below zero.
template <class WriteSome>
int WriteFully(uint64_t offset, std::span<const std::byte> data, size_t& done, WriteSome&& write_some) {
  done = 0;
  while (done < data.size()) {
    const int64_t n = write_some(offset + done, data.subspan(done, std::min(data.size() - done, kRequestBytesMax)));
    if (n == -EINTR) continue;
    if (n < 0) return static_cast<int>(-n);
    if (n == 0) return EIO;
    done += static_cast<size_t>(n);
  }
  return 0;
}

// Reads until `to` is full or the file ends: `done` is smaller than `to` only there. Else as WriteFully, with
// `read_some(offset, to)`, which returns 0 at the end of the file.
template <class ReadSome>
int ReadFully(uint64_t offset, std::span<std::byte> to, size_t& done, ReadSome&& read_some) {
  done = 0;
  while (done < to.size()) {
    const int64_t n = read_some(offset + done, to.subspan(done, std::min(to.size() - done, kRequestBytesMax)));
    if (n == -EINTR) continue;
    if (n < 0) return static_cast<int>(-n);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return 0;
}

}  // namespace dbx
