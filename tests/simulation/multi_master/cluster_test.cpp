// Whole clusters under seeds: what cluster/cluster_checks.h demands holds. scripts/torture --cells MM/ runs more of
// them.
#include <gtest/gtest.h>

#include "tests/simulation/cluster/cluster_setup.h"
#include "tests/simulation/cluster/cluster_trial.h"

namespace dbx::sim {
namespace {

class ClusterTest : public testing::TestWithParam<Cell> {};
INSTANTIATE_TEST_SUITE_P(Cells, ClusterTest, testing::ValuesIn(ClusterCells()),
                         [](const auto& cell) { return "Cell" + std::to_string(cell.index); });

TEST_P(ClusterTest, LeavesWhatItsTransactionsDid) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Trial trial;
    trial.cell = GetParam();
    trial.seed = seed;
    EXPECT_NO_THROW(TryCluster(trial, tally)) << "seed " << seed;
  }
  EXPECT_EQ(tally.cycles, 5u);
  EXPECT_GT(tally.acknowledged, 0u);
}

TEST(ClusterTest, ASeedDecidesEverything) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Tally first, second;
    Trial trial;
    trial.cell = {{}, WorkloadKind::kTest, 1, 3};
    trial.seed = seed;
    TryCluster(trial, first);
    TryCluster(trial, second);
    EXPECT_EQ(first.steps, second.steps);
  }
}

}  // namespace
}  // namespace dbx::sim
