// Runs with row checkpoints: their recovery starts from the newest one, wherever a crash comes; their logs are
// truncated and go on behind LOG_LIMIT; runs that continue each other build on them; what is missing or damaged is
// refused; and without space for a checkpoint the one before stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "system/runs/row_anchor.h"
#include "tests/base/work_share.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;
using Policy = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;

class RowCheckpointTest : public ::testing::TestWithParam<Cell> {
 protected:
  // Far more than what is logged from one checkpoint to the next.
  static constexpr uint64_t kLimit = uint64_t{8} << 20;

  void SetUp() override {
    if (!IsHeld(Base(1))) GTEST_SKIP() << "this build does not hold the pair";
  }
  static Options Base(uint64_t txns) {
    Options options = SmallRunOf(GetParam(), txns);
    options.checkpoint_bytes = 32 << 10;
    options.log_limit_bytes = kLimit;
    return options;
  }
  RunResult Run(FaultyFileSystem& files, const Options& options) const { return RunWithAcks(files, options, acks_); }
  // Runs that are longer and longer, until one has completed so many checkpoints: how long one takes is not known.
  RunResult RunWithCheckpoints(std::unique_ptr<FaultyFileSystem>& files, uint64_t checkpoints, Options options) const {
    for (;; options.max_txns_per_thread *= 2) {
      files = std::make_unique<FaultyFileSystem>();
      RunResult run = Run(*files, options);
      if (run.checkpoints->checkpoints >= checkpoints) return run;
    }
  }
  RecoveryResult Recover(const Image& image, uint32_t threads = 2, const Options* like = nullptr) const {
    Options options = like == nullptr ? Base(1) : *like;
    options.verify = options.reference = true;
    options.ack_file = acks_, options.thread_cnt = threads;
    FaultyFileSystem files(image);
    LogStorage storage(files);
    return Registry::Global().Create(options)->Recover(options, storage);
  }
  // What a recovery says after `change` of the files of a run that has ended, and that logged something while it copied
  // rows for the last time.
  ExitStatus After(const std::function<void(FaultyFileSystem&)>& change) {
    std::unique_ptr<FaultyFileSystem> files;
    do {
      RunWithCheckpoints(files, 2, Base(3000));
    } while (AnchorIn(*files).start.front() == AnchorIn(*files).end.front());
    change(*files);
    const Image image = files->CrashImage(Policy::kAllPending);
    return Caught([&] { Recover(image); }, what_);
  }
  static RowAnchor AnchorIn(FaultyFileSystem& files, const std::string& run = "run-0001") {
    const std::string path = "a/" + run + "/" + kRowAnchorFileName;
    return DecodeRowAnchor(files.Map(path).bytes, path);
  }
  // The first part of the copy that the anchor names, or that it does not name.
  static std::string PartIn(FaultyFileSystem& files, bool named) {
    const uint32_t copy = AnchorIn(files).copy;
    return "a/run-0001/" + RowFileName(named ? copy : 1 - copy, 0);
  }
  static void Flip(FaultyFileSystem& files, const std::string& path, uint64_t at) {
    files.Change(path, [at](SparseBytes& file) {
      std::byte byte{};
      if (file.Read(at, {&byte, 1}) == 0) return;  // of a part that was being written
      byte ^= std::byte{4};
      file.Write(at, {&byte, 1});
    });
  }

  TempDir directory_;
  const std::string acks_ = directory_ / "acks";
  std::string what_;
};

INSTANTIATE_TEST_SUITE_P(
    Pairs, RowCheckpointTest,
    ::testing::Values(Cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1}, Cell{"NO_WAIT", "LOG_TAURUS", "LOG_DATA", 2},
                      Cell{"WAIT_DIE", "LOG_TAURUS", "LOG_DATA", 1}, Cell{"DL_DETECT", "LOG_SERIAL", "LOG_DATA", 1},
                      Cell{"SILO", "LOG_TAURUS", "LOG_DATA", 3}, Cell{"TICTOC", "LOG_TAURUS", "LOG_DATA", 2},
                      Cell{"HEKATON", "LOG_TAURUS", "LOG_DATA", 2}, Cell{"HEKATON", "LOG_SERIAL", "LOG_DATA", 1}),
    CellName);

TEST_P(RowCheckpointTest, ARunGoesOnBehindItsLimitAndRecoversFromTheNewestOne) {
  std::unique_ptr<FaultyFileSystem> files;
  Options options = Base(40000);
  options.verify = true;
  options.workload = WorkloadKind::kYcsb;
  options.synth_table_size = 200, options.field_per_tuple = 1, options.read_perc = 0, options.write_perc = 1;
  const RunResult run = RunWithCheckpoints(files, 3, options);
  EXPECT_GT(run.interval_log_bytes, kLimit);
  EXPECT_GT(run.checkpoints->rows, 0u);
  EXPECT_GE(run.checkpoints->pauses.count(), run.checkpoints->checkpoints);
  const RowAnchor anchor = AnchorIn(*files);
  EXPECT_TRUE(anchor.truncates);
  EXPECT_EQ(anchor.number, run.checkpoints->checkpoints);
  for (const uint32_t threads : {1u, 3u}) {
    const RecoveryResult recovery = Recover(files->CrashImage(Policy::kDurableOnly), threads, &options);
    EXPECT_EQ(recovery.verified, "a,b,c,d");
    EXPECT_EQ(recovery.before.checkpoint_rows, 200u);
    EXPECT_LT(recovery.recovered, run.logged_txns);
    EXPECT_EQ(recovery.ended_below, anchor.sequences);
  }
}

