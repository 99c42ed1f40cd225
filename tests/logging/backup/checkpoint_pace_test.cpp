// How long a checkpoint's thread rests, on a host of any speed.
#include "logging/backup/checkpoint_pace.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/base/busy.h"

namespace dbx {
namespace {

TEST(CheckpointPace, RestsUntilItsShareIsKept) {
  EXPECT_EQ(CheckpointPace::RestNanos(10, 1'000, 1'000), 9'000u);
  EXPECT_EQ(CheckpointPace::RestNanos(50, 1'000, 1'500), 500u) << "what it waited for a device counts as rest";
  EXPECT_EQ(CheckpointPace::RestNanos(50, 1'000, 7'000), 0u);
  EXPECT_EQ(CheckpointPace::RestNanos(100, 1'000, 1'000), 0u);
}

TEST(CheckpointPace, ARestEndsWithTheRun) {
  CheckpointPace pace(1);
  int looks = 0;
  // Again where the host kept the thread from a processor for as long as it was to rest.
  while (looks == 0) {
    UseProcessorFor(1'000'000);
    pace.Rest([&looks] { return ++looks == 3; });
  }
  EXPECT_LE(looks, 3);
}

TEST(CheckpointPace, AllOfAProcessorNeedsNoRest) {
  CheckpointPace pace(100);
  UseProcessorFor(1'000'000);
  pace.Rest([]() -> bool { throw std::logic_error("a rest"); });
}

}  // namespace
}  // namespace dbx
