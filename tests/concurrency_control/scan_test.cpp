// Scans, for every pair: what they see, that nothing appears in or vanishes from what was scanned, and what a log
// scheme learns of gaps. Transactions of several workers are interleaved by hand.
#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"
#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

constexpr Key kHigh = 1'000'000;

class ScanOfEveryPair : public PairTest {
 protected:
  ScanOfEveryPair() : PairTest({.ordered = true}) {}

  void LoadRows(std::initializer_list<Key> keys) {
    for (const Key key : keys) h_.LoadRow(key, key * 10);
  }
  Outcome Scan(TestContext& ctx, Key low, Key high, std::vector<Key>* keys = nullptr, size_t limit = SIZE_MAX,
               ScanOrder order = ScanOrder::kAscending) {
    std::vector<Key> found;
    const Outcome outcome = ctx.Scan(h_.table(), low, high, order, [&](Key key, const TestTuple&) {
      found.push_back(key);
      return found.size() < limit;
    });
    if (keys != nullptr) *keys = found;
    return outcome;
  }
  Outcome Write(TestContext& ctx, Key key, uint64_t value = 1) {
    return ctx.Update(h_.table(), key, [&](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, value); });
  }
  Outcome Insert(TestContext& ctx, Key key) {
    const Tuple tuple{key, {}};
    return ctx.Insert(h_.table(), key, std::as_bytes(std::span(&tuple, 1)));
  }
  // A transaction of worker 0 that scans a range, lets `meanwhile` happen and writes row 0.
  CallResult ScanAndWrite(Key low, Key high, auto&& meanwhile) {
    return h_.Run(0, [&](TestContext& ctx) {
      const Outcome scanned = Scan(ctx, low, high);
      meanwhile();
      return scanned == Outcome::kOk ? Write(ctx, 0) : scanned;
    });
  }
  std::vector<Key> Keys(Key low, Key high) {
    std::vector<Key> keys;
    EXPECT_EQ(h_.Scan(3, low, high, &keys).outcome, Outcome::kOk);
    return keys;
  }
  size_t Leaves() { return 1 + h_.table().tree().LeafEnds().size(); }

  // Two transactions scan the same range, find nothing, and then insert a row into it each.
  bool BothInsertWhereTheyFoundNone() {
    CallResult inner{};
    const auto scan_and_insert = [&](TestContext& ctx, Key key, auto meanwhile) {
      std::vector<Key> found;
      const Outcome scanned = Scan(ctx, 1, 9, &found);
      EXPECT_TRUE(found.empty());
      meanwhile();
      return scanned == Outcome::kOk ? Insert(ctx, key) : scanned;
    };
    const auto meanwhile = [&] { inner = h_.Run(1, [&](TestContext& ctx) { return scan_and_insert(ctx, 6, [] {}); }); };
    const CallResult outer = h_.Run(0, [&](TestContext& ctx) { return scan_and_insert(ctx, 3, meanwhile); });
    return outer.outcome == Outcome::kOk && inner.outcome == Outcome::kOk;
  }
};
// What holds of serializable transactions alone.
class ScanOfSerializablePairs : public ScanOfEveryPair {};

INSTANTIATE_TEST_SUITE_P(With, ScanOfEveryPair, In(PairsWhere([](const TestPair& pair) { return pair.log.logs; })),
                         NameOfPair);
INSTANTIATE_TEST_SUITE_P(With, ScanOfSerializablePairs,
                         In(PairsWhere([](const TestPair& pair) { return pair.log.logs && IsSerializable(pair); })),
                         NameOfPair);

TEST_P(ScanOfEveryPair, VisitsTheRowsOfItsRangeInOrderUntilItIsToldToEnd) {
  LoadRows({0, 10, 20, 30, 40});
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    std::vector<Key> keys;
    EXPECT_EQ(Scan(ctx, 10, 30, &keys), Outcome::kOk);
    EXPECT_EQ(keys, (std::vector<Key>{10, 20, 30}));
    EXPECT_EQ(Scan(ctx, 5, 100, &keys, SIZE_MAX, ScanOrder::kDescending), Outcome::kOk);
    EXPECT_EQ(keys, (std::vector<Key>{40, 30, 20, 10}));
    EXPECT_EQ(Scan(ctx, 0, kHigh, &keys, 2), Outcome::kOk);
    EXPECT_EQ(keys, (std::vector<Key>{0, 10}));
    EXPECT_EQ(Scan(ctx, 11, 19, &keys), Outcome::kOk);
    EXPECT_TRUE(keys.empty());
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
}

