// Runs that continue others: a crash before any operation of recovery, freeze, checkpoint, manifest, removal and of the
// run that follows leaves either the old state or the new run, whole, for every later recovery; transactions
// that were dropped once stay dropped; files that do not belong together are refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "logging/schemes.h"
#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "system/transaction/ack_file.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;
using Policy = FaultyFileSystem::Crash;

class ContinueTest : public ::testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    if (!IsHeld(Base())) GTEST_SKIP() << "this build does not hold the pair";
  }
  Options Base(uint64_t txns = 200) const {
    Options options = SmallRunOf(GetParam(), txns);
    options.locktable_modifier = 16;
    return options;
  }
  Options Continuing(uint64_t txns = 40) const {
    Options options = Base(txns);
    options.continue_run = true;
    if (HasRowChains(options.log)) options.redo = "ON_DEMAND";
    options.ack_file = acks_;
    return options;
  }
  Options WithCheckpoint(uint64_t txns = 40) const {
    Options options = Continuing(txns);
    options.checkpoint = options.drop_old_runs = true;
    return options;
  }

  // Runs; true if it came to its end.
  bool Run(FaultyFileSystem& files, const Options& options) const {
    std::filesystem::remove(acks_);
    LogStorage storage(files);
    try {
      Registry::Global().Create(options)->Run(options, storage);
    } catch (const Error& error) {
      EXPECT_TRUE(files.power_is_off()) << error.what();
      return false;
    }
    return true;
  }

  RecoveryResult Recover(const Image& image, uint32_t threads = 2, std::string acks = "") const {
    FaultyFileSystem files(image);
    LogStorage storage(files);
    Options options = Base();
    options.verify = true;
    options.reference = reference_;
    options.thread_cnt = threads;
    options.ack_file = std::move(acks);
    return Registry::Global().Create(options)->Recover(options, storage);
  }
  ExitStatus RecoveryStatus(const Image& image, std::string& what) const {
    return Caught([&] { Recover(image); }, what);
  }

  // What a run leaves whose power goes in the middle, before operation `k`, or a later one if no transaction is durable
  // by then.
  Image CrashedRun(uint64_t k, Policy policy = Policy::kDurableOnly) const {
    for (;; k += 10) {
      FaultyFileSystem files;
      files.CutPowerBefore(k);
      const bool is_whole = Run(files, Base(kLong));
      Image image = files.CrashImage(policy, k);
      if (is_whole || Recover(image).recovered > 0) return image;
    }
  }
  Image Continued(const Image& image, const Options& options) const {
    FaultyFileSystem files(image);
    EXPECT_TRUE(Run(files, options));
    return files.CrashImage(Policy::kDurableOnly);
  }

  // Nothing acknowledged is lost; before the new run was committed the old state is all there is.
  RecoveryResult CheckImage(const Image& image, const RecoveryResult& before, uint32_t threads) const {
    RecoveryResult result = Recover(image, threads);
    if (result.run_number == before.run_number) {
      EXPECT_EQ(result.digest, before.digest);
      EXPECT_EQ(Acknowledged(), 0u);
    } else {
      // Of logs that may have been truncated only what is left is counted.
      if (result.recovered == 0 && result.ended_below.empty()) {
        EXPECT_EQ(result.digest, before.digest);
      }
      if (Acknowledged() > 0) {
        EXPECT_NE(Recover(image, 1, acks_).verified.find("c"), std::string::npos);
      }
    }
    return result;
  }
  uint64_t Acknowledged() const {
    uint64_t count = 0;
    if (std::filesystem::exists(acks_)) AckFile::Open(acks_)->ForEachAcknowledged([&](TxnId) { ++count; });
    return count;
  }

  // A crash before each operation of `options` on `start`, and what comes of it.
  void CrashEverywhere(const Image& start, const Options& options) const {
    const RecoveryResult before = Recover(start);
    bool ended = false;
    for (uint64_t k = 0; !ended; ++k) {
      FaultyFileSystem files(start);
      files.CutPowerBefore(k);
      ended = Run(files, options);
      const Policy policy = FaultyFileSystem::kCrashes[k % std::size(FaultyFileSystem::kCrashes)];
      for (const Policy how : {Policy::kDurableOnly, policy}) {
        SCOPED_TRACE("before operation " + std::to_string(k) + ", policy " + std::to_string(static_cast<int>(how)));
        CheckImage(files.CrashImage(how, k), before, 1 + static_cast<uint32_t>(k % 3));
      }
      if (k % 5 == 0) CrashAgain(files.CrashImage(policy, k), k);
      ASSERT_FALSE(HasFailure());
    }
  }
  // Continues after a crash, crashes again, continues to the end.
  void CrashAgain(const Image& image, uint64_t k) const {
    const RecoveryResult before = Recover(image);
    FaultyFileSystem files(image);
    files.CutPowerBefore(10 + k % 40);
    Run(files, k % 2 == 0 ? Continuing(20) : WithCheckpoint(20));
    const Image second = files.CrashImage(Policy::kSubset, k);
    const RecoveryResult result = CheckImage(second, before, 2);
    const RecoveryResult third = Recover(Continued(second, Continuing(20)), 3, acks_);
    EXPECT_EQ(third.verified, "a,c,d");
    EXPECT_GT(third.run_number, result.run_number);
  }

  bool reference_ = true;
  TempDir dir_;
  const std::string acks_ = dir_ / "acks";
  // Operations of a run of kLong transactions, half-way; one that begins with a backup has many before the first.
  uint64_t Middle() const { return StartsFromBackup() ? 160 : 60; }
  // Its recovery reads none of its ancestors.
  bool StartsFromBackup() const { return std::string(GetParam().log) == "LOG_DIFFERENTIAL"; }
  static constexpr uint64_t kLong = 2000;
};

