// The row locks of one page: what multi_master/lock/row_locks.h claims.
#include "multi_master/lock/row_locks.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/random.h"

namespace dbx::mm {
namespace {

TxnName Txn(uint32_t master, uint64_t sequence) {
  return {MasterId(static_cast<uint8_t>(master)), ClusterEpoch(1), sequence};
}
const TxnName kA = Txn(0, 1), kB = Txn(1, 1), kC = Txn(1, 2);

constexpr RowLockKind kKinds[] = {RowLockKind::kShared, RowLockKind::kExclusive, RowLockKind::kGap,
                                  RowLockKind::kInsertIntention};

// By held kind, then asked kind.
constexpr bool kTable[4][4] = {
    {false, true, false, false},
    {true, true, false, false},
    {false, false, false, true},
    {false, false, false, false},
};

TEST(RowLocksTest, KindsConflictAsTheTableSays) {
  for (size_t held = 0; held < 4; ++held) {
    for (size_t asked = 0; asked < 4; ++asked) {
      EXPECT_EQ(Conflict(kKinds[held], kKinds[asked]), kTable[held][asked]) << held << asked;
    }
  }
}

TEST(RowLocksTest, LocksConflictBetweenOwnersOnCommonKeysOnly) {
  for (size_t held = 0; held < 4; ++held) {
    for (size_t asked = 0; asked < 4; ++asked) {
      for (Key key = 0; key < 6; ++key) {
        const RowLock has{kA, kKinds[held], 2, kKinds[held] == RowLockKind::kGap ? Key{4} : Key{2}};
        EXPECT_EQ(Conflict(has, {kB, kKinds[asked], key, key}),
                  kTable[held][asked] && has.low <= key && key <= has.high);
        EXPECT_FALSE(Conflict(has, {kA, kKinds[asked], key, key}));
      }
    }
  }
}

TEST(RowLocksTest, AListFindsWhatThePairsSay) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    RowLocks list;
    std::vector<RowLock> all;
    for (int i = 0; i < 8; ++i) {
      const Key low = random.Below(6);
      const RowLockKind kind = kKinds[random.Below(3)];
      const RowLock lock{Txn(0, random.Below(3)), kind, low, kind == RowLockKind::kGap ? low + random.Below(3) : low};
      list.Add(lock);
      all.push_back(lock);
      EXPECT_TRUE(list.Covers(lock));
    }
    for (const RowLockKind kind : kKinds) {
      const Key key = random.Below(8);
      const RowLock asked{Txn(0, 1), kind, key, key};
      std::set<TxnName> expected;
      for (const RowLock& held : all) {
        if (Conflict(held, asked)) expected.insert(held.owner);
      }
      const std::vector<TxnName> found = list.FindConflicts(asked);
      EXPECT_EQ(std::set<TxnName>(found.begin(), found.end()), expected);
      EXPECT_EQ(found.size(), expected.size()) << "each once";
    }
  }
}

TEST(RowLocksTest, AnExclusiveLockReplacesItsOwnersSharedOne) {
  RowLocks list;
  list.Add(RowLock::Shared(kA, 5));
  list.Add(RowLock::Exclusive(kA, 5));
  list.Add(RowLock::Shared(kA, 5));
  EXPECT_EQ(list.size(), 1u);
  EXPECT_TRUE(list.Covers(RowLock::Exclusive(kA, 5)));
}

TEST(RowLocksTest, RangesOfOneOwnerThatTouchBecomeOne) {
  RowLocks list;
  list.Add(RowLock::Gap(kA, 0, 3));
  list.Add(RowLock::Gap(kA, 8, UINT64_MAX));
  EXPECT_EQ(list.size(), 2u);
  list.Add(RowLock::Gap(kA, 4, 7));
  EXPECT_EQ(list.size(), 1u);
  EXPECT_TRUE(list.Covers(RowLock::Gap(kA, 0, UINT64_MAX)));
}

