// HashIndex against an oracle, alone and with threads that insert, erase and find the same keys.
#include "storage/hash_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/epoch.h"

namespace dbx {
namespace {

uint64_t Seed() {
  const char* given = std::getenv("DBX_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
  testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

class HashIndexTest : public testing::Test {
 protected:
  // The row of `key`, made if need be.
  Row* Insert(HashIndex& index, Key key) {
    return index.FindOrInsert(key, [&] { return MakeRow(key); });
  }
  Row* MakeRow(Key key) {
    Row* row = arena_.Allocate();
    row->key = key;
    return row;
  }

  RowArena arena_{16, 16};
};

TEST_F(HashIndexTest, FindsWhatWasInsertedAndNothingElse) {
  HashIndex index(1000, 0);
  for (Key key = 0; key < 1000; ++key) Insert(index, key * 3);
  for (Key key = 0; key < 3000; ++key) {
    const Row* row = index.Find(key);
    ASSERT_EQ(row != nullptr, key % 3 == 0) << key;
    if (row != nullptr) {
      ASSERT_EQ(row->key, key);
    }
  }
}

TEST_F(HashIndexTest, MakeRunsOnlyForAnAbsentKey) {
  HashIndex index(10, 0);
  Row* const row = Insert(index, 7);
  Row* const again = index.FindOrInsert(7, []() -> Row* { throw std::logic_error("made a second row"); });
  EXPECT_EQ(again, row);
}

TEST_F(HashIndexTest, ThrowingMakeLeavesTheBucketUsable) {
  HashIndex index(10, 0);
  EXPECT_THROW(index.FindOrInsert(7, []() -> Row* { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(index.Find(7), nullptr);
  EXPECT_NE(Insert(index, 7), nullptr);
}

// How many keys share a bucket must not matter: (expected rows, clustered bits, keys in play).
struct Shape {
  uint64_t expected_rows;
  uint32_t clustered_bits;
  uint64_t keys;
};
class HashIndexOracleTest : public HashIndexTest, public testing::WithParamInterface<Shape> {};

TEST_P(HashIndexOracleTest, AgreesWithAnUnorderedMap) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 rng(seed);
  HashIndex index(GetParam().expected_rows, GetParam().clustered_bits);
  std::unordered_map<Key, Row*> oracle;
  for (int i = 0; i < 200'000; ++i) {
    const Key key = rng() % GetParam().keys;
    const auto known = oracle.find(key);
    ASSERT_EQ(index.Find(key), known == oracle.end() ? nullptr : known->second) << key;
    if (known == oracle.end()) {
      oracle[key] = Insert(index, key);
    } else if (rng() % 2 == 0) {
      index.Erase(known->second);
      oracle.erase(known);
    }
  }
  uint64_t visited = 0;
  index.ForEachRow(0, index.bucket_count(), [&](const Row& row) { visited += oracle.at(row.key) == &row; });
  EXPECT_EQ(visited, oracle.size());
}

INSTANTIATE_TEST_SUITE_P(Shapes, HashIndexOracleTest,
                         testing::Values(Shape{5000, 0, 10'000}, Shape{5000, 4, 10'000},
                                         Shape{0, 0, 10'000},   // deep trees
                                         Shape{0, 12, 10'000},  // clusters as wide as the array
                                         Shape{100'000, 0, 50}));

TEST_F(HashIndexTest, ErasedSlotsOfATreeAreUsedAgain) {
  HashIndex index(0, 0);
  for (Key key = 0; key < 5000; ++key) Insert(index, key);
  const size_t bytes = index.memory_bytes();
  for (int round = 0; round < 5; ++round) {
    for (Key key = 0; key < 5000; ++key) index.Erase(index.Find(key));
    for (Key key = 0; key < 5000; ++key) Insert(index, key);
  }
  EXPECT_EQ(index.memory_bytes(), bytes);
}

TEST_F(HashIndexTest, PartsCoverEveryRowOnce) {
  HashIndex index(100, 0);
  for (Key key = 0; key < 1000; ++key) Insert(index, key);
  std::vector<int> seen(1000);
  const uint64_t half = index.bucket_count() / 2;
  index.ForEachRow(0, half, [&](const Row& row) { ++seen[row.key]; });
  index.ForEachRow(half, index.bucket_count(), [&](const Row& row) { ++seen[row.key]; });
  EXPECT_EQ(seen, std::vector<int>(1000, 1));
}

TEST_F(HashIndexTest, GuessIsTheRowUnlessTagsCollide) {
  HashIndex index(10'000, 4);
  int right = 0;
  for (Key key = 0; key < 10'000; ++key) Insert(index, key);
  for (Key key = 0; key < 10'000; ++key) right += index.Guess(key) == index.Find(key);
  EXPECT_GT(right, 7'000) << "clusters overflow now and then, but most rows are in their first bucket";
}

// Keys as workloads pack them: dense, strided by a power of two, or of several fields.
Key Dense(uint64_t i) { return i; }
Key Strided(uint64_t i) { return i << 24; }
Key High(uint64_t i) { return i << 44; }
Key Fields(uint64_t i) { return (i / 30'000) << 48 | (i / 3000 % 10) << 40 | i % 3000; }

class HashIndexSpreadTest : public HashIndexTest, public testing::WithParamInterface<Key (*)(uint64_t)> {};

TEST_P(HashIndexSpreadTest, KeysSpreadAsIfAtRandom) {
  constexpr uint64_t kRows = 300'000;
  HashIndex index(kRows, 0);
  for (uint64_t i = 0; i < kRows; ++i) Insert(index, GetParam()(i));
  EXPECT_LE(index.memory_bytes(), kRows * 18) << "random keys need 16.8 bytes, overflow buckets included";
  uint64_t guessed = 0;
  for (uint64_t i = 0; i < kRows; ++i) guessed += index.Guess(GetParam()(i)) == index.Find(GetParam()(i));
  EXPECT_GE(guessed, kRows * 95 / 100) << "tags are poor";
}

INSTANTIATE_TEST_SUITE_P(Keys, HashIndexSpreadTest, testing::Values(&Dense, &Strided, &High, &Fields));

// A recovery inserts what a run of unknown length inserted. Chains would be 670 long.
TEST_P(HashIndexSpreadTest, ManyMoreRowsThanExpectedStayNear) {
  constexpr uint64_t kRows = 300'000;
  for (const uint32_t clustered_bits : {0u, 4u}) {
    HashIndex index(0, clustered_bits);
    for (uint64_t i = 0; i < kRows; ++i) Insert(index, GetParam()(i));
    EXPECT_LE(index.depth(), 8u) << "clustered bits: " << clustered_bits;
    EXPECT_LE(index.memory_bytes(), kRows * 64) << "clustered bits: " << clustered_bits;
    for (uint64_t i = 0; i < kRows; ++i) ASSERT_NE(index.Find(GetParam()(i)), nullptr);
  }
}

// Threads that insert, erase and find a few keys. Even keys stay for ever; a thread erases only a row whose
// control word it has turned from 0 to kGone, so that one eraser wins, and reuses it once that is safe.
class Stress {
 public:
  Stress(uint32_t threads, uint64_t keys, uint32_t clustered_bits)
      : keys_(keys), index_(0, clustered_bits), clock_(threads) {
    for (uint32_t i = 0; i < threads; ++i) arenas_.emplace_back(16, 16);
    for (Key key = 0; key < keys_; key += 2) FindOrInsert(WorkerId(0), key, false);
  }

  void Run(WorkerId worker, uint64_t seed, int steps) {
    std::mt19937_64 rng(seed + worker.value());
    std::deque<std::pair<Epoch, Row*>> retired;
    clock_.Enter(worker);
    for (int i = 0; i < steps; ++i) {
      Step(worker, rng(), retired);
      clock_.Refresh(worker);
      if (i % 64 == 0) clock_.Advance();
      for (; !retired.empty() && clock_.SafeEpoch() > retired.front().first; retired.pop_front()) {
        arenas_[worker.value()].Recycle(retired.front().second);
      }
    }
    clock_.Leave(worker);
  }

  // After the threads: every key is in the index at most once, and every even key is.
  void ExpectUniqueAndComplete() const {
    std::vector<int> seen(keys_);
    index_.ForEachRow(0, index_.bucket_count(), [&](const Row& row) { ++seen[row.key]; });
    for (Key key = 0; key < keys_; ++key) {
      EXPECT_EQ(seen[key], index_.Find(key) != nullptr) << key;
      if (key % 2 == 0) {
        EXPECT_EQ(seen[key], 1) << key;
      }
    }
    EXPECT_EQ(lost_, 0);
    EXPECT_EQ(wrong_, 0);
    EXPECT_GT(erased_, 0);
  }

 private:
  // `slowly` lengthens the critical section, so that threads do meet in it, even on one core.
  Row* FindOrInsert(WorkerId worker, Key key, bool slowly) {
    return index_.FindOrInsert(key, [&] {
      Row* row = arenas_[worker.value()].Allocate();
      row->key = key;
      row->control.store(0, std::memory_order_relaxed);
      if (slowly) std::this_thread::sleep_for(std::chrono::microseconds(1));
      return row;
    });
  }
  void Step(WorkerId worker, uint64_t random, std::deque<std::pair<Epoch, Row*>>& retired) {
    const Key stays = (random >> 8) % keys_ & ~uint64_t{1};
    lost_ += index_.Find(stays) == nullptr;
    const Key comes_and_goes = (random >> 32) % keys_ | 1;
    if (comes_and_goes >= keys_) return;
    Row* const row =
        random % 2 == 0 ? FindOrInsert(worker, comes_and_goes, random >> 57 == 0) : index_.Find(comes_and_goes);
    if (row == nullptr) return;
    wrong_ += row->key != comes_and_goes;
    uint64_t there = 0;
    if (random % 4 < 2 || !row->control.compare_exchange_strong(there, Row::kGone)) return;
    index_.Erase(row);
    ++erased_;
    retired.emplace_back(clock_.RetireEpoch(worker), row);
  }

  uint64_t keys_;
  HashIndex index_;
  EpochClock clock_;
  std::vector<RowArena> arenas_;
  std::atomic<int> lost_{0};
  std::atomic<int> wrong_{0};
  std::atomic<int> erased_{0};
};

class HashIndexStressTest : public testing::TestWithParam<std::pair<uint64_t, uint32_t>> {};

TEST_P(HashIndexStressTest, KeysStayUniqueAndNoPresentKeyIsMissed) {
  constexpr uint32_t kThreads = 4;
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  Stress stress(kThreads, GetParam().first, GetParam().second);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&stress, seed, i] { stress.Run(WorkerId(i), seed, 50'000); });
  }
  for (std::thread& thread : threads) thread.join();
  stress.ExpectUniqueAndComplete();
}

INSTANTIATE_TEST_SUITE_P(Shapes, HashIndexStressTest,
                         testing::Values(std::pair<uint64_t, uint32_t>{8, 0}, std::pair<uint64_t, uint32_t>{64, 6},
                                         std::pair<uint64_t, uint32_t>{3000, 0}));

}  // namespace
}  // namespace dbx
