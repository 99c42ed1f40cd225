#include "multi_master/lock/kept_row_locks.h"

#include <gtest/gtest.h>

namespace dbx::mm {
namespace {

constexpr auto kS = RowLockKind::kShared;
constexpr auto kX = RowLockKind::kExclusive;

TEST(KeptRowLocksTest, AMasterKeepsALockUntilAnotherNeedsTheRow) {
  KeptRowLocks kept;
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 5, kX), 2u);
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 5, kX), 0u);
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 5, kS), 0u);
  EXPECT_EQ(kept.OnRowLock(MasterId(1), 5, kX), 4u);
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 5, kX), 4u);
  EXPECT_EQ(kept.messages(), 10u);
}

TEST(KeptRowLocksTest, ReadersShareAndAWriterReclaimsEach) {
  KeptRowLocks kept;
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 5, kS), 2u);
  EXPECT_EQ(kept.OnRowLock(MasterId(1), 5, kS), 2u);
  EXPECT_EQ(kept.OnRowLock(MasterId(2), 5, kX), 6u);
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 6, kX), 2u);
}

TEST(KeptRowLocksTest, AnUpgradeIsAskedFor) {
  KeptRowLocks kept;
  kept.OnRowLock(MasterId(0), 5, kS);
  EXPECT_EQ(kept.OnRowLock(MasterId(0), 5, kX), 2u);
}

}  // namespace
}  // namespace dbx::mm
