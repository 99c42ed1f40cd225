// Cache lines: their size, padding against false sharing, prefetch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/prefetch.h"

namespace dbx {

inline constexpr size_t kCacheLineBytes = 64;

// Two words that different threads write must be this far apart: processors fetch lines in pairs.
inline constexpr size_t kNoSharingBytes = 128;

// A value that shares its cache lines with nothing else, for arrays with one element per thread.
template <class T>
struct alignas(kNoSharingBytes) CachePadded {
  T value;

  template <class... Args>
  explicit CachePadded(Args&&... args) : value(std::forward<Args>(args)...) {}
};

// Prefetch for `lines` consecutive lines.
inline void PrefetchLines(const void* address, int lines) {
  const auto* line = static_cast<const char*>(address);
  for (int i = 0; i < lines; ++i) Prefetch(line + static_cast<size_t>(i) * kCacheLineBytes);
}
// Every line that [address, address + bytes) touches.
inline void PrefetchBytes(const void* address, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(address) / kCacheLineBytes;
  const auto last = (reinterpret_cast<uintptr_t>(address) + bytes - 1) / kCacheLineBytes;
  PrefetchLines(reinterpret_cast<const void*>(first * kCacheLineBytes), static_cast<int>(last - first) + 1);
}

// The same for lines that are to be written to.
inline void PrefetchBytesToWrite(const void* address, size_t bytes) {
  const auto* byte = static_cast<const char*>(address);
  for (size_t at = 0; at < bytes; at += kCacheLineBytes) PrefetchToWrite(byte + at);
  PrefetchToWrite(byte + bytes - 1);
}

}  // namespace dbx
