// A run with an acknowledgement is recovered or refused, never passed over, forked or deleted: whatever call on names
// fails, whatever lies at the start of its files, and if all of it is gone. What a crash cut short while it was made is
// passed over, a run that continues another or a fresh one.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "logging/format.h"
#include "system/pairs/registry.h"
#include "system/runs/log_directory.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/system/held_pairs.h"
#include "tests/system/runs/small_run.h"

namespace dbx::testing {
namespace {

using Image = FaultyFileSystem::Image;
using Policy = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;

// Run 1, which run 2 continues; with a checkpoint, or with that and run 1 dropped.
enum class How { kContinued, kCheckpoint, kDropped };
constexpr How kHow[] = {How::kContinued, How::kCheckpoint, How::kDropped};

class LostRunsTest : public ::testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    if (!IsHeld(Fresh())) GTEST_SKIP() << "this build does not hold the pair";
  }
  static Options Fresh(uint64_t txns = 60) {
    Options options = SmallRunOf(GetParam(), txns);
    if (GetParam().logs == 1) options.log_dirs = {"a"};  // one log would be striped over both
    return options;
  }
  static Options Continuing(How how = How::kContinued) {
    Options options = Fresh(20);
    options.continue_run = true;
    options.checkpoint = how != How::kContinued;
    options.drop_old_runs = how == How::kDropped;
    return options;
  }
  static void Run(FaultyFileSystem& files, const Options& options) {
    LogStorage storage(files);
    Registry::Global().Create(options)->Run(options, storage);
  }
  static Image After(const Image& image, const Options& options) {
    FaultyFileSystem files(image);
    Run(files, options);
    return files.CrashImage(Policy::kDurableOnly);
  }
  static Image FreshRun() { return After(Image{}, Fresh()); }
  static Image Continued(How how = How::kContinued) { return After(FreshRun(), Continuing(how)); }
  // A fresh run beside one that was frozen: run 3.
  static Image FreshBesideFrozen() { return After(Continued(), Fresh()); }

  static RecoveryResult Recover(FaultyFileSystem& files, std::optional<uint32_t> run = {}) {
    Options options = Fresh();
    options.log_recover = options.verify = true;
    options.run = run;
    LogStorage storage(files);
    return Registry::Global().Create(options)->Recover(options, storage);
  }
  static RecoveryResult Recover(const Image& image, std::optional<uint32_t> run = {}) {
    FaultyFileSystem files(image);
    return Recover(files, run);
  }
  ExitStatus RecoveryStatus(const Image& image) {
    return Caught([&] { Recover(image); }, what_);
  }
  static void ExpectSameFiles(const Image& is, const Image& was) {
    ASSERT_EQ(is.directories, was.directories);
    ASSERT_EQ(is.files.size(), was.files.size());
    for (const auto& [path, bytes] : was.files) EXPECT_EQ(is.files.at(path).All(), bytes.All()) << path;
  }

  static bool Belongs(const std::string& path, uint32_t run) {
    return (path + "/").find("/" + RunDirectoryName(run) + "/") != std::string::npos;
  }
  static Image Without(Image image, uint32_t run) {
    std::erase_if(image.directories, [&](const std::string& path) { return Belongs(path, run); });
    std::erase_if(image.files, [&](const auto& file) { return Belongs(file.first, run); });
    return image;
  }
  // Over the start of every file whose path contains `part`.
  static Image WithZeros(Image image, const std::string& part, uint64_t bytes) {
    for (auto& [path, file] : image.files) {
      if (path.find(part) != std::string::npos) file.Write(0, std::vector<std::byte>(std::min(bytes, file.size())));
    }
    return image;
  }

  std::string what_;
};

INSTANTIATE_TEST_SUITE_P(Cells, LostRunsTest,
                         ::testing::Values(Cell{"NO_WAIT", "LOG_TAURUS", "LOG_COMMAND", 2},
                                           Cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1},
                                           Cell{"SILO", "LOG_BATCH", "LOG_DATA", 2}),
                         CellName);