INSTANTIATE_TEST_SUITE_P(
    Pairs, ContinueTest,
    ::testing::Values(Cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1}, Cell{"NO_WAIT", "LOG_SERIAL", "LOG_COMMAND", 1},
                      Cell{"NO_WAIT", "LOG_TAURUS", "LOG_DATA", 2}, Cell{"NO_WAIT", "LOG_TAURUS", "LOG_COMMAND", 3},
                      Cell{"SILO", "LOG_SERIAL", "LOG_DATA", 1}, Cell{"SILO", "LOG_SERIAL", "LOG_COMMAND", 1},
                      Cell{"SILO", "LOG_TAURUS", "LOG_DATA", 2}, Cell{"SILO", "LOG_TAURUS", "LOG_COMMAND", 3},
                      Cell{"NO_WAIT", "LOG_PLOVER", "LOG_DATA", 2}, Cell{"SILO", "LOG_BATCH", "LOG_DATA", 2},
                      Cell{"NO_WAIT", "LOG_ELEDA", "LOG_DATA", 1}, Cell{"SILO", "LOG_ELEDA", "LOG_COMMAND", 1},
                      Cell{"TICTOC", "LOG_TAURUS", "LOG_DATA", 2}, Cell{"HEKATON", "LOG_TAURUS", "LOG_COMMAND", 2},
                      Cell{"HEKATON", "LOG_SERIAL", "LOG_COMMAND", 1},
                      Cell{"NO_WAIT", "LOG_DIFFERENTIAL", "LOG_DATA", 2},
                      Cell{"HEKATON", "LOG_DIFFERENTIAL", "LOG_DATA", 2}, Cell{"NO_WAIT", "LOG_INSTANT", "LOG_DATA", 1},
                      Cell{"HEKATON", "LOG_INSTANT", "LOG_DATA", 1}),
    CellName);

TEST_P(ContinueTest, ACrashAnywhereLeavesTheOldStateOrTheNewRun) {
  CrashEverywhere(CrashedRun(Middle()), Continuing());
}

TEST_P(ContinueTest, ACrashAnywhereInACheckpointOrARemovalDoesToo) {
  CrashEverywhere(CrashedRun(Middle()), WithCheckpoint());
}

