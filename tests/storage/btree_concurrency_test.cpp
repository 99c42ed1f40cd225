// BTreeIndex with threads that insert, erase, unlink and scan the same keys, and with transactions that rely on the
// versions and the metadata of its leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/epoch.h"
#include "base/random.h"
#include "storage/btree_index.h"
#include "storage/btree_scan.h"
#include "tests/storage/btree_rows.h"

namespace dbx {
namespace {

constexpr uint32_t kThreads = 4;

template <class Run>
void RunThreads(Run&& run) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([&run, i] { run(WorkerId(i)); });
  for (std::thread& thread : threads) thread.join();
}

// An index with rows that are used again once no thread can hold them.
class SharedIndex {
 public:
  explicit SharedIndex(size_t meta_bytes = 8) : index_(meta_bytes), clock_(kThreads), retired_(kThreads) {
    for (uint32_t i = 0; i < kThreads; ++i) arenas_.emplace_back(16, 16);
  }

  BTreeIndex& index() { return index_; }
  EpochClock& clock() { return clock_; }

  Row* FindOrInsert(WorkerId worker, Key key, uint64_t control, LeafChange& change) {
    return index_.FindOrInsert(
        key,
        [&] {
          Row* row = arenas_[worker.value()].Allocate();
          row->key = key;
          row->control.store(control, std::memory_order_relaxed);
          return row;
        },
        change);
  }
  // By the one worker that has decided it.
  bool Erase(WorkerId worker, Row* row, LeafChange& change) {
    row->control.store(Row::kGone);
    if (!index_.Erase(row->key, row, change)) return false;
    retired_[worker.value()].emplace_back(clock_.RetireEpoch(worker), row);
    return true;
  }
  // Between two steps of a worker.
  void Refresh(WorkerId worker) {
    clock_.Refresh(worker);
    auto& retired = retired_[worker.value()];
    for (; !retired.empty() && clock_.SafeEpoch() > retired.front().first; retired.pop_front()) {
      arenas_[worker.value()].Recycle(retired.front().second);
    }
  }

 private:
  BTreeIndex index_;
  EpochClock clock_;
  std::vector<RowArena> arenas_;
  std::vector<std::deque<std::pair<Epoch, Row*>>> retired_;
};

// ---- Inserts alone ---------------------------------------------------------------------------------------

class BTreeInsertRaceTest : public testing::TestWithParam<Key (*)(uint64_t)> {};

TEST_P(BTreeInsertRaceTest, OneInserterOfAKeyWins) {
  constexpr uint64_t kKeys = 50'000;
  SharedIndex shared;
  std::vector<std::vector<Row*>> found(kThreads, std::vector<Row*>(kKeys));
  RunThreads([&](WorkerId worker) {
    LeafChange change;
    for (uint64_t i = 0; i < kKeys; ++i) {
      found[worker.value()][i] = shared.FindOrInsert(worker, GetParam()(i), 0, change);
    }
  });
  for (uint64_t i = 0; i < kKeys; ++i) {
    for (uint32_t t = 0; t < kThreads; ++t) ASSERT_EQ(found[t][i], shared.index().Find(GetParam()(i)));
  }
  EXPECT_EQ(ScanKeys(shared.index(), kLowestKey, kHighestKey).size(), kKeys);
}

Key Ascending(uint64_t i) { return i; }
Key Descending(uint64_t i) { return kHighestKey - i; }
INSTANTIATE_TEST_SUITE_P(Keys, BTreeInsertRaceTest, testing::Values(&Ascending, &Descending, &Mix64));

// ---- Everything at once ----------------------------------------------------------------------------------

// Keys in blocks of 256. In even blocks every fourth key stays for ever; the keys of odd blocks come and go by the
// hundred, so that leaves are split, emptied and unlinked; the rest come and go one by one.
class Stress {
 public:
  explicit Stress(uint64_t blocks) : keys_(blocks * kBlock) {
    LeafChange change;
    for (Key key = 0; key < keys_; ++key) {
      if (Stays(key)) shared_.FindOrInsert(WorkerId(0), key, 0, change);
    }
  }

  void Run(WorkerId worker, uint64_t seed, int steps) {
    std::mt19937_64 rng(seed + worker.value());
    const EpochSection section(shared_.clock(), worker);
    for (int i = 0; i < steps; ++i) {
      Step(worker, rng);
      shared_.Refresh(worker);
      if (i % 16 == 0) shared_.clock().Advance();
    }
  }