class FailingCallsTest : public LostRunsTest {
 protected:
  struct Fault {
    int error;
    bool for_good;
  };
  // What is recovered once the fault is over: run 2 as it was, or a run that continues it.
  static void ExpectRun2(const Image& image, const RecoveryResult& before) {
    const RecoveryResult result = Recover(image);
    if (result.run_number == 2) {
      EXPECT_EQ(result.digest, before.digest);
    } else {
      EXPECT_EQ(result.before.parent_run, 2u);
    }
  }
  // The k-th call on names fails, for every k, or, if it does for good, for every fourth. Returns how many there are.
  uint64_t FailEach(const Image& start, Fault fault, const std::function<void(FaultyFileSystem&)>& action) {
    const RecoveryResult before = Recover(start);
    for (uint64_t k = 1;; k += fault.for_good ? 4 : 1) {
      SCOPED_TRACE("call " + std::to_string(k) + ", errno " + std::to_string(fault.error));
      FaultyFileSystem files(start);
      files.Fail(Operation::kAnyOnNames, k, fault.error, fault.for_good);
      const ExitStatus status = Caught([&] { action(files); }, what_);
      if (files.failed_count() == 0) return k - 1;
      EXPECT_TRUE(status == ExitStatus::kOk || status == ExitStatus::kIo) << what_;
      ExpectRun2(files.CrashImage(k % 2 == 0 ? Policy::kDurableOnly : Policy::kAllPending), before);
      if (HasFailure()) return k;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Cells, FailingCallsTest, ::testing::Values(Cell{"NO_WAIT", "LOG_SERIAL", "LOG_DATA", 1}),
                         CellName);

TEST_P(FailingCallsTest, ARecoveryRecoversOrRefuses) {
  const Image start = Continued();
  const RecoveryResult before = Recover(start);
  for (const Fault fault : {Fault{EIO, false}, Fault{EACCES, true}}) {
    const auto recover = [&](FaultyFileSystem& files) {
      const RecoveryResult result = Recover(files);
      EXPECT_EQ(files.failed_count(), 0u) << "a failure went unnoticed";
      EXPECT_EQ(result.digest, before.digest);
    };
    EXPECT_GT(FailEach(start, fault, recover), 10u);
  }
}

TEST_P(FailingCallsTest, AContinuationForksNothing) {
  const auto run = [](FaultyFileSystem& files) { Run(files, Continuing()); };
  for (const Fault fault : {Fault{EIO, false}, Fault{EACCES, true}}) EXPECT_GT(FailEach(Continued(), fault, run), 20u);
}

TEST_P(FailingCallsTest, ARemovalDeletesNothingThatIsNeeded) {
  const auto run = [](FaultyFileSystem& files) { Run(files, Continuing(How::kDropped)); };
  ::testing::internal::CaptureStderr();  // notices
  for (const Fault fault : {Fault{EIO, false}, Fault{EACCES, true}}) EXPECT_GT(FailEach(Continued(), fault, run), 20u);
  ::testing::internal::GetCapturedStderr();
}

// As by the first lstat calls on the newest run's files, however many fail.
TEST_P(LostRunsTest, AServedRunWhoseFilesCannotBeLookedAtIsRefused) {
  const Image start = Continued();
  for (const Operation operation : {Operation::kKindOf, Operation::kList, Operation::kOpen}) {
    for (const How how : kHow) {
      FaultyFileSystem files(start);
      files.Fail(operation, 1, EACCES, /*for_good=*/true, "run-0002");
      EXPECT_EQ(Caught([&] { Recover(files); }, what_), ExitStatus::kIo);
      EXPECT_NE(what_.find("run-0002"), std::string::npos) << what_;
      EXPECT_EQ(Caught([&] { Run(files, Continuing(how)); }, what_), ExitStatus::kIo) << what_;
      ExpectSameFiles(files.CrashImage(Policy::kAllPending), start);
    }
  }
}

TEST_P(LostRunsTest, AFreshRunWithADamagedStartIsNotPassedOverForAFrozenOne) {
  const Image start = FreshBesideFrozen();
  const RecoveryResult before = Recover(start);
  ASSERT_EQ(before.run_number, 3u);
  for (const uint64_t kilobytes : {4, 8, 12, 16}) {
    const Image image = WithZeros(start, "/run-0003/log-", kilobytes << 10);
    const ExitStatus status = RecoveryStatus(image);
    if (kilobytes == 4) {
      EXPECT_EQ(status, ExitStatus::kOk) << what_;  // the header's second copy
      continue;
    }
    EXPECT_EQ(status, ExitStatus::kCorrupt) << what_;
    EXPECT_NE(what_.find("a/run-0003/log-0"), std::string::npos) << what_;
    FaultyFileSystem files(image);
    EXPECT_EQ(Caught([&] { Run(files, Continuing(How::kDropped)); }, what_), ExitStatus::kCorrupt);
    ExpectSameFiles(files.CrashImage(Policy::kAllPending), image);
  }
}

// Zeros over all that it ever wrote look as if it had written nothing.
TEST_P(LostRunsTest, AFreshRunThatIsZerosAllOverIsNotPassedOver) {
  const Image image = WithZeros(FreshBesideFrozen(), "/run-0003/log-", uint64_t{1} << 40);
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kCorrupt) << what_;
  FaultyFileSystem files(image);
  EXPECT_EQ(Caught([&] { Run(files, Continuing(How::kDropped)); }, what_), ExitStatus::kCorrupt);
  ExpectSameFiles(files.CrashImage(Policy::kAllPending), image);
}

// The directories of a crash before its first log had a name look the same, but for `committed`.
TEST_P(LostRunsTest, AFreshRunThatLostAllItsLogsIsNotPassedOver) {
  Image image = FreshBesideFrozen();
  std::erase_if(image.files, [](const auto& file) {
    return Belongs(file.first, 3) && LogIndexOf(BaseNameOf(file.first)).has_value();
  });
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kMismatch) << what_;
  EXPECT_TRUE(what_.starts_with("cannot recover run-0003: no log in ")) << what_;
  FaultyFileSystem files(image);
  EXPECT_EQ(Caught([&] { Run(files, Continuing(How::kDropped)); }, what_), ExitStatus::kMismatch);
  ExpectSameFiles(files.CrashImage(Policy::kAllPending), image);
}