TEST_P(ContinueTest, AChainOfRunsIsRecoveredAsOne) {
  if (StartsFromBackup()) GTEST_SKIP() << "there are no chains";
  Image image = CrashedRun(Middle());
  uint64_t transactions = Recover(image).recovered;
  for (uint32_t number = 2; number <= 4; ++number) {
    image = Continued(image, Continuing());
    const RecoveryResult result = Recover(image, number, acks_);
    EXPECT_EQ(result.verified, "a,c,d");
    EXPECT_EQ(result.run_number, number);
    EXPECT_EQ(result.before.runs, number - 1);
    EXPECT_EQ(result.before.recovered, transactions);
    transactions += result.recovered;
  }
}

TEST_P(ContinueTest, ARunThatStartsFromABackupIsRecoveredAlone) {
  if (!StartsFromBackup()) GTEST_SKIP() << "it is recovered with its ancestors";
  Image image = CrashedRun(Middle());
  for (uint32_t number = 2; number <= 4; ++number) {
    image = Continued(image, Continuing());
    const RecoveryResult result = Recover(image, number, acks_);
    EXPECT_EQ(result.verified, "a,c,d");
    EXPECT_EQ(result.run_number, number);
    EXPECT_EQ(result.before.runs, 0u);
    EXPECT_GT(result.before.checkpoint_rows, 0u);
  }
}

TEST_P(ContinueTest, ARunFromACheckpointNeedsNoAncestors) {
  const Image first = Continued(CrashedRun(Middle()), Continuing());
  FaultyFileSystem files(Continued(first, WithCheckpoint()));
  EXPECT_EQ(ListRuns(files, "a"), (std::vector<uint32_t>{3}));
  const RecoveryResult result = Recover(files.CrashImage(Policy::kDurableOnly), 3, acks_);
  EXPECT_EQ(result.verified, "a,c,d");
  EXPECT_EQ(result.before.runs, 0u);
  EXPECT_GT(result.before.checkpoint_rows, 0u);
}

