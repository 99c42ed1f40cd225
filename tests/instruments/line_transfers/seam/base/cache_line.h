// What base/cache_line.h is under the instrument, which is told of the lines that are asked for. The rest is the same.
#pragma once

#define Prefetch SilentPrefetch
#define PrefetchToWrite SilentPrefetchToWrite
#define PrefetchLines SilentPrefetchLines
#define PrefetchBytes SilentPrefetchBytes
#define PrefetchBytesToWrite SilentPrefetchBytesToWrite
#include_next "base/cache_line.h"
#undef Prefetch
#undef PrefetchToWrite
#undef PrefetchLines
#undef PrefetchBytes
#undef PrefetchBytesToWrite

#include "tests/instruments/line_transfers/instrument.h"

namespace dbx {

inline void Prefetch(const void* address) { lines::OnPrefetch(address, false); }
inline void PrefetchToWrite(const void* address) { lines::OnPrefetch(address, true); }

inline void PrefetchLines(const void* address, int lines) {
  const auto* line = static_cast<const char*>(address);
  for (int i = 0; i < lines; ++i) Prefetch(line + static_cast<size_t>(i) * kCacheLineBytes);
}
inline void PrefetchBytes(const void* address, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(address) / kCacheLineBytes;
  const auto last = (reinterpret_cast<uintptr_t>(address) + bytes - 1) / kCacheLineBytes;
  PrefetchLines(reinterpret_cast<const void*>(first * kCacheLineBytes), static_cast<int>(last - first) + 1);
}
inline void PrefetchBytesToWrite(const void* address, size_t bytes) {
  const auto* byte = static_cast<const char*>(address);
  for (size_t at = 0; at < bytes; at += kCacheLineBytes) PrefetchToWrite(byte + at);
  PrefetchToWrite(byte + bytes - 1);
}

}  // namespace dbx
