// The baselines of differential logging: DL2P (differential records, a pass forward and one backward) and PL2P (before
// and after images, undo and then redo in the order of stamps). Aborts are always compensated.
#include <gtest/gtest.h>

#include "tests/models/differential_expectations.h"

namespace dbx::models::differential {
namespace {

const Scenario kCommits{.txns = {"xC"}, .pages = 1};
const Scenario kAborts{.txns = {"xA"}, .pages = 1};

std::vector<Scenario> Scenarios() {
  return {{.txns = {"xyA"}, .checkpoints = 2},
          {.txns = {"xA", "xC"}},
          {.txns = {"xC", "xC"}, .log_of = {0, 1}, .logs = 2},
          {.txns = {"xA", "xC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 2, .pages = 1},
          {.txns = {"xA", "xC", "xC"}, .log_of = {0, 1, 0}, .logs = 2, .pages = 1},
          {.txns = {"nA", "nC"}, .pages = 1},
          {.txns = {"xA"}, .checkpoints = 3, .fails = Scenario::Fails::kSpace, .pages = 1},
          {.txns = {"xAxAxC"}},
          {.txns = {"xC", "xAyC"}, .log_of = {0, 1}, .logs = 2},
          {.txns = {"xAxC"}, .logs = 2, .checkpoints = 2, .retries_elsewhere = true},
          {.txns = {"xA", "xC"}, .pages = 1, .truncates = true},
          {.txns = {"xC", "rC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0, .flushes = true}};
}

Rules Unchecked(Rules rules) {
  rules.checks = false;
  return rules;
}

// ---- DL2P -------------------------------------------------------------------------------------------------------

TEST(DifferentialModelTwoPass, EveryCrashIsRecovered) { ExpectNoFault(TwoPass(), Scenarios()); }

TEST(DifferentialModelTwoPass, LosersChangesThatTheForwardPassRedidMustBeUndoneToo) {
  ExpectFault(Unchecked(TwoPass({.losers_whole = false})), kCommits, 3,
              "a crash leaves 1 record; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelTwoPass, AnAbortThatDoesNotEndItsTransactionIsUndoneInHalf) {
  ExpectFault(Unchecked(TwoPass({.abort_ends = false})), kAborts, 18,
              "a crash leaves 5 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelTwoPass, AnAbortWithoutCompensationsIsRedone) {
  Rules rules = Unchecked(TwoPass());
  rules.undo = Undo::kByFlag;
  ExpectFault(rules, kAborts, 7, "a crash leaves 2 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelTwoPass, WithoutAWaitForPlacesBelowBeginTheForwardPassMissesAChange) {
  ExpectFault(Unchecked(TwoPass({.stages = Without(Stage::kFilled)})), kCommits, 12,
              "a crash leaves 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelTwoPass, AttemptsNeedNotBeToldApart) {
  ExpectNoFault(TwoPass({.first_clears = false}), {{.txns = {"xAxC"}, .checkpoints = 2},
                                                   {.txns = {"xAxAxC"}},
                                                   {.txns = {"xAxC", "xC"}, .log_of = {0, 1}, .logs = 2}});
}

// ---- PL2P -------------------------------------------------------------------------------------------------------

TEST(DifferentialModelPhysical, EveryCrashIsRecovered) { ExpectNoFault(Physical(), Scenarios()); }

TEST(DifferentialModelPhysical, StampsNeedNotAscendWithinALog) {
  ExpectNoFault(Physical(), {{.txns = {"xC", "yC", "xC"}, .log_of = {0, 0, 1}, .logs = 2}});
}

TEST(DifferentialModelPhysical, AnUndoAfterTheRedoOverwritesALaterTransaction) {
  ExpectFault(Unchecked(Physical({.undo_first = false})),
              {.txns = {"xA", "xC"}, .log_of = {0, 1}, .logs = 2, .pages = 1}, 26,
              "a crash leaves 4 and 4 records; T2 is recovered; x is off by a change of T2");
}

TEST(DifferentialModelPhysical, AnAbortThatIsNotCoveredRedoesALostValue) {
  ExpectFault(Unchecked(Physical({.abort_has_lv = false})),
              {.txns = {"xC", "xA"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0, .pages = 1}, 14,
              "a crash leaves 0 and 3 records; no transaction is recovered; x is off by a change of T1");
}

TEST(DifferentialModelPhysical, AnAbortThatIsNotCoveredEndsItsAttempt) {
  ExpectFault(Unchecked(Physical({.attempts_apart = false})),
              {.txns = {"xC", "xAyC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0}, 21,
              "a crash leaves 0 and 5 records; T2 is recovered; x is off by a change of T1");
}

TEST(DifferentialModelPhysical, WithoutAWaitForPlacesBelowBeginTheRedoMissesAChange) {
  ExpectFault(Unchecked(Physical({.stages = Without(Stage::kFilled)})), kCommits, 15,
              "a crash leaves 4 records; T1 is recovered; x is off by a change of T1");
}

TEST(DifferentialModelPhysical, WithoutLsnVectorsATransactionOutlivesTheOneThatItReadFrom) {
  ExpectFault(Unchecked(Physical({.has_lv = false})),
              {.txns = {"xC", "xC"}, .log_of = {0, 1}, .logs = 2, .checkpoints = 0, .pages = 1}, 12,
              "a crash leaves 0 and 2 records; T2 is recovered; x is not as a serial execution leaves it");
}

}  // namespace
}  // namespace dbx::models::differential