TEST_P(ContinueTest, RunsBehindAnOlderCheckpointAreDroppedToo) {
  Options checkpoint = Continuing();
  checkpoint.checkpoint = true;
  const Image kept = Continued(Continued(CrashedRun(Middle()), Continuing()), checkpoint);
  FaultyFileSystem before(kept), after(Continued(kept, WithCheckpoint()));
  EXPECT_EQ(ListRuns(before, "a"), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(ListRuns(after, "a"), (std::vector<uint32_t>{4}));
  EXPECT_EQ(Recover(after.CrashImage(Policy::kDurableOnly), 3, acks_).verified, "a,c,d");
}

TEST_P(ContinueTest, ACleanEndIsContinuedAndEndsCleanlyAgain) {
  FaultyFileSystem files;
  Options options = Base();
  options.verify = true;
  Run(files, options);
  options = Continuing();
  options.verify = true;
  const Image continued = Continued(files.CrashImage(Policy::kDurableOnly), options);
  EXPECT_EQ(Recover(continued, 2, acks_).verified, "a,b,c,d");
  reference_ = false;  // A digest tells nothing of what was continued.
  EXPECT_EQ(Recover(continued, 2, acks_).verified, "a,b,c,d");
}

// Trap 10: a record that waits for one that was lost is dropped; then the lost one turns up.
TEST_P(ContinueTest, WhatWasDroppedOnceStaysDropped) {
  // Of Silo-R's crashes one in a hundred has something to drop: a frontier that was written and not yet synced.
  constexpr uint64_t kTriesMax = 5000;
  bool tried = false;
  for (uint64_t i = 0; i < kTriesMax && !tried; ++i) {
    FaultyFileSystem run;
    run.CutPowerBefore(Middle() + i % 200);
    Run(run, Base(kLong));
    const Image cut = run.CrashImage(Policy::kDurableOnly), grown = run.CrashImage(Policy::kAllPending);
    const RecoveryResult before = Recover(cut);
    if (Recover(grown).recovered == before.recovered) continue;
    tried = true;
    FaultyFileSystem files(Continued(cut, Continuing()));
    const RecoveryResult continued = Recover(files.CrashImage(Policy::kDurableOnly));
    for (const auto& [path, bytes] : grown.files) {
      files.Change(path, [&bytes = bytes](SparseBytes& file) { file = bytes; });
    }
    const RecoveryResult after = Recover(files.CrashImage(Policy::kDurableOnly), 3, acks_);
    EXPECT_EQ(after.digest, continued.digest);
    EXPECT_EQ(after.before.recovered, StartsFromBackup() ? 0 : before.recovered);
  }
  EXPECT_TRUE(tried);
}

TEST_P(ContinueTest, WhatIsMissingBelowTheFrozenFrontierIsDamage) {
  if (StartsFromBackup()) GTEST_SKIP() << "the frozen run is read no more";
  FaultyFileSystem files(Continued(CrashedRun(Middle()), Continuing()));
  // Every log: on a busy machine one of them may have had nothing to lose yet.
  Image image = files.CrashImage(Policy::kDurableOnly);
  for (auto& [path, bytes] : image.files) {
    if (path.find("/run-0001/log-") != std::string::npos) bytes.Resize(format::kStreamOffset + 100);
  }
  std::string what;
  EXPECT_EQ(RecoveryStatus(image, what), ExitStatus::kCorrupt) << what;
  EXPECT_NE(what.find("/run-0001/log-0"), std::string::npos) << what;
}

class ContinuedFilesTest : public ContinueTest {
 protected:
  void FlipIn(const std::string& path, uint64_t at) {
    files_->Change(path, [at](SparseBytes& file) {
      std::byte byte{};
      ASSERT_EQ(file.Read(at, {&byte, 1}), 1u);
      byte ^= std::byte{4};
      file.Write(at, {&byte, 1});
    });
  }
  // What a recovery says after `change`, of a run that continues one, with or without a checkpoint.
  ExitStatus After(const Options& options, const std::function<void()>& change) {
    files_ = std::make_unique<FaultyFileSystem>(Continued(CrashedRun(Middle()), options));
    change();
    return RecoveryStatus(files_->CrashImage(Policy::kAllPending), what_);
  }
  std::unique_ptr<FaultyFileSystem> files_;
  std::string what_;
};
INSTANTIATE_TEST_SUITE_P(Pairs, ContinuedFilesTest, ::testing::Values(Cell{"NO_WAIT", "LOG_TAURUS", "LOG_COMMAND", 2}),
                         CellName);

TEST_P(ContinuedFilesTest, DamagedFilesAreRefusedByName) {
  for (const uint64_t at : {3u, 9u, 20u, 60u, 4000u}) {
    EXPECT_EQ(After(Continuing(), [&] { FlipIn("a/run-0001/frozen", at); }), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("a/run-0001/frozen@"), std::string::npos) << what_;
    EXPECT_EQ(After(Continuing(), [&] { FlipIn("a/run-0002/manifest", at); }), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("a/run-0002/manifest@"), std::string::npos) << what_;
  }
  for (const uint64_t at : {3u, 20u, 4100u, 4200u}) {
    EXPECT_EQ(After(WithCheckpoint(), [&] { FlipIn("b/run-0002/checkpoint-01.ckp", at); }), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("b/run-0002/checkpoint-01.ckp@"), std::string::npos) << what_;
  }
}

TEST_P(ContinuedFilesTest, TruncatedFilesAreRefused) {
  const auto cut = [&](const std::string& path, uint64_t bytes) {
    return [this, path, bytes] { files_->Change(path, [bytes](SparseBytes& file) { file.Resize(bytes); }); };
  };
  for (const uint64_t bytes : {0u, 100u, 4095u}) {
    EXPECT_EQ(After(Continuing(), cut("a/run-0001/frozen", bytes)), ExitStatus::kCorrupt);
    EXPECT_EQ(After(Continuing(), cut("a/run-0002/manifest", bytes)), ExitStatus::kCorrupt);
    EXPECT_EQ(After(WithCheckpoint(), cut("a/run-0002/checkpoint-00.ckp", bytes)), ExitStatus::kCorrupt);
  }
  EXPECT_EQ(After(WithCheckpoint(), cut("a/run-0002/checkpoint-00.ckp", 4096)), ExitStatus::kCorrupt);
}

TEST_P(ContinuedFilesTest, MissingFilesAreAMismatch) {
  EXPECT_EQ(After(Continuing(), [&] { files_->Remove("a/run-0001/frozen"); }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "run-0002 continues run-0001, but a/run-0001/frozen is missing");
  EXPECT_EQ(After(WithCheckpoint(), [&] { files_->Remove("a/run-0002/checkpoint-00.ckp"); }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "a/run-0002/manifest@0: names checkpoint-00.ckp, which is missing");
  const auto remove_ancestor = [&] { DeleteRun(*files_, {"a", "b"}, 1); };
  EXPECT_EQ(After(Continuing(), remove_ancestor), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "run-0002 continues run-0001, which is missing");
}

TEST_P(ContinuedFilesTest, FilesOfAnotherDatabaseAreAMismatch) {
  const Image other = Continued(CrashedRun(Middle()), WithCheckpoint());
  for (const char* path : {"a/run-0002/manifest", "a/run-0002/checkpoint-00.ckp"}) {
    const auto swap = [&] { files_->Change(path, [&](SparseBytes& file) { file = other.files.at(path); }); };
    EXPECT_EQ(After(WithCheckpoint(), swap), ExitStatus::kMismatch) << what_;
    EXPECT_NE(what_.find(path), std::string::npos) << what_;
  }
}

TEST_P(ContinuedFilesTest, AnAncestorOfAnotherDatabaseIsAMismatch) {
  const Image other = Continued(CrashedRun(Middle()), Continuing());
  const auto take = [&](const std::string& part) {
    for (const auto& [path, bytes] : other.files) {
      if (path.find(part) == std::string::npos) continue;
      files_->Change(path, [&bytes = bytes](SparseBytes& file) { file = bytes; });
    }
  };
  EXPECT_EQ(After(Continuing(), [&] { take("run-0001/frozen"); }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "a/run-0001/frozen@0: of another run than a/run-0001/log-00.log");
  EXPECT_EQ(After(Continuing(), [&] { take("run-0001/"); }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "run-0002 continues run-0001, but a/run-0001/log-00.log is of another run");
}

TEST_P(ContinuedFilesTest, AFrontierBeforeTheStartOfItsLogIsDamage) {
  FaultyFileSystem files(Continued(Continued(CrashedRun(Middle()), Continuing()), Continuing()));
  const std::string path = "a/run-0002/frozen";
  FrozenRun frozen = DecodeFrozen(files.Map(path).bytes, path);
  frozen.frontier.assign(frozen.frontier.size(), Lsn(0));
  files.Change(path, [&](SparseBytes& file) { file.Write(0, EncodeFrozen(frozen)); });
  std::string what;
  EXPECT_EQ(RecoveryStatus(files.CrashImage(Policy::kAllPending), what), ExitStatus::kCorrupt);
  EXPECT_EQ(what, path + "@0: a frontier before the start of its log");
}

TEST_P(ContinuedFilesTest, AnotherDatabasesRunIsNotDroppedForItsNumber) {
  Options checkpoint = WithCheckpoint();
  checkpoint.drop_old_runs = false;
  FaultyFileSystem files(Continued(Continued(CrashedRun(Middle()), Continuing()), checkpoint));
  const Image other = CrashedRun(Middle());
  DeleteRun(files, {"a", "b"}, 1);
  for (const std::string directory : {"a/run-0001", "b/run-0001"}) files.MakeDirectory(directory);
  for (const std::string path : {"a/run-0001/log-00.log", "b/run-0001/log-01.log"}) {
    files.Create(path, {});
    files.Change(path, [&](SparseBytes& file) { file = other.files.at(path); });
  }
  EXPECT_TRUE(Run(files, WithCheckpoint()));
  EXPECT_EQ(AllRuns(files, {"a", "b"}), (std::vector<uint32_t>{1, 4}));
}

TEST_P(ContinuedFilesTest, WhatIsLeftOfAHalfDeletedRunIsDropped) {
  Options checkpoint = WithCheckpoint();
  checkpoint.drop_old_runs = false;
  FaultyFileSystem files(Continued(Continued(CrashedRun(Middle()), Continuing()), checkpoint));
  for (const char* path : {"a/run-0001/frozen", "a/run-0001/log-00.log", "a/run-0002/log-00.log"}) files.Remove(path);
  EXPECT_TRUE(Run(files, WithCheckpoint()));
  EXPECT_EQ(AllRuns(files, {"a", "b"}), (std::vector<uint32_t>{4}));
}

TEST_P(ContinuedFilesTest, ARunWithRecordsIsNotTakenForOneThatWasNeverServed) {
  EXPECT_EQ(After(Continuing(), [&] { files_->Remove("a/run-0002/manifest"); }), ExitStatus::kMismatch) << what_;
  EXPECT_NE(what_.find("a/run-0002/manifest is missing"), std::string::npos) << what_;
}

TEST_P(ContinuedFilesTest, ACheckpointIsComparedWithTheStateThatWasContinued) {
  const auto change_digest = [this] {
    files_->Change("a/run-0002/manifest", [](SparseBytes& file) {
      RunManifest manifest = DecodeManifest(file.All(), "manifest");
      ++manifest.digest.value().first;
      file.Write(0, EncodeManifest(manifest));
    });
  };
  EXPECT_EQ(After(WithCheckpoint(), change_digest), ExitStatus::kInternal);
  EXPECT_EQ(what_, "verification a failed: the checkpoint differs from what was continued");
}

TEST_P(ContinuedFilesTest, ARunWhoseAckFileCannotBeMadeIsNotBorn) {
  FaultyFileSystem files(CrashedRun(Middle()));
  LogStorage storage(files);
  Options options = WithCheckpoint();
  options.ack_file = dir_ / "missing/acks";
  EXPECT_THROW(Registry::Global().Create(options)->Run(options, storage), Error);
  EXPECT_EQ(AllRuns(files, {"a", "b"}), (std::vector<uint32_t>{1}));
}

TEST_P(ContinuedFilesTest, AnOldRunThatCannotBeDeletedIsWorthANotice) {
  FaultyFileSystem files(CrashedRun(Middle()));
  files.Create("b/run-0001/thesis.tex", {});
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Run(files, WithCheckpoint()));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "notice: cannot delete b/run-0001: thesis.tex is not a log file; no recovery needs these any more, delete "
            "them by hand: run-0001\n");
  EXPECT_EQ(Recover(files.CrashImage(Policy::kDurableOnly), 2, acks_).verified, "a,c,d");
}

TEST_P(ContinuedFilesTest, OnlyTheNewestServedRunIsContinuedButAnyIsRecovered) {
  FaultyFileSystem files(Continued(CrashedRun(Middle()), Continuing()));
  LogStorage storage(files);
  Options older = Continuing();
  older.run = 1;
  EXPECT_THROW(Registry::Global().Create(older)->Run(older, storage), Error);
  older.continue_run = false;
  EXPECT_EQ(storage.Open(older).newest().number, 1u);
}

TEST_P(ContinuedFilesTest, ARunThatWasNotBornIsPassedOverWithANotice) {
  const auto unborn = [&] {
    for (const char* witness : {"a/run-0002/manifest", "a/run-0002/committed", "b/run-0002/committed"}) {
      files_->Remove(witness);
    }
    for (const char* log : {"a/run-0002/log-00.log", "b/run-0002/log-01.log"}) {
      files_->Change(log, [](SparseBytes& file) { file.Resize(format::kStreamOffset); });
    }
  };
  EXPECT_EQ(After(Continuing(), unborn), ExitStatus::kOk) << what_;
  const OldRuns runs = OpenOldRuns(*files_, Base());
  EXPECT_EQ(runs.newest().number, 1u);
  ASSERT_EQ(runs.notices.size(), 1u);
  EXPECT_TRUE(runs.notices[0].starts_with("run-0002 was never served")) << runs.notices[0];
  Options chosen = Base();
  chosen.run = 2;
  EXPECT_THROW(OpenOldRuns(*files_, chosen), Error);
}

class TwoProcessesTest : public ContinuedFilesTest {
 protected:
  void SetUp() override {
    ContinuedFilesTest::SetUp();
    if (!IsSkipped()) files_ = std::make_unique<FaultyFileSystem>(CrashedRun(Middle()));
  }
  std::string RefusalOf(const Options& options) {
    LogStorage storage(*files_);
    const auto engine = Registry::Global().Create(options);
    const auto start = [&] {
      options.log_recover ? void(engine->Recover(options, storage)) : void(engine->Run(options, storage));
    };
    EXPECT_EQ(Caught(start, what_), ExitStatus::kIo);
    return what_;
  }
  Options Recovering() const {
    Options options = Base();
    options.log_recover = true;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Pairs, TwoProcessesTest, ::testing::Values(Cell{"NO_WAIT", "LOG_TAURUS", "LOG_COMMAND", 2}),
                         CellName);

TEST_P(TwoProcessesTest, ARunInUseIsLeftAlone) {
  const RunLocks writer = LockRuns(*files_, {"b/run-0001"}, FileSystem::LockKind::kExclusive, "write");
  const std::string why = "another process is using b/run-0001; wait until it has ended";
  EXPECT_EQ(RefusalOf(Continuing()), "cannot continue run-0001: " + why);
  EXPECT_EQ(RefusalOf(Recovering()), "cannot recover run-0001: " + why);
  Options overwriting = Base();
  overwriting.log_overwrite = true;
  EXPECT_EQ(RefusalOf(overwriting), "cannot delete run-0001: " + why);
  EXPECT_EQ(AllRuns(*files_, {"a", "b"}), (std::vector<uint32_t>{1}));
}

TEST_P(TwoProcessesTest, ManyReadARunAndNobodyContinuesItMeanwhile) {
  LogStorage storage(*files_);
  {
    const OldRuns reader = storage.Open(Recovering());
    EXPECT_EQ(storage.Open(Recovering()).newest().number, 1u);
    RefusalOf(Continuing());
  }
  const OldRuns continuer = storage.Open(Continuing());
  RefusalOf(Recovering());
  RefusalOf(Continuing());
}

TEST_P(TwoProcessesTest, ARunLocksItsDirectoriesToItsEnd) {
  LogStorage storage(*files_);
  Database database({}, 1);
  const NewLogFiles files = storage.Create(
      Base(), LogTraits{}, 0, [](const RunNames&) {}, database);
  EXPECT_EQ(RefusalOf(Continuing()),
            "cannot continue run-0002: another process is using a/run-0002; wait until it has ended");
}

// Both saw run 1 as the newest; the one that is quicker bears run 2 upon it and ends before the other has its lock.
TEST_P(TwoProcessesTest, ARunThatIsBornMeanwhileIsTheOneThatIsContinued) {
  files_->BeforeNextLock([this] { EXPECT_TRUE(Run(*files_, Continuing())); });
  EXPECT_TRUE(Run(*files_, Continuing()));
  const RecoveryResult result = Recover(files_->CrashImage(Policy::kDurableOnly), 2, acks_);
  EXPECT_EQ(result.run_number, 3u);
  EXPECT_EQ(result.before.parent_run, 2u);
  EXPECT_EQ(result.verified, "a,c,d");
}

class ContinueTpccTest : public ContinueTest {};
INSTANTIATE_TEST_SUITE_P(Pairs, ContinueTpccTest, ::testing::Values(Cell{"NO_WAIT", "LOG_TAURUS", "LOG_COMMAND", 2}),
                         CellName);

// The index on last names is rebuilt from the checkpoint, the ordered ones of the full mix are tables of it.
TEST_P(ContinueTpccTest, SmallTpccSurvivesACheckpoint) {
  for (const bool full_mix : {false, true}) {
    const auto tpcc = [&](Options options) {
      options.workload = WorkloadKind::kTpcc;
      options.tpcc_full_mix = full_mix;
      options.tpcc_small = options.verify = true;
      return options;
    };
    FaultyFileSystem files;
    Run(files, tpcc(Base()));
    const Image image = Continued(files.CrashImage(Policy::kDurableOnly), tpcc(WithCheckpoint()));
    FaultyFileSystem again(image);
    LogStorage storage(again);
    Options options = tpcc(Base());
    options.ack_file = acks_;
    EXPECT_EQ(Registry::Global().Create(options)->Recover(options, storage).verified, "a,b,c,d") << full_mix;
  }
}

}  // namespace
}  // namespace dbx::testing
