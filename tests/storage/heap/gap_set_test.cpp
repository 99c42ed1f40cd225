#include "storage/heap/gap_set.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace dbx {
namespace {

TEST(GapSet, EndsAreHalfOpen) {
  GapSet gaps;
  gaps.Add({5, 9});
  EXPECT_FALSE(gaps.Contains(4));
  EXPECT_TRUE(gaps.Contains(5));
  EXPECT_TRUE(gaps.Contains(8));
  EXPECT_FALSE(gaps.Contains(9));
  gaps.Add({7, 7});
  EXPECT_EQ(gaps.gaps().size(), 1u);
}

TEST(GapSet, WhatTouchesOrOverlapsIsOneGap) {
  GapSet gaps;
  gaps.Add({20, 30});
  gaps.Add({5, 9});
  gaps.Add({40, 50});
  gaps.Add({9, 20});
  EXPECT_EQ(gaps.gaps(), (std::vector<GapSet::Gap>{{5, 30}, {40, 50}}));
  gaps.Add({1, 100});
  EXPECT_EQ(gaps.gaps(), (std::vector<GapSet::Gap>{{1, 100}}));
}

TEST(GapSet, IsASetOfStamps) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    GapSet gaps;
    std::set<uint64_t> stamps;
    for (int i = 0; i < 12; ++i) {
      const uint64_t low = random.Next() % 100, high = low + random.Next() % 12;
      gaps.Add({low, high});
      for (uint64_t stamp = low; stamp < high; ++stamp) stamps.insert(stamp);
    }
    for (uint64_t stamp = 0; stamp < 120; ++stamp) ASSERT_EQ(gaps.Contains(stamp), stamps.contains(stamp)) << stamp;
    for (size_t i = 1; i < gaps.gaps().size(); ++i) ASSERT_LT(gaps.gaps()[i - 1].high, gaps.gaps()[i].low);
  }
}

}  // namespace
}  // namespace dbx
