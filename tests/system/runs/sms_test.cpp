// Runs of SMS under each log scheme and payload: what a clean end and a crash leave recovers to the state that the
// reference replay confirms, a run that continues another inserts and deletes no message anew, and no more workers run
// than there are queues.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "system/pairs/registry.h"
#include "system/workloads.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;
using Policy = FaultyFileSystem::Crash;

class SmsRunTest : public ::testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    if (!IsHeld(Base(1))) GTEST_SKIP() << "this build does not hold the pair";
  }
  // Short queues, so that the transactions delete messages of the load and of others; some roll back.
  Options Base(uint64_t txns) const {
    Options options = SmallRunOf(GetParam(), txns);
    options.workload = WorkloadKind::kSms;
    options.sms_rows = 64 * 51, options.sms_slot_bytes = 64, options.sms_abort_perc = 20;
    options.locktable_modifier = 16;
    options.log_limit_bytes = 16 << 20;  // a slow host pads more flushes
    return options;
  }
  RunResult Run(FaultyFileSystem& files, const Options& options) const { return RunWithAcks(files, options, acks_); }
  RecoveryResult Recover(const Image& image, const Options& base) const {
    Options options = base;
    options.verify = true;
    options.ack_file = acks_;
    FaultyFileSystem files(image);
    LogStorage storage(files);
    return Registry::Global().Create(options)->Recover(options, storage);
  }

  TempDir directory_;
  const std::string acks_ = directory_ / "acks";
};
INSTANTIATE_TEST_SUITE_P(
    Pairs, SmsRunTest,
    ::testing::Values(Cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1}, Cell{"DL_DETECT", "LOG_SERIAL", "LOG_COMMAND", 1},
                      Cell{"TICTOC", "LOG_TAURUS", "LOG_DATA", 2}, Cell{"SILO", "LOG_TAURUS", "LOG_COMMAND", 2},
                      Cell{"NO_WAIT", "LOG_PLOVER", "LOG_DATA", 2}, Cell{"SILO", "LOG_BATCH", "LOG_DATA", 2},
                      Cell{"SILO", "LOG_ELEDA", "LOG_COMMAND", 1}, Cell{"HEKATON", "LOG_TAURUS", "LOG_COMMAND", 2}),
    CellName);

uint64_t Sum(const RunResult& run, uint64_t WorkerStats::*of) {
  return std::accumulate(run.workers.begin(), run.workers.end(), uint64_t{0},
                         [&](uint64_t sum, const WorkerStats& worker) { return sum + worker.*of; });
}

// Each queue has an odd number of messages, so that a transaction deletes messages that two others inserted.
TEST_P(SmsRunTest, LosesNothingAtACleanEndAndRollsSomeBack) {
  for (const char* index : {"IDX_HASH", "IDX_BTREE"}) {
    Options options = Base(500);
    options.index = index, options.verify = true;
    FaultyFileSystem files;
    const RunResult run = Run(files, options);
    EXPECT_EQ(Sum(run, &WorkerStats::executed) + Sum(run, &WorkerStats::user_rollbacks), 1000u);
    EXPECT_NEAR(static_cast<double>(Sum(run, &WorkerStats::user_rollbacks)), 200, 60);
    const RecoveryResult recovery = Recover(files.CrashImage(Policy::kDurableOnly), options);
    EXPECT_EQ(recovery.verified, "a,b,c,d");
    EXPECT_EQ(recovery.recovered, run.logged_txns);
  }
}

TEST_P(SmsRunTest, RecoversWhatWasAcknowledgedBeforeACrash) {
  for (uint64_t k = 60; k < 180; k += 40) {
    FaultyFileSystem files;
    files.CutPowerBefore(k);
    try {
      Run(files, Base(1500));
    } catch (const Error& error) {
      ASSERT_TRUE(files.power_is_off()) << error.what();
    }
    const Image image = files.CrashImage(Policy::kTorn, k);
    EXPECT_NE(Recover(image, Base(1)).verified.find("a,"), std::string::npos);
  }
}

// Sequence numbers begin above all others: at an odd one, then at an even one.
TEST_P(SmsRunTest, ContinuesWithFurtherMessages) {
  for (const bool checkpoint : {false, true}) {
    FaultyFileSystem files;
    for (const bool continues : {false, true, true}) {
      Options options = Base(101);
      options.continue_run = continues, options.checkpoint = continues && checkpoint;
      options.verify = true;
      Run(files, options);
      EXPECT_NE(Recover(files.CrashImage(Policy::kDurableOnly), Base(1)).verified.find("b,c,d"), std::string::npos);
    }
  }
}

TEST_P(SmsRunTest, RefusesMoreWorkersThanQueuesBeforeItTouchesAFile) {
  FaultyFileSystem files;
  Options options = Base(1);
  options.thread_cnt = 65;
  std::string what;
  EXPECT_EQ(Caught([&] { Run(files, options); }, what), ExitStatus::kUsage);
  EXPECT_NE(what.find("64 queues"), std::string::npos) << what;
  EXPECT_TRUE(files.VisibleImage().directories.empty());
  options.log_recover = true;
  EXPECT_EQ(SmsConfigOf(options).workers, 1u);
}

}  // namespace
}  // namespace dbx::testing
