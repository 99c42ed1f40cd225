// What base/racy.h is under the instrument: the same copies, which the instrument is told of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/instruments/line_transfers/instrument.h"

namespace dbx {

inline void CompilerBarrier() { asm volatile("" ::: "memory"); }

inline void RacyCopy(void* to, const void* from, size_t bytes) { lines::RacyCopyOf(to, from, bytes); }

template <class T>
T RacyLoad(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  RacyCopy(&value, from, sizeof(T));
  return value;
}

}  // namespace dbx
