// Runs whose counters are read meanwhile: steps that add up to the totals, marks, warm-up by the clock.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"

namespace dbx {
namespace {

class SeriesOfARun : public ::testing::Test {
 protected:
  SeriesOfARun() {
    options_ = DefaultOptions();
    // A pair that the sanitised builds hold too.
    options_.cc = "SILO", options_.log = "LOG_TAURUS", options_.log_type = "LOG_COMMAND";
    options_.num_logger = 2, options_.thread_cnt = 2, options_.synth_table_size = 500;
    options_.log_limit_bytes = 64 << 20, options_.log_dirs = {"logs"};
    options_.series_file = "s.csv", options_.series_interval_ms = 5;
  }
  RunResult Run() { return Registry::Global().Create(options_)->Run(options_, storage_); }
  RunResult RunIn(const TempDir& directory) {
    options_.log_dirs = {directory.path()};
    FileLogStorage logs(options_);
    return Registry::Global().Create(options_)->Run(options_, logs.storage());
  }

  static uint64_t Sum(const RunResult& run, const std::function<uint64_t(const SeriesStep&)>& of) {
    return std::accumulate(run.series.begin(), run.series.end(), uint64_t{0},
                           [&](uint64_t sum, const SeriesStep& step) { return sum + of(step); });
  }
  static void ExpectStepsAddUp(const RunResult& run) {
    uint64_t acknowledged = 0, executed = 0, aborts = 0;
    for (const WorkerStats& worker : run.workers) {
      acknowledged += worker.acknowledged, executed += worker.executed;
      aborts += std::accumulate(worker.aborts.begin(), worker.aborts.end(), uint64_t{0});
    }
    EXPECT_EQ(Sum(run, [](const SeriesStep& s) { return s.acknowledged; }), acknowledged);
    EXPECT_EQ(Sum(run, [](const SeriesStep& s) { return s.executed; }), executed);
    EXPECT_EQ(Sum(run, [](const SeriesStep& s) { return s.aborts; }), aborts);
    EXPECT_EQ(Sum(run, [](const SeriesStep& s) { return s.log_bytes.value_or(0); }), run.interval_log_bytes);
    EXPECT_GT(acknowledged, 0u);
    double end = 0;
    for (const SeriesStep& step : run.series) EXPECT_EQ(step.begin_seconds, std::exchange(end, step.end_seconds));
    EXPECT_EQ(end, run.seconds);
  }

  // To a log for that long. False if this program does not have the pair.
  bool LogsRows(double seconds, const char* log = "LOG_SERIAL") {
    options_.cc = "NO_WAIT", options_.log = log, options_.log_type = "LOG_DATA", options_.num_logger = 1;
    options_.seconds = seconds, options_.query_list_len = 1000;
    return testing::IsHeld(options_);
  }

