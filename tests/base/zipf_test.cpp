// Claims about base/zipf.h: exact probabilities by chi-square with a fixed seed, and bijectivity.
#include "base/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace dbx {
namespace {

class ZipfTest : public testing::TestWithParam<double> {};

TEST_P(ZipfTest, DrawsEveryRankWithItsProbability) {
  constexpr int kRanks = 50, kDraws = 400'000;
  const Zipf zipf(kRanks, GetParam());
  Random random(2024);
  std::vector<double> drawn(kRanks);
  for (int i = 0; i < kDraws; ++i) ++drawn[zipf.Sample(random)];
  double total = 0;
  for (int k = 1; k <= kRanks; ++k) total += std::pow(k, -GetParam());
  double chi_square = 0;
  for (int k = 1; k <= kRanks; ++k) {
    const double expected = kDraws * std::pow(k, -GetParam()) / total;
    chi_square += (drawn[k - 1] - expected) * (drawn[k - 1] - expected) / expected;
  }
  EXPECT_LT(chi_square, 85.4);  // 49 degrees of freedom, p = 0.001
}

TEST_P(ZipfTest, FirstRankOfAMillionHasItsProbability) {
  constexpr int kRanks = 1'000'000, kDraws = 200'000;
  const Zipf zipf(kRanks, GetParam());
  Random random(2025);
  int first = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t rank = zipf.Sample(random);
    ASSERT_LT(rank, uint64_t{kRanks});
    first += rank == 0;
  }
  double total = 0;
  for (int k = kRanks; k >= 1; --k) total += std::pow(k, -GetParam());
  const double p = 1 / total;
  EXPECT_NEAR(first, kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p)) + 1);
}

INSTANTIATE_TEST_SUITE_P(Thetas, ZipfTest, testing::Values(0.0, 0.6, 0.9, 0.99, 1.0, 1.2, 1.6));

TEST(ZipfEdgeTest, OneRankIsAlwaysDrawn) {
  Random random(1);
  for (double theta : {0.0, 1.0, 1.6}) EXPECT_EQ(Zipf(1, theta).Sample(random), 0u);
}

TEST(PermutationTest, IsABijection) {
  for (uint64_t n : {1u, 2u, 3u, 4u, 5u, 15u, 16u, 17u, 1000u, 4096u, 10'007u}) {
    const Permutation permutation(n);
    std::vector<bool> hit(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, n);
      ASSERT_FALSE(hit[image]) << "n " << n << " i " << i;
      hit[image] = true;
    }
  }
}

TEST(PermutationTest, ScattersNeighbours) {
  constexpr uint64_t kSize = 1'000'000;
  const Permutation permutation(kSize);
  int near = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const int64_t distance = int64_t(permutation(i)) - int64_t(permutation(i + 1));
    near += std::abs(distance) < 1000;
  }
  EXPECT_LT(near, 20);  // two in expectation
}

TEST(PermutationTest, SaltsDiffer) {
  int equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) equal += Permutation(1000, 1)(i) == Permutation(1000, 2)(i);
  EXPECT_LT(equal, 20);
}

}  // namespace
}  // namespace dbx
