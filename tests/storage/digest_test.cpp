// Digests: equal for equal contents, whatever the order and the threads; different for any difference.
#include "storage/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace dbx {
namespace {

constexpr WorkerId kWorker{0};

// A database with two tables whose rows [0, rows) are loaded upwards or downwards.
class DigestTest : public testing::Test {
 protected:
  static std::unique_ptr<Database> Load(uint64_t rows, bool upwards, size_t meta_bytes = 0) {
    auto db = std::make_unique<Database>(RowLayout{.log_bytes = meta_bytes, .leaf_log_bytes = meta_bytes}, 1);
    for (int t = 0; t < 2; ++t) {
      Schema schema;
      schema.tuple_bytes = 8;
      schema.expected_rows = rows / 2;
      Table& table = db->CreateTable(schema);
      for (uint64_t i = 0; i < rows; ++i) {
        const uint64_t key = upwards ? i : rows - 1 - i;
        const uint64_t value = key * 3;
        table.LoadRow(kWorker, key, std::as_bytes(std::span(&value, 1)));
      }
    }
    SecondaryIndex& index = db->CreateSecondaryIndex("by_value");
    for (uint64_t i = 0; i < rows; ++i) index.Add(i % 3, "", upwards ? i : rows - 1 - i);
    return db;
  }
  static Table& First(Database& db) { return db.table(TableId(0)); }
};

TEST_F(DigestTest, OrderOfInsertionAndMetadataDoNotMatter) {
  const auto a = Load(999, true);
  const auto b = Load(999, false, 32);
  EXPECT_EQ(DigestOf(First(*a)), DigestOf(First(*b)));
  EXPECT_EQ(DigestOf(First(*a)).row_count, 999u);
}

TEST_F(DigestTest, NumberOfThreadsDoesNotMatter) {
  const auto db = Load(1000, true);
  db->secondary_indexes()[0]->Freeze();
  for (uint32_t threads = 2; threads <= 5; ++threads) EXPECT_EQ(DigestOf(*db, threads), DigestOf(*db, 1));
}

TEST_F(DigestTest, OneChangedByteChangesTheDigest) {
  const auto db = Load(100, true);
  db->secondary_indexes()[0]->Freeze();
  const Digest128 before = DigestOf(*db);
  Table& table = First(*db);
  std::byte& byte = table.tuple(table.Find(50))[7];
  byte = std::byte{1};
  EXPECT_NE(DigestOf(*db), before);
  byte = std::byte{0};
  EXPECT_EQ(DigestOf(*db), before);
}

TEST_F(DigestTest, SwappedTuplesChangeTheDigest) {
  const auto db = Load(100, true);
  Table& table = First(*db);
  const TableDigest before = DigestOf(table);
  std::swap_ranges(table.tuple(table.Find(1)), table.tuple(table.Find(1)) + 8, table.tuple(table.Find(2)));
  EXPECT_NE(DigestOf(table), before);
}

TEST_F(DigestTest, AbsentRowsDoNotCount) {
  const auto db = Load(100, true);
  const TableDigest before = DigestOf(First(*db));
  Row* row = First(*db).FindOrCreate(kWorker, 5000, [](Row& r) { r.control.store(Row::kAbsent); });
  EXPECT_EQ(DigestOf(First(*db)), before);
  row->control.store(0);
  EXPECT_NE(DigestOf(First(*db)), before);
}

TEST_F(DigestTest, SecondaryIndexesArePartOfTheDatabase) {
  const auto a = Load(99, true);
  const auto b = Load(99, true);
  b->secondary_indexes()[0]->Add(0, "", 12345);
  a->secondary_indexes()[0]->Freeze();
  b->secondary_indexes()[0]->Freeze();
  EXPECT_NE(DigestOf(*a), DigestOf(*b));
}

TEST_F(DigestTest, SumsCarryIntoTheHighWord) {
  Digest128 sum{std::numeric_limits<uint64_t>::max(), 1};
  sum += Digest128{2, 3};
  EXPECT_EQ(sum, (Digest128{1, 5}));
  EXPECT_EQ(sum.Hex(), "00000000000000050000000000000001");
}

}  // namespace
}  // namespace dbx
