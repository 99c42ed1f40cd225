// Taurus MM as printed (Depoutovitch et al., PVLDB 16(12), 2023): one fault in each test, all else as this testbed does
// it, and a shortest run in which it shows. docs/errata.md quotes the runs. The model is multi_master_model.h.
#include <gtest/gtest.h>

#include "tests/models/multi_master_expectations.h"

namespace dbx::models::multi_master {
namespace {

constexpr uint16_t kOnlyM1 = 0b101'000, kOnlyM2 = 0b011'000'000;  // the master that applies LFBs of others

Scenario Small(uint8_t masters, std::vector<Program> programs, uint8_t evictions = 0, uint8_t reads = 0) {
  return {.name = "the same scenario",
          .masters = masters,
          .programs = std::move(programs),
          .evictions = evictions,
          .reads = reads,
          .own_at_once = true};
}
Scenario Applied(uint16_t applies, std::vector<Program> programs) {
  Scenario scenario = Small(3, std::move(programs));
  scenario.applies = applies;
  return scenario;
}

TEST(MultiMasterAsPrinted, Section511AppliesAnLfbBeforeThePageVersionThatItBuildsUpon) {
  ExpectFault(Fault::kPrintedScalarGrant, Applied(kOnlyM2, {{0, "wa"}, {1, "wb"}}), 13, Failure::kEffectFirst);
}

TEST(MultiMasterAsPrinted, Section521AppliesAnLfbBeforeTheEndThatItBuildsUpon) {
  ExpectShortest(Fault::kPrintedNoAfters, Applied(kOnlyM2, {{0, "wa"}, {1, "wa"}}), 16, Failure::kEffectFirst);
}

TEST(MultiMasterAsPrinted, Section512MissesACauseThatComesBackByWayOfTheReceiversOwnLog) {
  ExpectShortest(Fault::kPrintedOwnClock, Applied(kOnlyM1, {{0, "wa"}, {1, "wb"}, {2, "wb"}}), 21,
                 Failure::kEffectFirst);
}

TEST(MultiMasterAsPrinted, Section521LosesSharedRowLocksOfAnotherHolderOfThePage) {
  ExpectFault(Fault::kPrintedSharedRelease, Small(2, {{0, "rawc"}, {1, "rbrcwa"}}, 1), 35, Failure::kNotSerializable);
}

TEST(MultiMasterAsPrinted, Section525LeavesTheRowLocksOfReadersForEver) {
  ExpectFault(Fault::kPrintedReaderEnd, Small(2, {{0, "ra"}, {1, "wa"}}), 14, Failure::kStuck);
}

TEST(MultiMasterAsPrinted, Section53ReadsBehindAnEndThatItsTvDoesNotHave) {
  ExpectFault(Fault::kPrintedValidity, Small(2, {{0, "wa"}, {1, "wa"}}, 0, 1), 16, Failure::kReadUnended);
}

TEST(MultiMasterAsPrinted, Section53ReadsTheOldPageOfARowThatTheMasterHasChangedOnTheNewOne) {
  ExpectShortest(Fault::kPrintedSplit, Small(2, {{0, "sb"}, {1, "wb"}}, 0, 1), 23, Failure::kReadMisses);
}

TEST(MultiMasterAsPrinted, Section513SeesATransactionAndNotWhatItRead) {
  ExpectFault(Fault::kPrintedSnapshot, Small(2, {{0, "wc"}, {1, "rcwa"}}, 0, 1), 20, Failure::kNotSnapshot);
}

}  // namespace
}  // namespace dbx::models::multi_master
