// Steps of a series from counters and times that the test makes up.
#include "system/series.h"

#include <gtest/gtest.h>

namespace dbx {
namespace {

class SeriesTest : public testing::Test {
 protected:
  // Since the last step; latencies are all the same.
  void Acknowledge(uint64_t count, uint64_t nanos) {
    totals_.acknowledged += count, totals_.executed += count;
    for (uint64_t i = 0; i < count; ++i) histogram_.Record(nanos);
  }
  void EndStep(double seconds) {
    totals_.latency = {};
    totals_.latency.Add(histogram_);
    series_.EndStep(seconds, totals_);
  }

  Series series_{100};
  SeriesTotals totals_;
  LatencyHistogram histogram_;
};

TEST_F(SeriesTest, AStepHasWhatWasCountedSinceTheOneBefore) {
  totals_.log_bytes = 0;
  series_.Begin(totals_);
  Acknowledge(10, 50);
  *totals_.log_bytes += 4096, totals_.aborts += 2;
  EndStep(0.1);
  Acknowledge(30, 90);
  *totals_.log_bytes += 8192, totals_.aborts += 1, totals_.executed += 5;
  EndStep(0.2);
  const std::vector<SeriesStep> steps = series_.TakeSteps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].begin_seconds, 0.1);
  EXPECT_EQ(steps[1].end_seconds, 0.2);
  EXPECT_EQ(steps[1].acknowledged, 30u);
  EXPECT_EQ(steps[1].executed, 35u);
  EXPECT_EQ(steps[1].aborts, 1u);
  EXPECT_EQ(steps[0].p50_nanos, 50u);
  EXPECT_EQ(steps[1].p50_nanos, 90u);
  EXPECT_EQ(steps[1].log_bytes, 8192u);
}

TEST_F(SeriesTest, AStepWithoutTransactionsHasNoPercentiles) {
  Acknowledge(10, 50);
  EndStep(0.1);
  EndStep(0.2);
  const SeriesStep step = series_.TakeSteps().at(1);
  EXPECT_EQ(step.acknowledged, 0u);
  EXPECT_EQ(step.p50_nanos, std::nullopt);
  EXPECT_EQ(step.p99_nanos, std::nullopt);
  EXPECT_EQ(step.log_bytes, std::nullopt);
}

TEST_F(SeriesTest, ACheckpointIsMarkedWhereItBeginsAndWhereItEnds) {
  // One that the warm-up began.
  totals_.checkpoints = {3, 2};
  totals_.flushes = 7;
  series_.Begin(totals_);
  totals_.checkpoints = {3, 3};
  EndStep(0.1);
  totals_.checkpoints = {4, 3};
  EndStep(0.2);
  EndStep(0.3);
  const std::vector<SeriesStep> steps = series_.TakeSteps();
  const uint64_t begun[] = {0, 1, 0}, ended[] = {1, 0, 0};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps.at(i).checkpoints.begun, begun[i]);
    EXPECT_EQ(steps.at(i).checkpoints.ended, ended[i]);
    EXPECT_EQ(steps.at(i).flushes, 0u);
  }
}

TEST_F(SeriesTest, TheLastStepEndsWithTheRun) {
  EndStep(0.1);
  Acknowledge(3, 50);
  EndStep(0.125);
  const SeriesStep step = series_.TakeSteps().at(1);
  EXPECT_EQ(step.begin_seconds, 0.1);
  EXPECT_EQ(step.end_seconds, 0.125);
  EXPECT_EQ(step.acknowledged, 3u);
}

TEST_F(SeriesTest, IntervalsThatPassedUnseenAreOneStepAndTheNextIsOnTime) {
  EXPECT_DOUBLE_EQ(series_.SecondsLeft(0.025), 0.075);
  EXPECT_EQ(series_.SecondsLeft(0.1), 0);
  EXPECT_EQ(series_.SecondsLeft(0.35), 0);
  EndStep(0.35);
  EXPECT_NEAR(series_.SecondsLeft(0.35), 0.05, 1e-12);
  EndStep(0.4);
  EXPECT_NEAR(series_.SecondsLeft(0.4), 0.1, 1e-12);
  const std::vector<SeriesStep> steps = series_.TakeSteps();
  EXPECT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps.at(0).end_seconds, steps.at(1).begin_seconds);
}

// The first reading has the wait in progress, the second misses it, the third has it among those that ended.
TEST_F(SeriesTest, AWaitThatEndsWhileItIsReadIsNeitherLostNorCountedTwice) {
  const uint64_t readings[] = {100, 60, 130}, in_step[] = {100, 0, 30};
  for (const uint64_t nanos : readings) {
    totals_.log_full.nanos = totals_.acks_full.nanos = nanos;
    EndStep(0);
  }
  const std::vector<SeriesStep> steps = series_.TakeSteps();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps.at(i).log_full.nanos, in_step[i]);
    EXPECT_EQ(steps.at(i).acks_full.nanos, in_step[i]);
  }
}

}  // namespace
}  // namespace dbx
