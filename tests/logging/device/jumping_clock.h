// A clock that stands still until a thread waits, so that a test reads times instead of measuring them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "logging/device/emulated_device.h"

namespace dbx {

class JumpingClock final : public DeviceClock {
 public:
  uint64_t NowNanos() override { return now_nanos; }
  void WaitUntil(uint64_t nanos) override {
    if (nanos <= now_nanos) return;
    now_nanos = nanos + late_nanos;
    ++waits;
  }

  uint64_t now_nanos = 1'000'000'000;
  uint64_t late_nanos = 0;  // each wait returns so much later
  uint64_t waits = 0;
};

}  // namespace dbx
