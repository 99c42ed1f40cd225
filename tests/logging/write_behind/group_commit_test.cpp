#include "logging/write_behind/group_commit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;

constexpr uint64_t kHeap = 77;
constexpr uint32_t kWorkers = 3;
constexpr size_t kTupleBytes = 200, kSlotBytes = 320, kSlots = 4096;

// A heap of slots that are used once each, and its log.
class GroupCommitTest : public ::testing::Test {
 protected:
  explicit GroupCommitTest(uint64_t window = 100) {
    GapRecord first;
    first.heap_id = kHeap, first.sequence = 1, first.c_p = clock_.load(), first.c_d = clock_.load() + window;
    first.last_sequences.assign(kWorkers, 0);
    gaps_->Append(first);
    commits_.emplace(*memory_, *gaps_, clock_, kWorkers, window);
  }

  HeapSlot* SlotAt(std::byte* base, size_t number) { return reinterpret_cast<HeapSlot*>(base + number * kSlotBytes); }
  HeapSlot* Slot(size_t number) { return SlotAt(memory_->bytes().data(), number); }
  void Fill(HeapSlot* slot, uint64_t value) {
    slot->tuple_bytes = kTupleBytes;
    for (size_t at = 0; at < kTupleBytes; at += 8) std::memcpy(slot->tuple() + at, &value, 8);
  }
  static bool IsFilled(const HeapSlot* slot, uint64_t value) {
    for (size_t at = 0; at < kTupleBytes; at += 8) {
      if (std::memcmp(slot->tuple() + at, &value, 8) != 0) return false;
    }
    return true;
  }

  struct Committed {
    uint64_t stamp, group;
    size_t slot;
  };
  uint64_t Draw(uint32_t worker) {
    commits_->Announce(WorkerId(worker));
    return clock_.fetch_add(1) + 1;
  }
  uint64_t Close(uint32_t worker, uint64_t stamp) {
    return commits_->Close(WorkerId(worker), Timestamp(stamp), sequences_[worker]++);
  }
  // A transaction of one version.
  Committed Write(uint32_t worker, size_t slot) {
    Fill(Slot(slot), slot);
    const uint64_t stamp = Draw(worker);
    commits_->Drawn(WorkerId(worker), Timestamp(stamp));
    Slot(slot)->begin.store(stamp, std::memory_order_relaxed);
    commits_->Installed(WorkerId(worker), Slot(slot), sizeof(HeapSlot) + kTupleBytes);
    return {stamp, Close(worker, stamp), slot};
  }
  bool IsDurable(const Committed& txn) { return commits_->IsDurable(txn.stamp, txn.group); }
  const GapRecord& Newest() { return *gaps_->newest(); }

  static bool Counts(const GapRecord& record, uint64_t stamp) {
    return stamp <= record.c_p && std::find(record.long_runners.begin(), record.long_runners.end(),
                                            LongRunner{stamp}) == record.long_runners.end();
  }

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("heap", {.create_bytes = kSlots * kSlotBytes});
  const std::unique_ptr<PersistentMemory> log_memory_ =
      files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes});
  std::optional<GapLog> gaps_{std::in_place, *log_memory_, kHeap};
  Atomic<uint64_t> clock_{1};
  std::optional<GroupCommit> commits_;
  uint64_t sequences_[kWorkers] = {};  // of the next transactions
  std::string what_;
};

TEST_F(GroupCommitTest, ATransactionIsDurableOnceItsGroupIs) {
  const Committed txn = Write(0, 3);
  EXPECT_EQ(txn.stamp, 2u);
  EXPECT_FALSE(IsDurable(txn));
  EXPECT_TRUE(commits_->Commit());
  EXPECT_TRUE(IsDurable(txn));
  EXPECT_EQ(Newest().c_p, 2u);
  EXPECT_EQ(Newest().c_d, 2u + 100 + 1);
  EXPECT_EQ(commits_->durable_until(), Timestamp(2));
  const auto image = files_.CrashImage(Crash::kDurableOnly).files.at("heap").All();
  const auto* const slot = reinterpret_cast<const HeapSlot*>(image.data() + 3 * kSlotBytes);
  EXPECT_EQ(slot->begin.load(), 2u);
  EXPECT_TRUE(IsFilled(slot, 3));
}

