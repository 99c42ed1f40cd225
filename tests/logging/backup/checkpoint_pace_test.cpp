// How long a checkpoint's thread rests, at least: bounds that hold on a host of any speed.
#include "logging/backup/checkpoint_pace.h"

#include <gtest/gtest.h>

#include "base/host.h"
#include "tests/base/busy.h"

namespace dbx {
namespace {

TEST(CheckpointPace, RestsUntilItsShareIsKept) {
  for (const uint32_t percent : {10u, 50u}) {
    const uint64_t from = host::MonotonicNanos(), cpu_from = host::ThreadCpuNanos();
    CheckpointPace pace(percent);
    for (int i = 0; i < 4; ++i) {
      UseProcessorFor(1'000'000);
      const uint64_t worked = host::ThreadCpuNanos() - cpu_from;
      pace.Rest([] { return false; });
      // Less what it did between two clocks.
      EXPECT_GE(host::MonotonicNanos() - from, worked * 100 / percent * 999 / 1000 - 100'000);
    }
  }
}

TEST(CheckpointPace, ARestEndsWithTheRun) {
  CheckpointPace pace(1);
  UseProcessorFor(1'000'000);
  int looks = 0;
  pace.Rest([&looks] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace dbx
