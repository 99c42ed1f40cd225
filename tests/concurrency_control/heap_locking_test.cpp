// Rows whose versions lie in a persistent heap, under two-phase locking: when versions are made, stamped and freed.
// That transactions are isolated as ever is tested with all other pairs.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/concurrency_control/heap_test.h"

namespace dbx::testing {
namespace {

using Step = HeapStampsLog::Step;

class HeapLockingTest : public HeapTest<Harness<NoWaitRows<HeapStampsLog>, HeapStampsLog>> {
 protected:
  // The steps of commits while `run` runs.
  std::vector<Step> StepsOf(const std::function<void()>& run) {
    std::vector<Step> steps;
    h_.log().ListenBy([&](Step step, const HeapSlot*) { steps.push_back(step); });
    run();
    h_.log().ListenBy(nullptr);
    return steps;
  }
  Outcome Set(TestContext& ctx, Key key, uint64_t value) {
    return ctx.Update(h_.table(), key, [&](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, value); });
  }
  Outcome Insert(TestContext& ctx, Key key, uint64_t value) {
    const Tuple tuple{value, {}};
    return ctx.Insert(h_.table(), key, std::as_bytes(std::span(&tuple, 1)));
  }
  uint64_t ValueIn(TestContext& ctx, Key key) {
    uint64_t seen = TestEngine::kMissing;
    (void)ctx.Read(h_.table(), key, [&](const TestTuple& tuple) { seen = tuple.GetAt<uint64_t>(0); });
    return seen;
  }
  // So that the zeros of what was superseded come to be drained.
  void WriteOthers() {
    for (int i = 0; i < 100; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  }
};

TEST_F(HeapLockingTest, AStampIsDrawnWithAllLocksHeldAndBeforeAnythingIsInstalled) {
  HeapSlot* const old[] = {VersionsOf(1).newest.load(), VersionsOf(2).newest.load()};
  std::vector<Step> steps;
  h_.log().ListenBy([&](Step step, const HeapSlot*) {
    steps.push_back(step);
    if (steps.size() > 3) return;
    h_.log().clock().fetch_add(step == Step::kAnnounced ? 7 : 0);
    for (const Key key : {1, 2}) {
      EXPECT_EQ(h_.Read(1, key).outcome, Outcome::kConflict);
      HeapSlot* const newest = VersionsOf(key).newest.load();
      EXPECT_EQ(newest == old[key - 1], step != Step::kInstalled);
      EXPECT_EQ(newest->begin.load(), step == Step::kInstalled ? 9 : heap_format::kLoadStamp);
    }
  });
  EXPECT_TRUE(h_.Run(0, [&](TestContext& ctx) {
                  EXPECT_EQ(Set(ctx, 1, 71), Outcome::kOk);
                  return Set(ctx, 2, 72);
                }).wrote);
  EXPECT_EQ(steps, (std::vector{Step::kAnnounced, Step::kDrawn, Step::kInstalled, Step::kInstalled}));
  EXPECT_EQ(VersionsOf(2).newest.load()->older, old[1]);
  EXPECT_EQ(VersionsOf(2).newest.load()->txn, h_.id(0));
  EXPECT_EQ(old[1]->end.value(), 9u);
}

TEST_F(HeapLockingTest, ATransactionReadsWhatItHasWrittenAndAnAbortLeavesNothingOfIt) {
  const uint64_t before = Taken(), clock = h_.log().clock().load();
  const auto steps = StepsOf([&] {
    h_.Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(Set(ctx, 1, 71), Outcome::kOk);
      EXPECT_EQ(ValueIn(ctx, 1), 71u);
      EXPECT_EQ(Insert(ctx, 9, 79), Outcome::kOk);
      EXPECT_EQ(ValueIn(ctx, 9), 79u);
      EXPECT_EQ(ctx.Delete(h_.table(), 2), Outcome::kOk);
      EXPECT_EQ(ValueIn(ctx, 2), TestEngine::kMissing);
      return Outcome::kRollback;
    });
  });
  EXPECT_EQ(steps, std::vector<Step>());
  EXPECT_EQ(Taken(), before);
  EXPECT_EQ(Stamped(), 3u);
  EXPECT_EQ(h_.log().clock().load(), clock);
  EXPECT_EQ(h_.ValueOf(1), 100u);
  EXPECT_EQ(h_.ValueOf(2), 200u);
  EXPECT_EQ(h_.ValueOf(9), TestEngine::kMissing);
}

TEST_F(HeapLockingTest, WhatWritesNothingDrawsNoStamp) {
  const auto steps = StepsOf([&] {
    EXPECT_EQ(h_.ValueOf(1), 100u);
    EXPECT_EQ(h_.Insert(0, 1, 5).outcome, Outcome::kRollback);
    EXPECT_EQ(h_.Write(0, 77, 5).outcome, Outcome::kRollback);
    h_.Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(Set(ctx, 77, 5), Outcome::kNotFound);
      return Outcome::kOk;
    });
  });
  EXPECT_EQ(steps, std::vector<Step>());
  EXPECT_EQ(Stamped(), 3u);
}

