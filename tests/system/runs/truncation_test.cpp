// Runs whose checkpoints truncate logs: LOG_LIMIT counts what is left, and what runs that continue each other leave is
// recovered from logs that begin somewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "system/pairs/registry.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;
using Policy = FaultyFileSystem::Crash;

class TruncationRunTest : public ::testing::Test {
 protected:
  // Far more than what is logged from one checkpoint to the next, and far less than what a run logs.
  static constexpr uint64_t kLimit = uint64_t{8} << 20;

  void SetUp() override {
    if (!IsHeld(Base(1))) GTEST_SKIP() << "this build does not hold the pair";
  }
  static Options Base(uint64_t txns) {
    Options options = SmallRunOf({"NO_WAIT", "LOG_DIFFERENTIAL", "LOG_DATA", 2}, txns);
    options.workload = WorkloadKind::kYcsb;
    options.synth_table_size = 200, options.field_per_tuple = 1, options.read_perc = 0, options.write_perc = 1;
    options.checkpoint_bytes = 64 << 10;
    options.log_flush_block_bytes = 16 << 10;
    options.log_limit_bytes = kLimit;
    return options;
  }
  RunResult Run(FaultyFileSystem& files, const Options& options) const { return RunWithAcks(files, options, acks_); }
  RecoveryResult Recover(const Image& image, uint32_t level = 4) const {
    Options options = Base(1);
    options.verify = true, options.ack_file = acks_, options.restart_level = level;
    FaultyFileSystem files(image);
    LogStorage storage(files);
    return Registry::Global().Create(options)->Recover(options, storage);
  }
  // Of the first log of a run: whether the first block of its stream is zeros.
  static bool IsGivenUp(const Image& image, const std::string& run) {
    std::vector<std::byte> block(format::kBlockBytes);
    image.files.at("a/" + run + "/log-00.log").Read(format::kStreamOffset, block);
    return std::count(block.begin(), block.end(), std::byte{0}) == format::kBlockBytes;
  }

  TempDir directory_;
  const std::string acks_ = directory_ / "acks";
};

TEST_F(TruncationRunTest, ARunGoesOnBehindItsLimit) {
  FaultyFileSystem files;
  const RunResult run = Run(files, Base(30000));
  EXPECT_EQ(run.stop_reason, "done");
  EXPECT_GT(run.interval_log_bytes, 2 * kLimit);
  const Image image = files.CrashImage(Policy::kDurableOnly);
  EXPECT_TRUE(IsGivenUp(image, "run-0001"));
  for (uint32_t level = 1; level <= 4; ++level) {
    const RecoveryResult recovery = Recover(image, level);
    EXPECT_EQ(recovery.verified, "a,c,d") << "level " << level;
    EXPECT_LT(recovery.recovered, run.logged_txns);
    EXPECT_FALSE(recovery.ended_below.empty());
  }
}

TEST_F(TruncationRunTest, ARunWithWholeLogsEndsAtItsLimit) {
  FaultyFileSystem files;
  Options options = Base(100000);
  options.log_truncation = false;
  EXPECT_EQ(Run(files, options).stop_reason, "log_limit");
  const Image image = files.CrashImage(Policy::kDurableOnly);
  EXPECT_FALSE(IsGivenUp(image, "run-0001"));
  EXPECT_TRUE(Recover(image).ended_below.empty());
}

TEST_F(TruncationRunTest, WhereNoBlocksAreFreedARunEndsAtItsLimit) {
  FaultyFileSystem files;
  files.RefuseDiscards();
  EXPECT_EQ(Run(files, Base(100000)).stop_reason, "log_limit");
  EXPECT_EQ(Recover(files.CrashImage(Policy::kDurableOnly)).verified, "a,c,d");
}

TEST_F(TruncationRunTest, RunsContinueEachOther) {
  FaultyFileSystem files;
  for (uint64_t generation = 0; generation < 4; ++generation) {
    Options options = Base(3000);
    options.continue_run = generation > 0, options.restart_level = 1 + static_cast<uint32_t>(generation);
    options.verify = generation % 2 == 0;
    EXPECT_EQ(Run(files, options).stop_reason, "done");
    const Image image = files.CrashImage(Policy::kDurableOnly);
    EXPECT_TRUE(IsGivenUp(image, "run-000" + std::to_string(1 + generation)));
    EXPECT_NE(Recover(image).verified.find("c,d"), std::string::npos);
  }
}

// A crash at any operation, so among others between an anchor and the discards behind it.
TEST_F(TruncationRunTest, ACrashAnywhereIsRecovered) {
  uint64_t given_up = 0;
  for (uint64_t k = 100; k < 1300; k += 97) {
    FaultyFileSystem files;
    files.CutPowerBefore(k);
    try {
      Run(files, Base(3000));
    } catch (const Error& error) {
      ASSERT_TRUE(files.power_is_off()) << error.what();
    }
    for (uint64_t policy = 0; policy < std::size(FaultyFileSystem::kCrashes); ++policy) {
      const Image image = files.CrashImage(FaultyFileSystem::kCrashes[policy], k);
      EXPECT_NE(Recover(image, 1 + static_cast<uint32_t>(k % 4)).verified.find("c,d"), std::string::npos);
      given_up += IsGivenUp(image, "run-0001");
    }
  }
  EXPECT_GT(given_up, 0u);
}

}  // namespace
}  // namespace dbx::testing
