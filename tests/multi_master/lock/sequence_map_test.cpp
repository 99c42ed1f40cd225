// A map of ascending numbers, against std::map.
#include "multi_master/lock/sequence_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace dbx::mm {
namespace {

TEST(SequenceMapTest, ANumberIsFoundWhereItWasLeftOutToo) {
  SequenceMap<int> map;
  for (const uint64_t sequence : {10, 11, 13, 40, 12}) map[sequence] = static_cast<int>(sequence);
  EXPECT_EQ(map.size(), 5u);
  for (const uint64_t sequence : {10, 11, 12, 13, 40})
    EXPECT_EQ(map.find(sequence)->second, static_cast<int>(sequence));
  for (const uint64_t sequence : {0, 9, 14, 39, 41}) EXPECT_FALSE(map.contains(sequence)) << sequence;
}

TEST(SequenceMapTest, DoesWhatAMapDoes) {
  Random random(9);
  SequenceMap<uint64_t> map;
  std::map<uint64_t, uint64_t> expected;
  for (uint64_t i = 0; i < 20'000; ++i) {
    // Mostly the next ones, as transactions end; some long after.
    const uint64_t sequence = random.Chance(0.8) ? i + random.Below(4) : random.Below(i + 10);
    map[sequence] = expected[sequence] = i;
    if (random.Chance(0.01)) {
      const uint64_t below = random.Below(i + 1);
      const auto is_old = [&](const auto& entry) { return entry.first < below && entry.second % 8 != 0; };
      map.RemoveIf(is_old);
      std::erase_if(expected, is_old);
    }
    const uint64_t asked = random.Below(i + 10);
    const auto found = expected.find(asked);
    ASSERT_EQ(map.contains(asked), found != expected.end());
    if (found != expected.end()) {
      ASSERT_EQ(map.find(asked)->second, found->second);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
}

}  // namespace
}  // namespace dbx::mm
