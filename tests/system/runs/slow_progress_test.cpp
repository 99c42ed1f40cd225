// When a long step speaks, and what it says.
#include "system/runs/slow_progress.h"

#include <gtest/gtest.h>

namespace dbx {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kSecond = 1'000'000'000;

SlowProgress FourGiB() { return {"preparing the logs", "bounded by --log_limit", 4 * kGiB, 0}; }

TEST(SlowProgress, AQuickStepSaysNothing) {
  SlowProgress progress = FourGiB();
  EXPECT_EQ(progress.Advance(2 * kGiB, kSecond), "");
  EXPECT_EQ(progress.Advance(2 * kGiB, 2 * kSecond), "");  // done: nothing is left to say
}

TEST(SlowProgress, ASlowOneSaysHowLongItWillTake) {
  SlowProgress progress = FourGiB();
  EXPECT_EQ(progress.Advance(kGiB, 2 * kSecond),
            "preparing the logs: 1.0 of 4.0 GiB, about 6 s left (bounded by --log_limit)\n");
}

TEST(SlowProgress, ItSpeaksEveryFiveSeconds) {
  SlowProgress progress = FourGiB();
  progress.Advance(kGiB, 2 * kSecond);
  EXPECT_EQ(progress.Advance(kGiB, 6 * kSecond), "");
  EXPECT_NE(progress.Advance(0, 7 * kSecond), "");
}

}  // namespace
}  // namespace dbx
