// Slips in what the paper is silent about: statements of several steps, pruned after-lists, evictions, splits, logs
// that are cut, ends that the GLM tells of, restarts of the GLM. One fault in each test, and a shortest run in which it
// shows. Most of them are also found at random (multi_master_model_test.cpp). The model is multi_master_model.h.
#include <gtest/gtest.h>

#include "tests/models/multi_master_expectations.h"

namespace dbx::models::multi_master {
namespace {

Scenario Small(std::vector<Program> programs) {
  return {
      .name = "the same scenario", .programs = std::move(programs), .evictions = 0, .reads = 0, .own_at_once = true};
}
Scenario Reading(std::string_view points, std::vector<Program> programs) {
  Scenario scenario = Small(std::move(programs));
  scenario.reads = 1, scenario.points = points;
  return scenario;
}
Scenario Dying(uint8_t cuts, std::vector<Program> programs) {
  Scenario scenario = Small(std::move(programs));
  scenario.crashes = 1, scenario.cuts = cuts;
  return scenario;
}

// ---- Statements ----

TEST(MultiMasterStatement, SeesAChangeOverATransactionThatEndedAfterItsTv) {
  ExpectShortest(Fault::kLocalAfterTv, Reading("a", {{0, "wa"}, {0, "wa"}}), 8, Failure::kReadUnended);
}
TEST(MultiMasterStatement, SeesHalfOfATransactionThatEndsBetweenItsPages) {
  ExpectShortest(Fault::kEndedHere, Reading("ac", {{0, "wawc"}}), 11, Failure::kReadUnended);
}
TEST(MultiMasterStatement, ReadsAPageThatWasNotThereAtItsTv) {
  ExpectShortest(Fault::kNoVersionRead, Reading("b", {{1, "wb"}, {0, "sb"}, {1, "rb"}}), 19, Failure::kReadMisses);
}
TEST(MultiMasterStatement, DoesNotMoveRight) {
  ExpectShortest(Fault::kReaderStaysLeft, Reading("b", {{0, "wb"}, {0, "sb"}}), 13, Failure::kReadMisses);
}
TEST(MultiMasterStatement, SeesAChangeThatADeadMasterHasUndone) {
  Scenario scenario = Dying(0, {{0, "wbwc!!"}});
  scenario.reads = 1, scenario.points = "c";
  ExpectShortest(Fault::kEndedUnapplied, scenario, 26, Failure::kReadUnended);
}
TEST(MultiMasterStatement, FindsAnAfterListPrunedThatItsTvDoesNotCover) {
  Scenario scenario = Reading("a", {{0, "wa"}, {1, "wa"}});
  scenario.prunes = 1;
  ExpectShortest(Fault::kPrunedEarly, scenario, 16, Failure::kReadUnended);
}
TEST(MultiMasterStatement, ReadsItsMastersOwnVersionFromThePageStoreWithoutItsList) {
  Scenario scenario = Reading("a", {{0, "wa"}, {1, "wa"}, {0, "rb"}});
  scenario.discards = 1, scenario.applies = 0b001'000;
  ExpectShortest(Fault::kListEvicted, scenario, 19, Failure::kReadUnended);
}
TEST(MultiMasterStatement, FindsANewPageWithoutTheAfterListOfTheOldOne) {
  ExpectShortest(Fault::kSplitForgetsAfter, Reading("b", {{1, "wb"}, {0, "sbwb"}}), 18, Failure::kReadUnended);
}

// ---- Row locks of a split page ----

TEST(MultiMasterSplit, LosesTheLockOfARowThatItMoves) {
  ExpectShortest(Fault::kSplitLeavesLocks, Small({{0, "wb!!"}, {0, "sb"}, {0, "wb"}}), 18, Failure::kRowLost);
}
TEST(MultiMasterSplit, LosesAGapLockAcrossTheSeparator) {
  ExpectShortest(Fault::kSplitForgetsGap, Small({{0, "gawc"}, {0, "rcwb"}, {0, "sb"}}), 21, Failure::kNotSerializable);
}
TEST(MultiMasterSplit, IsForgottenByAnAbort) {
  ExpectShortest(Fault::kUndoOnOldPage, Small({{0, "wbsb!!"}}), 10, Failure::kRowNotThere);
}
TEST(MultiMasterSplit, TakesALosersRowFromUnderItsLock) {
  ExpectShortest(Fault::kLosersOnOldPage, Dying(0, {{0, "wbsb"}, {1, "wb"}}), 25, Failure::kDirtyRead);
}
// T0 reads b twice; its row lock goes to M0 with the page, which splits it and dies. If the lock is lost, T1 writes b
// in between.
Scenario UnderReadLocks(uint8_t cuts) {
  Scenario scenario = Dying(cuts, {{1, "rbrb"}, {1, "wb"}, {0, "sb"}});
  scenario.may_die = 0b001, scenario.applies = cuts == 0 ? 0 : 0b001'000;
  return scenario;
}
TEST(MultiMasterSplit, IsNotReplayed) {
  ExpectShortest(Fault::kSplitNotReplayed, UnderReadLocks(0), 28, Failure::kNotSerializable);
}
TEST(MultiMasterSplit, IsReleasedWithoutTheNewPagesList) {
  ExpectShortest(Fault::kSplitListNotSent, UnderReadLocks(0), 30, Failure::kNotSerializable);
}
TEST(SlowMultiMasterSplit, IsReleasedWithoutTheListOfANewPageThatIsBeingReleased) {
  Scenario scenario = UnderReadLocks(0);
  scenario.slow_releases = true, scenario.evictions = 1;
  ExpectShortest(Fault::kReleasingNotSent, scenario, 34, Failure::kNotSerializable);
}
TEST(SlowMultiMasterSplit, IsCutFromTheLog) {
  ExpectShortest(Fault::kCutPastSplit, UnderReadLocks(1), 29, Failure::kNotSerializable);
}
TEST(SlowMultiMasterSplit, IsCutFromTheLogWhileTheReleaseIsOnItsWay) {
  ExpectShortest(Fault::kCutAtSend, UnderReadLocks(1), 31, Failure::kNotSerializable);
}

// ---- Releases, ends that are told ----

TEST(MultiMasterRelease, HasAListWithoutALockWhoseEndIsNotDurable) {
  Scenario scenario = Dying(0, {{0, "wa"}, {1, "wa"}});
  scenario.slow_releases = true;
  ExpectShortest(Fault::kListAfterFlush, scenario, 22, Failure::kDirtyRead);
}
TEST(MultiMasterEnds, ToldByTheGlmAreNotInTheNextStamp) {
  Scenario scenario = Small({{0, "wa"}, {1, "wa"}});
  scenario.masters = 3, scenario.applies = 0b011'000'000, scenario.tells = true;
  ExpectShortest(Fault::kToldNotAfter, scenario, 19, Failure::kEffectFirst);
}

// ---- Logs that are cut ----

TEST(MultiMasterCut, ByTheProgressOfPageStoresTakesTheWritesOfALoser) {
  ExpectShortest(Fault::kCutByStores, Dying(1, {{0, "wa"}, {1, "wa"}}), 16, Failure::kNeverApplied);
}
TEST(MultiMasterCut, PastAnOpenTransactionTakesItsWrites) {
  ExpectShortest(Fault::kCutPastOpen, Dying(1, {{0, "wa"}, {1, "wa"}}), 17, Failure::kDirtyRead);
}
TEST(MultiMasterCut, PastWhatIsAppliedTakesAnLfbFromAMaster) {
  ExpectShortest(Fault::kCutUnapplied, Dying(1, {{0, "wa"}}), 9, Failure::kNeverApplied);
}
TEST(MultiMasterCut, TakesAPagesLsn) {
  ExpectShortest(Fault::kLsnFromLog, Dying(1, {{0, "wa"}, {0, "rc"}, {1, "wa"}}), 15, Failure::kLostUpdate);
}

// ---- Restarts of the GLM ----

Scenario Restarting(std::vector<Program> programs) {
  Scenario scenario = Small(std::move(programs));
  scenario.restarts = 1;
  return scenario;
}
TEST(MultiMasterRestart, GrantsAPageBeforeItsHolderHasReported) {
  ExpectShortest(Fault::kGrantsBeforeReports, Restarting({{0, "wa"}, {1, "wa"}}), 12, Failure::kLostUpdate);
}
TEST(MultiMasterRestart, ForgetsTheVersionOfAPageThatNoMasterHolds) {
  ExpectShortest(Fault::kReportLsnLost, Restarting({{0, "wa"}, {1, "wa"}}), 16, Failure::kLostUpdate);
}
TEST(MultiMasterRestart, LosesARequestInFlight) {
  ExpectShortest(Fault::kRequestsNotAnew, Restarting({{0, "wa"}, {1, "wa"}}), 7, Failure::kStuck);
}
TEST(MultiMasterRestart, LeavesAGrantOfTheGlmBeforeInForce) {
  ExpectShortest(Fault::kOldTermAccepted, Restarting({{0, "wa"}, {1, "wa"}}), 12, Failure::kReleaseNotHeld);
}
TEST(MultiMasterRestart, LosesReadersLocks) {
  ExpectShortest(Fault::kReportNoRowLocks, Restarting({{0, "rawc"}, {1, "rcwa"}}), 35, Failure::kNotSerializable);
}
TEST(MultiMasterRestart, LosesAnAfterList) {
  Scenario scenario = Restarting({{0, "wa"}, {1, "wa"}});
  scenario.reads = 1, scenario.points = "a";
  ExpectShortest(Fault::kReportNoAfters, scenario, 17, Failure::kReadUnended);
}
TEST(MultiMasterRestart, IsToldOfAVersionThatIsNotDurable) {
  Scenario scenario = Restarting({{0, "wa"}, {1, "wa"}});
  scenario.crashes = 1;
  ExpectShortest(Fault::kReportBeforeFlush, scenario, 12, Failure::kVersionMissing);
}
TEST(MultiMasterRestart, LosesTheLockOfARowThatIsNotUndoneYet) {
  Scenario scenario = Restarting({{0, "wa"}, {1, "wa"}});
  scenario.crashes = 1, scenario.may_die = 0b001;
  ExpectShortest(Fault::kReportNoLosers, scenario, 20, Failure::kDirtyRead);
}
TEST(SlowMultiMasterRestart, LeavesALockOnThePageFromWhichASplitHasMovedItsRow) {
  Scenario scenario = Restarting({{1, "rbrb"}, {1, "wb"}, {0, "sb"}});
  scenario.applies = 0;
  ExpectShortest(Fault::kReportOnOldPage, scenario, 36, Failure::kNotSerializable);
}
// T0's lock of b is reported before M0's split is durable. M0 then releases both pages, and only reports afterwards.
// All interleavings are too many to search.
TEST(MultiMasterRestart, PlacesALockBeforeALaterReportMakesASplitDurable) {
  Scenario scenario = Restarting({{1, "rbrb"}, {1, "wb"}, {0, "sb"}});
  scenario.applies = 0, scenario.evictions = 1;
  size_t found = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    EXPECT_EQ(RunAtRandom(scenario, Fault::kNone, seed), "") << "seed " << seed;
    const std::string fault = RunAtRandom(scenario, Fault::kPlacedOnArrival, seed);
    found += fault == TextOf(Failure::kNotSerializable);
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace dbx::models::multi_master