TEST_P(ScanOfEveryPair, SeesWhatTheTransactionWroteItself) {
  LoadRows({0, 10, 20});
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Write(ctx, 10, 77), Outcome::kOk);
    EXPECT_EQ(Insert(ctx, 15), Outcome::kOk);
    EXPECT_EQ(ctx.Delete(h_.table(), 20), Outcome::kOk);
    std::vector<std::pair<Key, uint64_t>> seen;
    EXPECT_EQ(ctx.Scan(h_.table(), 0, 100, ScanOrder::kAscending,
                       [&](Key key, const TestTuple& tuple) {
                         seen.emplace_back(key, tuple.GetAt<uint64_t>(0));
                         return true;
                       }),
              Outcome::kOk);
    EXPECT_EQ(seen, (std::vector<std::pair<Key, uint64_t>>{{0, 0}, {10, 77}, {15, 15}}));
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(Keys(0, 100), (std::vector<Key>{0, 10, 15}));
}

TEST_P(ScanOfSerializablePairs, AnInsertIntoAScannedGapIsAConflict) {
  LoadRows({0, 10});
  CallResult inner{};
  const CallResult outer = ScanAndWrite(1, 9, [&] { inner = h_.Insert(1, 5, 5); });
  EXPECT_EQ(inner.outcome, Outcome::kOk);
  EXPECT_EQ(outer.outcome, Outcome::kConflict);
  EXPECT_EQ(ScanAndWrite(1, 9, [] {}).outcome, Outcome::kOk);
}

// Each is in the range of the other: in a serial order one of them finds the other's row.
TEST_P(ScanOfSerializablePairs, APredicateWriteSkewIsRefused) {
  LoadRows({0, 10});
  EXPECT_FALSE(BothInsertWhereTheyFoundNone());
}

// The level says so: else it is not what it claims to be, and costs more than it must.
class SnapshotScan : public ScanOfEveryPair {};
INSTANTIATE_TEST_SUITE_P(With, SnapshotScan,
                         In(PairsWhere([](const TestPair& pair) { return pair.log.logs && ReadsSnapshots(pair); })),
                         NameOfPair);
TEST_P(SnapshotScan, APredicateWriteSkewIsAllowed) {
  LoadRows({0, 10});
  EXPECT_TRUE(BothInsertWhereTheyFoundNone());
  EXPECT_EQ(Keys(1, 9), (std::vector<Key>{3, 6}));
}

// A writer too: it stands at its snapshot, which did not have the row.
TEST_P(SnapshotScan, AnInsertIntoAScannedGapIsNoConflict) {
  LoadRows({0, 10});
  CallResult inner{};
  EXPECT_EQ(ScanAndWrite(1, 9, [&] { inner = h_.Insert(1, 5, 5); }).outcome, Outcome::kOk);
  EXPECT_EQ(inner.outcome, Outcome::kOk);
}

// Or else the reader tells of a state that never was. One that reads a snapshot stands before the insert.
TEST_P(ScanOfEveryPair, AReaderIsProtectedToo) {
  LoadRows({0, 10});
  const CallResult reader = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Scan(ctx, 1, 9), Outcome::kOk);
    EXPECT_EQ(h_.Insert(1, 5, 5).outcome, Outcome::kOk);
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, GetParam()->cc.multi_version ? Outcome::kOk : Outcome::kConflict);
}

TEST_P(ScanOfSerializablePairs, ADeleteFromAScannedRangeIsAConflict) {
  LoadRows({0, 5, 10});
  CallResult inner{};
  const CallResult outer = ScanAndWrite(1, 9, [&] { inner = h_.Delete(1, 5); });
  EXPECT_FALSE(inner.outcome == Outcome::kOk && outer.outcome == Outcome::kOk);
}

// The row of a key that was missed before is there, absent: the leaf does not change when it is inserted.
TEST_P(ScanOfSerializablePairs, AnAbsentRowIsScannedToo) {
  LoadRows({0, 10});
  ASSERT_EQ(h_.Read(2, 5).outcome, Outcome::kOk);
  ASSERT_NE(h_.table().Find(5), nullptr);
  CallResult inner{};
  const CallResult outer = ScanAndWrite(1, 9, [&] { inner = h_.Insert(1, 5, 5); });
  EXPECT_FALSE(inner.outcome == Outcome::kOk && outer.outcome == Outcome::kOk);
}