TEST_F(GroupCommitTest, AReaderOfWhatIsDurableWaitsForNoGroup) {
  const uint64_t before = clock_.load();
  EXPECT_TRUE(commits_->IsDurable(before, commits_->group()));
  const Committed txn = Write(0, 3);
  EXPECT_FALSE(commits_->IsDurable(txn.stamp, commits_->group()));
  commits_->Commit();
  EXPECT_TRUE(commits_->IsDurable(txn.stamp, commits_->group()));
}

TEST_F(GroupCommitTest, AReaderOfALongRunnerWaitsForItsGroup) {
  const uint64_t drawn = Draw(0);
  commits_->Drawn(WorkerId(0), Timestamp(drawn));
  const Committed other = Write(1, 3);
  commits_->Commit();
  const uint64_t group = commits_->group();
  EXPECT_FALSE(commits_->IsDurable(drawn, group)) << "though c_p covers it";
  EXPECT_FALSE(commits_->IsDurable(other.stamp, group)) << "it has read what a long runner may have written, too";
}

TEST_F(GroupCommitTest, AStampThatIsDrawnAndNotInstalledIsALongRunner) {
  const uint64_t drawn = Draw(0);
  commits_->Drawn(WorkerId(0), Timestamp(drawn));
  const Committed other = Write(1, 3);
  commits_->Commit();
  EXPECT_EQ(Newest().c_p, other.stamp);
  EXPECT_EQ(Newest().long_runners, (std::vector<LongRunner>{{drawn}}));
  EXPECT_TRUE(IsDurable(other));
  EXPECT_EQ(commits_->durable_until(), Timestamp(drawn - 1)) << "not beyond the long runner";
  // It is of a later group, though c_p covers it.
  Fill(Slot(4), 4);
  Slot(4)->begin.store(drawn);
  commits_->Installed(WorkerId(0), Slot(4), sizeof(HeapSlot) + kTupleBytes);
  const Committed txn{drawn, Close(0, drawn), 4};
  EXPECT_FALSE(IsDurable(txn));
  commits_->Commit();
  EXPECT_TRUE(IsDurable(txn));
  EXPECT_TRUE(Newest().long_runners.empty());
  EXPECT_EQ(commits_->durable_until(), Timestamp(other.stamp));
}

TEST_F(GroupCommitTest, ABoundKeepsCpBelowItAndNeverLowersIt) {
  const Committed before = Write(1, 1);
  commits_->Commit();
  commits_->Announce(WorkerId(0));
  const Committed txn = Write(1, 2);
  commits_->Commit();
  EXPECT_EQ(Newest().c_p, before.stamp);
  EXPECT_FALSE(IsDurable(txn));
  commits_->Undrawn(WorkerId(0));
  commits_->Commit();
  EXPECT_EQ(Newest().c_p, txn.stamp);
  EXPECT_TRUE(IsDurable(txn));
  commits_->Announce(WorkerId(0));
  commits_->Commit();
  EXPECT_EQ(Newest().c_p, txn.stamp);
}

TEST_F(GroupCommitTest, ABoundThatWasLoadedLongAgoDoesNotLowerCp) {
  const uint64_t then = clock_.load();
  const Committed txn = Write(1, 1);
  commits_->Commit();
  // The worker has loaded the clock before that, and stores its bound now.
  const uint64_t now = clock_.exchange(then);
  commits_->Announce(WorkerId(0));
  clock_.store(now);
  commits_->Commit();
  EXPECT_EQ(Newest().c_p, txn.stamp);
  EXPECT_TRUE(IsDurable(txn));
}

TEST_F(GroupCommitTest, AnAbortLeavesNothingToWaitFor) {
  const uint64_t drawn = Draw(0);
  commits_->Drawn(WorkerId(0), Timestamp(drawn));
  commits_->Undrawn(WorkerId(0));
  commits_->Commit();
  EXPECT_EQ(Newest().c_p, drawn);
  EXPECT_TRUE(Newest().long_runners.empty());
  EXPECT_EQ(commits_->durable_until(), Timestamp(drawn));
}

class TightGroupCommitTest : public GroupCommitTest {
 protected:
  TightGroupCommitTest() : GroupCommitTest(2) {}
};

TEST_F(TightGroupCommitTest, AStampBeyondTheDurableLimitIsKeptUntilARecordRaisesIt) {
  for (size_t i = 0; i < 50; ++i) {
    const Committed txn = Write(static_cast<uint32_t>(i % kWorkers), i);
    EXPECT_LT(txn.stamp, Newest().c_d);
    EXPECT_LE(Newest().c_d, clock_.load() + 2 + 1);
  }
  EXPECT_GE(Newest().sequence, 15u);
}

