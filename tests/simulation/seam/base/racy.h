// What base/racy.h is in the simulation: plain copies that another fibre may interrupt between any two words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/simulation/scheduler.h"

namespace dbx {

inline void CompilerBarrier() { sim::Step(); }

inline void RacyCopy(void* to, const void* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 8) {
    sim::Step();
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, std::min<size_t>(8, bytes - at));
  }
}

}  // namespace dbx

#include "tests/fibres/racy_load.h"