  Options options_;
  FaultyFileSystem files_;
  LogStorage storage_{files_};
};

TEST_F(SeriesOfARun, StepsOfATimedRunAddUpToItsTotalsWithoutWarmUp) {
  options_.seconds = 0.1, options_.warmup = 500, options_.synth_table_size = 10;
  const RunResult run = Run();
  ExpectStepsAddUp(run);
  EXPECT_GE(run.series.size(), 2u);
}

TEST_F(SeriesOfARun, StepsOfACountedRunAddUpToItsTotals) {
  options_.max_txns_per_thread = 20'000, options_.series_interval_ms = 1;
  ExpectStepsAddUp(Run());
}

TEST_F(SeriesOfARun, WithoutALogThereAreNoBytesOfOne) {
  options_.cc = "SILO", options_.log = "LOG_NO", options_.log_type = "LOG_DATA";
  if (!testing::IsHeld(options_)) options_.cc = "NO_WAIT";
  if (!testing::IsHeld(options_)) GTEST_SKIP();
  options_.num_logger = 1, options_.seconds = 0.02;
  const RunResult run = Run();
  ExpectStepsAddUp(run);
  for (const SeriesStep& step : run.series) EXPECT_FALSE(step.log_bytes);
}

TEST_F(SeriesOfARun, WithoutAFileThereIsNone) {
  options_.series_file.clear(), options_.series_interval_ms = 0;
  EXPECT_TRUE(Run().series.empty());
}

TEST_F(SeriesOfARun, AFullLogBufferIsMarked) {
  const TempDir directory;
  if (!LogsRows(/*seconds=*/0.1)) GTEST_SKIP();
  options_.log_device = "bandwidth=20M,flush=20ms";
  options_.log_buffer_size = 256 << 10, options_.max_log_entry_size = 64 << 10;
  options_.log_flush_block_bytes = options_.hopping_distance_bytes = 64 << 10;
  const RunResult run = RunIn(directory);
  ExpectStepsAddUp(run);
  EXPECT_GT(Sum(run, [](const SeriesStep& s) { return s.log_full.count; }), 0u);
  EXPECT_GT(Sum(run, [](const SeriesStep& s) { return s.log_full.nanos; }), 0u);
}

// The first flush ends long after the interval, while the workers wait for their acknowledgements.
TEST_F(SeriesOfARun, FlushesAfterATimedIntervalAreNoPartOfIt) {
  const TempDir directory;
  if (!LogsRows(/*seconds=*/0.02)) GTEST_SKIP();
  options_.log_device = "bandwidth=100M,flush=500ms";
  const RunResult run = RunIn(directory);
  if (run.seconds > 0.2) GTEST_SKIP() << "the host stopped for long";
  EXPECT_EQ(Sum(run, [](const SeriesStep& s) { return s.flushes; }), 0u);
}

TEST_F(SeriesOfARun, WaitsForAcknowledgementsAreMarked) {
  options_.latency_hiding = false, options_.max_txns_per_thread = 50;
  const RunResult run = Run();
  const uint64_t waits = Sum(run, [](const SeriesStep& s) { return s.acks_full.count; });
  EXPECT_GT(waits, 0u);
  EXPECT_LE(waits, 100u);
  EXPECT_GT(Sum(run, [](const SeriesStep& s) { return s.acks_full.nanos; }), 0u);
}

// Whose end is found there too, but for one that goes on when the run ends.
TEST_F(SeriesOfARun, CheckpointsAreMarked) {
  for (const char* log : {"LOG_SERIAL", "LOG_DIFFERENTIAL"}) {
    if (!LogsRows(/*seconds=*/0.1, log)) continue;
    options_.checkpoint_interval_ms = 1;
    const TempDir directory;
    const RunResult run = RunIn(directory);
    const uint64_t begun = Sum(run, [](const SeriesStep& s) { return s.checkpoints.begun; });
    const uint64_t ended = Sum(run, [](const SeriesStep& s) { return s.checkpoints.ended; });
    EXPECT_GT(begun, 0u) << log;
    EXPECT_LE(ended, begun + 1) << log;
    EXPECT_LE(begun, ended + 1) << log;
  }
}

TEST_F(SeriesOfARun, AWarmUpLastsUntilItsTimeAndItsTransactionsAreReached) {
  options_.warmup_seconds = 0.05, options_.warmup = 10, options_.max_txns_per_thread = 100;
  const RunResult run = Run();
  ExpectStepsAddUp(run);
  for (const WorkerStats& worker : run.workers) EXPECT_EQ(worker.acknowledged, 100u);
  // Far more than the 10 of the one condition were logged before.
  EXPECT_GT(run.logged_txns, 400u);
  EXPECT_EQ(run.stop_reason, "done");
}

TEST_F(SeriesOfARun, CountersOfTheHostAreThereOrMissingWithAReason) {
  options_.perf = true, options_.max_txns_per_thread = 2000;
  const RunResult run = Run();
  ASSERT_TRUE(run.perf);
  EXPECT_EQ(run.perf->processor.size(), 4u);
  for (const PerfCount& count : run.perf->processor) EXPECT_EQ(count.count.has_value(), count.missing.empty());
  EXPECT_GT(run.perf->kernel.task_clock_nanos, 0u);
  options_.perf = false;
  EXPECT_FALSE(Run().perf);
}

}  // namespace
}  // namespace dbx
