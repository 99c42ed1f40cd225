// The rules of multi-master have no fault that the model sees, and it sees each of those that are put in.
#include "tests/models/multi_master_model.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/multi_master_expectations.h"

namespace dbx::models::multi_master {
namespace {

class MultiMasterModel : public ::testing::TestWithParam<size_t> {};
TEST_P(MultiMasterModel, HasNoFaultInAnyInterleaving) {
  Scenario scenario = SmallScenarios()[GetParam()];
  scenario.own_at_once = true;
  ExpectNoFault(scenario);
}
// The last three have 0.1 to 0.4 million states, and twice the time of the others.
constexpr size_t kSlow = 3;
INSTANTIATE_TEST_SUITE_P(Small, MultiMasterModel, ::testing::Range<size_t>(0, SmallScenarios().size() - kSlow));
INSTANTIATE_TEST_SUITE_P(SlowMultiMaster, MultiMasterModel,
                         ::testing::Range(SmallScenarios().size() - kSlow, SmallScenarios().size()));

void ExpectNoFaultAtRandom(size_t seeds) {
  World::statistics() = {};
  const Sample sample = RunsAtRandom(Fault::kNone, seeds);
  EXPECT_EQ(sample.fault, "");
  const World::Statistics& seen = World::statistics();
  std::printf("%zu runs: %zu acknowledged, %zu aborted, %zu versioned reads, %zu of them no snapshot, %zu refused\n",
              sample.runs, seen.acked, seen.aborted, seen.reads, seen.not_snapshots, seen.invalid);
  EXPECT_GT(seen.aborted, 0u);
  EXPECT_GT(seen.not_snapshots, 0u);
  EXPECT_GT(seen.invalid, 0u);
}
TEST(MultiMasterModelAtRandom, HasNoFault) { ExpectNoFaultAtRandom(3000); }
TEST(SlowMultiMasterModelAtRandom, HasNoFault) { ExpectNoFaultAtRandom(50'000); }

class MultiMasterFaults : public ::testing::TestWithParam<Fault> {};
TEST_P(MultiMasterFaults, IsFoundAtRandom) {
  const Sample sample = RunsAtRandom(GetParam(), 3000);
  EXPECT_NE(sample.fault, "");
  std::printf("%s: run %zu, %s\n", NameOf(GetParam()), sample.runs, sample.fault.c_str());
}

TEST(SlowMultiMasterFaults, OfARestartAndDeathsAreFoundAtRandom) {
  for (const Fault fault : {Fault::kEarlierLogsUnread, Fault::kCutUnreported}) {
    const Sample sample = RunsAtRandom(fault, 5000);
    EXPECT_NE(sample.fault, "");
    std::printf("%s: run %zu, %s\n", NameOf(fault), sample.runs, sample.fault.c_str());
  }
}

// Some faults need a death at one moment of some thirty steps: multi_master_faults_test.cpp searches for them.
std::vector<Fault> FaultsAtRandom() {
  std::vector<Fault> faults;
  for (size_t i = 1; i < static_cast<size_t>(Fault::kNumber); ++i) {
    const Fault fault = static_cast<Fault>(i);
    const bool is_rare = fault == Fault::kReleasingNotSent || fault == Fault::kCutPastSplit ||
                         fault == Fault::kCutAtSend || fault == Fault::kPlacedOnArrival ||
                         fault == Fault::kEarlierLogsUnread || fault == Fault::kCutUnreported;
    if (!is_rare) faults.push_back(fault);
  }
  return faults;
}
INSTANTIATE_TEST_SUITE_P(All, MultiMasterFaults, ::testing::ValuesIn(FaultsAtRandom()),
                         [](const ::testing::TestParamInfo<Fault>& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace dbx::models::multi_master
