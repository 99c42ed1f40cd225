// XOR of byte strings, eight bytes at a time; compilers make vector instructions of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dbx {

// to = a XOR b. The strings are the same or do not overlap.
inline void XorInto(std::byte* to, const std::byte* a, const std::byte* b, size_t bytes) {
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
    uint64_t x, y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    x ^= y;
    std::memcpy(to + at, &x, sizeof x);
  }
  for (; at < bytes; ++at) to[at] = a[at] ^ b[at];
}

// to = to XOR from
inline void XorBytes(std::byte* to, const std::byte* from, size_t bytes) { XorInto(to, to, from, bytes); }

}  // namespace dbx
