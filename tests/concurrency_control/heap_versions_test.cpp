// Rows whose versions lie in a persistent heap, under HEKATON: when slots are taken and freed. That transactions are
// isolated as ever is tested with all other pairs.
#include "concurrency_control/heap_versions.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/concurrency_control/heap_test.h"

namespace dbx::testing {
namespace {

class HeapVersionsTest : public HeapTest<Harness<Hekaton<HeapOnlyLog>, HeapOnlyLog>> {};

TEST_F(HeapVersionsTest, AnUpdateIsANewVersionAndTheOldOneIsFreedOnceItsSuccessorIsDurable) {
  h_.log().SetDurableUntil(Timestamp(1));
  HeapSlot* const old = VersionsOf(2).newest.load();
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  HeapSlot* const slot = VersionsOf(2).newest.load();
  EXPECT_NE(slot, old);
  EXPECT_EQ(slot->older, old);
  EXPECT_EQ(old->end.value(), slot->begin.load());
  EXPECT_EQ(slot->txn, h_.id(0));
  EXPECT_EQ(h_.ValueOf(2), 77u);
  h_.Sweep(0);
  for (int i = 0; i < 100; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  EXPECT_EQ(old->begin.load(), heap_format::kLoadStamp);
  EXPECT_EQ(Taken(), 104u);
  h_.log().SetDurableUntil(Timestamp(1000));
  for (int i = 0; i < 100; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  EXPECT_LT(Taken(), 40u);
  EXPECT_EQ(h_.ValueOf(2), 77u);
}

TEST_F(HeapVersionsTest, AVersionThatASnapshotSeesIsNotFreed) {
  uint64_t seen = 0;
  const CallResult reader = h_.Run(1, [&](TestContext& ctx) {
    (void)ctx.Read(h_.table(), 2, [](const TestTuple&) {});
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(h_.Write(0, 2, 1000 + static_cast<uint64_t>(i)).wrote);
    const Outcome outcome = ctx.Read(h_.table(), 2, [&](const TestTuple& t) { seen = t.GetAt<uint64_t>(0); });
    EXPECT_EQ(Taken(), 3u + 200u) << "none of them is free";
    return outcome;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  EXPECT_EQ(seen, 200u);
}

// A transaction that rolls back has locked its write set, and taken slots, to validate what it has read.
TEST_F(HeapVersionsTest, AnAbortGivesItsSlotsBackUnstamped) {
  const uint64_t before = Taken();
  h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Update(h_.table(), 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, 5); }), Outcome::kOk);
    EXPECT_EQ(ctx.Delete(h_.table(), 2), Outcome::kOk);
    const Tuple tuple{9, {}};
    EXPECT_EQ(ctx.Insert(h_.table(), 9, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    return Outcome::kRollback;
  });
  EXPECT_EQ(Taken(), before);
  EXPECT_EQ(Stamped(), 3u);
  EXPECT_EQ(h_.ValueOf(1), 100u);
}

TEST_F(HeapVersionsTest, AWriteThatFindsNothingTakesNoSlotForGood) {
  const uint64_t before = Taken();
  EXPECT_EQ(h_.Insert(0, 1, 5).outcome, Outcome::kRollback);
  EXPECT_EQ(h_.Write(0, 77, 5).outcome, Outcome::kRollback);
  h_.Run(0, [&](TestContext& ctx) {
    const Tuple tuple{9, {}};
    EXPECT_EQ(ctx.Insert(h_.table(), 1, std::as_bytes(std::span(&tuple, 1))), Outcome::kExists);
    return ctx.Update(h_.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 5); });
  });
  EXPECT_EQ(Taken(), before + 1);
  // It has written nothing, and commits.
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Update(h_.table(), 77, [](TestTuple& t) { t.SetAt<uint64_t>(0, 5); }), Outcome::kNotFound);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(Taken(), before + 1);
}

