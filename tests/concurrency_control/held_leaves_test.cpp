// Transactions that have scanned in vain hold the leaves that they scan: their attempts are bounded, whatever others
// insert and unlink beside them. Most tests interleave by hand in one thread, where a wait for another ends at once as
// a conflict; those in which a transaction waits have a thread for each worker.
#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

void Until(auto&& condition) {
  while (!condition()) std::this_thread::yield();
}

constexpr int kAttemptsInVain = 3;  // after these the next one holds

class HeldLeavesTest : public PairTest {
 protected:
  static constexpr Key kHigh = 10;

  // Rows 0 to kHigh, which is what scanners scan, and more leaves far above.
  HeldLeavesTest() : PairTest({.ordered = true}) {
    for (Key key = 0; key <= kHigh; ++key) h_.LoadRow(key, key);
    for (Key key = 0; key < 2 * BTreeLeaf::kSlots; ++key) h_.LoadRow(kFar + key, key);
  }

  Outcome Scan(TestContext& ctx, Key low, Key high, ScanOrder order = ScanOrder::kAscending) {
    return ctx.Scan(h_.table(), low, high, order, [](Key, const TestTuple&) { return true; });
  }
  Outcome Write(TestContext& ctx, Key key) {
    return ctx.Update(h_.table(), key, [](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, 1); });
  }
  Outcome Insert(TestContext& ctx, Key key) {
    const Tuple tuple{key, {}};
    return ctx.Insert(h_.table(), key, std::as_bytes(std::span(&tuple, 1)));
  }
  // A transaction that scans, lets `meanwhile` happen and writes.
  auto Scanner(auto meanwhile) {
    return [this, meanwhile](TestContext& ctx) {
      const Outcome scanned = Scan(ctx, 0, kHigh);
      if (scanned != Outcome::kOk) return scanned;
      meanwhile();
      return Write(ctx, 0);
    };
  }
  // A key of the scanned leaf beyond what is scanned, another one each time.
  Key NextKeyBeside() { return beside_++; }
  // Worker `w` has a transaction that is to hold what it scans, from its next attempt on: RunAgain. Its leaf is as it
  // was before.
  void FailScans(uint32_t w) {
    for (int i = 0; i < kAttemptsInVain; ++i) {
      const auto in_vain = [&](TestContext& ctx) {
        EXPECT_EQ(Scan(ctx, 0, kHigh), Outcome::kOk);
        EXPECT_EQ(h_.Insert(3, kHigh + 90, 1).outcome, Outcome::kOk);
        return Outcome::kOk;
      };
      EXPECT_EQ((i == 0 ? h_.Run(w, in_vain) : h_.RunAgain(w, in_vain)).outcome, Outcome::kConflict);
      Remove(kHigh + 90);
    }
  }
  // From the index too.
  void Remove(Key key) {
    EXPECT_EQ(h_.Delete(3, key).outcome, Outcome::kOk);
    WriteOthers(3);
    h_.SweepInThisEpoch(3);
    EXPECT_EQ(h_.table().Find(key), nullptr);
  }
  // In a persistent heap what a deleted row hides is freed first, together with versions of other rows.
  void WriteOthers(uint32_t w) {
    for (int i = 0; i < 40; ++i) EXPECT_EQ(h_.Write(w, kHigh, kHigh).outcome, Outcome::kOk);
  }
  size_t Leaves() { return 1 + h_.table().tree().LeafEnds().size(); }

  static constexpr Key kFar = 1'000'000;
  Key beside_ = kHigh + 1;
};

INSTANTIATE_TEST_SUITE_P(With, HeldLeavesTest, In(ControlsWhere(&LocksRows)), NameOfPair);

TEST_P(HeldLeavesTest, InsertsBesideAScanDoNotFailItForEver) {
  Outcome inserted = Outcome::kOk;
  const auto scanner = Scanner([&] { inserted = h_.Insert(1, NextKeyBeside(), 1).outcome; });
  EXPECT_EQ(h_.Run(0, scanner).outcome, Outcome::kConflict);
  for (int i = 1; i < kAttemptsInVain; ++i) {
    EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kConflict);
    EXPECT_EQ(inserted, Outcome::kOk);
  }
  EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  EXPECT_EQ(inserted, Outcome::kConflict);
  EXPECT_EQ(h_.Insert(1, NextKeyBeside(), 1).outcome, Outcome::kOk) << "held until the transaction ended";
}

