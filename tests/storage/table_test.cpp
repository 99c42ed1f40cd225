// Table: the life of a row from load to recycling, and what a table costs.
#include "storage/table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace dbx {
namespace {

constexpr WorkerId kWorker{0};

Schema MakeSchema(uint32_t tuple_bytes, uint64_t expected_rows, uint32_t alignment = 16) {
  Schema schema;
  schema.name = "accounts";
  schema.tuple_bytes = tuple_bytes;
  schema.expected_rows = expected_rows;
  schema.row_alignment_bytes = alignment;
  return schema;
}

std::vector<std::byte> Tuple(size_t bytes, int fill) { return std::vector<std::byte>(bytes, std::byte(fill)); }

void InitAbsent(Row& row) { row.control.store(Row::kAbsent, std::memory_order_relaxed); }

TEST(TableTest, LoadedRowIsPresentAndHoldsItsTuple) {
  Table table(TableId(3), MakeSchema(20, 10), {.log_bytes = 24}, 1);
  table.LoadRow(kWorker, 5, Tuple(20, 7));
  const Row* row = table.Find(5);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->control.load() & (Row::kLocked | Row::kAbsent | Row::kGone), 0u);
  EXPECT_EQ(std::memcmp(table.tuple(row), Tuple(20, 7).data(), 20), 0);
  EXPECT_EQ(table.Find(6), nullptr);
}

TEST(TableTest, TupleLiesBehindTheLogMetadata) {
  Table table(TableId(0), MakeSchema(8, 10), {.log_bytes = 12}, 1);
  table.LoadRow(kWorker, 1, Tuple(8, 1));
  Row* const row = table.Find(1);
  EXPECT_GE(table.tuple(row), row->meta() + 12);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(table.tuple(row)) % 8, 0u);
  EXPECT_EQ(std::memcmp(row->meta(), Tuple(12, 0).data(), 12), 0);
}

TEST(TableTest, DuplicateLoadIsRefusedByName) {
  Table table(TableId(0), MakeSchema(8, 10), {}, 1);
  table.LoadRow(kWorker, 42, Tuple(8, 1));
  try {
    table.LoadRow(kWorker, 42, Tuple(8, 2));
    FAIL() << "loaded a key twice";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("accounts"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("42"), std::string::npos);
  }
  EXPECT_EQ(table.row_count(), 1u);
}

TEST(TableTest, AbsentRowIsFoundButNotCounted) {
  Table table(TableId(0), MakeSchema(8, 10), {}, 1);
  Row* const row = table.FindOrCreate(kWorker, 9, InitAbsent);
  EXPECT_EQ(table.Find(9), row);
  EXPECT_EQ(table.FindOrCreate(kWorker, 9, [](Row&) { FAIL() << "made twice"; }), row);
  EXPECT_EQ(table.row_count(), 0u);
  int visited = 0;
  table.ForEachRow([&](const Row&) { ++visited; });
  EXPECT_EQ(visited, 1);
}

TEST(TableTest, RecycledRowStartsItsNextLifeZeroed) {
  Table table(TableId(0), MakeSchema(8, 10), {.log_bytes = 8}, 1);
  Row* const row = table.FindOrCreate(kWorker, 9, InitAbsent);
  std::memset(row->meta(), 0xff, 16);
  row->control.store(Row::kAbsent | Row::kGone);
  table.Unlink(row);
  EXPECT_EQ(table.Find(9), nullptr);
  table.Recycle(kWorker, row);
  Row* const next = table.FindOrCreate(kWorker, 10, InitAbsent);
  ASSERT_EQ(next, row) << "the memory is used again";
  EXPECT_EQ(next->key, 10u);
  EXPECT_EQ(std::memcmp(next->meta(), Tuple(16, 0).data(), 16), 0);
}

TEST(TableTest, RowsKeepTheirAlignment) {
  Table table(TableId(0), MakeSchema(10, 100, 64), {}, 1);
  for (Key key = 0; key < 100; ++key) table.LoadRow(kWorker, key, Tuple(10, 1));
  table.ForEachRow([](const Row& row) { ASSERT_EQ(reinterpret_cast<uintptr_t>(&row) % 64, 0u); });
}

TEST(TableTest, KilobyteRowsCostAtMostTenPercentMore) {
  constexpr uint64_t kRows = 100'000;
  Table table(TableId(0), MakeSchema(1000, kRows), {}, 1);
  for (Key key = 0; key < kRows; ++key) table.LoadRow(kWorker, key, Tuple(1000, 1));
  EXPECT_LE(table.memory_bytes(), kRows * 1000 * 110 / 100);
}

