// A log-linear histogram of durations in nanoseconds.
//
// One per thread, merged after the threads have ended; until then other threads may read the buckets alone
// (LatencyCounts). Recording is a few instructions and allocates nothing: the buckets are a fixed array. Below 2^7 ns
// every value has a bucket of its own; above, every octave is cut into 64 buckets, so a bucket is at most 1/64 of its
// values wide.
//
// Error: a percentile is the upper end of the bucket that holds the value of that rank, and never above the
// maximum; it is exact below 128 ns and else at most 1/64 (1.6 %) too high, never too low. Count, mean and
// maximum are exact. Values from 2^40 ns (18 minutes) on share the last bucket.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/live_counter.h"

namespace dbx {

class LatencyHistogram {
 public:
  static constexpr int kSubBucketBits = 6;
  static constexpr uint64_t kSubBuckets = uint64_t{1} << kSubBucketBits;
  static constexpr int kValueBits = 40;
  static constexpr size_t kBuckets = (kValueBits - kSubBucketBits + 1) * kSubBuckets;

  void Record(uint64_t nanos) {
    AddLive(counts_[BucketOf(nanos)], 1);
    ++count_;
    sum_nanos_ += nanos;
    max_nanos_ = std::max(max_nanos_, nanos);
  }

  void Merge(const LatencyHistogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_nanos_ += other.sum_nanos_;
    max_nanos_ = std::max(max_nanos_, other.max_nanos_);
  }

  uint64_t count() const { return count_; }
  uint64_t max_nanos() const { return max_nanos_; }
  double MeanNanos() const { return count_ == 0 ? 0 : static_cast<double>(sum_nanos_) / static_cast<double>(count_); }

  // The smallest recorded value that at least `fraction` (0 to 1) of all values do not exceed, with the error
  // above; 0 if nothing was recorded.
  uint64_t PercentileNanos(double fraction) const {
    if (count_ == 0) return 0;
    const uint64_t rank = RankOf(fraction, count_);
    uint64_t seen = 0;
    for (size_t i = 0; i + 1 < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= rank) return std::min(UpperNanos(i), max_nanos_);
    }
    return max_nanos_;
  }

  // visit(largest value of the bucket, count) for every bucket that is not empty, in ascending order.
  template <class Visit>
  void ForEachBucket(Visit&& visit) const {
    for (size_t i = 0; i < kBuckets; ++i) {
      if (counts_[i] != 0) visit(std::min(i + 1 < kBuckets ? UpperNanos(i) : max_nanos_, max_nanos_), counts_[i]);
    }
  }

  // Bucket b of the first two octave groups holds the value b; then bucket kSubBuckets * (shift + 1) + m, m in
  // [0, kSubBuckets), holds the values with (value >> shift) == kSubBuckets + m.
  static constexpr size_t BucketOf(uint64_t nanos) {
    if (nanos >= uint64_t{1} << kValueBits) return kBuckets - 1;
    const int width = std::bit_width(nanos | kSubBuckets);
    const int shift = width - 1 - kSubBucketBits;
    return static_cast<size_t>(shift) * kSubBuckets + static_cast<size_t>(nanos >> shift);
  }
  // The largest value in a bucket.
  static constexpr uint64_t UpperNanos(size_t bucket) {
    if (bucket < 2 * kSubBuckets) return bucket;
    const uint64_t shift = bucket / kSubBuckets - 1;
    return ((kSubBuckets + bucket % kSubBuckets + 1) << shift) - 1;
  }

 private:
  friend class LatencyCounts;

  // From 1 on, in ascending order: of the smallest of `count` values that `fraction` of them do not exceed.
  static uint64_t RankOf(double fraction, uint64_t count) {
    const auto ceiling = static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count)));
    return std::clamp<uint64_t>(ceiling, 1, count);
  }

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t sum_nanos_ = 0;
  uint64_t max_nanos_ = 0;
};

// The buckets of histograms that their threads go on filling, as they were at one time.
class LatencyCounts {
 public:
  // Any thread.
  void Add(const LatencyHistogram& histogram) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += ReadLive(histogram.counts_[i]);
  }

  // Of the values that are in these and not in `before`, which was read earlier: as LatencyHistogram's, but at most the
  // end of a bucket and never the exact maximum. None: there are no such values.
  std::optional<uint64_t> PercentileNanosSince(const LatencyCounts& before, double fraction) const {
    uint64_t count = 0;
    for (size_t i = 0; i < counts_.size(); ++i) count += counts_[i] - before.counts_[i];
    if (count == 0) return std::nullopt;
    const uint64_t rank = LatencyHistogram::RankOf(fraction, count);
    uint64_t seen = 0;
    size_t bucket = 0;
    while ((seen += counts_[bucket] - before.counts_[bucket]) < rank) ++bucket;
    return LatencyHistogram::UpperNanos(bucket);
  }

 private:
  // Not in the object: it is copied on stacks that may be small.
  std::vector<uint64_t> counts_ = std::vector<uint64_t>(LatencyHistogram::kBuckets);
};

}  // namespace dbx
