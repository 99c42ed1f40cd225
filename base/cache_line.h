// What the cache wants to know: the size of a line, padding against false sharing, prefetch.
#pragma once

#include <cstddef>
#include <utility>

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

// Asks for the line that holds `address`; never faults and never waits.
inline void Prefetch(const void* address) { __builtin_prefetch(address, 0, 3); }

// The same for `lines` consecutive lines.
inline void PrefetchLines(const void* address, int lines) {
  const auto* line = static_cast<const char*>(address);
  for (int i = 0; i < lines; ++i) Prefetch(line + static_cast<size_t>(i) * kCacheLineBytes);
}

}  // namespace dbx