TEST_F(GroupCommitTest, ARecordKnowsTheLastSequenceThatItCovers) {
  Write(0, 3), Write(0, 4);
  commits_->Commit();
  EXPECT_EQ(Newest().last_sequences, (std::vector<uint64_t>{2, 0, 0}));
  // A bound of worker 1 keeps c_p below the next transactions of worker 0.
  commits_->Announce(WorkerId(1));
  Write(0, 5), Write(0, 6);
  commits_->Commit();
  EXPECT_EQ(Newest().last_sequences, (std::vector<uint64_t>{2, 0, 0}));
  commits_->Undrawn(WorkerId(1));
  commits_->Commit();
  EXPECT_EQ(Newest().last_sequences, (std::vector<uint64_t>{4, 0, 0}));
}

TEST_F(GroupCommitTest, ALongRunnerIsNoTransactionThatIsCovered) {
  Write(0, 3);
  const uint64_t drawn = Draw(0);
  commits_->Drawn(WorkerId(0), Timestamp(drawn));
  Write(1, 4);
  commits_->Commit();
  EXPECT_EQ(Newest().long_runners, (std::vector<LongRunner>{{drawn}}));
  EXPECT_EQ(Newest().last_sequences, (std::vector<uint64_t>{1, 1, 0}));
  Close(0, drawn);
  commits_->Commit();
  EXPECT_EQ(Newest().last_sequences, (std::vector<uint64_t>{2, 1, 0}));
}

TEST_F(GroupCommitTest, ClosedTransactionsThatNoRecordCoversAreNeverOverwritten) {
  for (uint64_t i = 0; i < 3 * ClosedTransactions::kEntries; ++i) {
    commits_->AwaitRoom(WorkerId(2));
    const uint64_t stamp = Draw(2);
    commits_->Drawn(WorkerId(2), Timestamp(stamp));
    Close(2, stamp);
  }
  commits_->Commit();
  EXPECT_EQ(Newest().last_sequences[2], 3 * ClosedTransactions::kEntries);
  EXPECT_GE(Newest().sequence, 4u);
}

TEST_F(GroupCommitTest, TheLastRecordSaysThatTheLifeHasEndedAndNoOtherDoes) {
  const Committed txn = Write(0, 3);
  commits_->Commit();
  EXPECT_FALSE(Newest().clean);
  Write(1, 4);
  commits_->End(std::pair<uint64_t, uint64_t>(5, 6));
  EXPECT_TRUE(IsDurable(txn));
  EXPECT_TRUE(Newest().clean);
  EXPECT_EQ(Newest().digest, std::optional(std::pair<uint64_t, uint64_t>(5, 6)));
  EXPECT_EQ(Newest().c_p, clock_.load());
  EXPECT_EQ(Newest().last_sequences, (std::vector<uint64_t>{1, 1, 0}));
}

TEST_F(GroupCommitTest, GapsAreCarriedUntilTheyAreDropped) {
  GapRecord record = NextLifeOf(Newest(), kWorkers, 100, /*drop_gaps=*/false, 50);
  const std::vector<GapSet::Gap> gaps = record.gaps.gaps();
  ASSERT_EQ(gaps, (std::vector<GapSet::Gap>{{2, 101}}));
  clock_.store(record.c_p);
  gaps_->Append(record);
  commits_.emplace(*memory_, *gaps_, clock_, kWorkers, 50);
  Write(0, 3);
  commits_->Commit();
  EXPECT_EQ(Newest().gaps.gaps(), gaps);
  EXPECT_EQ(Newest().life, 1u);
  commits_->DropGaps();
  commits_->Commit();
  EXPECT_TRUE(Newest().gaps.empty());
}

TEST_F(GroupCommitTest, AnOwnFlushLeavesNothingToTheCommit) {
  const Committed txn = Write(0, 3);
  commits_->Flush(WorkerId(0));
  const auto image = files_.CrashImage(Crash::kDurableOnly).files.at("heap").All();
  EXPECT_TRUE(IsFilled(reinterpret_cast<const HeapSlot*>(image.data() + 3 * kSlotBytes), 3));
  EXPECT_FALSE(IsDurable(txn));
}