// Another process makes it at this moment, and may serve the next.
TEST_P(LostRunsTest, ARunThatIsBeingMadeIsNotPassedOver) {
  FaultyFileSystem files(Continued());
  const RunFiles made = CreateRun(files, Fresh().log_dirs, {.log_count = 1});
  EXPECT_EQ(Caught([&] { Run(files, Continuing()); }, what_), ExitStatus::kIo);
  EXPECT_TRUE(what_.starts_with("cannot continue run-0003: another process is using ")) << what_;
}

TEST_P(LostRunsTest, ADamagedStartOfAnyFileIsRefusedOrChangesNothing) {
  for (const How how : kHow) {
    const Image start = Continued(how);
    const RecoveryResult before = Recover(start);
    for (const auto& [path, bytes] : start.files) {
      for (const uint64_t kilobytes : {4, 8, 12, 16}) {
        SCOPED_TRACE(path + ", " + std::to_string(kilobytes) + " KiB");
        const Image image = WithZeros(start, path, kilobytes << 10);
        FaultyFileSystem files(image);
        if (Caught([&] { EXPECT_EQ(Recover(files).digest, before.digest); }, what_) == ExitStatus::kOk) continue;
        EXPECT_THROW(Run(files, Continuing(How::kDropped)), Error);
        ExpectSameFiles(files.CrashImage(Policy::kAllPending), image);
      }
    }
  }
}