TEST_F(HeapVersionsTest, ADeleteLeavesATombstoneThatIsFreedLast) {
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  ASSERT_TRUE(h_.Delete(0, 2).wrote);
  HeapSlot* const tombstone = VersionsOf(2).newest.load();
  EXPECT_TRUE(tombstone->absent());
  EXPECT_EQ(VersionsOf(2).slots.load(), 3u);
  h_.log().SetDurableUntil(Timestamp(1));
  h_.Sweep(0);
  ASSERT_NE(h_.table().Find(2), nullptr);
  EXPECT_EQ(VersionsOf(2).newest.load(), tombstone);
  h_.log().SetDurableUntil(Timestamp(1000));
  // Other rows' versions, so that the older ones of this row come to be drained.
  for (int i = 0; i < 100; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  h_.Sweep(0);
  EXPECT_EQ(h_.table().Find(2), nullptr);
  EXPECT_EQ(tombstone->begin.load(), 0u);
  EXPECT_EQ(h_.Read(1, 2).outcome, Outcome::kOk);
  ASSERT_TRUE(h_.Insert(0, 2, 5).wrote);
  EXPECT_EQ(h_.ValueOf(2), 5u);
}

TEST_F(HeapVersionsTest, ATombstoneWaitsForTheVersionsThatItHides) {
  ASSERT_TRUE(h_.Delete(0, 2).wrote);
  const HeapSlot* const tombstone = VersionsOf(2).newest.load();
  EXPECT_EQ(VersionsOf(2).slots.load(), 2u);
  h_.Sweep(0);
  ASSERT_NE(h_.table().Find(2), nullptr) << "the version that was loaded is not free";
  EXPECT_NE(tombstone->begin.load(), 0u);
}

TEST_F(HeapVersionsTest, ATombstoneIsKeptUntilItsDeleteIsDurable) { TestThatATombstoneIsKeptUntilItsDeleteIsDurable(); }

TEST_F(HeapVersionsTest, TheZeroOfAFreedSlotIsDrained) {
  HeapSlot* const old = VersionsOf(2).newest.load();
  PersistentWriter& writer = h_.heap().writer(WorkerId(1));
  writer.WriteBack(reinterpret_cast<const std::byte*>(old), sizeof(HeapSlot));
  writer.Drain();
  EXPECT_EQ(DurableBegin(old), heap_format::kLoadStamp);
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  for (int i = 0; i < 100; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  EXPECT_LT(Taken(), 40u);
  EXPECT_EQ(DurableBegin(old), 0u);
}

TEST_F(HeapVersionsTest, WhereDrainsAreSlowManyZerosShareOne) {
  h_.files().drains_are_slow = true;
  ASSERT_TRUE(h_.Delete(0, 2).wrote);
  for (int i = 0; i < 300; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  EXPECT_GT(VersionsOf(3).slots.load(), 250u) << "zeros that are not drained";
  for (int i = 0; i < 300; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  EXPECT_LT(VersionsOf(3).slots.load(), 150u);
  h_.Sweep(0);
  ASSERT_NE(h_.table().Find(2), nullptr) << "the zero of its tombstone is not drained";
  EXPECT_EQ(VersionsOf(2).slots.load(), 1u);
  EXPECT_EQ(VersionsOf(2).newest.load(), nullptr);
  for (int i = 0; i < 600; ++i) h_.Write(0, 3, static_cast<uint64_t>(i));
  h_.Sweep(0);
  EXPECT_EQ(h_.table().Find(2), nullptr);
}

// Every second writer of the memory streams.
TEST_F(HeapVersionsTest, WhatWasStreamedIsDurableWhenItIsInstalled) {
  for (const uint32_t worker : {0, 1, 2, 3}) {
    ASSERT_TRUE(h_.Write(worker, 2, 70 + worker).wrote);
    EXPECT_EQ(DurableValue(2) == 70 + worker, worker % 2 == 1) << worker;
  }
}

// A full heap is a reason to free what waits for a drain and to try again. A device that has no space is none: it may
// have lost what was written back before.
TEST_F(HeapVersionsTest, ADrainThatFailsIsNoFullHeap) {
  uint64_t waiting = 0;
  for (uint64_t drain = 1; drain <= 60; ++drain) {
    Harness<Hekaton<HeapOnlyLog>, HeapOnlyLog> h{EngineOptions{.heap_bytes = 1 << 20}};
    h.LoadRow(1, 100);
    h.log().SetDurableUntil(Timestamp(1'000'000));
    h.files().Fail(FaultyFileSystem::Operation::kSync, drain, ENOSPC, /*for_good=*/false, "heap.pm");
    bool failed = false;
    try {
      for (Key key = 10; key < 200; ++key) {
        h.Insert(0, key, key);
        h.Write(0, 1, key);
      }
    } catch (const Error& error) {
      failed = error.status() == ExitStatus::kNoSpace;
    }
    EXPECT_EQ(failed, h.files().failed_count() > 0) << "drain " << drain;
    waiting += failed;
  }
  EXPECT_GT(waiting, 10u);
}

TEST_F(HeapVersionsTest, WhatIsFreeIsDurablyZero) {
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) h_.Write(0, 1 + static_cast<Key>(i % 3), static_cast<uint64_t>(i));
    ASSERT_TRUE(h_.Insert(0, 10 + static_cast<Key>(round), 1).wrote);
    ASSERT_TRUE(h_.Delete(0, 10 + static_cast<Key>(round)).wrote);
    h_.files().EvictWords(static_cast<uint64_t>(round), 2000);
    // Stamps that were evicted belong to slots that are taken.
    EXPECT_LE(DurablyStamped(), Taken());
  }
}

}  // namespace
}  // namespace dbx::testing