TEST_P(HeldLeavesTest, AReaderIsBoundedToo) {
  const auto reader = [&](TestContext& ctx) {
    const Outcome scanned = Scan(ctx, 0, kHigh);
    (void)h_.Insert(1, NextKeyBeside(), 1);
    return scanned;
  };
  EXPECT_EQ(h_.Run(0, reader).outcome, Outcome::kConflict);
  for (int i = 1; i < kAttemptsInVain; ++i) EXPECT_EQ(h_.RunAgain(0, reader).outcome, Outcome::kConflict);
  EXPECT_EQ(h_.RunAgain(0, reader).outcome, Outcome::kOk);
}

// A row that is looked for and missed is created, absent: the leaf changes.
TEST_P(HeldLeavesTest, MissesBesideAScanAreHeldOffLikeInserts) {
  FailScans(0);
  const auto scanner = Scanner([&] { EXPECT_EQ(h_.Read(1, NextKeyBeside()).outcome, Outcome::kConflict); });
  EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kOk);
}

TEST_P(HeldLeavesTest, RowsOfAHeldLeafAreNotUnlinkedBeforeItsTransactionEnds) {
  const Key gone = NextKeyBeside();
  ASSERT_EQ(h_.Insert(1, gone, 1).outcome, Outcome::kOk);
  FailScans(0);
  ASSERT_EQ(h_.Delete(1, gone).outcome, Outcome::kOk);
  WriteOthers(1);
  const auto scanner = Scanner([&] {
    h_.SweepInThisEpoch(1);
    EXPECT_NE(h_.table().Find(gone), nullptr);
  });
  EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  h_.SweepInThisEpoch(1);
  EXPECT_EQ(h_.table().Find(gone), nullptr);
}

// Rows that exist are read and written beside it, in the held leaf too, and other leaves are not held.
TEST_P(HeldLeavesTest, WhatChangesNoHeldLeafGoesOn) {
  const Key beside = NextKeyBeside();
  ASSERT_EQ(h_.Insert(1, beside, 1).outcome, Outcome::kOk);
  FailScans(0);
  const auto scanner = Scanner([&] {
    EXPECT_EQ(h_.Read(1, 1).outcome, Outcome::kOk);
    EXPECT_EQ(h_.Write(1, beside, 7).outcome, Outcome::kOk);
    EXPECT_EQ(h_.Delete(1, beside).outcome, Outcome::kOk);
    EXPECT_EQ(h_.Insert(1, beside, 8).outcome, Outcome::kOk) << "the absent row is there";
    EXPECT_EQ(h_.Scan(1, 1, kHigh).outcome, Outcome::kOk);
    EXPECT_EQ(h_.Insert(1, 2 * kFar, 1).outcome, Outcome::kOk);
  });
  EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kOk);
}

TEST_P(HeldLeavesTest, TheHolderSplitsItsLeavesAndHoldsBothParts) {
  FailScans(0);
  const size_t leaves = Leaves();
  const auto splitter = [&](TestContext& ctx) {
    EXPECT_EQ(Scan(ctx, 0, kHigh), Outcome::kOk);
    for (Key key = 200; key < 200 + BTreeLeaf::kSlots; ++key) EXPECT_EQ(Insert(ctx, key), Outcome::kOk);
    EXPECT_GT(Leaves(), leaves);
    for (const Key key : {150, 199, 400}) EXPECT_EQ(h_.Insert(1, key, 1).outcome, Outcome::kConflict) << key;
    return Scan(ctx, 0, 300);
  };
  EXPECT_EQ(h_.RunAgain(0, splitter).outcome, Outcome::kOk);
  for (const Key key : {150, 199, 400}) EXPECT_EQ(h_.Insert(1, key, 1).outcome, Outcome::kOk) << key;
}

TEST_P(HeldLeavesTest, AnAbortEndsIt) {
  FailScans(0);
  const auto rolled_back = [&](TestContext& ctx) {
    EXPECT_EQ(Scan(ctx, 0, kHigh), Outcome::kOk);
    return Outcome::kRollback;
  };
  EXPECT_EQ(h_.RunAgain(0, rolled_back).outcome, Outcome::kRollback);
  EXPECT_EQ(h_.Insert(1, NextKeyBeside(), 1).outcome, Outcome::kOk);
}

