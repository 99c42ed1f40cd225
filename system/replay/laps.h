// The time of a recovery's stages, one after the other.
#pragma once

#include <utility>

#include "base/clock.h"

namespace dbx {

class Laps {
 public:
  // Seconds since the last call, or since this was made.
  double Next() {
    const uint64_t begin = std::exchange(ticks_, Clock::NowTicks());
    return Clock::ToSeconds(ticks_ - begin);
  }

 private:
  uint64_t ticks_ = Clock::NowTicks();
};

}  // namespace dbx