  void ExpectNothingWrong() {
    EXPECT_EQ(wrong_, 0);
    EXPECT_GT(erased_, 0);
    EXPECT_GT(unlinked_, 0);
    const std::vector<Key> keys = ScanKeys(shared_.index(), kLowestKey, kHighestKey);
    EXPECT_TRUE(std::ranges::is_sorted(keys, std::less_equal<>()));
    for (Key key = 0; key < keys_; ++key) {
      const bool there = std::ranges::binary_search(keys, key);
      EXPECT_EQ(there, shared_.index().Find(key) != nullptr) << key;
      EXPECT_TRUE(there || !Stays(key)) << key;
    }
  }

 private:
  static constexpr Key kBlock = 256;
  static bool Stays(Key key) { return key / kBlock % 2 == 0 && key % 4 == 0; }

  void Step(WorkerId worker, std::mt19937_64& rng) {
    const Key key = rng() % keys_;
    const auto order = rng() % 2 == 0 ? ScanOrder::kAscending : ScanOrder::kDescending;
    const bool insert = rng() % 2 == 0;
    switch (rng() % 4) {
      case 0:
        return CheckScan(key, key + rng() % 1000, order);
      case 1:
        return Change(worker, key, insert);
      default:
        for (Key i = 0; i < 100; ++i) Change(worker, ((key | kBlock) + i) % keys_, insert);
    }
  }

  void Change(WorkerId worker, Key key, bool insert) {
    if (Stays(key)) return;
    LeafChange change;
    Row* const row = insert ? shared_.FindOrInsert(worker, key, 0, change) : shared_.index().Find(key);
    uint64_t there = 0;
    if (insert || row == nullptr || !row->control.compare_exchange_strong(there, Row::kGone)) return;
    wrong_ += row->key != key || !shared_.Erase(worker, row, change);
    ++erased_;
    if (!change.emptied) return;
    const auto absorb = [](BTreeLeaf&, BTreeLeaf&) {};
    unlinked_ += shared_.index().UnlinkEmpty(key, shared_.clock(), worker, absorb) == UnlinkResult::kUnlinked;
  }

  // In order, within bounds, with the right rows, and none that stays is missed.
  void CheckScan(Key low, Key high, ScanOrder order) {
    std::vector<Key> keys;
    BTreeScan scan(shared_.index(), low, high, order);
    while (scan.NextBatch()) {
      for (const BTreeEntry& entry : scan.entries()) {
        wrong_ += entry.row->key != entry.key;
        keys.push_back(entry.key);
      }
    }
    if (order == ScanOrder::kDescending) std::ranges::reverse(keys);
    wrong_ += !std::ranges::is_sorted(keys, std::less_equal<>());
    wrong_ += !keys.empty() && (keys.front() < low || keys.back() > high);
    for (Key key = low; key <= std::min(high, keys_ - 1); ++key) {
      wrong_ += Stays(key) && !std::ranges::binary_search(keys, key);
    }
  }

  uint64_t keys_;
  SharedIndex shared_;
  std::atomic<int> wrong_{0};
  std::atomic<int> erased_{0};
  std::atomic<int> unlinked_{0};
};

class BTreeStressTest : public testing::TestWithParam<uint64_t> {};

TEST_P(BTreeStressTest, ScansSeeWhatStaysOnceAndInOrder) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  Stress stress(GetParam());
  RunThreads([&](WorkerId worker) { stress.Run(worker, seed, 4000); });
  stress.ExpectNothingWrong();
}

INSTANTIATE_TEST_SUITE_P(Blocks, BTreeStressTest, testing::Values(2, 16, 400));

// ---- Against an oracle -----------------------------------------------------------------------------------

// A thread has every kThreads-th key to itself, so that all share their leaves, and knows of each whether it is there.
class OwnKeys {
 public:
  OwnKeys(SharedIndex& shared, WorkerId worker, uint64_t keys, uint64_t seed)
      : shared_(shared), worker_(worker), keys_(keys), rng_(seed + worker.value()) {}

