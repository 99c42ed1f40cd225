#include "multi_master/lock/kept_row_locks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/multi_master/lock/kept_row_locks_model.h"

namespace dbx::mm {
namespace {

constexpr auto kS = RowLockKind::kShared;
constexpr auto kX = RowLockKind::kExclusive;
constexpr TreeId kTree{1};

class KeptRowLocksTest : public testing::Test {
 protected:
  // The messages for one lock.
  uint64_t Lock(uint8_t master, Key row, RowLockKind kind, TreeId tree = kTree) {
    const uint64_t before = kept_.counters(MasterId(master)).messages;
    kept_.OnRowLock(MasterId(master), tree, row, kind);
    return kept_.counters(MasterId(master)).messages - before;
  }
  uint64_t All() const {
    uint64_t sum = 0;
    for (uint8_t i = 0; i < kMastersMax; ++i) sum += kept_.counters(MasterId(i)).messages;
    return sum;
  }

  KeptRowLocks kept_{std::array<uint64_t, 2>{100, 0}};
};

TEST_F(KeptRowLocksTest, AMasterKeepsALockUntilAnotherNeedsTheRow) {
  EXPECT_EQ(Lock(0, 5, kX), 2u);
  EXPECT_EQ(Lock(0, 5, kX), 0u);
  EXPECT_EQ(Lock(0, 5, kS), 0u);
  EXPECT_EQ(Lock(1, 5, kX), 4u);
  EXPECT_EQ(Lock(0, 5, kX), 4u);
  EXPECT_EQ(All(), 10u);
}

TEST_F(KeptRowLocksTest, ReadersShareAndAWriterReclaimsEach) {
  EXPECT_EQ(Lock(0, 5, kS), 2u);
  EXPECT_EQ(Lock(1, 5, kS), 2u);
  EXPECT_EQ(Lock(2, 5, kX), 6u);
  EXPECT_EQ(Lock(0, 5, kS), 4u);
  EXPECT_EQ(Lock(0, 6, kX), 2u);
}

TEST_F(KeptRowLocksTest, AnUpgradeIsAskedFor) {
  Lock(0, 5, kS);
  EXPECT_EQ(Lock(0, 5, kX), 2u);
  EXPECT_EQ(Lock(0, 5, kX), 0u);
}

TEST_F(KeptRowLocksTest, RowsOfSeveralTreesAreDifferentRows) {
  Lock(0, 5, kX);
  EXPECT_EQ(Lock(1, 5, kX, TreeId(2)), 2u);
  EXPECT_EQ(Lock(1, 5, kX), 4u);
}

TEST_F(KeptRowLocksTest, GapsCostNothingByThemselves) {
  EXPECT_EQ(Lock(0, 5, RowLockKind::kGap), 0u);
  EXPECT_EQ(Lock(0, 5, RowLockKind::kInsertIntention), 0u);
  EXPECT_EQ(Lock(1, 5, kX), 2u);
}

TEST_F(KeptRowLocksTest, MessagesForRowsThatNoneHadLockedAreCountedApart) {
  Lock(3, 5, kS);
  Lock(3, 6, kX);
  Lock(3, 5, kX);
  Lock(4, 6, kX);
  EXPECT_EQ(kept_.counters(MasterId(3)).first, 4u);
  EXPECT_EQ(kept_.counters(MasterId(3)).messages, 6u);
  EXPECT_EQ(kept_.counters(MasterId(4)).first, 0u);
}

TEST_F(KeptRowLocksTest, RandomLocksCostWhatTheModelSays) {
  Random random(7, 1);
  KeptRowLocksModel model;
  for (int i = 0; i < 200'000; ++i) {
    const auto master = static_cast<uint8_t>(random.Below(kMastersMax));
    const Key row = random.Below(300);
    const RowLockKind kind = random.Below(4) == 0 ? kX : kS;
    ASSERT_EQ(Lock(master, row, kind), model.OnRowLock(MasterId(master), row, kind)) << "lock " << i;
  }
  EXPECT_EQ(All(), model.messages());
}

// Each row's locks in S cost 2 for every master, whatever their order.
TEST_F(KeptRowLocksTest, ThreadsThatLockTheSameRowsInSLoseNoCount) {
  {
    std::vector<std::jthread> threads;
    for (uint8_t i = 0; i < 8; ++i) {
      threads.emplace_back([this, i] {
        for (Key row = 0; row < 20'000; ++row) kept_.OnRowLock(MasterId(i / 2), kTree, row, kS);
      });
    }
  }
  EXPECT_EQ(All(), 4u * 20'000 * 2);
}

TEST_F(KeptRowLocksTest, AProcessThatIsForkedCountsInTheSameTable) {
  Lock(0, 5, kX);
  const pid_t child = fork();
  if (child == 0) {
    kept_.OnRowLock(MasterId(1), kTree, 5, kX);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(kept_.counters(MasterId(1)).messages, 4u);
  EXPECT_EQ(Lock(0, 5, kS), 4u);
}

TEST_F(KeptRowLocksTest, MoreRowsThanThereIsRoomForAreAnError) {
  EXPECT_THROW(
      {
        for (Key row = 0; row < (1 << 22); ++row) kept_.OnRowLock(MasterId(0), kTree, row, kS);
      },
      Error);
}

}  // namespace
}  // namespace dbx::mm