TEST_P(ScanOfEveryPair, OwnInsertsIntoAScannedGapAreNoConflictThoughLeavesSplit) {
  LoadRows({0, 1000});
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Scan(ctx, 0, 1000), Outcome::kOk);
    for (Key key = 1; key <= 200; ++key) EXPECT_EQ(Insert(ctx, key * 3), Outcome::kOk);
    std::vector<Key> keys;
    EXPECT_EQ(Scan(ctx, 0, 1000, &keys), Outcome::kOk);
    EXPECT_EQ(keys.size(), 202u);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_GT(Leaves(), 2u);
}

// Both parts of a leaf that the scanner itself has split are still its own.
TEST_P(ScanOfSerializablePairs, AnInsertIntoEitherPartOfALeafThatTheScannerSplitIsAConflict) {
  for (const Key foreign : {2, 598}) {
    const std::unique_ptr<TestEngine> engine = MakeEngine({.ordered = true});
    TestEngine& h = *engine;
    h.LoadRow(0, 0);
    h.LoadRow(1000, 1);
    const CallResult outer = h.Run(0, [&](TestContext& ctx) {
      const auto see = [](Key, const TestTuple&) { return true; };
      EXPECT_EQ(ctx.Scan(h.table(), 0, 1000, ScanOrder::kAscending, see), Outcome::kOk);
      const Tuple tuple{};
      for (Key key = 3; key <= 600; key += 3) {
        EXPECT_EQ(ctx.Insert(h.table(), key, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
      }
      EXPECT_EQ(h.Insert(1, foreign, 5).outcome, Outcome::kOk);
      return Outcome::kOk;
    });
    EXPECT_EQ(outer.outcome, Outcome::kConflict) << foreign;
  }
}

// A leaf that another transaction splits was not necessarily changed where it was scanned; it counts as changed.
TEST_P(ScanOfSerializablePairs, ASplitOfAScannedLeafByAnotherIsAConflict) {
  for (Key key = 0; key < BTreeLeaf::kSlots; ++key) h_.LoadRow(key * 10, key);
  ASSERT_EQ(Leaves(), 1u);
  CallResult inner{};
  const CallResult outer = ScanAndWrite(1, 9, [&] { inner = h_.Insert(1, 305, 5); });
  EXPECT_EQ(inner.outcome, Outcome::kOk);
  EXPECT_EQ(outer.outcome, Outcome::kConflict);
  EXPECT_EQ(Leaves(), 2u);
}

TEST_P(ScanOfEveryPair, WhatAScanDidNotComeToIsNotProtected) {
  for (Key key = 0; key < 4 * BTreeLeaf::kSlots; ++key) h_.LoadRow(key * 10, key);
  CallResult write{}, insert{};
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Scan(ctx, 10, kHigh, nullptr, 2), Outcome::kOk);
    write = h_.Write(1, 40, 7);
    insert = h_.Insert(1, 2015, 7);
    return Write(ctx, 0);
  });
  EXPECT_EQ(write.outcome, Outcome::kOk);
  EXPECT_EQ(insert.outcome, Outcome::kOk);
  EXPECT_EQ(outer.outcome, Outcome::kOk);
}

// A queue: what is deleted at its low end must not be walked over for ever.
TEST_P(ScanOfSerializablePairs, EmptyLeavesLeaveTheIndexAndTheirScannersAbort) {
  constexpr Key kRows = 3 * BTreeLeaf::kSlots;
  for (Key key = 0; key < kRows; ++key) h_.LoadRow(key, key);
  ASSERT_GE(Leaves(), 3u);
  for (Key key = 1; key < kRows - 1; ++key) ASSERT_EQ(h_.Delete(1, key).outcome, Outcome::kOk);
  h_.HardenAll();
  size_t before = 0;
  const CallResult outer = ScanAndWrite(kRows / 3, kRows / 2, [&] {
    before = Leaves();
    h_.Sweep(1);
    h_.Sweep(1);
  });
  // Under locks the scan holds the absent rows, if they are there still.
  EXPECT_TRUE(Leaves() == before || outer.outcome == Outcome::kConflict);
  h_.HardenAll();
  h_.Sweep(1);
  EXPECT_LE(Leaves(), 2u);
  EXPECT_EQ(Keys(0, kRows), (std::vector<Key>{0, kRows - 1}));
}