TEST(TableTest, ThreadsLoadSideBySide) {
  constexpr uint32_t kThreads = 4;
  constexpr uint64_t kRows = 20'000;
  Table table(TableId(0), MakeSchema(8, kRows), {}, kThreads);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&table, i] {
      for (Key key = i; key < kRows; key += kThreads) table.LoadRow(WorkerId(i), key, Tuple(8, static_cast<int>(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.row_count(), kRows);
  for (Key key = 0; key < kRows; ++key) ASSERT_EQ(table.tuple(table.Find(key))[0], std::byte(key % kThreads));
}

Schema MakeOrderedSchema(uint32_t tuple_bytes) {
  Schema schema = MakeSchema(tuple_bytes, 10);
  schema.ordered = true;
  return schema;
}

TEST(OrderedTableTest, ARowIsCreatedInItsLeafAndLeavesIt) {
  Table table(TableId(0), MakeOrderedSchema(8), {.leaf_log_bytes = 16}, 1);
  BTreeLeaf* leaf = nullptr;
  LeafChange created, unlinked;
  Row* const row = table.FindOrCreate(
      kWorker, 9,
      [&](Row& made, BTreeLeaf& of) {
        InitAbsent(made);
        leaf = &of;
      },
      created);
  EXPECT_EQ(table.Find(9), row);
  EXPECT_EQ(created.leaf, leaf);
  EXPECT_TRUE(created.changed());
  table.Unlink(
      row, [&](BTreeLeaf& of) { EXPECT_EQ(&of, leaf); }, unlinked);
  EXPECT_EQ(table.Find(9), nullptr);
  EXPECT_EQ(unlinked.before, created.after);
  EXPECT_TRUE(unlinked.emptied);
}

TEST(OrderedTableTest, ARowThatIsThereIsNotCreatedAgain) {
  Table table(TableId(0), MakeOrderedSchema(8), {}, 1);
  table.LoadRow(kWorker, 9, Tuple(8, 1));
  LeafChange change;
  Row* const row = table.FindOrCreate(
      kWorker, 9, [](Row&, BTreeLeaf&) { FAIL() << "made twice"; }, change);
  EXPECT_EQ(row, table.Find(9));
  EXPECT_FALSE(change.changed());
  EXPECT_THROW(table.LoadRow(kWorker, 9, Tuple(8, 1)), Error);
}

TEST(OrderedTableTest, ThePartsOfAnIndexMakeTheWhole) {
  for (const Key rows : {0, 1, 62, 63, 5000}) {
    Table table(TableId(0), MakeOrderedSchema(8), {}, 1);
    for (Key key = 0; key < rows; ++key) table.LoadRow(kWorker, key * 3, Tuple(8, 1));
    for (const uint64_t parts : {1, 2, 3, 7, 200}) {
      std::vector<Key> seen;
      for (uint64_t part = 0; part < parts; ++part) {
        table.ForEachRowOfPart(part, parts, [&](const Row& row) { seen.push_back(row.key); });
      }
      ASSERT_EQ(seen.size(), rows);
      for (Key key = 0; key < rows; ++key) ASSERT_EQ(seen[key], key * 3);
    }
  }
}

TEST(OrderedTableTest, ThreadsLoadSideBySideAndEachPartHasItsShare) {
  constexpr uint32_t kThreads = 4;
  constexpr Key kRows = 20'000;
  Table table(TableId(0), MakeOrderedSchema(8), {}, kThreads);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&table, i] {
      for (Key key = i; key < kRows; key += kThreads) table.LoadRow(WorkerId(i), key, Tuple(8, static_cast<int>(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.row_count(), kRows);
  for (uint64_t part = 0; part < kThreads; ++part) {
    uint64_t rows = 0;
    table.ForEachRowOfPart(part, kThreads, [&](const Row&) { ++rows; });
    EXPECT_GT(rows, kRows / kThreads / 2);
  }
}

TEST(TableTest, PrefaultedLeavesOfAllWorkersTakeTheirRows) {
  Schema schema = MakeSchema(8, 10);
  schema.ordered = true;
  Table table(TableId(0), schema, {}, 2);
  constexpr uint64_t kRows = 100'000;
  for (const uint32_t worker : {0, 1}) table.PrefaultRows(WorkerId(worker), kRows);
  const size_t prefaulted = table.index_bytes();
  EXPECT_GT(prefaulted, 2 * kRows * 2 * sizeof(Key));
  for (Key key = 0; key < 2 * kRows; ++key) table.FindOrCreate(WorkerId(key / kRows), key, [](Row&) {});
  EXPECT_LE(table.index_bytes(), prefaulted * 11 / 10);  // but for the inner nodes
  table.PrefaultRows(WorkerId(0), kRows);
  EXPECT_LE(table.index_bytes(), prefaulted * 17 / 10);  // for those rows alone
}

TEST(TableTest, PrefetchesChangeNothingAndNeedNoRow) {
  for (const bool ordered : {false, true}) {
    Schema schema = MakeSchema(100, 10);
    schema.ordered = ordered;
    Table table(TableId(0), schema, {}, 1);
    table.LoadRow(kWorker, 1, Tuple(100, 1));
    table.PrefaultRows(kWorker, 5000);
    for (Key key = 0; key < 3; ++key) {
      table.PrefetchBucket(key);
      table.PrefetchRow(key, 100);
    }
    EXPECT_EQ(table.row_count(), 1u);
  }
}

}  // namespace
}  // namespace dbx
