// Transactions that have scanned in vain hold the leaves that they scan: their attempts are bounded, whatever others
// insert and unlink beside them. Most tests interleave by hand in one thread, where a wait for another ends at once as
// a conflict; those in which somebody waits have a thread for each worker.
#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

void Until(auto&& condition) {
  while (!condition()) std::this_thread::yield();
}

constexpr int kAttemptsInVain = 3;  // after these the next one holds

template <class Cc>
class HeldLeavesTest : public ::testing::Test {
 protected:
  using H = Harness<Cc, NoLog>;
  static constexpr Key kHigh = 10;

  // Rows 0 to kHigh, which is what scanners scan, and more leaves far above.
  HeldLeavesTest() {
    for (Key key = 0; key <= kHigh; ++key) h_.LoadRow(key, key);
    for (Key key = 0; key < 2 * BTreeLeaf::kSlots; ++key) h_.LoadRow(kFar + key, key);
  }

  Outcome Scan(auto& ctx, Key low, Key high, ScanOrder order = ScanOrder::kAscending) {
    return ctx.Scan(h_.table(), low, high, order, [](Key, const auto&) { return true; });
  }
  Outcome Write(auto& ctx, Key key) {
    return ctx.Update(h_.table(), key, [](auto& tuple) { tuple.template SetAt<uint64_t>(0, 1); });
  }
  Outcome Insert(auto& ctx, Key key) {
    const Tuple tuple{key, {}};
    return ctx.Insert(h_.table(), key, std::as_bytes(std::span(&tuple, 1)));
  }
  // A transaction of worker 0 that scans, lets `meanwhile` happen and writes.
  auto Scanner(auto meanwhile) {
    return [this, meanwhile](auto& ctx) {
      const Outcome scanned = this->Scan(ctx, 0, kHigh);
      if (scanned != Outcome::kOk) return scanned;
      meanwhile();
      return this->Write(ctx, 0);
    };
  }
  // A key of the scanned leaf beyond what is scanned, another one each time.
  Key NextKeyBeside() { return beside_++; }
  // Worker `w` has a transaction that is to hold what it scans, from its next attempt on: RunAgain. Its leaf is as it
  // was before.
  void FailScans(uint32_t w) {
    for (int i = 0; i < kAttemptsInVain; ++i) {
      const auto in_vain = [&](auto& ctx) {
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
    h_.SweepInThisEpoch(3);
    EXPECT_EQ(h_.table().Find(key), nullptr);
  }
  size_t Leaves() { return 1 + h_.table().tree().LeafEnds().size(); }

  static constexpr Key kFar = 1'000'000;
  H h_{1, 1 << 20, /*ordered=*/true};
  Key beside_ = kHigh + 1;
};

using EveryLock = ::testing::Types<NoWaitRows<NoLog>, NoWaitTable<NoLog>, WaitDieRows<NoLog>, WaitDieTable<NoLog>,
                                   DlDetectRows<NoLog>, DlDetectTable<NoLog>>;
TYPED_TEST_SUITE(HeldLeavesTest, EveryLock);

TYPED_TEST(HeldLeavesTest, InsertsBesideAScanDoNotFailItForEver) {
  Outcome inserted = Outcome::kOk;
  const auto scanner = this->Scanner([&] { inserted = this->h_.Insert(1, this->NextKeyBeside(), 1).outcome; });
  EXPECT_EQ(this->h_.Run(0, scanner).outcome, Outcome::kConflict);
  for (int i = 1; i < kAttemptsInVain; ++i) {
    EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kConflict);
    EXPECT_EQ(inserted, Outcome::kOk);
  }
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  EXPECT_EQ(inserted, Outcome::kConflict);
  EXPECT_EQ(this->h_.Insert(1, this->NextKeyBeside(), 1).outcome, Outcome::kOk) << "held until the transaction ended";
}

TYPED_TEST(HeldLeavesTest, AReaderIsBoundedToo) {
  const auto reader = [&](auto& ctx) {
    const Outcome scanned = this->Scan(ctx, 0, this->kHigh);
    (void)this->h_.Insert(1, this->NextKeyBeside(), 1);
    return scanned;
  };
  EXPECT_EQ(this->h_.Run(0, reader).outcome, Outcome::kConflict);
  for (int i = 1; i < kAttemptsInVain; ++i) EXPECT_EQ(this->h_.RunAgain(0, reader).outcome, Outcome::kConflict);
  EXPECT_EQ(this->h_.RunAgain(0, reader).outcome, Outcome::kOk);
}

// A row that is looked for and missed is created, absent: the leaf changes.
TYPED_TEST(HeldLeavesTest, MissesBesideAScanAreHeldOffLikeInserts) {
  this->FailScans(0);
  const auto scanner =
      this->Scanner([&] { EXPECT_EQ(this->h_.Read(1, this->NextKeyBeside()).outcome, Outcome::kConflict); });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
}

TYPED_TEST(HeldLeavesTest, RowsOfAHeldLeafAreNotUnlinkedBeforeItsTransactionEnds) {
  const Key gone = this->NextKeyBeside();
  ASSERT_EQ(this->h_.Insert(1, gone, 1).outcome, Outcome::kOk);
  this->FailScans(0);
  ASSERT_EQ(this->h_.Delete(1, gone).outcome, Outcome::kOk);
  const auto scanner = this->Scanner([&] {
    this->h_.SweepInThisEpoch(1);
    EXPECT_NE(this->h_.table().Find(gone), nullptr);
  });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  this->h_.SweepInThisEpoch(1);
  EXPECT_EQ(this->h_.table().Find(gone), nullptr);
}

// Rows that exist are read and written beside it, in the held leaf too, and other leaves are not held.
TYPED_TEST(HeldLeavesTest, WhatChangesNoHeldLeafGoesOn) {
  const Key beside = this->NextKeyBeside();
  ASSERT_EQ(this->h_.Insert(1, beside, 1).outcome, Outcome::kOk);
  this->FailScans(0);
  const auto scanner = this->Scanner([&] {
    EXPECT_EQ(this->h_.Read(1, 1).outcome, Outcome::kOk);
    EXPECT_EQ(this->h_.Write(1, beside, 7).outcome, Outcome::kOk);
    EXPECT_EQ(this->h_.Delete(1, beside).outcome, Outcome::kOk);
    EXPECT_EQ(this->h_.Insert(1, beside, 8).outcome, Outcome::kOk) << "the absent row is there";
    EXPECT_EQ(this->h_.Scan(1, 1, this->kHigh).outcome, Outcome::kOk);
    EXPECT_EQ(this->h_.Insert(1, 2 * this->kFar, 1).outcome, Outcome::kOk);
  });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
}

TYPED_TEST(HeldLeavesTest, TheHolderSplitsItsLeavesAndHoldsBothParts) {
  this->FailScans(0);
  const size_t leaves = this->Leaves();
  const auto splitter = [&](auto& ctx) {
    EXPECT_EQ(this->Scan(ctx, 0, this->kHigh), Outcome::kOk);
    for (Key key = 200; key < 200 + BTreeLeaf::kSlots; ++key) EXPECT_EQ(this->Insert(ctx, key), Outcome::kOk);
    EXPECT_GT(this->Leaves(), leaves);
    for (const Key key : {150, 199, 400}) EXPECT_EQ(this->h_.Insert(1, key, 1).outcome, Outcome::kConflict) << key;
    return this->Scan(ctx, 0, 300);
  };
  EXPECT_EQ(this->h_.RunAgain(0, splitter).outcome, Outcome::kOk);
  for (const Key key : {150, 199, 400}) EXPECT_EQ(this->h_.Insert(1, key, 1).outcome, Outcome::kOk) << key;
}

TYPED_TEST(HeldLeavesTest, AnAbortEndsIt) {
  this->FailScans(0);
  const auto rolled_back = [&](auto& ctx) {
    EXPECT_EQ(this->Scan(ctx, 0, this->kHigh), Outcome::kOk);
    return Outcome::kRollback;
  };
  EXPECT_EQ(this->h_.RunAgain(0, rolled_back).outcome, Outcome::kRollback);
  EXPECT_EQ(this->h_.Insert(1, this->NextKeyBeside(), 1).outcome, Outcome::kOk);
}

TYPED_TEST(HeldLeavesTest, TheNextTransactionHoldsNothing) {
  this->FailScans(0);
  EXPECT_EQ(this->h_.RunAgain(0, this->Scanner([] {})).outcome, Outcome::kOk);
  Outcome inserted = Outcome::kConflict;
  const auto scanner = this->Scanner([&] { inserted = this->h_.Insert(1, this->NextKeyBeside(), 1).outcome; });
  EXPECT_EQ(this->h_.Run(0, scanner).outcome, Outcome::kConflict);
  EXPECT_EQ(inserted, Outcome::kOk);
}

// Both have scanned in vain; one leaf has one holder.
TYPED_TEST(HeldLeavesTest, OfTwoThatAreToHoldALeafTheSecondIsRefused) {
  this->FailScans(0);
  this->FailScans(1);
  const auto scanner =
      this->Scanner([&] { EXPECT_EQ(this->h_.RunAgain(1, this->Scanner([] {})).outcome, Outcome::kConflict); });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  EXPECT_EQ(this->h_.RunAgain(1, this->Scanner([] {})).outcome, Outcome::kOk);
}

// An empty leaf's neighbour would inherit its range, and is held.
TYPED_TEST(HeldLeavesTest, AnEmptyLeafStaysWhileItsHeirIsHeld) {
  for (Key key = 0; key < 2 * BTreeLeaf::kSlots; ++key) {
    ASSERT_EQ(this->h_.Delete(1, this->kFar + key).outcome, Outcome::kOk);
  }
  this->FailScans(0);
  const size_t leaves = this->Leaves();
  const auto scanner = this->Scanner([&] { this->h_.SweepInThisEpoch(1); });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  EXPECT_LE(this->Leaves(), leaves);
  EXPECT_EQ(this->h_.Insert(1, this->kFar + 5, 1).outcome, Outcome::kOk) << "the range belongs to some leaf";
}

// ---- waiting -----------------------------------------------------------------------------------------------

template <class Cc>
class WaitingForLeaves : public HeldLeavesTest<Cc> {
 protected:
  // Worker `w` in a thread of its own tries its last transaction again, or a new one, until it commits.
  std::jthread Thread(uint32_t w, bool again, auto body) {
    return std::jthread([this, w, again, body] {
      Outcome outcome = again ? this->h_.RunAgain(w, body).outcome : this->h_.Run(w, body).outcome;
      for (SpinWait backoff; outcome == Outcome::kConflict; backoff.Wait())
        outcome = this->h_.RunAgain(w, body).outcome;
      EXPECT_EQ(outcome, Outcome::kOk);
    });
  }
};
using EveryLockThatWaits =
    ::testing::Types<WaitDieRows<NoLog>, WaitDieTable<NoLog>, DlDetectRows<NoLog>, DlDetectTable<NoLog>>;
TYPED_TEST_SUITE(WaitingForLeaves, EveryLockThatWaits);

TYPED_TEST(WaitingForLeaves, AnInsertThatMayWaitIsMadeWhenTheHolderEnds) {
  // Older than the scanner, so that it waits under WAIT_DIE too.
  EXPECT_EQ(this->h_.Run(1, [](auto&) { return Outcome::kConflict; }).outcome, Outcome::kConflict);
  this->FailScans(0);
  this->h_.LetWorkersWait();
  const Key key = this->NextKeyBeside();
  std::atomic<bool> asks{false}, ended{false};
  std::jthread inserter;
  const auto scanner = this->Scanner([&] {
    inserter = std::jthread([&] {
      const auto insert = [&](auto& ctx) {
        asks.store(true);
        const Outcome inserted = this->Insert(ctx, key);
        EXPECT_TRUE(ended.load());
        return inserted;
      };
      EXPECT_EQ(this->h_.RunAgain(1, insert).outcome, Outcome::kOk);
    });
    Until([&] { return asks.load(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended.store(true);
  });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
  inserter.join();
  EXPECT_EQ(this->h_.ValueOf(key), key);
}

TYPED_TEST(WaitingForLeaves, AWaitEndsWhenTheRunStops) {
  EXPECT_EQ(this->h_.Run(1, [](auto&) { return Outcome::kConflict; }).outcome, Outcome::kConflict);
  this->FailScans(0);
  this->h_.LetWorkersWait();
  const auto scanner = this->Scanner([&] {
    std::atomic<bool> asks{false};
    const Key key = this->NextKeyBeside();
    const std::jthread inserter([&] {
      const auto insert = [&](auto& ctx) {
        asks.store(true);
        return this->Insert(ctx, key);
      };
      EXPECT_EQ(this->h_.RunAgain(1, insert).outcome, Outcome::kConflict);
    });
    Until([&] { return asks.load(); });
    this->h_.Stop();
  });
  EXPECT_EQ(this->h_.RunAgain(0, scanner).outcome, Outcome::kOk);
}

// Each holds one leaf and wants the other's: one of them aborts, and both commit in the end.
TYPED_TEST(WaitingForLeaves, TwoThatHoldLeavesInOppositeOrderBothEnd) {
  const Key far = this->kFar + 2 * BTreeLeaf::kSlots - 1;
  for (int round = 0; round < 50; ++round) {
    this->h_.Stop();
    this->FailScans(0);
    this->FailScans(1);
    this->h_.LetWorkersWait();
    std::atomic<uint32_t> first_held{0};
    const auto body = [&](Key first, Key second) {
      return [&, first, second](auto& ctx) {
        if (const Outcome scanned = this->Scan(ctx, first, first); scanned != Outcome::kOk) return scanned;
        first_held.fetch_add(1);
        Until([&] { return first_held.load() >= 2; });
        return this->Scan(ctx, second, second);
      };
    };
    const std::jthread up = this->Thread(0, true, body(3, far)), down = this->Thread(1, true, body(far, 3));
  }
}

// A row's lock one way, a leaf the other.
TYPED_TEST(WaitingForLeaves, ACycleOfALeafAndARowIsBroken) {
  for (int round = 0; round < 50; ++round) {
    this->h_.Stop();
    this->FailScans(0);
    const Key key = this->kHigh + 1, row = this->kFar + 3;
    this->h_.LetWorkersWait();
    std::atomic<uint32_t> ready{0};
    const auto meet = [&] {
      ready.fetch_add(1);
      Until([&] { return ready.load() >= 2; });
    };
    std::jthread scanner = this->Thread(0, true, [&](auto& ctx) {
      if (const Outcome scanned = this->Scan(ctx, 0, this->kHigh); scanned != Outcome::kOk) return scanned;
      meet();
      return this->Write(ctx, row);
    });
    std::jthread inserter = this->Thread(1, false, [&](auto& ctx) {
      if (const Outcome written = this->Write(ctx, row); written != Outcome::kOk) return written;
      meet();
      return this->Insert(ctx, key);
    });
    scanner.join();
    inserter.join();
    this->Remove(key);
  }
}

// ---- all of it, with luck ------------------------------------------------------------------------------------

template <class Cc>
class HeldLeavesStress : public ::testing::Test {};
TYPED_TEST_SUITE(HeldLeavesStress, EveryLock);

// Worker 0 scans and counts in row 0; the others insert and delete in the same leaf. Each commit of worker 0 leaves one
// more in row 0, and the scan sees all rows that are never deleted.
TYPED_TEST(HeldLeavesStress, AScannerCommitsBesideInsertsAndDeletes) {
  constexpr uint64_t kScans = 100;
  constexpr Key kLast = 10;
  Harness<TypeParam, NoLog> h(1, 1 << 20, true);
  for (Key key = 0; key <= kLast; ++key) h.LoadRow(key, 0);
  h.LetWorkersWait();
  std::atomic<bool> end{false};
  std::vector<std::jthread> threads;
  for (uint32_t w = 1; w < h.kWorkers; ++w) {
    threads.emplace_back([&, w] {
      Random random(w);
      while (!end.load()) {
        h.epochs().Refresh(WorkerId(w));
        if (random.Next() % 64 == 0) h.epochs().Advance();
        const Key key = kLast + 1 + random.Next() % 51;
        (void)h.Insert(w, key, key);
        (void)h.Delete(w, key);
      }
    });
  }
  for (uint64_t n = 0; n < kScans; ++n) {
    const auto body = [&](auto& ctx) {
      uint64_t rows = 0;
      const Outcome scanned = ctx.Scan(h.table(), 0, kLast, ScanOrder::kAscending, [&](Key, const auto&) {
        if (rows == 0) host::Yield();
        return ++rows > 0;
      });
      if (scanned != Outcome::kOk) return scanned;
      EXPECT_EQ(rows, kLast + 1);
      return ctx.Update(h.table(), 0,
                        [](auto& t) { t.template SetAt<uint64_t>(0, t.template GetAt<uint64_t>(0) + 1); });
    };
    h.epochs().Refresh(WorkerId(0));
    Outcome outcome = h.Run(0, body).outcome;
    for (SpinWait backoff; outcome == Outcome::kConflict; backoff.Wait()) {
      h.epochs().Refresh(WorkerId(0));
      outcome = h.RunAgain(0, body).outcome;
    }
  }
  end.store(true);
  threads.clear();
  EXPECT_EQ(h.ValueOf(0), kScans);
}

}  // namespace
}  // namespace dbx::testing