  void Run(int steps) {
    const EpochSection section(shared_.clock(), worker_);
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (i % 256 == 0) growing_ = rng_() % 2 == 0;
      Step();
      shared_.Refresh(worker_);
      if (i % 16 == 0) shared_.clock().Advance();
    }
  }
  const std::map<Key, Row*>& oracle() const { return oracle_; }

 private:
  void Step() {
    const Key key = rng_() % keys_ * kThreads + worker_.value();
    const auto known = oracle_.find(key);
    const bool there = known != oracle_.end();
    ASSERT_EQ(shared_.index().Find(key), there ? known->second : nullptr) << key;
    if (rng_() % 8 == 0) return CompareScan(key);
    if (there && rng_() % 4 >= (growing_ ? 3 : 1)) return Erase(key);
    if (!there && rng_() % 4 >= (growing_ ? 1 : 3)) Insert(key);
  }
  void Insert(Key key) {
    LeafChange change;
    Row* const row = shared_.FindOrInsert(worker_, key, 0, change);
    ASSERT_TRUE(change.changed()) << key;
    oracle_[key] = row;
  }
  void Erase(Key key) {
    LeafChange change;
    ASSERT_TRUE(shared_.Erase(worker_, oracle_[key], change)) << key;
    oracle_.erase(key);
    if (!change.emptied) return;
    shared_.index().UnlinkEmpty(key, shared_.clock(), worker_, [](BTreeLeaf&, BTreeLeaf&) {});
  }
  void CompareScan(Key low) {
    const Key high = low + rng_() % 400;
    const auto order = rng_() % 2 == 0 ? ScanOrder::kAscending : ScanOrder::kDescending;
    std::vector<std::pair<Key, Row*>> seen;
    ScanEntries(shared_.index(), low, high, order, [&](const BTreeEntry& entry) {
      if (entry.key % kThreads == worker_.value()) seen.emplace_back(entry.key, entry.row);
      return true;
    });
    if (order == ScanOrder::kDescending) std::ranges::reverse(seen);
    const std::vector<std::pair<Key, Row*>> known(oracle_.lower_bound(low), oracle_.upper_bound(high));
    ASSERT_EQ(seen, known) << low << " to " << high;
  }

  SharedIndex& shared_;
  const WorkerId worker_;
  const uint64_t keys_;
  std::mt19937_64 rng_;
  std::map<Key, Row*> oracle_;
  bool growing_ = true;
};

class BTreeOracleRaceTest : public testing::TestWithParam<uint64_t> {};

