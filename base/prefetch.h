// The instructions that ask for a cache line; base/cache_line.h has them for more than one.
//
// The instrument that models caches puts a header of the same name before this one
// (tests/instruments/line_transfers/seam/base/prefetch.h).
#pragma once

namespace dbx {

// Asks for the line that holds `address`; never faults and never waits. Not __builtin_prefetch: GCC takes a function
// that does nothing else for pure and drops calls of it.
inline void Prefetch(const void* address) { asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(address))); }
// The same for a line that is to be written to; a hint that old processors ignore.
inline void PrefetchToWrite(const void* address) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
}

}  // namespace dbx