// What is known of it passes on to its gap: scans, which read absent rows too, must not keep them for ever.
TEST_P(ScanOfEveryPair, AnAbsentRowLeavesAnOrderedTableThoughItsDeleteIsNotDurable) {
  LoadRows({0, 5, 10});
  ASSERT_TRUE(h_.Delete(0, 5).wrote);
  ASSERT_EQ(ScanAndWrite(1, 9, [] {}).outcome, Outcome::kOk);
  h_.Sweep(0);
  if (h_.table().pages() != nullptr) {
    // Its slot is free for another key only once the delete is durable.
    EXPECT_NE(h_.table().Find(5), nullptr);
    h_.HardenAll();
    h_.Sweep(0);
  }
  EXPECT_EQ(h_.table().Find(5), nullptr);
}

// Whatever has become of the row that was deleted.
TEST_P(ScanOfEveryPair, AScanIsNotDurableBeforeTheDeleteThatItDoesNotSee) {
  LoadRows({0, 5, 10});
  ASSERT_TRUE(h_.Delete(0, 5).wrote);
  h_.Sweep(0);
  std::vector<Key> keys;
  ASSERT_EQ(h_.Scan(1, 1, 9, &keys).outcome, Outcome::kOk);
  EXPECT_TRUE(keys.empty());
  EXPECT_FALSE(h_.IsDurable(1));
  h_.HardenAll();
  EXPECT_TRUE(h_.IsDurable(1));
}

class ScanOfCommandPairs : public ScanOfEveryPair {
 protected:
  // What worker 1 did last comes after what worker 0 did last.
  void ExpectDependency() {
    EXPECT_TRUE(lv::CoveredBy(h_.point(0), h_.point(1), 2));
    EXPECT_GT(h_.point(1)[0], 0u);
  }
  void DeleteAndUnlink(Key first, Key last) {
    for (Key key = first; key <= last; ++key) {
      ASSERT_EQ(h_.Delete(0, key).outcome, Outcome::kOk);
    }
    deleted_at_ = h_.point(0)[0];
    h_.FlushAll();
    h_.Sweep(0);
    for (Key key = first; key <= last; ++key) ASSERT_EQ(h_.table().Find(key), nullptr);
  }

  uint64_t deleted_at_ = 0;
};
INSTANTIATE_TEST_SUITE_P(With, ScanOfCommandPairs, In(PairsWhere(&TracksReads)), NameOfPair);

TEST_P(ScanOfCommandPairs, AnInsertDependsOnEarlierScansOfItsGap) {
  LoadRows({0, 10});
  ASSERT_TRUE(ScanAndWrite(1, 9, [] {}).wrote);
  ASSERT_EQ(h_.Insert(1, 5, 5).outcome, Outcome::kOk);
  ExpectDependency();
}

TEST_P(ScanOfCommandPairs, AnInsertDependsOnScansOfItsGapThoughItSplitsTheLeaf) {
  for (Key key = 0; key < BTreeLeaf::kSlots; ++key) h_.LoadRow(key * 10, key);
  ASSERT_TRUE(ScanAndWrite(1, 609, [] {}).wrote);
  ASSERT_EQ(Leaves(), 1u);
  ASSERT_EQ(h_.Insert(1, 405, 5).outcome, Outcome::kOk);
  ASSERT_EQ(Leaves(), 2u);
  ExpectDependency();
  ASSERT_EQ(h_.Insert(1, 5, 5).outcome, Outcome::kOk);
  ExpectDependency();
}

// Data would do without: it is durable, or it would not have been forgotten. Replay must not do the scan first.
TEST_P(ScanOfCommandPairs, AScanDependsOnAForgottenDelete) {
  LoadRows({0, 5, 10});
  DeleteAndUnlink(5, 5);
  ASSERT_EQ(h_.Scan(1, 1, 9).outcome, Outcome::kOk);
  EXPECT_GE(h_.point(1)[0], deleted_at_);
}

TEST_P(ScanOfCommandPairs, AScanDependsOnAForgottenDeleteOfAForgottenLeaf) {
  constexpr Key kFirst = BTreeLeaf::kSlots, kLast = 2 * BTreeLeaf::kSlots - 1;
  for (Key key = 0; key < 3 * BTreeLeaf::kSlots; ++key) h_.LoadRow(key, key);
  ASSERT_EQ(Leaves(), 3u);
  DeleteAndUnlink(kFirst, kLast);
  ASSERT_EQ(Leaves(), 2u) << "the one below, from which nothing was deleted, has the range";
  ASSERT_EQ(h_.Scan(1, kFirst + 5, kLast - 5).outcome, Outcome::kOk);
  EXPECT_GE(h_.point(1)[0], deleted_at_);
}