TEST_P(LostRunsTest, ALostRunIsAMismatchUnlessNobodyNeedsIt) {
  for (const How how : {How::kContinued, How::kCheckpoint}) {
    const Image start = Continued(how);
    EXPECT_EQ(RecoveryStatus(Without(start, 2)), ExitStatus::kMismatch) << what_;
    EXPECT_TRUE(what_.starts_with("cannot recover run-0001: run-0002 continued it, and is missing")) << what_;
    if (how == How::kContinued) {
      EXPECT_EQ(RecoveryStatus(Without(start, 1)), ExitStatus::kMismatch) << what_;
    } else {
      EXPECT_EQ(Recover(Without(start, 1)).digest, Recover(start).digest);
    }
  }
}

// Run 2 is lost; a recovery that asks for run 1 may look at it, but run 1 is forked only once the trace of run 2 is
// removed, too.
TEST_P(LostRunsTest, ALostRunIsNotForked) {
  const Image start = Continued();
  FaultyFileSystem files(Without(start, 2));
  Options continuing = Continuing(How::kDropped);
  EXPECT_EQ(Caught([&] { Run(files, continuing); }, what_), ExitStatus::kMismatch);
  continuing.run = 1;
  EXPECT_EQ(Caught([&] { Run(files, continuing); }, what_), ExitStatus::kMismatch);
  ExpectSameFiles(files.CrashImage(Policy::kAllPending), Without(start, 2));
  EXPECT_EQ(Recover(files, 1).digest, Recover(start, 1).digest);
  files.Remove("a/run-0001/successor");
  Run(files, continuing);
  EXPECT_EQ(Recover(files).before.parent_run, 1u);
}

TEST_P(LostRunsTest, ALostRunIsNotTakenForAnotherOfItsNumber) {
  Image image = Without(Continued(), 2);
  for (const std::string& directory : Fresh().log_dirs) image.directories.push_back(directory + "/run-0002");
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kMismatch) << what_;
  EXPECT_TRUE(what_.starts_with("cannot recover run-0001: run-0002 continued it, and has lost its logs")) << what_;
}

TEST_P(LostRunsTest, WhatNamesTheNextRunIsBelievedOnlyIfItIsThisRuns) {
  const Image start = Continued(), other = Continued();
  const std::string path = "a/run-0001/successor";
  Image image = start;
  image.files[path] = other.files.at(path);
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kMismatch);
  EXPECT_EQ(what_, path + "@0: of another run than a/run-0001/log-00.log");
  image = WithZeros(start, path, 100);
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kCorrupt);
  EXPECT_TRUE(what_.starts_with("cannot read " + path + "@0")) << what_;
  image = Without(start, 2);
  image.files.erase("a/run-0001/frozen");
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover run-0001: a/run-0001/frozen is missing");
}

// A lone log is whole, whatever directory it lies in.
TEST_P(LostRunsTest, LogsOfAnotherRunAreAMismatch) {
  Image image = FreshRun();
  const Image other = FreshRun();
  for (auto& [path, bytes] : image.files) {
    if (!path.ends_with(kCommittedFileName)) bytes = other.files.at(path);
  }
  EXPECT_EQ(RecoveryStatus(image), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover a/run-0001/committed@0: it names another run than a/run-0001/log-00.log");
  EXPECT_EQ(Caught([&] { After(image, Continuing()); }, what_), ExitStatus::kMismatch);
}

// Such a run has no `successor`: the loss of its continuation goes unnoticed, and all else holds.
TEST_P(LostRunsTest, ARunThatAnOlderVersionFrozeIsRecoveredAndContinued) {
  Image start = Continued();
  start.files.erase("a/run-0001/successor");
  const RecoveryResult before = Recover(start);
  EXPECT_EQ(before.run_number, 2u);
  EXPECT_EQ(Recover(After(start, Continuing())).before.parent_run, 2u);
  EXPECT_EQ(Recover(Without(start, 2)).run_number, 1u);
}

TEST_P(LostRunsTest, ARunThatIsDeletedNamesTheNextOneToTheLast) {
  const Image start = Continued();
  bool ended = false;
  for (uint64_t k = 0; !ended && !HasFailure(); ++k) {
    FaultyFileSystem files(start);
    files.CutPowerBefore(k);
    ended = Caught([&] { DeleteRun(files, Fresh().log_dirs, 1); }, what_) == ExitStatus::kOk;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Image image = Without(files.CrashImage(Policy::kReordered, seed), 2);
      EXPECT_NE(RecoveryStatus(image), ExitStatus::kOk) << "before operation " << k;
    }
  }
}

