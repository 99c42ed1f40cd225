// CRC-32C (Castagnoli) as iSCSI and the log format define it: initial value and final xor all ones.
//
// Short inputs, such as record headers and command records, are checksummed inline with the SSE4.2
// instruction; from kCrc32cInlineBytes on ISA-L's carry-less multiplication wins over the latency of that
// instruction. Copying and checksumming a row in one loop measured worse than a copy followed by a checksum
// of the bytes in cache (benchmarks/micro/crc_bench.cpp), so there is no such function.
// Threads: pure functions.
#pragma once

#include <nmmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dbx {

inline constexpr size_t kCrc32cInlineBytes = 256;

namespace crc32c_internal {

// Both take and return the register itself, without the xor of the CRC's start and end.
inline uint32_t UpdateInline(uint32_t state, const std::byte* data, size_t bytes) {
  uint64_t wide = state;
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<uint32_t>(wide);
  if (bytes >= 4) {
    uint32_t word;
    std::memcpy(&word, data, 4);
    state = _mm_crc32_u32(state, word);
    bytes -= 4;
    data += 4;
  }
  for (; bytes > 0; --bytes, ++data) state = _mm_crc32_u8(state, static_cast<uint8_t>(*data));
  return state;
}
uint32_t UpdateLong(uint32_t state, const std::byte* data, size_t bytes);

}  // namespace crc32c_internal

// The CRC of some bytes, given `crc`, that of the bytes before them (0 for none).
inline uint32_t Crc32cExtend(uint32_t crc, std::span<const std::byte> data) {
  const uint32_t state = ~crc;
  return data.size() < kCrc32cInlineBytes ? ~crc32c_internal::UpdateInline(state, data.data(), data.size())
                                          : ~crc32c_internal::UpdateLong(state, data.data(), data.size());
}

inline uint32_t Crc32c(std::span<const std::byte> data) { return Crc32cExtend(0, data); }

// The CRC of bytes that hold it themselves, at `crc_at`, where it counts as zero.
inline uint32_t Crc32cOfSealed(std::span<const std::byte> data, size_t crc_at) {
  constexpr uint32_t kNoCrc = 0;
  const uint32_t before = Crc32c(data.first(crc_at));
  const uint32_t with_crc = Crc32cExtend(before, std::as_bytes(std::span(&kNoCrc, 1)));
  return Crc32cExtend(with_crc, data.subspan(crc_at + sizeof kNoCrc));
}

}  // namespace dbx
