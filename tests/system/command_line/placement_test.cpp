// --pin and --numa: what is parsed, refused, recorded and printed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "system/command_line/output.h"
#include "system/command_line/placement_record.h"
#include "tests/system/command_line/parsed.h"

namespace dbx {
namespace {

TEST(PlacementOptions, DefaultToThePlacesThatTheSystemChooses) {
  EXPECT_EQ(Parse({}).pin, "none");
  EXPECT_EQ(Parse({}).numa, "first_touch");
}

TEST(PlacementOptions, TakeNamesAndLists) {
  for (const char* pin : {"none", "compact", "scatter", "3", "0,2,4-7"}) {
    EXPECT_EQ(Parse({std::string("--pin=") + pin}).pin, pin);
  }
  for (const char* numa : {"first_touch", "interleave", "local"}) {
    EXPECT_EQ(Parse({"--numa", numa}).numa, numa);
  }
}

TEST(PlacementOptions, RefuseWhatIsNeither) {
  for (const char* pin : {"all", "COMPACT", "1,", "2-1", "9999999999", "-1"}) {
    const std::string flag = std::string("--pin=") + pin;
    EXPECT_EQ(Refusal({flag}), flag + ": PIN is neither none, compact, scatter nor a list of CPUs such as 0,2,4-7");
  }
  EXPECT_NE(Refusal({"--numa=bind"}).find("first_touch, interleave, local"), std::string::npos);
  EXPECT_NE(Refusal({"--numa=interleaved"}).find("did you mean interleave?"), std::string::npos);
  for (const char* flag : {"--pin=compact", "--numa=local"}) {
    EXPECT_EQ(Refusal({"--replica=0", flag}), "--replica has neither workers nor tables: leave --pin and --numa out");
  }
}

TEST(PlacementOptions, AreForRecoveriesToo) {
  EXPECT_EQ(Parse({"-Lr1", "--pin=compact", "--numa=interleave"}).pin, "compact");
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

// One CPU is no number, and a name may be completed.
TEST(PlacementOptions, AreTextInTheRecord) {
  EXPECT_FALSE(SwitchIsNumeric("PIN"));
  EXPECT_FALSE(SwitchIsNumeric("NUMA"));
}

PlacementResult Some() {
  PlacementResult placement;
  placement.pin = "compact";
  placement.workers = {{8, 1}, {9, 1}, {11, 1}};
  placement.writers = {{0, 0}, {}};
  placement.buffers = {{0, 0}, {9, 1}};
  placement.memory_asked = placement.memory = "interleave";
  placement.memory_nodes = {0, 1};
  return placement;
}

std::string RunRecordOf(const std::optional<PlacementResult>& placement) {
  RunResult run;
  run.placement = placement;
  return RunRecord(DefaultOptions(), run, Environment());
}
std::string RecoveryRecordOf(const std::optional<PlacementResult>& placement) {
  RecoveryResult recovery;
  recovery.placement = placement;
  return RecoveryRecord(DefaultOptions(), recovery, Environment());
}

TEST(PlacementRecord, NamesEveryThreadItsNodeAndTheMemory) {
  const auto place = [](auto cpu, auto node) { return nlohmann::json{{"cpu", cpu}, {"node", node}}; };
  const nlohmann::json expected = {
      {"pin", "compact"},
      {"workers", {place(8, 1), place(9, 1), place(11, 1)}},
      {"writers", {place(0, 0), place(nullptr, nullptr)}},
      {"buffers", {place(0, 0), place(9, 1)}},
      {"memory", {{"asked", "interleave"}, {"applied", "interleave"}, {"nodes", {0, 1}}, {"refusal", ""}}}};
  for (const std::string& record : {RunRecordOf(Some()), RecoveryRecordOf(Some())}) {
    EXPECT_EQ(nlohmann::json::parse(record).at("metrics").at("placement"), expected);
    const std::string line =
        "\nplacement: workers on CPU 8-9,11 (node 1), log writers on CPU 0 (node 0), 1 not pinned; tables by "
        "interleave over nodes 0-1\n";
    EXPECT_NE(RecordText(record).find(line), std::string::npos) << RecordText(record);
  }
}

TEST(PlacementRecord, IsNullAndSilentByDefault) {
  for (const std::string& record : {RunRecordOf({}), RecoveryRecordOf({})}) {
    EXPECT_TRUE(nlohmann::json::parse(record).at("metrics").at("placement").is_null());
    EXPECT_EQ(RecordText(record).find("placement"), std::string::npos);
  }
}

TEST(PlacementRecord, SaysWhatWasNotApplied) {
  PlacementResult placement = Some();
  EXPECT_EQ(PlacementWarning(placement), "");
  EXPECT_EQ(PlacementWarning({}), "");
  placement.workers.clear(), placement.writers.clear();
  placement.memory = "first_touch", placement.memory_refusal = "mbind: Operation not permitted";
  EXPECT_EQ(PlacementWarning(placement), "--numa=interleave is not applied: mbind: Operation not permitted");
  const std::string line =
      "\nplacement: workers not pinned; tables by first_touch; interleave was NOT APPLIED (mbind: Operation not "
      "permitted)\n";
  EXPECT_NE(RecordText(RunRecordOf(placement)).find(line), std::string::npos) << RecordText(RunRecordOf(placement));
}

}  // namespace
}  // namespace dbx
