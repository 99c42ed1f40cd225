// Table::NextKeys: the keys of a table, some at a time, alone and beside threads that create and unlink other rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/epoch.h"
#include "base/random.h"
#include "storage/table.h"

namespace dbx {
namespace {

constexpr WorkerId kWorker{0};

void InitAbsent(Row& row) { row.control.store(Row::kAbsent, std::memory_order_relaxed); }

// For hash tables and ordered ones.
class TableKeysTest : public testing::TestWithParam<bool> {
 protected:
  static Table MakeTable(uint64_t expected_rows, uint32_t workers = 1) {
    Schema schema;
    schema.name = "accounts";
    schema.tuple_bytes = 8;
    schema.expected_rows = expected_rows;
    schema.ordered = GetParam();
    return {TableId(0), schema, {}, workers};
  }
  static void Create(Table& table, const std::vector<Key>& keys) {
    for (const Key key : keys) table.FindOrCreate(kWorker, key, InitAbsent);
  }
  static constexpr int kCallsMax = 20'000;

  // What all calls append; `after_each` is told how many keys the call that was made had.
  static std::vector<Key> KeysOf(const Table& table, const std::function<void(size_t)>& after_each = {}) {
    std::vector<Key> keys;
    Table::KeyPosition position;
    for (int calls = 0; !position.at_end; ++calls) {
      if (calls == kCallsMax) throw std::runtime_error("the walk does not end");
      const size_t before = keys.size();
      table.NextKeys(position, keys);
      if (after_each) after_each(keys.size() - before);
    }
    return keys;
  }
  static std::vector<Key> Sorted(std::vector<Key> keys) {
    std::ranges::sort(keys);
    return keys;
  }
};

INSTANTIATE_TEST_SUITE_P(Tables, TableKeysTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ordered" : "Hash"; });

TEST_P(TableKeysTest, EachKeyIsSeenOnce) {
  // Few are expected: the buckets overflow. Many are: most of the buckets are empty.
  for (const uint64_t expected : {1, 1000, 100'000}) {
    for (const size_t count : {1, 15, 16, 63, 64, 65, 127, 128, 129, 2000}) {
      Table table = MakeTable(expected);
      std::vector<Key> keys;
      for (size_t i = 0; i < count; ++i) keys.push_back(Mix64(i));
      Create(table, keys);
      ASSERT_EQ(Sorted(KeysOf(table)), Sorted(keys)) << expected << " expected";
    }
  }
}

TEST_P(TableKeysTest, AFewAtATime) {
  constexpr Key kRows = 20'000;
  Table table = MakeTable(kRows);
  for (Key key = 0; key < kRows; ++key) table.LoadRow(kWorker, key, std::vector<std::byte>(8));
  size_t calls = 0, most = 0;
  const std::vector<Key> keys = KeysOf(table, [&](size_t seen) { ++calls, most = std::max(most, seen); });
  EXPECT_EQ(keys.size(), kRows);
  EXPECT_LE(most, 200u);
  EXPECT_GE(calls, kRows / 200);
  EXPECT_EQ(std::ranges::is_sorted(keys), GetParam());
}

TEST_P(TableKeysTest, AnEmptyTableHasNone) {
  for (const uint64_t expected : {0, 1, 100'000}) {
    Table table = MakeTable(expected);
    EXPECT_TRUE(KeysOf(table).empty());
    Row* const row = table.FindOrCreate(kWorker, 7, InitAbsent);
    row->control.store(Row::kAbsent | Row::kGone);
    table.Unlink(row);
    EXPECT_TRUE(KeysOf(table).empty());
  }
}

TEST_P(TableKeysTest, TheFirstAndTheLastKeyAreSeen) {
  // With full batches up to the last key, too.
  for (const Key others : {0, 62, 63, 126, 500}) {
    Table table = MakeTable(100);
    std::vector<Key> keys = {0, ~Key{0}};
    for (Key i = 0; i < others; ++i) keys.push_back(~Key{0} - 1 - i);
    Create(table, keys);
    EXPECT_EQ(Sorted(KeysOf(table)), Sorted(keys)) << others;
  }
}

TEST_P(TableKeysTest, BehindTheEndThereIsNothing) {
  Table table = MakeTable(100);
  Create(table, {1, 2, ~Key{0}});
  std::vector<Key> keys;
  Table::KeyPosition position;
  for (int calls = 0; calls < 1000; ++calls) table.NextKeys(position, keys);
  EXPECT_TRUE(position.at_end);
  EXPECT_EQ(Sorted(keys), (std::vector<Key>{1, 2, ~Key{0}}));
}

TEST_P(TableKeysTest, KeysAreAppended) {
  Table table = MakeTable(100);
  Create(table, {5});
  std::vector<Key> keys = {77};
  Table::KeyPosition position;
  for (int calls = 0; calls < 1000; ++calls) table.NextKeys(position, keys);
  EXPECT_EQ(keys, (std::vector<Key>{77, 5}));
}

// Between two calls the rows may come and go: the position is no pointer into the index.
TEST_P(TableKeysTest, WhatStaysIsSeenWhateverComesAndGoesBetweenCalls) {
  constexpr Key kRows = 3000;
  Table table = MakeTable(kRows / 4);
  EpochClock clock(1);
  const EpochSection section(clock, kWorker);
  for (Key key = 0; key < kRows; ++key) table.FindOrCreate(kWorker, key, InitAbsent);
  Key next = 0;
  const std::vector<Key> seen = KeysOf(table, [&](size_t) {
    for (const Key end = std::min(next + 100, kRows); next < end; ++next) {
      if (next % 3 == 0) continue;
      Row* const row = table.Find(next);
      row->control.store(Row::kAbsent | Row::kGone);
      table.Unlink(row);
      if (GetParam()) table.UnlinkEmptyLeaf(next, clock, kWorker, [](BTreeLeaf&, BTreeLeaf&) {});
      table.FindOrCreate(kWorker, kRows + next, InitAbsent);
    }
  });
  const std::vector<Key> sorted = Sorted(seen);
  for (Key key = 0; key < kRows; key += 3) ASSERT_EQ(std::ranges::count(sorted, key), 1) << key;
}

// Another worker creates rows between those that stay and unlinks them again, by the run of keys, so that leaves are
// split, emptied and unlinked.
class Churn {
 public:
  static constexpr WorkerId kReader{0}, kChanger{1};
  static constexpr Key kRun = 200, kKeys = 40 * kRun;

  explicit Churn(Table& table) : table_(table) {
    for (Key key = 0; key < kKeys; ++key) {
      if (Stays(key)) table_.FindOrCreate(kReader, key, InitAbsent);
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~Churn() {
    stopped_ = true;
    thread_.join();
  }

  // Of odd runs none does.
  static bool Stays(Key key) { return key / kRun % 2 == 0 && key % 4 == 0; }
  EpochClock& clock() { return clock_; }
  uint64_t changes() const { return changes_; }

 private:
  void Run() {
    std::mt19937_64 rng(7);
    const EpochSection section(clock_, kChanger);
    while (!stopped_) {
      const Key first = rng() % (kKeys / kRun) * kRun;
      const bool creates = rng() % 2 == 0;
      for (Key key = first; key < first + kRun; ++key) {
        if (Stays(key)) continue;
        if (creates) {
          table_.FindOrCreate(kChanger, key, InitAbsent);
        } else if (Row* const row = table_.Find(key)) {
          Unlink(row);
        }
      }
      ++changes_;
      clock_.Advance();
      clock_.Refresh(kChanger);
      for (; !retired_.empty() && clock_.SafeEpoch() > retired_.front().first; retired_.pop_front()) {
        table_.Recycle(kChanger, retired_.front().second);
      }
    }
  }
  void Unlink(Row* row) {
    const Key key = row->key;
    row->control.store(Row::kAbsent | Row::kGone);
    table_.Unlink(row);
    retired_.emplace_back(clock_.RetireEpoch(kChanger), row);
    if (table_.ordered()) table_.UnlinkEmptyLeaf(key, clock_, kChanger, [](BTreeLeaf&, BTreeLeaf&) {});
  }

  Table& table_;
  EpochClock clock_{2};
  std::deque<std::pair<Epoch, Row*>> retired_;
  std::atomic<bool> stopped_ = false;
  std::atomic<uint64_t> changes_ = 0;
  std::thread thread_;
};

TEST_P(TableKeysTest, WhatStaysIsSeenBesideAThreadThatChangesTheRest) {
  for (const uint64_t expected : {uint64_t{50}, uint64_t{Churn::kKeys}}) {
    Table table = MakeTable(expected, 2);
    Churn churn(table);
    uint64_t others = 0;
    // Until the other thread has run, and was interrupted with keys that come and go.
    const auto saw_little = [&](int walk) { return churn.changes() < 2000 || (others == 0 && walk < 1'000'000); };
    for (int walk = 0; walk < 100 || saw_little(walk); ++walk) {
      std::vector<int> seen(Churn::kKeys);
      std::vector<Key> keys;
      Table::KeyPosition position;
      for (int calls = 0; !position.at_end; ++calls) {
        ASSERT_LT(calls, kCallsMax);
        keys.clear();
        {
          const EpochSection section(churn.clock(), Churn::kReader);
          table.NextKeys(position, keys);
        }
        for (const Key key : keys) {
          ASSERT_LT(key, Churn::kKeys);
          ++seen[key];
        }
      }
      for (Key key = 0; key < Churn::kKeys; ++key) {
        if (!Churn::Stays(key)) {
          others += seen[key];
          continue;
        }
        ASSERT_EQ(seen[key], 1) << key;
      }
    }
    EXPECT_GT(others, 0u);
  }
}

}  // namespace
}  // namespace dbx
