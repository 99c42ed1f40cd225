// Claims about base/random.h.
#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace dbx {
namespace {

TEST(RandomTest, EqualSeedsGiveEqualSequences) {
  Random a(7, 3), b(7, 3);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.Next(), b.Next());
}

TEST(RandomTest, StreamsOfOneSeedDiffer) {
  std::set<uint64_t> firsts;
  for (uint64_t stream = 0; stream < 1000; ++stream) firsts.insert(Random(7, stream).Next());
  EXPECT_EQ(firsts.size(), 1000u);
}

TEST(RandomTest, BelowIsUniform) {
  Random random(11);
  constexpr int kBins = 10, kDraws = 100'000;
  int count[kBins] = {};
  for (int i = 0; i < kDraws; ++i) ++count[random.Below(kBins)];
  double chi_square = 0;
  for (int c : count) chi_square += (c - kDraws / kBins) * (c - kDraws / kBins) / double{kDraws / kBins};
  EXPECT_LT(chi_square, 27.9);  // 9 degrees of freedom, p = 0.001
}

TEST(RandomTest, BetweenReachesBothEndsAndNothingBeyond) {
  Random random(12);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Between(5, 15));
  EXPECT_EQ(*seen.begin(), 5u);
  EXPECT_EQ(*seen.rbegin(), 15u);
  EXPECT_EQ(seen.size(), 11u);
}

TEST(RandomTest, UnitStaysBelowOne) {
  Random random(13);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = random.Unit();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(MixTest, OneInputBitChangesAboutHalfOfTheOutput) {
  int changed = 0;
  for (uint64_t x = 0; x < 100; ++x) {
    for (int bit = 0; bit < 64; ++bit) changed += std::popcount(Mix64(x) ^ Mix64(x ^ (uint64_t{1} << bit)));
  }
  EXPECT_NEAR(changed / 6400.0, 32, 0.5);
}

TEST(MixTest, FoldingDoesNotCommute) {
  const uint64_t value = 5;
  EXPECT_NE(HashPair(HashPair(value, 1), 2), HashPair(HashPair(value, 2), 1));
}

}  // namespace
}  // namespace dbx
