// Restart from what a crash leaves, in the model of differential logging: Algorithm 3 as printed, and the three
// restarts of this testbed. DL1P makes one pass backward over differential records; DL2P one forward, one backward;
// PL2P undoes and redoes from before and after images.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/models/differential_model.h"

namespace dbx::models::differential {

// The state at the crash, and how many records of each log are left of it.
struct CrashImage {
  const Rules& rules;
  const Scenario& scenario;
  const State& state;
  std::array<uint8_t, kLogs> cut;

  bool Covers(const Record& end) const;
};
using Values = std::array<uint16_t, kPages>;

// The first record of a log that is still there, and is read.
int LowestOf(const CrashImage& image, size_t log);
Values Recover(const CrashImage& image);

}  // namespace dbx::models::differential