TEST_P(LostRunsTest, ARunThatIsServedMeanwhileIsNotDeleted) {
  FaultyFileSystem files(Continued());
  EXPECT_EQ(Caught([&] { DeleteNeverServed(files, Fresh(), 2); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot delete run-0002: it was served meanwhile");
  EXPECT_EQ(Recover(files).run_number, 2u);
}

TEST_P(LostRunsTest, OptionsThatDecideWhatALogMeansAreThoseOfTheLog) {
  const Image start = FreshRun();
  FaultyFileSystem files(start);
  Options unsynced = Continuing();
  unsynced.log_no_flush = true;
  EXPECT_EQ(Caught([&] { Run(files, unsynced); }, what_), ExitStatus::kMismatch);
  EXPECT_TRUE(
      what_.starts_with("cannot continue a/run-0001/log-00.log@0: its log says LOG_NO_FLUSH=0, and here it is "
                        "LOG_NO_FLUSH=1"))
      << what_;
  ExpectSameFiles(files.CrashImage(Policy::kAllPending), start);
}

// Whatever is there of a fresh run, and whatever is beside it: the old state, or the new run.
TEST_P(LostRunsTest, AFreshRunThatACrashCutShortIsPassedOver) {
  for (const Image& start : {FreshRun(), Continued()}) {
    const RecoveryResult before = Recover(start);
    bool ended = false;
    for (uint64_t k = 0; !ended && !HasFailure(); ++k) {
      FaultyFileSystem files(start);
      files.CutPowerBefore(k);
      ended = Caught([&] { Run(files, Fresh(5)); }, what_) == ExitStatus::kOk;
      for (const Policy policy : FaultyFileSystem::kCrashes) {
        SCOPED_TRACE("before operation " + std::to_string(k) + ", policy " + std::to_string(static_cast<int>(policy)));
        const RecoveryResult result = Recover(files.CrashImage(policy, k));
        if (result.run_number == before.run_number) {
          EXPECT_EQ(result.digest, before.digest);
        }
      }
    }
  }
}

// A run whose logs have their names but which was not committed yet, as a full disk may leave it, is deleted.
TEST_P(LostRunsTest, ACrashInTheRemovalOfARunThatWasNotServedLeavesItPassedOver) {
  const Image start = FreshRun();
  const RecoveryResult before = Recover(start);
  bool ended = false, tried = false;
  for (uint64_t k = 0; !ended && !tried; ++k) {
    FaultyFileSystem files(start);
    files.CutPowerBefore(k);
    ended = Caught([&] { Run(files, Continuing()); }, what_) == ExitStatus::kOk;
    const Image image = files.CrashImage(Policy::kAllPending, k);
    const auto is_there = [&](const std::string& path) { return image.files.contains(path); };
    const std::string last_log = Fresh().log_dirs.back() + "/run-0002/" + LogFileName(GetParam().logs - 1);
    if (!is_there(last_log) || is_there("a/run-0002/manifest")) continue;
    tried = true;
    bool removed = false;
    for (uint64_t i = 0; !removed && !HasFailure(); ++i) {
      FaultyFileSystem removal(image);
      removal.CutPowerBefore(i);
      removed = Caught([&] { DeleteRun(removal, Fresh().log_dirs, 2); }, what_) == ExitStatus::kOk;
      for (const Policy policy : FaultyFileSystem::kCrashes) {
        SCOPED_TRACE("before operation " + std::to_string(i) + ", policy " + std::to_string(static_cast<int>(policy)));
        EXPECT_EQ(Recover(removal.CrashImage(policy, i)).digest, before.digest);
      }
    }
  }
  EXPECT_TRUE(tried);
}

}  // namespace
}  // namespace dbx::testing