TEST(RowLocksTest, AGrantsListIsMergedWithOwnLocks) {
  RowLocks own, granted, expected;
  own.Add(RowLock::Shared(kA, 1));
  own.Add(RowLock::Gap(kA, 4, 6));
  granted.Add(RowLock::Exclusive(kA, 1));
  granted.Add(RowLock::Shared(kB, 2));
  own.Merge(granted);
  expected.Add(RowLock::Exclusive(kA, 1));
  expected.Add(RowLock::Gap(kA, 4, 6));
  expected.Add(RowLock::Shared(kB, 2));
  EXPECT_EQ(own, expected);
}

// Rule 5. As the paper has it (5.2.1), kC's lock would go, which another holder of S granted: write skew.
TEST(RowLocksTest, UnderSharedOnlyTheSendersOwnPartIsReplaced) {
  RowLocks list, part, expected;
  list.Add(RowLock::Shared(kA, 1));
  list.Add(RowLock::Shared(kC, 2));
  part.Add(RowLock::Shared(Txn(0, 9), 3));
  part.Add(RowLock::Shared(kB, 4));
  list.ReplaceOwnersOf(MasterId(0), part);
  expected.Add(RowLock::Shared(kC, 2));
  expected.Add(RowLock::Shared(Txn(0, 9), 3));
  EXPECT_EQ(list, expected);
}

TEST(RowLocksTest, ASplitMovesLocksAndCopiesAGapAcrossIt) {
  RowLocks left, expected_left, expected_right;
  left.Add(RowLock::Shared(kA, 9));
  left.Add(RowLock::Exclusive(kB, 10));
  left.Add(RowLock::Gap(kA, 8, 12));
  left.Add(RowLock::Gap(kB, 2, 9));
  left.Add(RowLock::Gap(kC, 10, 11));
  const RowLocks right = left.SplitOff(10);
  expected_left.Add(RowLock::Shared(kA, 9));
  expected_left.Add(RowLock::Gap(kA, 8, 9));
  expected_left.Add(RowLock::Gap(kB, 2, 9));
  expected_right.Add(RowLock::Exclusive(kB, 10));
  expected_right.Add(RowLock::Gap(kA, 10, 12));
  expected_right.Add(RowLock::Gap(kC, 10, 11));
  EXPECT_EQ(left, expected_left);
  EXPECT_EQ(right, expected_right);
}

TEST(RowLocksTest, ASplitThatIsKnownMovesNothing) {
  RowLocks left;
  left.Add(RowLock::Shared(kA, 9));
  left.Add(RowLock::Gap(kA, 8, 12));
  left.SplitOff(10);
  const RowLocks before = left;
  EXPECT_TRUE(left.SplitOff(10).empty());
  EXPECT_EQ(left, before);
}

RowLocks Sample() {
  RowLocks list;
  list.Add(RowLock::Shared(kA, 1));
  list.Add(RowLock::Exclusive(kB, UINT64_MAX));
  list.Add(RowLock::Gap(kB, 3, 7));
  list.Add(RowLock::Gap(kC, 0, UINT64_MAX));
  return list;
}

std::vector<std::byte> Encoded(const RowLocks& list) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  list.Encode(writer);
  return bytes;
}

TEST(RowLocksTest, WhatIsEncodedIsDecoded) {
  const std::vector<std::byte> bytes = Encoded(Sample());
  WireReader reader(bytes);
  EXPECT_EQ(RowLocks::Decode(reader), Sample());
  EXPECT_TRUE(reader.AtEnd());
}

TEST(RowLocksTest, AListInAnotherOrderOrWithAnotherKindIsRefused) {
  const std::vector<std::byte> bytes = Encoded(Sample());
  for (uint8_t kind = 0; kind < 8; ++kind) {
    std::vector<std::byte> changed = bytes;
    changed[4 + 13] = std::byte{kind};
    WireReader reader(changed);
    RowLocks::Decode(reader);
    EXPECT_TRUE(kind == 1 || kind == 2 || !reader.AtEnd()) << int(kind);
  }
  std::vector<std::byte> swapped = bytes;
  std::swap_ranges(swapped.begin() + 4, swapped.begin() + 4 + 22, swapped.begin() + 4 + 22);
  WireReader reader(swapped);
  RowLocks::Decode(reader);
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace dbx::mm