TEST_F(HeapLockingTest, ARowThatIsWrittenManyTimesGetsOneVersion) {
  h_.log().SetDurableUntil(Timestamp(1));
  const uint64_t before = Taken();
  ASSERT_TRUE(h_.Run(0, [&](TestContext& ctx) {
                  EXPECT_EQ(Set(ctx, 1, 71), Outcome::kOk);
                  EXPECT_EQ(ctx.Delete(h_.table(), 1), Outcome::kOk);
                  EXPECT_EQ(Insert(ctx, 1, 72), Outcome::kOk);
                  EXPECT_EQ(Set(ctx, 1, 73), Outcome::kOk);
                  EXPECT_EQ(ctx.Delete(h_.table(), 2), Outcome::kOk);
                  EXPECT_EQ(Insert(ctx, 2, 74), Outcome::kOk);
                  EXPECT_EQ(Insert(ctx, 9, 75), Outcome::kOk);
                  return ctx.Delete(h_.table(), 9);
                }).wrote);
  EXPECT_EQ(Taken(), before + 3);
  EXPECT_EQ(h_.ValueOf(1), 73u);
  EXPECT_EQ(h_.ValueOf(2), 74u);
  EXPECT_TRUE(VersionsOf(9).newest.load()->absent());
  EXPECT_EQ(h_.ValueOf(9), TestEngine::kMissing);
}

// More than the memory for them holds at first.
TEST_F(HeapLockingTest, PrivateCopiesMayBeMany) {
  constexpr Key kFirst = 100, kLast = 1500;
  for (Key key = kFirst; key <= kLast; ++key) h_.LoadRow(key, key);
  ASSERT_TRUE(h_.Run(0, [&](TestContext& ctx) {
                  for (Key key = kFirst; key <= kLast; ++key) EXPECT_EQ(Set(ctx, key, 2 * key), Outcome::kOk);
                  EXPECT_EQ(ValueIn(ctx, kFirst), 2 * kFirst);
                  return Outcome::kOk;
                }).wrote);
  for (Key key = kFirst; key <= kLast; ++key) ASSERT_EQ(h_.ValueOf(key), 2 * key);
}

TEST_F(HeapLockingTest, ASupersededVersionIsKeptUntilItsSuccessorIsDurable) {
  h_.log().SetDurableUntil(Timestamp(1));
  HeapSlot* const old = VersionsOf(2).newest.load();
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  WriteOthers();
  EXPECT_EQ(old->begin.load(), heap_format::kLoadStamp);
  EXPECT_EQ(Taken(), 104u);
  h_.log().SetDurableUntil(Timestamp(1000));
  WriteOthers();
  EXPECT_LT(Taken(), 40u);
  EXPECT_EQ(h_.ValueOf(2), 77u);
}

TEST_F(HeapLockingTest, ATombstoneIsKeptUntilItsDeleteIsDurable) { TestThatATombstoneIsKeptUntilItsDeleteIsDurable(); }

TEST_F(HeapLockingTest, ATombstoneIsFreedBehindTheVersionsThatItHides) {
  ASSERT_TRUE(h_.Delete(0, 2).wrote);
  HeapSlot* const tombstone = VersionsOf(2).newest.load();
  EXPECT_TRUE(tombstone->absent());
  h_.Sweep(0);
  ASSERT_NE(h_.table().Find(2), nullptr) << "the version that was loaded is not free";
  EXPECT_NE(tombstone->begin.load(), 0u);
  WriteOthers();
  h_.Sweep(0);
  EXPECT_EQ(h_.table().Find(2), nullptr);
  EXPECT_EQ(tombstone->begin.load(), 0u);
  ASSERT_TRUE(h_.Insert(0, 2, 5).wrote);
  EXPECT_EQ(h_.ValueOf(2), 5u);
}

// Every second writer of the memory streams.
TEST_F(HeapLockingTest, WhatWasStreamedIsDurableWhenTheLogHearsOfIt) {
  std::vector<bool> durable;
  h_.log().ListenBy([&](Step step, const HeapSlot* slot) {
    if (step == Step::kInstalled) durable.push_back(DurableValue(2) == 70 + slot->txn.worker().value());
  });
  for (const uint32_t worker : {0, 1, 2, 3}) {
    h_.Write(worker, 2, 70 + worker);
  }
  EXPECT_EQ(durable, (std::vector{false, true, false, true}));
}

TEST_F(HeapLockingTest, AFullHeapIsFoundBeforeAStampIsDrawn) {
  h_.log().SetDurableUntil(Timestamp(1));
  const auto fill = [&] {
    for (int i = 0; i < 100'000; ++i) h_.Write(0, 1 + static_cast<Key>(i % 3), 5);
  };
  const auto steps = StepsOf([&] {
    try {
      fill();
      ADD_FAILURE() << "it is never full";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::kNoSpace);
    }
  });
  EXPECT_EQ(steps.back(), Step::kInstalled);
}

}  // namespace
}  // namespace dbx::testing