TEST_F(GroupCommitTest, AFailedDrainEndsAllCommits) {
  const Committed txn = Write(0, 3);
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Caught([&] { commits_->Commit(); }, what_), ExitStatus::kIo);
    EXPECT_EQ(what_, "cannot drain heap: Input/output error");
  }
  EXPECT_FALSE(IsDurable(txn));
}

TEST_F(GroupCommitTest, WhatAFlushHasNotDrainedIsLeftToTheCommit) {
  const Committed txn = Write(0, 3);
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  EXPECT_EQ(Caught([&] { commits_->Flush(WorkerId(0)); }, what_), ExitStatus::kIo);
  commits_->Commit();
  EXPECT_TRUE(IsDurable(txn));
  const auto image = files_.CrashImage(Crash::kDurableOnly).files.at("heap").All();
  EXPECT_TRUE(IsFilled(reinterpret_cast<const HeapSlot*>(image.data() + 3 * kSlotBytes), 3));
}

TEST_F(GroupCommitTest, ARecordThatIsNotDrainedPromisesAndAcknowledgesNothing) {
  const Committed txn = Write(0, 3);
  const uint64_t c_d = commits_->c_d();
  // The first Drain is that of the slots.
  files_.Fail(FaultyFileSystem::Operation::kSync, 2, EIO);
  EXPECT_EQ(Caught([&] { commits_->Commit(); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot drain gaps.log: Input/output error");
  EXPECT_EQ(commits_->c_d(), c_d);
  EXPECT_FALSE(IsDurable(txn));
  EXPECT_EQ(commits_->durable_until(), Timestamp(1));
}

// Several threads, and power failures at any moment: what was acknowledged before one is there after it, and what a
// record counts is whole.
class CrashedGroups : public GroupCommitTest {
 protected:
  void Work(uint32_t worker) {
    std::vector<Committed> waiting;
    Random random(worker);
    for (size_t slot = worker; slot < kSlots && !stop_.load(); slot += kWorkers) {
      if (random.Next() % 8 == 0) {
        commits_->Drawn(WorkerId(worker), Timestamp(Draw(worker)));
        commits_->Undrawn(WorkerId(worker));
      } else {
        waiting.push_back(Write(worker, slot));
      }
      if (random.Next() % 16 == 0) commits_->Commit();
      if (random.Next() % 16 == 0) commits_->Flush(WorkerId(worker));
      Acknowledge(waiting);
    }
  }
  void Acknowledge(std::vector<Committed>& waiting) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < waiting.size();) {
      if (!IsDurable(waiting[i])) {
        ++i;
        continue;
      }
      acknowledged_.push_back(waiting[i]);
      waiting[i] = waiting.back();
      waiting.pop_back();
    }
  }
  void JudgeCrash(uint64_t seed) {
    std::vector<Committed> acknowledged;
    {
      const std::lock_guard lock(mutex_);
      acknowledged = acknowledged_;
    }
    FaultyFileSystem crashed(files_.CrashImage(Crash::kSubset, seed));
    const auto heap = crashed.MapPersistent("heap", {}), log = crashed.MapPersistent("gaps.log", {});
    const GapRecord record = GapLog(*log, kHeap).newest().value();
    for (const Committed& txn : acknowledged) {
      ASSERT_TRUE(Counts(record, txn.stamp)) << txn.stamp << " was acknowledged; c_p " << record.c_p;
      ASSERT_EQ(SlotAt(heap->bytes().data(), txn.slot)->begin.load(), txn.stamp);
    }
    for (size_t slot = 0; slot < kSlots; ++slot) {
      const HeapSlot* const it = SlotAt(heap->bytes().data(), slot);
      const uint64_t stamp = it->begin.load();
      if (stamp == 0) continue;
      ASSERT_LT(stamp, record.c_d);
      ASSERT_TRUE(IsFilled(it, slot) || !Counts(record, stamp)) << stamp;
    }
    judged_ += acknowledged.size();
  }

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<Committed> acknowledged_;
  uint64_t judged_ = 0;
};

TEST_F(CrashedGroups, LoseNothingThatWasAcknowledged) {
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) threads.emplace_back([this, worker] { Work(worker); });
  for (uint64_t seed = 0; seed < 40; ++seed) {
    files_.EvictWords(seed, 500);
    JudgeCrash(seed);
  }
  stop_.store(true);
  for (std::thread& thread : threads) thread.join();
  while (!commits_->Commit()) std::this_thread::yield();
  JudgeCrash(99);
  EXPECT_GT(judged_, 0u);
}

}  // namespace
}  // namespace dbx
