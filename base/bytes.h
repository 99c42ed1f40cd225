// Small questions about sizes and byte strings that many files ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dbx {

// The least multiple of `unit` that is not below `bytes`.
constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

inline bool AllZero(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace dbx
