#include "logging/device/write_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace dbx {
namespace {

TEST(WriteWindowTest, AFinishedWriteBehindAnUnfinishedOneDoesNotMoveThePrefix) {
  WriteWindow window(4);
  const size_t first = window.Start(8192, 4096);
  const size_t second = window.Start(12288, 4096);
  const size_t third = window.Start(16384, 8192);
  EXPECT_EQ(window.prefix_end(), 8192u);
  window.Finish(third);
  window.Finish(second);
  EXPECT_EQ(window.prefix_end(), 8192u);
  window.Finish(first);
  EXPECT_EQ(window.prefix_end(), 24576u);
  EXPECT_TRUE(window.Empty());
}

// As when a write in the middle has failed: those behind it are in the file, and count for nothing.
TEST(WriteWindowTest, AWriteThatNeverFinishesEndsWhatIsDurableWhateverFinishesBehindIt) {
  WriteWindow window(8);
  std::vector<size_t> slots;
  for (uint64_t i = 0; i < 8; ++i) slots.push_back(window.Start(4096 * i, 4096));
  for (const size_t i : {7, 1, 0, 5, 2, 6, 4}) window.Finish(slots[i]);
  EXPECT_EQ(window.prefix_end(), 3 * 4096u);
  EXPECT_TRUE(!window.Full() && !window.Empty());
}

TEST(WriteWindowTest, SlotsAreTakenAgainOnlyOnceThePrefixHasPassedThem) {
  WriteWindow window(2);
  const size_t first = window.Start(0, 1);
  window.Finish(window.Start(1, 1));
  EXPECT_TRUE(window.Full());
  window.Finish(first);
  EXPECT_FALSE(window.Full());
  EXPECT_EQ(window.prefix_end(), 2u);
}

TEST(WriteWindowTest, InAnyOrderOfCompletionThePrefixEndsBeforeTheOldestUnfinishedWrite) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  WriteWindow window(8);
  std::vector<std::pair<uint64_t, size_t>> unfinished;  // start offset, slot
  uint64_t next = 0;
  for (int step = 0; step < 20000; ++step) {
    if (!window.Full() && random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % 100;
      unfinished.emplace_back(next, window.Start(next, bytes));
      next += bytes;
    } else if (!unfinished.empty()) {
      const auto pick = unfinished.begin() + static_cast<ptrdiff_t>(random() % unfinished.size());
      window.Finish(pick->second);
      unfinished.erase(pick);
    }
    ASSERT_EQ(window.prefix_end(),
              unfinished.empty() ? next : std::min_element(unfinished.begin(), unfinished.end())->first);
  }
}

}  // namespace
}  // namespace dbx