TEST_P(HeldLeavesTest, TheNextTransactionHoldsNothing) {
  FailScans(0);
  EXPECT_EQ(h_.RunAgain(0, Scanner([] {})).outcome, Outcome::kOk);
  Outcome inserted = Outcome::kConflict;
  const auto scanner = Scanner([&] { inserted = h_.Insert(1, NextKeyBeside(), 1).outcome; });
  EXPECT_EQ(h_.Run(0, scanner).outcome, Outcome::kConflict);
  EXPECT_EQ(inserted, Outcome::kOk);
}

// Both have scanned in vain; one leaf has one holder.
TEST_P(HeldLeavesTest, OfTwoThatAreToHoldALeafTheSecondIsRefused) {
  FailScans(0);
  FailScans(1);
  const auto scanner = Scanner([&] { EXPECT_EQ(h_.RunAgain(1, Scanner([] {})).outcome, Outcome::kConflict); });
  EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  EXPECT_EQ(h_.RunAgain(1, Scanner([] {})).outcome, Outcome::kOk);
}

// An empty leaf's neighbour would inherit its range, and is held.
TEST_P(HeldLeavesTest, AnEmptyLeafStaysWhileItsHeirIsHeld) {
  for (Key key = 0; key < 2 * BTreeLeaf::kSlots; ++key) {
    ASSERT_EQ(h_.Delete(1, kFar + key).outcome, Outcome::kOk);
  }
  FailScans(0);
  const size_t leaves = Leaves();
  const auto scanner = Scanner([&] { h_.SweepInThisEpoch(1); });
  EXPECT_EQ(h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  EXPECT_LE(Leaves(), leaves);
  EXPECT_EQ(h_.Insert(1, kFar + 5, 1).outcome, Outcome::kOk) << "the range belongs to some leaf";
}

// ---- waiting -----------------------------------------------------------------------------------------------

class WaitingForLeaves : public HeldLeavesTest {
 protected:
  // Worker `w` in a thread of its own tries its last transaction again, or a new one, until it commits.
  std::jthread Thread(uint32_t w, bool again, auto body) {
    return std::jthread([this, w, again, body] {
      Outcome outcome = again ? h_.RunAgain(w, body).outcome : h_.Run(w, body).outcome;
      for (SpinWait backoff; outcome == Outcome::kConflict; backoff.Wait()) outcome = h_.RunAgain(w, body).outcome;
      EXPECT_EQ(outcome, Outcome::kOk);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(With, WaitingForLeaves, In(ControlsWhere(&WaitsForLocks)), NameOfPair);

TEST_P(WaitingForLeaves, AnInsertThatMayWaitIsMadeWhenTheHolderEnds) {
  // Older than the scanner, and of a lower worker, so that it waits under any policy that lets someone wait.
  EXPECT_EQ(h_.Run(0, [](TestContext&) { return Outcome::kConflict; }).outcome, Outcome::kConflict);
  FailScans(1);
  h_.LetWorkersWait();
  const Key key = NextKeyBeside();
  std::atomic<bool> asks{false}, ended{false};
  std::jthread inserter;
  const auto scanner = Scanner([&] {
    inserter = std::jthread([&] {
      const auto insert = [&](TestContext& ctx) {
        asks.store(true);
        const Outcome inserted = Insert(ctx, key);
        EXPECT_TRUE(ended.load());
        return inserted;
      };
      EXPECT_EQ(h_.RunAgain(0, insert).outcome, Outcome::kOk);
    });
    Until([&] { return asks.load(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended.store(true);
  });
  EXPECT_EQ(h_.RunAgain(1, scanner).outcome, Outcome::kOk);
  inserter.join();
  EXPECT_EQ(h_.ValueOf(key), key);
}

TEST_P(WaitingForLeaves, AWaitEndsWhenTheRunStops) {
  EXPECT_EQ(h_.Run(0, [](TestContext&) { return Outcome::kConflict; }).outcome, Outcome::kConflict);
  FailScans(1);
  h_.LetWorkersWait();
  const auto scanner = Scanner([&] {
    std::atomic<bool> asks{false};
    const Key key = NextKeyBeside();
    const std::jthread inserter([&] {
      const auto insert = [&](TestContext& ctx) {
        asks.store(true);
        return Insert(ctx, key);
      };
      EXPECT_EQ(h_.RunAgain(0, insert).outcome, Outcome::kConflict);
    });
    Until([&] { return asks.load(); });
    h_.Stop();
  });
  EXPECT_EQ(h_.RunAgain(1, scanner).outcome, Outcome::kOk);
}

// Each holds one leaf and wants the other's: one of them aborts, and both commit in the end.
TEST_P(WaitingForLeaves, TwoThatHoldLeavesInOppositeOrderBothEnd) {
  const Key far = kFar + 2 * BTreeLeaf::kSlots - 1;
  for (int round = 0; round < 50; ++round) {
    h_.Stop();
    FailScans(0);
    FailScans(1);
    h_.LetWorkersWait();
    std::atomic<uint32_t> first_held{0};
    const auto body = [&](Key first, Key second) {
      return [&, first, second](TestContext& ctx) {
        if (const Outcome scanned = Scan(ctx, first, first); scanned != Outcome::kOk) return scanned;
        first_held.fetch_add(1);
        Until([&] { return first_held.load() >= 2; });
        return Scan(ctx, second, second);
      };
    };
    const std::jthread up = Thread(0, true, body(3, far)), down = Thread(1, true, body(far, 3));
  }
}

// A row's lock one way, a leaf the other.
TEST_P(WaitingForLeaves, ACycleOfALeafAndARowIsBroken) {
  for (int round = 0; round < 50; ++round) {
    h_.Stop();
    FailScans(0);
    const Key key = kHigh + 1, row = kFar + 3;
    h_.LetWorkersWait();
    std::atomic<uint32_t> ready{0};
    const auto meet = [&] {
      ready.fetch_add(1);
      Until([&] { return ready.load() >= 2; });
    };
    std::jthread scanner = Thread(0, true, [&](TestContext& ctx) {
      if (const Outcome scanned = Scan(ctx, 0, kHigh); scanned != Outcome::kOk) return scanned;
      meet();
      return Write(ctx, row);
    });
    std::jthread inserter = Thread(1, false, [&](TestContext& ctx) {
      if (const Outcome written = Write(ctx, row); written != Outcome::kOk) return written;
      meet();
      return Insert(ctx, key);
    });
    scanner.join();
    inserter.join();
    Remove(key);
  }
}

// ---- all of it, with luck ------------------------------------------------------------------------------------

class HeldLeavesStress : public PairTest {
 protected:
  HeldLeavesStress() : PairTest({.ordered = true}) {}
};
INSTANTIATE_TEST_SUITE_P(With, HeldLeavesStress, In(ControlsWhere(&LocksRows)), NameOfPair);

// Worker 0 scans and counts in row 0; the others insert and delete in the same leaf. Each commit of worker 0 leaves one
// more in row 0, and the scan sees all rows that are never deleted.
TEST_P(HeldLeavesStress, AScannerCommitsBesideInsertsAndDeletes) {
  constexpr uint64_t kScans = 100;
  constexpr Key kLast = 10;
  for (Key key = 0; key <= kLast; ++key) h_.LoadRow(key, 0);
  h_.LetWorkersWait();
  std::atomic<bool> end{false};
  std::vector<std::jthread> threads;
  for (uint32_t w = 1; w < h_.kWorkers; ++w) {
    threads.emplace_back([&, w] {
      Random random(w);
      while (!end.load()) {
        h_.epochs().Refresh(WorkerId(w));
        if (random.Next() % 64 == 0) h_.epochs().Advance();
        const Key key = kLast + 1 + random.Next() % 51;
        (void)h_.Insert(w, key, key);
        (void)h_.Delete(w, key);
      }
    });
  }
  for (uint64_t n = 0; n < kScans; ++n) {
    const auto body = [&](TestContext& ctx) {
      uint64_t rows = 0;
      const Outcome scanned = ctx.Scan(h_.table(), 0, kLast, ScanOrder::kAscending, [&](Key, const TestTuple&) {
        if (rows == 0) host::Yield();
        return ++rows > 0;
      });
      if (scanned != Outcome::kOk) return scanned;
      EXPECT_EQ(rows, kLast + 1);
      return ctx.Update(h_.table(), 0, [](TestTuple& t) { t.SetAt<uint64_t>(0, t.GetAt<uint64_t>(0) + 1); });
    };
    h_.epochs().Refresh(WorkerId(0));
    Outcome outcome = h_.Run(0, body).outcome;
    for (SpinWait backoff; outcome == Outcome::kConflict; backoff.Wait()) {
      h_.epochs().Refresh(WorkerId(0));
      outcome = h_.RunAgain(0, body).outcome;
    }
  }
  end.store(true);
  threads.clear();
  EXPECT_EQ(h_.ValueOf(0), kScans);
}

}  // namespace
}  // namespace dbx::testing
