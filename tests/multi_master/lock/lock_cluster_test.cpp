// Random runs of masters' locks and the lock process against an oracle (lock_cluster.h). DBX_SEED=N runs seed N alone.
#include "tests/multi_master/lock/lock_cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace dbx::mm {
namespace {

// Runs of many seeds, and what they must have met altogether, or the test sees nothing.
void RunSeeds(const ClusterOptions& options, uint64_t seeds) {
  const char* only = std::getenv("DBX_SEED");
  uint64_t commits = 0, waits = 0, handovers = 0, victims = 0, splits = 0, undone = 0;
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const uint64_t last = only != nullptr ? first : seeds;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("DBX_SEED=" + std::to_string(seed));
    LockCluster cluster(seed, options);
    cluster.Run();
    if (!::testing::Test::HasFailure()) cluster.Finish();
    commits += cluster.commits;
    waits += cluster.row_waits;
    handovers += cluster.remote_handovers;
    victims += cluster.victims;
    splits += cluster.splits;
    undone += cluster.undone;
    if (::testing::Test::HasFailure()) return;
  }
  std::printf("commits %lu, row waits %lu, remote hand-overs %lu, victims %lu, splits %lu, undone %lu\n", commits,
              waits, handovers, victims, splits, undone);
  if (only != nullptr) return;
  EXPECT_GT(commits, seeds * 5);
  EXPECT_GT(waits, seeds);
  EXPECT_GT(handovers, seeds);
  EXPECT_GT(victims, 0u);
  EXPECT_EQ(splits > 0, options.splits);
  EXPECT_EQ(undone > 0, options.dies);
}

TEST(LockClusterTest, NoConflictingLocksAndNoLostWakeUp) { RunSeeds({}, 150); }

TEST(LockClusterTest, FourMastersOnOnePage) { RunSeeds({.masters = 4, .pages = 1, .slots = 2, .splits = false}, 100); }

TEST(LockClusterTest, MessagesThatOvertakeEachOtherDoNoHarm) { RunSeeds({.overtakes = true}, 100); }

TEST(LockClusterTest, ADeadMastersLocksOutliveItAsFarAsTheyMust) { RunSeeds({.dies = true}, 200); }

}  // namespace
}  // namespace dbx::mm