TEST_P(ScanOfCommandPairs, AnInsertDependsOnScansOfAForgottenRow) {
  LoadRows({0, 5, 10});
  DeleteAndUnlink(5, 5);
  ASSERT_TRUE(ScanAndWrite(1, 9, [] {}).wrote);
  ASSERT_EQ(h_.Insert(1, 5, 5).outcome, Outcome::kOk);
  ExpectDependency();
}

TEST(TicTocScan, AnInsertIntoAScannedGapCommitsAfterTheScan) {
  const auto engine = EngineNamed("TICTOC", {.logs = 1, .ordered = true});
  TestEngine& h = *engine;
  h.LoadRow(0, 0);
  h.LoadRow(10, 0);
  for (uint64_t i = 1; i <= 20; ++i) ASSERT_EQ(h.Write(0, 0, i).outcome, Outcome::kOk);
  const Timestamp written = TicTocWord::Wts(h.table().Find(0)->control.load());
  // Reads what was written last, so it commits no earlier, and sees the gap.
  ASSERT_EQ(h.Scan(1, 0, 9).outcome, Outcome::kOk);
  ASSERT_EQ(h.Insert(2, 5, 5).outcome, Outcome::kOk);
  EXPECT_GT(TicTocWord::Wts(h.table().Find(5)->control.load()), written);
}

TEST(TicTocScan, AScanOfAGapCommitsAfterTheDeleteThatMadeIt) {
  const auto engine = EngineNamed("TICTOC", {.logs = 1, .ordered = true});
  TestEngine& h = *engine;
  for (const Key key : {0, 5, 10}) h.LoadRow(key, 0);
  for (uint64_t i = 1; i <= 20; ++i) ASSERT_EQ(h.Write(0, 5, i).outcome, Outcome::kOk);
  ASSERT_EQ(h.Delete(0, 5).outcome, Outcome::kOk);
  const Timestamp deleted = TicTocWord::Wts(h.table().Find(5)->control.load());
  h.Sweep(0);
  ASSERT_EQ(h.table().Find(5), nullptr);
  ASSERT_EQ(h.Scan(1, 0, 9).outcome, Outcome::kOk);
  EXPECT_GE(TicTocWord::Rts(h.table().Find(0)->control.load()), deleted);
}

// A scan of three leaves, of which the one in the middle is emptied and unlinked: the lower one inherits its range and
// keeps its version. The delete commits late; its transaction replaces row 0 as well, if that is asked for.
class TicTocHeir : public ::testing::Test {
 protected:
  static constexpr Key kDeleted = BTreeLeaf::kSlots, kLast = 2 * BTreeLeaf::kSlots - 1;

  TicTocHeir() {
    for (Key key = 0; key < 3 * BTreeLeaf::kSlots; ++key) h_.LoadRow(key, 0);
    for (Key key = kDeleted + 1; key <= kLast; ++key) h_.table().Unlink(h_.table().Find(key));
    for (uint64_t i = 1; i <= 20; ++i) EXPECT_EQ(h_.Write(1, kDeleted, i).outcome, Outcome::kOk);
  }
  void DeleteAndUnlink(bool replace_row_0) {
    const CallResult result = h_.Run(1, [&](TestContext& ctx) {
      const auto set = [](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, 1); };
      const Outcome updated = replace_row_0 ? ctx.Update(h_.table(), 0, set) : Outcome::kOk;
      return updated == Outcome::kOk ? ctx.Delete(h_.table(), kDeleted) : updated;
    });
    EXPECT_EQ(result.outcome, Outcome::kOk);
    deleted_at_ = TicTocWord::Wts(h_.table().Find(kDeleted)->control.load());
    h_.Sweep(1);
    EXPECT_EQ(h_.table().tree().LeafEnds().size(), 1u) << "two leaves";
  }
  Outcome Scan(TestContext& ctx, Key low, Key high, auto&& at_row) {
    return ctx.Scan(h_.table(), low, high, ScanOrder::kAscending, [&](Key key, const TestTuple&) {
      EXPECT_NE(key, kDeleted);
      at_row(key);
      return true;
    });
  }
  Timestamp RowZeroReadAt() { return TicTocWord::Rts(h_.table().Find(0)->control.load()); }

  const std::unique_ptr<TestEngine> engine_ = EngineNamed("TICTOC", {.logs = 1, .ordered = true});
  TestEngine& h_ = *engine_;
  Timestamp deleted_at_;
};