TEST_P(RowCheckpointTest, WithoutTruncationTheLogsStayWhole) {
  std::unique_ptr<FaultyFileSystem> files;
  Options options = Base(2000);
  options.log_truncation = false;
  RunWithCheckpoints(files, 2, options);
  EXPECT_FALSE(AnchorIn(*files).truncates);
  // The first record is still there.
  format::RecordHeader header;
  std::memcpy(&header, files->Map("a/run-0001/log-00.log").bytes.data() + format::kStreamOffset, sizeof header);
  EXPECT_GT(header.length, 0u);
  EXPECT_NE(Recover(files->CrashImage(Policy::kDurableOnly)).verified.find("c,d"), std::string::npos);
}

TEST_P(RowCheckpointTest, ACrashAnywhereIsRecovered) {
  uint64_t from_rows = 0, from_the_start = 0;
  bool ended = false;
  const uint64_t spread = 1000 / WorkShare(1000);
  for (uint64_t k = 80; !ended; k += spread * (k < 200 ? 23 : 61)) {
    FaultyFileSystem files;
    files.CutPowerBefore(k);
    try {
      Run(files, Base(1000));
      ended = true;
    } catch (const Error& error) {
      ASSERT_TRUE(files.power_is_off()) << error.what();
    }
    for (const Policy policy : FaultyFileSystem::kCrashes) {
      SCOPED_TRACE("before operation " + std::to_string(k) + ", policy " + std::to_string(static_cast<int>(policy)));
      const RecoveryResult recovery = Recover(files.CrashImage(policy, k), 1 + static_cast<uint32_t>(k % 3));
      EXPECT_NE(recovery.verified.find("c,d"), std::string::npos);
      ++(recovery.before.checkpoint_rows > 0 ? from_rows : from_the_start);
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(from_rows + from_the_start, 20 / spread);
}

// Generations with row checkpoints and without, and one with a checkpoint of its own start.
TEST_P(RowCheckpointTest, RunsContinueEachOther) {
  FaultyFileSystem files;
  uint64_t before_is_enough = 0;
  for (uint64_t generation = 0; generation < 5; ++generation) {
    Options options = Base(generation == 4 ? 20 : 1000);
    options.continue_run = generation > 0;
    options.verify = generation % 2 == 0;
    options.checkpoint = generation == 3;
    if (generation == 2 || generation == 4) options.checkpoint_bytes = 0;
    EXPECT_EQ(Run(files, options).stop_reason, "done");
    const RecoveryResult recovery = Recover(files.CrashImage(Policy::kDurableOnly));
    EXPECT_NE(recovery.verified.find("c,d"), std::string::npos) << "generation " << generation;
    before_is_enough += recovery.before.runs < generation;
    if (generation == 3) {
      EXPECT_EQ(recovery.before.runs, 0u);
    }
  }
  EXPECT_GT(before_is_enough, 0u);
}

TEST_P(RowCheckpointTest, WithoutSpaceTheOneBeforeStays) {
  for (const auto& [operation, path] : {std::pair{Operation::kWrite, ".ckp"}, std::pair{Operation::kCreate, ".ckp"},
                                        std::pair{Operation::kCreate, "/row-anchor.tmp"}}) {
    uint64_t failed = 0;
    for (uint64_t txns = 3000; failed == 0; txns *= 2) {
      FaultyFileSystem files;
      files.Fail(operation, operation == Operation::kWrite ? 9 : 2, ENOSPC, /*for_good=*/true, path);
      failed = Run(files, Base(txns)).checkpoints->failed;
      EXPECT_NE(Recover(files.CrashImage(Policy::kDurableOnly)).verified.find("c,d"), std::string::npos) << path;
    }
  }
}

TEST_P(RowCheckpointTest, AnotherFailureEndsTheRunAndLosesNothing) {
  FaultyFileSystem files;
  files.Fail(Operation::kWrite, 2, EIO, /*for_good=*/false, ".ckp");
  Options options = Base(1000000);
  options.log_limit_bytes = 256 << 20;  // the failure comes first, however slow the copying is
  EXPECT_EQ(Caught([&] { Run(files, options); }, what_), ExitStatus::kIo);
  EXPECT_NE(what_.find(".ckp"), std::string::npos) << what_;
  EXPECT_NE(Recover(files.CrashImage(Policy::kDurableOnly)).verified.find("c,d"), std::string::npos);
}

TEST_P(RowCheckpointTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(After([](FaultyFileSystem& files) { files.Remove("a/run-0001/row-anchor"); }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover run-0001: a/run-0001/row-anchor is missing");
  EXPECT_EQ(After([](FaultyFileSystem& files) { files.Remove(PartIn(files, true)); }), ExitStatus::kMismatch);
  EXPECT_NE(what_.find("a/run-0001/row-anchor@0: names rows-"), std::string::npos) << what_;
  EXPECT_EQ(After([](FaultyFileSystem& files) { files.Remove(PartIn(files, false)); }), ExitStatus::kOk) << what_;
}

TEST_P(RowCheckpointTest, WhatIsDamagedIsRefusedByName) {
  for (const uint64_t at : {9u, 70u, 200u, 330u}) {
    EXPECT_EQ(After([at](FaultyFileSystem& files) { Flip(files, "a/run-0001/row-anchor", at); }), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("a/run-0001/row-anchor@"), std::string::npos) << what_;
  }
  for (const uint64_t at : {20u, 4100u, 4200u}) {
    EXPECT_EQ(After([at](FaultyFileSystem& files) { Flip(files, PartIn(files, true), at); }), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("a/run-0001/rows-"), std::string::npos) << what_;
    EXPECT_EQ(After([at](FaultyFileSystem& files) { Flip(files, PartIn(files, false), at); }), ExitStatus::kOk)
        << what_;
  }
  const auto cut = [](uint64_t bytes) {
    return [bytes](FaultyFileSystem& files) {
      files.Change(PartIn(files, true), [bytes](SparseBytes& file) { file.Resize(bytes); });
    };
  };
  for (const uint64_t bytes : {0u, 4096u}) EXPECT_EQ(After(cut(bytes)), ExitStatus::kCorrupt);
}

// The log is durable up to the anchor's end, or the rows may be of transactions that it lacks.
TEST_P(RowCheckpointTest, ALogThatEndsBeforeTheCheckpointDoesIsDamaged) {
  // Below the last byte of its first log, or of the stripe that has it.
  const auto cut = [](FaultyFileSystem& files) {
    const uint64_t durable = AnchorIn(files).end.front().value();
    ASSERT_GT(durable, 0u);
    const bool is_striped = std::string(GetParam().log) == "LOG_SERIAL";
    const uint64_t unit = is_striped ? Base(1).stripe_unit_bytes : UINT64_MAX, number = (durable - 1) / unit;
    const std::string path = number % 2 == 0 ? "a/run-0001/log-00.log" : "b/run-0001/log-01.log";
    const uint64_t at = number / 2 * unit + (durable - 1) % unit;
    // A block less than need be: the last bytes of a record may be zeros, which a file that is cut off there has, too.
    const uint64_t block = at / format::kBlockBytes;
    const uint64_t left = format::kStreamOffset + (block - std::min<uint64_t>(block, 1)) * format::kBlockBytes;
    files.Change(path, [left](SparseBytes& file) { file.Resize(left); });
  };
  EXPECT_EQ(After(cut), ExitStatus::kCorrupt);
  EXPECT_NE(what_.find("/run-0001/log-0"), std::string::npos) << what_;
}

TEST_P(RowCheckpointTest, TheFilesOfAnotherRunAreRefused) {
  std::unique_ptr<FaultyFileSystem> other;
  RunWithCheckpoints(other, 1, Base(3000));
  const auto swap = [&other](const std::string& path) {
    return [&other, path](FaultyFileSystem& files) {
      const FileBytes bytes = other->Map(path);
      files.Change(path, [&bytes](SparseBytes& file) {
        file.Resize(0);
        file.Write(0, bytes.bytes);
      });
    };
  };
  EXPECT_EQ(After(swap("a/run-0001/row-anchor")), ExitStatus::kMismatch);
  EXPECT_NE(what_.find("the anchor of another run"), std::string::npos) << what_;
}

TEST(RowCheckpoints, AreRefusedWhereALogHasNoRowsOrAnotherOrder) {
  for (const Cell& cell : {Cell{"NO_WAIT", "LOG_SERIAL", "LOG_COMMAND", 1},
                           Cell{"NO_WAIT", "LOG_PLOVER", "LOG_DATA", 2}, Cell{"NO_WAIT", "LOG_ELEDA", "LOG_DATA", 1}}) {
    Options options = SmallRunOf(cell, 10);
    options.checkpoint_bytes = 1000;
    if (!IsHeld(options)) continue;
    FaultyFileSystem files;
    LogStorage storage(files);
    std::string what;
    EXPECT_EQ(Caught([&] { Registry::Global().Create(options)->Run(options, storage); }, what), ExitStatus::kUsage);
    EXPECT_NE(what.find(cell.log), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace dbx::testing
