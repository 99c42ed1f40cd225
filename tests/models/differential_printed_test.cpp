// Differential logging as printed (Lee, Kim, Cha, ICDE 2001): one fault of Algorithms 1 to 3 and of sections 3.3, 3.4
// and 4.1 in each test, all else as this testbed does it. The model is differential_model.h.
#include <gtest/gtest.h>

#include "tests/models/differential_expectations.h"

namespace dbx::models::differential {
namespace {

// One page is enough for one transaction.
const Scenario kCommits{.txns = {"xC"}, .pages = 1};
const Scenario kAborts{.txns = {"xA"}, .pages = 1};
const Scenario kCommitInTwoLogs{.txns = {"xC", "xC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0, .pages = 1};

// Mends all but the fault that a test is about, without places that are filled later: records are appended under the
// mutex, which is always taken, undos are logged while the checkpoint flag is set.
Rules Mended() {
  return {.stages = Without(Stage::kNumber, Without(Stage::kFilled)),
          .append = Append::kUnderMutex,
          .undo = Undo::kPrintedByFlag,
          .checks = false};
}

TEST(DifferentialModelAsPrinted, Algorithm1Step6AppendsBehindTheMutexWhatACheckpointHasCopied) {
  Rules rules = Mended();
  rules.append = Append::kBehindMutex;
  ExpectFault(rules, kCommits, 13, "a crash leaves 2 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, Algorithm1Step2TakesNoMutexIfTheFlagIsSetLater) {
  Rules rules = Mended();
  rules.mutex_always = false;
  ExpectFault(rules, kCommits, 14, "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, Section34UndoesAgainWhatWasUndoneBeforeThePageWasCopied) {
  Rules rules = Mended();
  rules.undo = Undo::kAsPrinted;
  ExpectFault(rules, kAborts, 16, "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, Section34IsNotMendedByRecordsOfUndosWhileTheFlagIsSeenSet) {
  ExpectFault(Mended(), kAborts, 16,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, Algorithm3UndoesATransactionThatCommitsBetweenTheListAndEnd) {
  Rules rules = Mended();
  rules.restart = Restart::kPrinted;
  rules.numbers = false;
  ExpectFault(rules, kCommits, 14, "a crash leaves 4 records; T1 is recovered; x is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, Section41RecoversATransactionWithoutTheOneThatItReadFrom) {
  Rules rules = Mended();
  rules.has_lv = false;
  ExpectFault(rules, kCommitInTwoLogs, 12,
              "a crash leaves 0 and 2 records; T2 is recovered; x is not as a serial execution leaves it");
}

TEST(DifferentialModelAsPrinted, Section33ComparesTheBitOfAPageThatTheBackupDoesNotHave) {
  ExpectFault({.numbers = false}, {.txns = {"nC"}, .pages = 1}, 14,
              "a crash leaves 3 records; no transaction is recovered; y is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, Section33MistakesTheBitOnceTwoCheckpointsWroteToOneBackup) {
  ExpectFault({.numbers = false}, {.txns = {"xC"}, .checkpoints = 3, .fails = Scenario::Fails::kSpace, .pages = 1}, 30,
              "a crash leaves 6 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelAsPrinted, AllOfItInOneLogLosesAChangeOfOneTransaction) {
  ExpectFault({.stages = Without(Stage::kNumber, Without(Stage::kFilled)),
               .append = Append::kBehindMutex,
               .undo = Undo::kAsPrinted,
               .restart = Restart::kPrinted,
               .mutex_always = false,
               .numbers = false,
               .has_lv = false,
               .checks = false},
              kCommits, 14, "a crash leaves 2 records; no transaction is recovered; x is off by a change of T1");
}

}  // namespace
}  // namespace dbx::models::differential
