// Restart by the baselines DL2P and PL2P: what each does otherwise than DL1P (differential_recovery_test.cpp has what
// they share).
#include <gtest/gtest.h>

#include <string>

#include "tests/logging/caught.h"
#include "tests/logging/differential/expect_recovered.h"

namespace dbx {
namespace {

TEST(PhysicalRecovery, ItHasNoLevelAtWhichImagesAreCombined) {
  const PagedRun::Crashed crashed = RunOf({.method = DiffMethod::kPl2p}).Crash();
  std::string what;
  EXPECT_EQ(Caught([&] { Restart(crashed, {.level = 4}); }, what), ExitStatus::kUsage);
  EXPECT_EQ(
      what,
      "RESTART_LEVEL 4 combines images by XOR, and the run's DIFF_METHOD PL2P puts them: valid values are 1 to 3");
  EXPECT_EQ(Restart(crashed, {.level = 0}).state, crashed.state);
}

// The ABORT of 2 in log 1 puts back what 1 had written in log 0, which the crash loses.
TEST(PhysicalRecovery, AnAbortThatIsNotCoveredPutsNothingBack) {
  PagedRun run = RunOf({.logs = 2, .method = DiffMethod::kPl2p});
  Change(run, 1, 0, kA, 10, 101);
  run.Commit(1);
  Change(run, 2, 1, kA, 10, 102);
  run.Abort(2);
  for (const uint64_t start : run.log(0).Starts()) ExpectRecovered(run.Crash({start, run.end(1)}));
  ExpectRecovered(run.Crash());
}

// The same, and the retry of 2 changes something else and commits.
TEST(PhysicalRecovery, AnAbortThatIsNotCoveredEndsItsAttempt) {
  PagedRun run = RunOf({.logs = 2, .method = DiffMethod::kPl2p});
  Change(run, 1, 0, kA, 10, 101);
  run.Commit(1);
  Change(run, 2, 1, kA, 10, 102);
  run.Abort(2);
  Change(run, 2, 1, kB, 11, 112);
  run.Commit(2);
  for (const uint64_t start : run.log(0).Starts()) ExpectRecovered(run.Crash({start, run.end(1)}));
  ExpectRecovered(run.Crash());
}

// 1 aborts in log 0 what the backup has of it, and 2 writes behind it in log 1.
TEST(PhysicalRecovery, WhatFollowsAnAbortIsNotUndoneWithIt) {
  PagedRun run = RunOf({.logs = 2, .method = DiffMethod::kPl2p});
  Change(run, 1, 0, kA, 10, 101);
  run.Checkpoint();
  run.Abort(1);
  Change(run, 2, 1, kA, 10, 102);
  run.Commit(2);
  for (const uint64_t start : run.log(0).Starts()) {
    if (start >= run.durable(0)) ExpectRecovered(run.Crash({start, run.end(1)}));
  }
  ExpectRecovered(run.Crash());
}

TEST(PhysicalRecovery, StampsOrderTheLogsAndNeedNotAscendWithinOne) {
  PagedRun run = RunOf({.logs = 2, .method = DiffMethod::kPl2p});
  Change(run, 1, 0, kB, 11, 111);
  run.DrawStamp(1);
  Change(run, 2, 0, kA, 10, 101);
  run.Commit(2);  // in front of 1, with a larger stamp
  run.Commit(1);
  Change(run, 3, 1, kA, 10, 102);
  run.Commit(3);
  Change(run, 4, 0, kA, 10, 103);
  run.Commit(4);
  ExpectRecovered(run.Crash());
}

// What one pass redoes of a loser, the other undoes.
TEST(TwoPassRecovery, ALosersChangesOnBothSidesOfTheCheckpointAreUndone) {
  PagedRun run = RunOf({.method = DiffMethod::kDl2p});
  Change(run, 1, 0, kA, 10, 101);
  run.BeginCheckpoint();
  run.CopyPage(0, 0);
  Change(run, 1, 0, kB, 11, 111);
  Change(run, 1, 0, kC, 12, 121);
  run.CopyPages();
  run.EndCheckpoint();
  run.AppendEnds();
  run.WriteAnchor();
  Change(run, 1, 0, kD, 20, 201);
  ExpectRecovered(run.Crash());
  run.Abort(1);
  ExpectRecoveredFromEveryCut(run, run.log(0));
}

// Its changes lie below BEGIN, its compensations above, and END does not list it.
TEST(TwoPassRecovery, AnAbortDuringACheckpointEndsItsTransaction) {
  PagedRun run = RunOf({.method = DiffMethod::kDl2p});
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 1, 0, kC, 12, 121);
  run.BeginCheckpoint();
  run.CopyPage(0, 0);
  run.Abort(1);
  run.CopyPages();
  run.EndCheckpoint();
  run.AppendEnds();
  run.WriteAnchor();
  ExpectRecovered(run.Crash());
}

TEST(PhysicalRecovery, UndoPutsTheImageBefore) {
  PagedRun run = RunOf({.method = DiffMethod::kPl2p});
  Change(run, 1, 0, kA, 10, 101);
  Change(run, 1, 0, kA, 10, 102);
  Change(run, 1, 0, kFree, 13, 130);
  run.Delete(1, kB);
  run.Checkpoint();
  Change(run, 1, 0, kC, 12, 121);
  ExpectRecovered(run.Crash());
}

TEST(TwoPassRecovery, TheTimesOfItsPassesAreMeasured) {
  for (const DiffMethod method : {DiffMethod::kDl2p, DiffMethod::kPl2p}) {
    PagedRun run = RunOf({.method = method});
    for (uint64_t id = 1; id < 300; ++id) {
      Change(run, id, 0, kA, 10, id);
      run.Commit(id);
    }
    const RestartTimes times = Restart(run.Crash(), {.level = 1, .workers = 1}).summary.restart;
    EXPECT_GT(times.redo_seconds, 0);
    EXPECT_GT(times.redo_seconds + times.backward_seconds, times.log_read_seconds);
    EXPECT_GT(times.log_read_seconds, 0);
  }
}

}  // namespace
}  // namespace dbx
