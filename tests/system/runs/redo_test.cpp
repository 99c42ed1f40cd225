// --redo: a run that continues on demand ends in the state of one that replays everything first, and every later
// recovery says so; what other schemes refuse.
#include <gtest/gtest.h>

#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;

class RedoTest : public ::testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    if (!IsHeld(Base())) GTEST_SKIP() << "this build does not hold the pair";
  }
  // One worker: its transactions are the same in every run.
  Options Base() const {
    Options options = SmallRunOf(GetParam(), 300);
    options.thread_cnt = 1;
    options.verify = true;
    return options;
  }
  Options Continuing(const char* redo, uint64_t txns) const {
    Options options = Base();
    options.continue_run = true;
    options.redo = redo;
    options.max_txns_per_thread = txns;
    return options;
  }
  Image After(const Image& image, const Options& options) {
    FaultyFileSystem files(image);
    LogStorage storage(files);
    result_ = Registry::Global().Create(options)->Run(options, storage);
    return files.CrashImage(FaultyFileSystem::Crash::kDurableOnly);
  }
  RecoveryResult Recovered(const Image& image) const {
    FaultyFileSystem files(image);
    LogStorage storage(files);
    return Registry::Global().Create(Base())->Recover(Base(), storage);
  }

  RunResult result_;
};

INSTANTIATE_TEST_SUITE_P(Pairs, RedoTest,
                         ::testing::Values(Cell{"NO_WAIT", "LOG_INSTANT", "LOG_DATA", 1},
                                           Cell{"HEKATON", "LOG_INSTANT", "LOG_DATA", 1},
                                           Cell{"SILO", "LOG_INSTANT", "LOG_DATA", 1}),
                         CellName);

TEST_P(RedoTest, OnDemandEndsInTheStateOfAll) {
  Image all, on_demand;
  all = on_demand = After({}, Base());
  for (int generation = 0; generation < 3; ++generation) {
    all = After(all, Continuing("ALL", 40));
    EXPECT_FALSE(result_.redo.has_value());
    on_demand = After(on_demand, Continuing("ON_DEMAND", 40));
    ASSERT_TRUE(result_.redo.has_value());
    EXPECT_GT(result_.redo->rebuilt_on_demand, 0u);
    EXPECT_LT(result_.redo->rebuilt_on_demand, result_.redo->rows);
    EXPECT_GE(result_.redo->records_read, result_.redo->rows);
    const RecoveryResult recovered = Recovered(on_demand);
    EXPECT_EQ(recovered.digest, Recovered(all).digest);
    EXPECT_NE(recovered.verified.find("b"), std::string::npos) << recovered.verified;
  }
}

TEST_P(RedoTest, ACheckpointHasAllRows) {
  Image all, on_demand;
  all = on_demand = After({}, Base());
  for (int generation = 0; generation < 2; ++generation) {
    Options options = Continuing("ON_DEMAND", 20);
    options.checkpoint = options.drop_old_runs = generation == 0;
    on_demand = After(on_demand, options);
    EXPECT_EQ(result_.redo->rebuilt_on_demand > 0, generation > 0);
    all = After(all, Continuing("ALL", 20));
  }
  EXPECT_EQ(Recovered(on_demand).digest, Recovered(all).digest);
}

TEST(Redo, OtherSchemesRefuseIt) {
  const Cell cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1};
  Options options = SmallRunOf(cell, 10);
  if (!IsHeld(options)) GTEST_SKIP() << "this build does not hold the pair";
  options.continue_run = true;
  options.redo = "ON_DEMAND";
  FaultyFileSystem files;
  LogStorage storage(files);
  std::string what;
  const auto run = [&] { Registry::Global().Create(options)->Run(options, storage); };
  EXPECT_EQ(Caught(run, what), ExitStatus::kUsage);
  EXPECT_NE(what.find("LOG_SERIAL keeps no chains of records"), std::string::npos) << what;
}

}  // namespace
}  // namespace dbx::testing
