// XOR of byte strings, by vectors of 16 bytes, which every x86-64 has.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dbx {

// to = a XOR b. The strings are the same or do not overlap.
inline void XorInto(std::byte* to, const std::byte* a, const std::byte* b, size_t bytes) {
  size_t at = 0;
  for (; at + sizeof(__m128i) <= bytes; at += sizeof(__m128i)) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at));
    const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), _mm_xor_si128(x, y));
  }
  if (at + sizeof(uint64_t) <= bytes) {
    uint64_t x, y;
    std::memcpy(&x, a + at, sizeof x);
    std::memcpy(&y, b + at, sizeof y);
    x ^= y;
    std::memcpy(to + at, &x, sizeof x);
    at += sizeof x;
  }
  for (; at < bytes; ++at) to[at] = a[at] ^ b[at];
}

// to = to XOR from
inline void XorBytes(std::byte* to, const std::byte* from, size_t bytes) { XorInto(to, to, from, bytes); }

}  // namespace dbx
