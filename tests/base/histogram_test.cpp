// LatencyHistogram against exact percentiles of the same values.
#include "base/histogram.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/clock.h"

namespace dbx {
namespace {

uint64_t ExactPercentile(std::vector<uint64_t> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const auto rank = std::max<size_t>(1, static_cast<size_t>(std::ceil(fraction * n)));
  return values[rank - 1];
}

LatencyHistogram HistogramOf(const std::vector<uint64_t>& values) {
  LatencyHistogram histogram;
  for (const uint64_t v : values) histogram.Record(v);
  return histogram;
}

// Latencies as they occur: log-normal around 100 us, with a uniform tail to 10 s.
std::vector<uint64_t> RandomLatencies(uint64_t seed, size_t count) {
  std::mt19937_64 rng(seed);
  std::lognormal_distribution<double> usual(std::log(1e5), 2.0);
  std::uniform_int_distribution<uint64_t> tail(0, 10'000'000'000);
  std::vector<uint64_t> values(count);
  for (auto& v : values) v = rng() % 100 == 0 ? tail(rng) : static_cast<uint64_t>(usual(rng));
  return values;
}

TEST(LatencyHistogram, EmptyHasNoPercentile) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.PercentileNanos(0.5), 0u);
  EXPECT_EQ(histogram.MeanNanos(), 0);
}

TEST(LatencyHistogram, EveryValueFallsIntoTheBucketThatEndsAtOrAboveIt) {
  for (uint64_t v = 0; v < 100'000; ++v) {
    const size_t bucket = LatencyHistogram::BucketOf(v);
    ASSERT_LE(v, LatencyHistogram::UpperNanos(bucket));
    if (bucket > 0) {
      ASSERT_GT(v, LatencyHistogram::UpperNanos(bucket - 1));
    }
  }
}

TEST(LatencyHistogram, BucketsAreAtMostOneSixtyFourthWide) {
  for (size_t b = 1; b < LatencyHistogram::kBuckets; ++b) {
    const uint64_t lower = LatencyHistogram::UpperNanos(b - 1) + 1;
    const uint64_t upper = LatencyHistogram::UpperNanos(b);
    ASSERT_LE((upper - lower) * 64, lower) << b;
  }
  EXPECT_EQ(LatencyHistogram::UpperNanos(LatencyHistogram::kBuckets - 1), (uint64_t{1} << 40) - 1);
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  std::vector<uint64_t> values;
  for (uint64_t v = 0; v < 128; ++v) values.push_back(v);
  const LatencyHistogram histogram = HistogramOf(values);
  for (const double p : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_EQ(histogram.PercentileNanos(p), ExactPercentile(values, p)) << p;
  }
}

TEST(LatencyHistogram, PercentilesStayWithinTheStatedError) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto values = RandomLatencies(seed, 50'000);
  const LatencyHistogram histogram = HistogramOf(values);
  for (const double p : {0.001, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const uint64_t exact = ExactPercentile(values, p);
    EXPECT_GE(histogram.PercentileNanos(p), exact) << p;
    EXPECT_LE(histogram.PercentileNanos(p), exact + exact / 64) << p;
  }
}

TEST(LatencyHistogram, MeanMaximumAndCountAreExact) {
  const LatencyHistogram histogram = HistogramOf({1, 2, 3, 1'000'000'007});
  EXPECT_EQ(histogram.count(), 4u);
  EXPECT_EQ(histogram.max_nanos(), 1'000'000'007u);
  EXPECT_DOUBLE_EQ(histogram.MeanNanos(), 1'000'000'013.0 / 4);
  EXPECT_EQ(histogram.PercentileNanos(1.0), 1'000'000'007u);
}

TEST(LatencyHistogram, MergeEqualsRecordingEverythingInOne) {
  const auto left = RandomLatencies(1, 1000), right = RandomLatencies(2, 3000);
  auto all = left;
  all.insert(all.end(), right.begin(), right.end());
  LatencyHistogram merged = HistogramOf(left);
  merged.Merge(HistogramOf(right));
  const LatencyHistogram whole = HistogramOf(all);
  EXPECT_EQ(merged.count(), whole.count());
  EXPECT_EQ(merged.MeanNanos(), whole.MeanNanos());
  EXPECT_EQ(merged.PercentileNanos(0.5), whole.PercentileNanos(0.5));
  EXPECT_EQ(merged.PercentileNanos(0.999), whole.PercentileNanos(0.999));
}

TEST(LatencyHistogram, HugeValuesShareTheLastBucketAndKeepTheMaximum) {
  const LatencyHistogram histogram = HistogramOf({5, UINT64_MAX / 4});
  EXPECT_EQ(histogram.PercentileNanos(0.5), 5u);
  EXPECT_EQ(histogram.PercentileNanos(1.0), UINT64_MAX / 4);
}

TEST(LatencyHistogram, VisitedBucketsAscendAndSumToTheCount) {
  const LatencyHistogram histogram = HistogramOf(RandomLatencies(3, 2000));
  uint64_t sum = 0, last = 0;
  bool ascending = true;
  histogram.ForEachBucket([&](uint64_t upper, uint64_t count) {
    ascending = ascending && (sum == 0 || upper > last);
    last = upper;
    sum += count;
  });
  EXPECT_TRUE(ascending);
  EXPECT_EQ(sum, 2000u);
  EXPECT_EQ(last, histogram.max_nanos());
}

// Bounds that hold even if the thread is descheduled between two readings.
TEST(Clock, AgreesWithTheMonotonicClock) {
  const uint64_t outer_begin = Clock::MonotonicNanos();
  const uint64_t ticks = Clock::NowTicks();
  const uint64_t inner_begin = Clock::MonotonicNanos();
  while (Clock::MonotonicNanos() - inner_begin < 50'000'000) {
  }
  const uint64_t inner_end = Clock::MonotonicNanos();
  const uint64_t measured = Clock::ToNanos(Clock::NowTicks() - ticks);
  const uint64_t outer_end = Clock::MonotonicNanos();
  EXPECT_GE(static_cast<double>(measured), static_cast<double>(inner_end - inner_begin) * 0.999);
  EXPECT_LE(static_cast<double>(measured), static_cast<double>(outer_end - outer_begin) * 1.001);
}

TEST(Clock, NeverRunsBackwardsInOneThread) {
  uint64_t last = Clock::NowNanos();
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t now = Clock::NowNanos();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(LatencyCounts, PercentilesAreThoseOfTheValuesInBetween) {
  const std::vector<uint64_t> later = RandomLatencies(7, 5000);
  LatencyHistogram histogram = HistogramOf(RandomLatencies(6, 3000));
  LatencyCounts before, after;
  before.Add(histogram);
  for (const uint64_t v : later) histogram.Record(v);
  after.Add(histogram);
  for (const double fraction : {0.01, 0.5, 0.99, 1.0}) {
    const uint64_t exact = ExactPercentile(later, fraction);
    EXPECT_EQ(after.PercentileNanosSince(before, fraction),
              LatencyHistogram::UpperNanos(LatencyHistogram::BucketOf(exact)));
  }
}

TEST(LatencyCounts, WithoutAValueInBetweenThereIsNoPercentile) {
  LatencyCounts counts;
  counts.Add(HistogramOf({5, 6}));
  EXPECT_EQ(counts.PercentileNanosSince(counts, 0.5), std::nullopt);
}

}  // namespace
}  // namespace dbx
