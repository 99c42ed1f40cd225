// The rules of differential logging of this testbed (DL1P: compensations while a checkpoint runs, one backward pass):
// every interleaving of small cases and every crash are recovered exactly; without any one of the rules some are not.
#include <gtest/gtest.h>

#include "tests/models/differential_expectations.h"

namespace dbx::models::differential {
namespace {

using Fails = Scenario::Fails;

const Scenario kCommits{.txns = {"xC"}, .pages = 1};
const Scenario kAborts{.txns = {"xA"}, .pages = 1};
const Scenario kCommitsTruncated{.txns = {"xC"}, .pages = 1, .truncates = true};

// Without the checks of a restart, which would refuse some of the logs.
Rules Unchecked(Rules rules) {
  rules.checks = false;
  return rules;
}
Rules Order(Stages stages) { return {.stages = std::move(stages), .checks = false}; }

// ---- No fault ---------------------------------------------------------------------------------------------------

TEST(DifferentialModel, OneLogIsRecoveredAtEveryCrash) {
  ExpectNoFault({}, {{.txns = {"xyC"}, .checkpoints = 2},
                     {.txns = {"xC", "xC"}},
                     {.txns = {"xC", "yC"}},
                     {.txns = {"xA", "xC"}},
                     {.txns = {"xyA", "xC"}, .checkpoints = 2, .pages = 2}});
}

TEST(DifferentialModel, TwoLogsAreRecoveredAtEveryCrash) {
  ExpectNoFault({}, {{.txns = {"xC", "xC"}, .log_of = {0, 1}, .logs = 2},
                     {.txns = {"xyA", "xC"}, .log_of = {0, 1}, .logs = 2},
                     {.txns = {"xA", "xC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 2}});
}

TEST(DifferentialModel, ThreeTransactionsInTwoLogsAreRecoveredAtEveryCrash) {
  ExpectNoFault({}, {{.txns = {"xA", "xC", "yC"}, .log_of = {0, 1, 0}, .logs = 2},
                     {.txns = {"xyA", "xyC", "yC"}, .log_of = {0, 1, 0}, .logs = 2}});
}

TEST(DifferentialModel, APageThatIsAddedDuringACheckpointIsRecovered) {
  ExpectNoFault({}, {{.txns = {"xnA"}, .checkpoints = 2, .pages = 1},
                     {.txns = {"nC", "nC"}, .pages = 1},
                     {.txns = {"nC", "nA"}, .log_of = {0, 1}, .logs = 2, .pages = 1}});
}

TEST(DifferentialModel, ACheckpointThatFindsNoSpaceLosesNothing) {
  ExpectNoFault(
      {}, {{.txns = {"xA"}, .checkpoints = 3, .fails = Fails::kSpace},
           {.txns = {"yC"}, .checkpoints = 2, .fails = Fails::kSpace, .truncates = true},
           {.txns = {"nA"}, .checkpoints = 2, .fails = Fails::kSpace, .pages = 1},
           {.txns = {"xAxC"}, .checkpoints = 2, .fails = Fails::kSpace, .pages = 1},
           {.txns = {"xA", "xC"}, .checkpoints = 2, .fails = Fails::kSpace, .pages = 1},
           {.txns = {"xC", "xC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 2, .fails = Fails::kSpace, .pages = 1}});
}

TEST(DifferentialModel, AttemptsUnderOneIdAreToldApart) {
  ExpectNoFault({}, {{.txns = {"xAxC"}, .checkpoints = 2},
                     {.txns = {"xAyC"}, .checkpoints = 2},
                     {.txns = {"xAxAxC"}},
                     {.txns = {"xAxC", "xC"}},
                     {.txns = {"xC", "xAyC"}, .log_of = {0, 1}, .logs = 2},
                     {.txns = {"xAxAxC"}, .logs = 2, .retries_elsewhere = true},
                     {.txns = {"xAxC"}, .logs = 2, .checkpoints = 2, .retries_elsewhere = true}});
}

TEST(DifferentialModel, LogsThatAreCutBelowWhatIsNeededAreEnough) {
  ExpectNoFault({}, {{.txns = {"xA"}, .checkpoints = 2, .truncates = true},
                     {.txns = {"xC"}, .checkpoints = 3, .pages = 1, .truncates = true},
                     {.txns = {"xAxC"}, .truncates = true},
                     {.txns = {"nA", "xC"}, .pages = 1, .truncates = true},
                     {.txns = {"xC", "xyC"}, .pages = 2, .truncates = true},
                     {.txns = {"xA", "xC"}, .log_of = {0, 1}, .logs = 2, .truncates = true}});
}

// ---- Checkpoints: the order of the stages -----------------------------------------------------------------------

TEST(DifferentialModel, WithoutAWaitForPlacesBelowBeginAChangeIsNeitherCopiedNorRedone) {
  ExpectFault(Order(Without(Stage::kFilled)), kCommits, 14,
              "a crash leaves 4 records; T1 is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, WithoutThatWaitARestartFindsANumberThatHasNotBegun) {
  ExpectFault({.stages = Without(Stage::kFilled)}, kCommits, 7,
              "a restart refuses a change of a checkpoint that has not begun");
}

TEST(DifferentialModel, AFlagThatIsSetBehindBeginIsTooLate) {
  ExpectFault(Order(Moved(Stage::kFlagOn, Stage::kBegin)), kAborts, 17,
              "a crash leaves 4 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AFlagThatIsResetBeforeThePagesAreCopiedIsTooEarly) {
  ExpectFault(Order(Moved(Stage::kFlagOff, Stage::kFilled)), kAborts, 17,
              "a crash leaves 4 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, ANumberThatAdvancesBeforeBeginLosesAnAddedPage) {
  ExpectFault(Order(Without(Stage::kNumber)), {.txns = {"nC"}, .pages = 1}, 15,
              "a crash leaves 4 records; T1 is recovered; y is off by a change of T1");
}

TEST(DifferentialModel, PagesThatAreCountedBeforeTheNumberAdvancesLeaveOneOut) {
  Stages stages = OurStages();
  stages.push_back(Stage::kCount);
  ExpectFault(Order(Moved(Stage::kCount, Stage::kBegin, stages)), {.txns = {"nC"}, .pages = 1}, 15,
              "a crash leaves 3 records; no transaction is recovered; y is off by a change of T1");
}

TEST(DifferentialModel, PagesThatAreCountedAfterTheNumberAdvancesHoldAChangeTwice) {
  Stages stages = OurStages();
  stages.push_back(Stage::kCount);
  ExpectFault(Order(Moved(Stage::kCount, Stage::kNumber, stages)), {.txns = {"nC"}, .pages = 1}, 16,
              "a crash leaves 3 records; no transaction is recovered; y is off by a change of T1");
}

TEST(DifferentialModel, AListThatIsTakenBeforeBeginMissesATransaction) {
  ExpectFault(Order(Moved(Stage::kList, Stage::kFlagOn)), kCommits, 13,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AListThatIsTakenBehindThePlaceOfEndMissesATransaction) {
  ExpectFault(Order(Moved(Stage::kList, Stage::kEnd)), kCommits, 15,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AListMayBeTakenAtAnyTimeBetweenBeginAndEnd) {
  for (const Stage behind : {Stage::kFilled, Stage::kPages}) {
    ExpectNoFault(Order(Moved(Stage::kList, behind)), {{.txns = {"xA", "xC"}},
                                                       {.txns = {"xAxC"}, .checkpoints = 2},
                                                       {.txns = {"xA", "xC"}, .log_of = {0, 1}, .logs = 2}});
  }
}

TEST(DifferentialModel, AnAnchorThatPrecedesEndFindsNoList) {
  ExpectFault(Order(Moved(Stage::kFlush, Stage::kAnchor)), kCommits, 11,
              "a crash leaves 0 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AnEndThatIsDurableInOneLogLeavesTheChangesOfTheOtherInTheBackup) {
  ExpectFault(Unchecked({.all_ends_durable = false}), {.txns = {"xC"}, .log_of = {1}, .logs = 2, .pages = 1}, 14,
              "a crash leaves 2 and 0 records; no transaction is recovered; x is off by a change of T1");
}

// ---- What is needed of a log ------------------------------------------------------------------------------------

TEST(DifferentialModel, FirstRecordsThatAreReadBeforeTheReservedPositionMissATransaction) {
  ExpectFault(Order(Moved(Stage::kReserved, Stage::kActive)), kCommitsTruncated, 16,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, NeededThatIsReadBehindBeginCutsAnAbortInHalf) {
  const Stages stages = Moved(Stage::kActive, Stage::kReserved, Moved(Stage::kReserved, Stage::kBegin));
  ExpectFault(Order(stages), {.txns = {"xA"}, .pages = 1, .truncates = true}, 21,
              "a crash leaves 5 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, NeededThatIsReadBehindThePagesCutsOffACommit) {
  const Stages stages = Moved(Stage::kActive, Stage::kReserved, Moved(Stage::kReserved, Stage::kPages));
  ExpectFault(Order(stages), kCommitsTruncated, 18,
              "a crash leaves 4 records; T1 is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, APositionThatIsPublishedLateHasBeenGivenUp) {
  const Scenario late{.txns = {"xC", "yC"}, .checkpoints = 2, .truncates = true, .looks_early = true};
  ExpectFault({.needed_ascends = false}, late, 36, "a restart begins at record 1, and 2 were given up");
  ExpectNoFault({}, {{.txns = {"xC"}, .checkpoints = 2, .truncates = true, .looks_early = true},
                     {.txns = {"xA"}, .checkpoints = 2, .pages = 1, .truncates = true, .looks_early = true},
                     {.txns = {"xC", "xC"}, .pages = 1, .truncates = true, .looks_early = true}});
}

TEST(DifferentialModel, ALogThatIsPunchedBeforeTheAnchorLacksWhatTheOldOneNeeds) {
  ExpectFault(Order(Moved(Stage::kPunch, Stage::kFlush)), kCommitsTruncated, 18,
              "a restart begins at record 0, and 2 were given up");
}

TEST(DifferentialModel, ARestartMayFindTheEndOfAnAttemptWhoseChangesWereCutOff) {
  ExpectFault({.knows_cut_attempts = false}, kCommitsTruncated, 18,
              "a restart refuses the end of a transaction that has not begun");
}

// ---- Changes and aborts -----------------------------------------------------------------------------------------

TEST(DifferentialModel, ANumberThatIsReadBeforeThePlaceIsReservedIsStale) {
  ExpectFault(Unchecked({.number_read = NumberRead::kBeforePlace}), kCommits, 9,
              "a crash leaves 2 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, ANumberThatIsReadBeforeTheLatchIsStale) {
  ExpectFault(Unchecked({.number_read = NumberRead::kAfterPlace}), kCommits, 8,
              "a crash leaves 2 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AnUndoThatIsNotLoggedUnderACheckpointIsDoneTwice) {
  ExpectFault(Unchecked({.undo = Undo::kNotLogged}), kAborts, 16,
              "a crash leaves 4 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, WithoutASecondLookAtTheFlagAnUndoIsDoneTwice) {
  ExpectFault(Unchecked({.undo = Undo::kNoSecondLook}), kAborts, 15,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, ADirtyBitOfOneCopyLeavesTheOtherOld) {
  ExpectFault(Unchecked({.dirties_both = false}), {.txns = {"xC"}, .checkpoints = 3, .pages = 1}, 23,
              "a crash leaves 5 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, WithoutLsnVectorsATransactionOutlivesTheOneThatItReadFrom) {
  ExpectFault(Unchecked({.has_lv = false}),
              {.txns = {"xC", "xC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0, .pages = 1}, 10,
              "a crash leaves 0 and 2 records; T2 is recovered; x is not as a serial execution leaves it");
}

TEST(DifferentialModel, ASlotThatIsUsedAnewBeforeItsDeleterIsDurableHoldsTwoRows) {
  ExpectFault(Unchecked({.reuse_waits = false}),
              {.txns = {"xC", "rC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0, .pages = 1, .flushes = true}, 10,
              "a crash leaves 0 and 2 records; T2 is recovered; x is not as a serial execution leaves it");
}

// ---- Restart ----------------------------------------------------------------------------------------------------

TEST(DifferentialModel, ACommitBelowEndLeavesATransactionThatIsListedToBeUndone) {
  ExpectFault(Unchecked({.commit_wins = false}), kCommits, 15,
              "a crash leaves 4 records; T1 is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AnAbortBelowBeginLeavesATransactionThatIsListedToBeUndone) {
  ExpectFault(Unchecked({.abort_leaves_att = false}), kAborts, 17,
              "a crash leaves 4 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AScanThatEndsAtBeginDoesNotUndoAnActiveTransaction) {
  ExpectFault(Unchecked({.reads_below_begin = false}), kCommits, 13,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AnAttemptThatAbortedIsRedoneWithTheOneThatCommitted) {
  ExpectFault(Unchecked({.first_clears = false, .abort_leaves_ctt = false}),
              {.txns = {"xAxC"}, .checkpoints = 0, .pages = 1}, 13,
              "a crash leaves 4 records; T1 is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, AFirstRecordOrAnAbortIsEnoughToTellAttemptsApart) {
  const std::vector<Scenario> scenarios = {{.txns = {"xAxC"}, .checkpoints = 2},
                                           {.txns = {"xAxAxC"}},
                                           {.txns = {"xAxC", "xC"}},
                                           {.txns = {"xAxC"}, .logs = 2, .retries_elsewhere = true}};
  ExpectNoFault({.first_clears = false}, scenarios);
  ExpectNoFault({.abort_leaves_ctt = false}, scenarios);
}

// ---- Checkpoints that fail --------------------------------------------------------------------------------------

TEST(DifferentialModel, ACheckpointAfterAFailedOneOverwritesTheAnchorsCopy) {
  ExpectFault(Unchecked({.spares_anchor_copy = false}),
              {.txns = {"xC"}, .checkpoints = 2, .fails = Fails::kSpace, .pages = 1}, 14,
              "a crash leaves 0 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModel, PagesOfAFailedCheckpointThatAreNotDirtyAgainStayTorn) {
  ExpectFault(Unchecked({.dirties_all = false}), {.txns = {"xC"}, .checkpoints = 2, .fails = Fails::kSpace, .pages = 1},
              17, "a crash leaves 3 records; no transaction is recovered; x is not as a serial execution leaves it");
}

TEST(DifferentialModel, PagesThatAFailedCheckpointDidNotReachGetANumberOfTheNext) {
  ExpectFault(Unchecked({.toggles_all = false}), {.txns = {"yC"}, .checkpoints = 2, .fails = Fails::kSpace}, 22,
              "a crash leaves 4 records; no transaction is recovered; y is off by a change of T1");
}

TEST(DifferentialModel, ACheckpointAfterAnAnchorThatIsSaidToHaveFailedOverwritesItsCopy) {
  ExpectFault(Unchecked({.stops_after_anchor = false}),
              {.txns = {"xC"}, .checkpoints = 2, .fails = Fails::kAnchor, .pages = 1}, 17,
              "a crash leaves 2 records; no transaction is recovered; x is off by a change of T1");
}

}  // namespace
}  // namespace dbx::models::differential
