// After a sync that failed Linux marks the pages clean: a process that reads the file in the same boot sees bytes that
// the disk does not have, and the next sync succeeds without writing them. A run that continues what it read must not
// be committed before that is on the disk: after a power failure it would contradict its parent.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Operation = FaultyFileSystem::Operation;
using Policy = FaultyFileSystem::Crash;

class FailedSyncTest : public ::testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    if (!IsHeld(Base(1))) GTEST_SKIP() << "this build does not hold the pair";
  }
  Options Base(uint64_t txns) const {
    Options options = SmallRunOf(GetParam(), txns);
    options.stripe_unit_bytes = 4 << 10;
    return options;
  }

  ExitStatus Run(FileSystem& files, const Options& options) {
    LogStorage storage(files);
    return Caught([&] { Registry::Global().Create(options)->Run(options, storage); }, what_);
  }
  ExitStatus Continue(FileSystem& files, bool checkpoint = false) {
    std::filesystem::remove(acks_);
    Options options = Base(40);
    options.continue_run = true;
    options.ack_file = acks_;
    options.checkpoint = checkpoint;
    return Run(files, options);
  }
  RecoveryResult Recover(FaultyFileSystem& files, const std::string& acks = "") {
    LogStorage storage(files);
    Options options = Base(1);
    options.verify = true;
    options.ack_file = acks;
    return Registry::Global().Create(options)->Recover(options, storage);
  }

  // What a process leaves in the page cache of which the n-th sync of a file whose path holds `path` failed.
  std::unique_ptr<FaultyFileSystem> AfterAFailedSync(FaultyFileSystem& files, uint64_t nth, const std::string& path,
                                                     const std::function<ExitStatus()>& run) {
    files.Fail(Operation::kSync, nth, EIO, /*for_good=*/true, path);
    const ExitStatus status = run();
    if (files.failed_count() > 0) {
      EXPECT_EQ(status, ExitStatus::kIo) << what_;
      ++failed_;
    }
    return files.AfterKill(nth);
  }
  // Continues in the same boot; what the power leaves then is what was continued, and all that was acknowledged.
  void ContinueAndLosePower(FaultyFileSystem& files) {
    const RecoveryResult seen = Recover(files);
    ASSERT_EQ(Continue(files), ExitStatus::kOk) << what_;
    FaultyFileSystem left(files.CrashImage(Policy::kDurableOnly));
    const ExitStatus status = Caught(
        [&] {
          const RecoveryResult result = Recover(left, acks_);
          EXPECT_EQ(result.verified, "a,c,d");
          // One that starts from a backup of its own reads no other run again.
          const bool alone = result.before.checkpoint_rows > 0;
          EXPECT_EQ(result.before.recovered, alone ? 0 : seen.recovered + seen.before.recovered);
        },
        what_);
    EXPECT_EQ(status, ExitStatus::kOk) << what_;
  }

  // Which sync of a file fails: 1 and 2 are those of its creation and of its header.
  static constexpr uint64_t kSyncs[] = {3, 4, 5, 8, 13, 21};
  TempDir dir_;
  const std::string acks_ = dir_ / "acks";
  std::string what_;
  uint64_t failed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(
    Pairs, FailedSyncTest,
    ::testing::Values(Cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1}, Cell{"NO_WAIT", "LOG_TAURUS", "LOG_COMMAND", 2},
                      Cell{"NO_WAIT", "LOG_PLOVER", "LOG_DATA", 2}, Cell{"SILO", "LOG_BATCH", "LOG_DATA", 2},
                      Cell{"SILO", "LOG_ELEDA", "LOG_COMMAND", 1}, Cell{"NO_WAIT", "LOG_DIFFERENTIAL", "LOG_DATA", 2}),
    [](const auto& info) { return std::string(info.param.cc) + "_" + info.param.log; });

TEST_P(FailedSyncTest, ARunThatContinuesInTheSameBootNeverContradictsItsParent) {
  for (const char* path : {"a/run-0001/log-00", "b/run-0001/log-01"}) {
    for (const uint64_t nth : kSyncs) {
      SCOPED_TRACE(std::string(path) + ", sync " + std::to_string(nth));
      FaultyFileSystem files;
      const auto seen = AfterAFailedSync(files, nth, path, [&] { return Run(files, Base(2000)); });
      ContinueAndLosePower(*seen);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GE(failed_, std::size(kSyncs));
}

TEST_P(FailedSyncTest, SoItIsWithTheFrontierOfAnEpoch) {
  if (GetParam().log != std::string("LOG_BATCH")) GTEST_SKIP() << "the scheme has no frontier";
  for (const uint64_t nth : kSyncs) {
    FaultyFileSystem files;
    const auto seen = AfterAFailedSync(files, nth, "a/run-0001/frontier", [&] { return Run(files, Base(2000)); });
    ContinueAndLosePower(*seen);
    ASSERT_FALSE(HasFailure()) << "sync " << nth;
  }
  EXPECT_GT(failed_, 0u);
}

// What that run's own run leaves to the next one.
TEST_P(FailedSyncTest, SoItIsWithAChainOfRuns) {
  for (uint64_t nth = 1; nth < 16; ++nth) {
    FaultyFileSystem files;
    ASSERT_EQ(Run(files, Base(100)), ExitStatus::kOk) << what_;
    const auto seen = AfterAFailedSync(files, nth, "run-000", [&] { return Continue(files, nth % 2 == 0); });
    ContinueAndLosePower(*seen);
    ASSERT_FALSE(HasFailure()) << "sync " << nth;
  }
  EXPECT_GT(failed_, 0u);
}

// What no disk has may leave the page cache after the recovery has read it.
TEST_P(FailedSyncTest, WhatThePageCacheGivesUpBeforeItIsRewrittenIsNotFrozen) {
  std::unique_ptr<FaultyFileSystem> seen;
  RecoveryResult durable, visible;
  // A flush may hold half of a record, which no recovery takes.
  for (uint64_t nth = 3; durable.frontier == visible.frontier; ++nth) {
    ASSERT_LT(nth, 40u);
    FaultyFileSystem files;
    seen = AfterAFailedSync(files, nth, "a/run-0001/log-00", [&] { return Run(files, Base(2000)); });
    FaultyFileSystem disk(seen->CrashImage(Policy::kDurableOnly));
    durable = Recover(disk), visible = Recover(*seen);
  }
  seen->BeforeNextRewrite([&] { seen->DropCaches(); });
  EXPECT_EQ(Continue(*seen), ExitStatus::kIo) << what_;
  EXPECT_TRUE(what_.starts_with("cannot continue a/run-0001/log-00.log@")) << what_;
  EXPECT_EQ(seen->KindOf("a/run-0001/frozen"), FileSystem::Entry::kNone);
  EXPECT_EQ(Recover(*seen).frontier, durable.frontier);
  EXPECT_EQ(Continue(*seen), ExitStatus::kOk) << what_;
}

}  // namespace
}  // namespace dbx::testing
