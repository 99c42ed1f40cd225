// The rules of write-behind logging have no fault that the model sees, and it sees each of those that are put in.
#include "tests/models/write_behind_model.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace dbx::models::write_behind {
namespace {

constexpr uint8_t kX = 1, kY = 2, kZ = 3;

constexpr Script W(uint8_t key, uint8_t value) { return {Script::kWrite, {key}, {value}}; }
constexpr Script W(uint8_t key, uint8_t value, uint8_t key2, uint8_t value2) {
  return {Script::kWrite, {key, key2}, {value, value2}};
}
constexpr Script A(uint8_t key, uint8_t value) { return {Script::kAbort, {key}, {value}}; }
constexpr Script R(uint8_t key) { return {Script::kRead, {key}, {}}; }

Scenario TwoWriters() { return {"two writers", {{{{{W(kX, 11)}, {W(kY, 12)}}}, {{{W(kX, 13)}}}}}}; }
Scenario SameRow() { return {"same row", {{{{{W(kX, 11)}, {W(kX, 12)}}}, {{{W(kY, 13)}}}}}}; }
Scenario TwoRows() { return {"two rows", {{{{{W(kX, 11, kY, 12)}}}, {{{W(kY, 13)}}}}}}; }
Scenario RowAfterRow() { return {"row after row", {{{{{W(kX, 11), W(kY, 12)}}}, {{{W(kX, 13)}}}}}}; }
Scenario Reader() { return {"reader", {{{{{W(kX, 11)}, {R(kX)}}}, {{{W(kY, 12)}}}}}}; }
Scenario Aborts() { return {"abort", {{{{{A(kX, 11), W(kY, 12)}}}, {{{W(kX, 13)}}}}}}; }
Scenario Deletes() { return {"delete", {{{{{W(kX, 11), W(kX, 0)}}}, {{{W(kY, 12)}}}}}}; }
Scenario DeletesAndInserts() { return {"delete and insert", {{{{{W(kX, 0)}}}, {{{W(kX, 11)}}}}}}; }
Scenario Inserts() { return {"insert", {{{{{W(kZ, 11)}, {W(kX, 12)}}}, {{{W(kZ, 13)}}}}}}; }
Scenario Reuses() {
  Scenario scenario{"reuse", {{{{{W(kX, 11), W(kY, 12)}}}, {{{W(kX, 13)}}}}}};
  scenario.slots = 3;
  return scenario;
}
Scenario ThreeLives() {
  Scenario scenario{"three lives", {{{{{W(kX, 11)}}}, {{{W(kX, 12)}}}, {{{W(kY, 13)}}}}}};
  scenario.life_count = 3;
  return scenario;
}

Findings Search(Fault fault, const Scenario& scenario, Memory& memory) {
  Model model(fault, scenario, memory);
  Findings found = CrashSearch<Model>(model).Run();
  found.trace.insert(found.trace.end(), memory.trace.begin(), memory.trace.end());
  return found;
}

void ExpectNoFault(const Scenario& scenario) {
  Memory memory;
  const Findings found = Search(Fault::kNone, scenario, memory);
  EXPECT_EQ(found.fault, "") << scenario.name << ": " << found.Text();
  std::printf("%s: %zu states, %zu crash images, %zu restarts\n", std::string(scenario.name).c_str(), memory.states,
              memory.crash_images, memory.images.size());
}

TEST(WriteBehindModel, TwoRows) { ExpectNoFault(TwoRows()); }
TEST(WriteBehindModel, RowAfterRow) { ExpectNoFault(RowAfterRow()); }
TEST(WriteBehindModel, Reader) { ExpectNoFault(Reader()); }
TEST(WriteBehindModel, Aborts) { ExpectNoFault(Aborts()); }
TEST(WriteBehindModel, Deletes) { ExpectNoFault(Deletes()); }
TEST(WriteBehindModel, DeletesAndInserts) { ExpectNoFault(DeletesAndInserts()); }
TEST(WriteBehindModel, Reuses) { ExpectNoFault(Reuses()); }
TEST(WriteBehindModel, AClockNearItsLimit) {
  for (Scenario (*make)() : {Aborts, TwoRows}) {
    Scenario scenario = make();
    scenario.window = 1;
    ExpectNoFault(scenario);
  }
}
TEST(SlowWriteBehindModel, TwoWriters) { ExpectNoFault(TwoWriters()); }
TEST(SlowWriteBehindModel, SameRow) { ExpectNoFault(SameRow()); }
TEST(SlowWriteBehindModel, Inserts) { ExpectNoFault(Inserts()); }
TEST(SlowWriteBehindModel, ThreeLives) { ExpectNoFault(ThreeLives()); }

// ---- Faults ----

struct Expected {
  Fault fault;
  const char* name;
  Scenario (*scenario)();
  uint8_t lives;  // of the crashes that are tried
  const char* what;
  size_t steps;  // of the shortest run
  uint8_t window = 3;
};

class WriteBehindFaults : public ::testing::TestWithParam<Expected> {};

TEST_P(WriteBehindFaults, IsFound) {
  const Expected& expected = GetParam();
  Scenario scenario = expected.scenario();
  scenario.life_count = expected.lives;
  scenario.window = expected.window;
  Memory memory;
  const Findings found = Search(expected.fault, scenario, memory);
  EXPECT_EQ(found.fault, expected.what);
  EXPECT_EQ(found.trace.size(), expected.steps);
  std::printf("%s", found.Text().c_str());
}

#define DBX_FAULT(name) Fault::k##name, #name
INSTANTIATE_TEST_SUITE_P(
    All, WriteBehindFaults,
    ::testing::Values(
        Expected{DBX_FAULT(EntryLeavesBeforeDrain), TwoRows, 1, "I4: x is 1 and not 11", 19},
        Expected{DBX_FAULT(AnnouncedAfterDraw), TwoRows, 1, "I2: T0 is recovered and was never installed", 11},
        Expected{DBX_FAULT(StampedBeforeRecheck), Aborts, 1, "I4: x is 0 and not 1", 14},
        Expected{DBX_FAULT(LimitIgnored), Aborts, 1, "a stamp is above all that was promised, and in no gap", 12, 1},
        Expected{DBX_FAULT(ClearedBeforeEntries), TwoRows, 1, "I4: x is 1 and not 11", 15},
        Expected{DBX_FAULT(ReleasedBeforeClear), Reader, 1, "I1: T2 was acknowledged, and what it read is lost", 20},
        Expected{DBX_FAULT(GroupBeforeClear), TwoRows, 1, "I1: T0 was acknowledged and is lost", 19},
        Expected{DBX_FAULT(WordKeptUntilDrain), TwoRows, 1, "I1: T0 was acknowledged and is lost", 19},
        Expected{DBX_FAULT(LastLineLeftOut), TwoRows, 1, "I4: x is 0 and not 11", 16},
        Expected{DBX_FAULT(ClockAfterWords), TwoWriters, 1, "I2: T2 is recovered and was never installed", 17},
        Expected{DBX_FAULT(DirtyLeftOut), TwoRows, 1, "I4: x is 1 and not 11", 16},
        Expected{DBX_FAULT(ForeignDrainTrusted), TwoRows, 1, "I4: x is 1 and not 11", 19},
        Expected{DBX_FAULT(CpFalls), TwoWriters, 1, "I1: T0 was acknowledged and is lost", 31},
        Expected{DBX_FAULT(LimitBeforeDrain), Aborts, 1, "a stamp is above all that was promised, and in no gap", 20,
                 1},
        Expected{DBX_FAULT(AckBeforeDrain), TwoRows, 1, "I1: T0 was acknowledged and is lost", 18},
        Expected{DBX_FAULT(GapsForgotten), TwoRows, 2, "I4: y is 0 and not 2", 7},
        Expected{DBX_FAULT(GapDroppedWithLosers), TwoRows, 2, "I4: y is 0 and not 2", 16},
        Expected{DBX_FAULT(GapDroppedUndrained), TwoRows, 2, "I4: y is 0 and not 2", 17},
        Expected{DBX_FAULT(OnePlace), TwoRows, 1, "no valid record is left", 12},
        Expected{DBX_FAULT(WriterByStamp), TwoRows, 1, "I1: T0 was acknowledged and is lost", 19},
        Expected{DBX_FAULT(ReaderByStamp), Reader, 1, "I1: T2 was acknowledged, and what it read is lost", 22},
        Expected{DBX_FAULT(ReaderAtOnce), Reader, 1, "I1: T2 was acknowledged, and what it read is lost", 13},
        Expected{DBX_FAULT(FreedAtInstall), TwoRows, 1, "I4: x is 0 and not 1", 7},
        Expected{DBX_FAULT(FreedByStamp), TwoRows, 1, "I4: x is 0 and not 1", 20},
        Expected{DBX_FAULT(SnapshotIgnored), Reader, 1, "a reader does not see the version of its snapshot", 22},
        Expected{DBX_FAULT(ReusedUnzeroed), Reuses, 1, "two versions of a row have one stamp", 21},
        Expected{DBX_FAULT(ReusedUndrained), Reuses, 1, "two versions of a row have one stamp", 21},
        Expected{DBX_FAULT(TombstoneFirst), DeletesAndInserts, 1, "I4: x is 1 and not 0", 20},
        Expected{DBX_FAULT(ServesBeforeRecord), TwoRows, 2, "a stamp is above all that was promised, and in no gap", 7},
        Expected{DBX_FAULT(LongRunnersForgotten), TwoRows, 1, "I4: y is 0 and not 2", 14},
        Expected{DBX_FAULT(GapShortAbove), TwoRows, 1, "I4: y is 0 and not 2", 6, 1},
        Expected{DBX_FAULT(GapShortBelow), TwoRows, 1, "I4: y is 0 and not 2", 6},
        Expected{DBX_FAULT(ClockFromCp), TwoRows, 2, "I8: a stamp is used twice", 14},
        Expected{DBX_FAULT(OldestAdopted), TwoRows, 1, "I4: x is 1 and not 11", 16}),
    [](const ::testing::TestParamInfo<Expected>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dbx::models::write_behind