TEST_F(TicTocHeir, AScanOfAnInheritedRangeCommitsAfterItsDeletes) {
  DeleteAndUnlink(false);
  ASSERT_EQ(h_.Run(0, [&](TestContext& ctx) { return Scan(ctx, 0, kLast, [](Key) {}); }).outcome, Outcome::kOk);
  EXPECT_GE(RowZeroReadAt(), deleted_at_);
}

TEST_F(TicTocHeir, AScanThatIsInTheHeirAlreadyCommitsAfterTheDeletes) {
  const auto at_row = [&](Key key) {
    if (key == kDeleted - 1) DeleteAndUnlink(false);
  };
  ASSERT_EQ(h_.Run(0, [&](TestContext& ctx) { return Scan(ctx, 0, kLast, at_row); }).outcome, Outcome::kOk);
  EXPECT_GE(RowZeroReadAt(), deleted_at_);
}

TEST_F(TicTocHeir, AScanDoesNotSeeATransactionInTheInheritedRangeAlone) {
  const auto at_row = [&](Key key) {
    if (key == kDeleted - 1) DeleteAndUnlink(true);
  };
  EXPECT_EQ(h_.Run(0, [&](TestContext& ctx) { return Scan(ctx, 0, kLast, at_row); }).outcome, Outcome::kConflict);
}

TEST_F(TicTocHeir, ASecondScanDoesNotSeeATransactionInTheInheritedRangeAlone) {
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Scan(ctx, 0, 5, [](Key) {}), Outcome::kOk);
    DeleteAndUnlink(true);
    return Scan(ctx, kDeleted, kLast, [](Key) {});
  });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
}

// Under Silo deleted rows leave an ordered table within their epoch, so the gap must tell of them.
class SiloScan : public ::testing::Test {
 protected:
  SiloScan() {
    for (const Key key : {0, 5, 10}) h_.LoadRow(key, 0);
    for (uint64_t i = 1; i <= 20; ++i) EXPECT_EQ(h_.Write(0, 5, i).outcome, Outcome::kOk);
    EXPECT_EQ(h_.Delete(0, 5).outcome, Outcome::kOk);
    deleted_ = TidOf(5);
    h_.SweepInThisEpoch(0);
    EXPECT_EQ(h_.table().Find(5), nullptr);
  }
  uint64_t TidOf(Key key) { return h_.table().Find(key)->control.load() >> Row::kSharedBits; }

  const std::unique_ptr<TestEngine> engine_ = EngineNamed("SILO", {.logs = 1, .ordered = true});
  TestEngine& h_ = *engine_;
  uint64_t deleted_;
};

TEST_F(SiloScan, AnInsertCommitsAfterTheDeleteOfARowThatIsGone) {
  ASSERT_EQ(h_.Insert(1, 5, 5).outcome, Outcome::kOk);
  EXPECT_GT(TidOf(5), deleted_);
}

TEST_F(SiloScan, AScanOfAGapCommitsAfterTheDeleteThatMadeIt) {
  const CallResult result = h_.Run(1, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Scan(h_.table(), 1, 9, ScanOrder::kAscending, [](Key, const TestTuple&) { return true; }),
              Outcome::kOk);
    return ctx.Update(h_.table(), 10, [](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, 1); });
  });
  ASSERT_EQ(result.outcome, Outcome::kOk);
  EXPECT_GT(TidOf(10), deleted_);
}

TEST(NoWaitScan, AFailedRecheckOfALeafLeavesAVoidRecord) {
  const auto engine = EngineNamed("NO_WAIT_SERIAL_COMMAND", {.logs = 1, .ordered = true});
  TestEngine& h = *engine;
  h.LoadRow(0, 0);
  h.LoadRow(10, 0);
  const CallResult result = h.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Scan(h.table(), 1, 9, ScanOrder::kAscending, [](Key, const TestTuple&) { return true; }),
              Outcome::kOk);
    EXPECT_EQ(h.Insert(1, 5, 5).outcome, Outcome::kOk);
    return ctx.Update(h.table(), 0, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(result.reason, AbortReason::kValidation);
  EXPECT_GT(h.logs().stream(0).slot(0).void_bytes, 0u);
  EXPECT_EQ(h.logs().stream(0).ReadyUntil(), h.logs().stream(0).reserved_until());
  EXPECT_EQ(h.ValueOf(0), 0u) << "what was changed in place is undone";
}

}  // namespace
}  // namespace dbx::testing