TEST_P(BTreeOracleRaceTest, EachThreadFindsItsOwnKeysAndNoOthers) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  SharedIndex shared;
  std::deque<OwnKeys> owners;
  for (uint32_t i = 0; i < kThreads; ++i) owners.emplace_back(shared, WorkerId(i), GetParam(), seed);
  RunThreads([&](WorkerId worker) { owners[worker.value()].Run(20'000); });
  std::map<Key, Row*> all;
  for (const OwnKeys& owner : owners) all.insert(owner.oracle().begin(), owner.oracle().end());
  std::vector<Key> keys;
  for (const auto& [key, row] : all) keys.push_back(key);
  EXPECT_EQ(ScanKeys(shared.index(), kLowestKey, kHighestKey), keys);
}

INSTANTIATE_TEST_SUITE_P(KeysPerThread, BTreeOracleRaceTest, testing::Values(2, 40, 1000));

// ---- Phantoms --------------------------------------------------------------------------------------------

// An optimistic transaction in small: it counts the rows of a group, adds two if there is room, and commits if every
// leaf that it has seen is unchanged but for its own inserts. Were a phantom missed, a group would overflow.
class GroupTxn {
 public:
  static constexpr uint64_t kPending = 1;  // control of a row before its transaction commits
  static constexpr uint64_t kRowsMax = 20;
  static constexpr Key kGroup = 1000;

  GroupTxn(SharedIndex& shared, WorkerId worker) : shared_(shared), worker_(worker) {}

  // How many rows there were; the transaction has added more if there was room and it has committed.
  uint64_t Run(Key group, std::mt19937_64& rng) {
    const auto order = rng() % 2 == 0 ? ScanOrder::kAscending : ScanOrder::kDescending;
    const uint64_t rows = Count(group, order);
    if (rows < kRowsMax && !doomed_) {
      if (rng() % 4 == 0) std::this_thread::yield();
      for (int i = 0; i < 2; ++i) Insert(group * kGroup + rng() % kGroup);
    }
    doomed_ |= !std::ranges::all_of(seen_, [](const LeafRef& leaf) { return leaf.Unchanged(); });
    for (Row* row : inserted_) Finish(row);
    return doomed_ ? 0 : rows;
  }
  bool committed() const { return !doomed_; }

 private:
  uint64_t Count(Key group, ScanOrder order) {
    uint64_t rows = 0;
    BTreeScan scan(shared_.index(), group * kGroup, group * kGroup + kGroup - 1, order);
    while (scan.NextBatch()) {
      See(scan.leaf());
      for (const BTreeEntry& entry : scan.entries()) doomed_ |= entry.row->control.load() != 0;
      rows += scan.entries().size();
    }
    return rows;
  }
  void See(const LeafRef& leaf) {
    for (const LeafRef& known : seen_) {
      if (known.leaf == leaf.leaf) doomed_ |= known.version != leaf.version;
    }
    seen_.push_back(leaf);
  }
  void Insert(Key key) {
    LeafChange change;
    Row* const row = shared_.FindOrInsert(worker_, key, kPending, change);
    if (!change.changed()) {
      doomed_ = true;  // another row has the key
      return;
    }
    inserted_.push_back(row);
    for (LeafRef& leaf : seen_) {
      if (leaf.leaf != change.leaf) continue;
      doomed_ |= leaf.version != change.before;
      leaf.version = change.after;
    }
    if (change.split_off.leaf != nullptr) seen_.push_back(change.split_off);
  }
  void Finish(Row* row) {
    LeafChange change;
    if (doomed_) {
      EXPECT_TRUE(shared_.Erase(worker_, row, change));
    } else {
      row->control.store(0);
    }
  }

  SharedIndex& shared_;
  WorkerId worker_;
  std::vector<LeafRef> seen_;
  std::vector<Row*> inserted_;
  bool doomed_ = false;
};

TEST(BTreePhantomTest, VersionsTellOfEveryPhantom) {
  constexpr Key kGroups = 150;
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  SharedIndex shared;
  std::atomic<int> aborted{0};
  RunThreads([&](WorkerId worker) {
    std::mt19937_64 rng(seed + worker.value());
    const EpochSection section(shared.clock(), worker);
    for (Key group = 0; group < kGroups;) {
      GroupTxn txn(shared, worker);
      group += txn.Run(group, rng) >= GroupTxn::kRowsMax;
      aborted += !txn.committed();
      shared.Refresh(worker);
      if (rng() % 64 == 0) shared.clock().Advance();
    }
  });
  for (Key group = 0; group < kGroups; ++group) {
    const Key low = group * GroupTxn::kGroup;
    EXPECT_EQ(ScanKeys(shared.index(), low, low + GroupTxn::kGroup - 1).size(), GroupTxn::kRowsMax) << group;
  }
  EXPECT_GT(aborted, 0);
}

// ---- Metadata --------------------------------------------------------------------------------------------

AtomicRef<uint64_t> MetaWord(BTreeLeaf& leaf) { return AtomicRef<uint64_t>(*reinterpret_cast<uint64_t*>(leaf.meta())); }

void Raise(BTreeLeaf& leaf, uint64_t value) {
  const AtomicRef<uint64_t> word = MetaWord(leaf);
  for (uint64_t now = word.load(); now < value && !word.compare_exchange_weak(now, value);) {
  }
}

// Readers publish into the leaves that they depend on, and count on it if the leaf is unchanged afterwards; meanwhile
// leaves are split, emptied and unlinked. What they published must be found by every later look-up.
class Publications {
 public:
  static constexpr Key kKeys = 20'000;

  void Run(WorkerId worker, uint64_t seed) {
    std::mt19937_64 rng(seed + worker.value());
    const EpochSection section(shared_.clock(), worker);
    for (uint64_t i = 1; i <= 3000; ++i) {
      if (worker.value() % 2 == 0) {
        Publish(rng() % kKeys, i * kThreads + worker.value());
      } else {
        ChangeRun(worker, rng() % kKeys, rng() % 2 == 0);
      }
      shared_.Refresh(worker);
      if (i % 16 == 0) shared_.clock().Advance();
    }
  }

  void ExpectNoneLost() {
    for (Key key = 0; key < kKeys; ++key) {
      LeafRef seen;
      shared_.index().Find(key, seen);
      EXPECT_GE(MetaWord(*seen.leaf).load(), published_[key].load()) << key;
    }
    EXPECT_GT(unlinked_, 0);
  }

 private:
  void Publish(Key key, uint64_t ticket) {
    LeafRef seen;
    shared_.index().Find(key, seen);
    Raise(*seen.leaf, ticket);
    if (!seen.Unchanged()) return;
    for (uint64_t now = published_[key].load(); now < ticket && !published_[key].compare_exchange_weak(now, ticket);) {
    }
  }
  void ChangeRun(WorkerId worker, Key first, bool insert) {
    for (Key key = first; key < first + 200; ++key) {
      LeafChange change;
      Row* const row = insert ? shared_.FindOrInsert(worker, key, 0, change) : shared_.index().Find(key);
      uint64_t there = 0;
      if (insert || row == nullptr || !row->control.compare_exchange_strong(there, Row::kGone)) continue;
      EXPECT_TRUE(shared_.Erase(worker, row, change));
      if (!change.emptied) continue;
      const auto absorb = [](BTreeLeaf& leaving, BTreeLeaf& heir) { Raise(heir, MetaWord(leaving).load()); };
      unlinked_ += shared_.index().UnlinkEmpty(key, shared_.clock(), worker, absorb) == UnlinkResult::kUnlinked;
    }
  }

  SharedIndex shared_;
  std::vector<std::atomic<uint64_t>> published_ = std::vector<std::atomic<uint64_t>>(kKeys);
  std::atomic<int> unlinked_{0};
};

TEST(BTreeMetadataTest, WhatAReaderPublishedOutlivesSplitsAndUnlinks) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  Publications publications;
  RunThreads([&](WorkerId worker) { publications.Run(worker, seed); });
  publications.ExpectNoneLost();
}

}  // namespace
}  // namespace dbx
