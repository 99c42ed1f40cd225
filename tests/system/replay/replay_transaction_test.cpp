// The contexts in which commands run again, the engine's and the reference's, against one over maps: what they return
// and what they see, scans above all.
#include "system/replay/replay_transaction.h"

#include <gtest/gtest.h>

#include <random>

#include "storage/digest.h"
#include "system/reference/reference_replay.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

constexpr Key kKeys = 400;

struct OrderedDatabase {
  OrderedDatabase() {
    Schema schema;
    schema.name = "T";
    schema.tuple_bytes = sizeof(uint64_t);
    schema.ordered = true;
    db.CreateTable(schema);
    for (uint64_t key = 0; key < kKeys; key += 2) table().LoadRow(WorkerId(0), key, std::as_bytes(std::span(&key, 1)));
  }
  Table& table() { return db.table(TableId(0)); }

  Database db{{}, 1};
};

struct Seen {
  Outcome outcome;
  std::vector<std::pair<Key, uint64_t>> rows;
  bool operator==(const Seen&) const = default;
};

// One random access, the same for every context that is given the same numbers.
Seen Access(auto& context, Table& table, std::mt19937_64 random) {
  Seen seen{};
  const uint64_t kind = random() % 8, value = random();
  const Key key = random() % kKeys;
  if (kind < 2) {
    seen.outcome = context.Insert(table, key, std::as_bytes(std::span(&value, 1)));
  } else if (kind < 5) {
    seen.outcome = context.Delete(table, key);
  } else if (kind == 5) {
    seen.outcome = context.Update(table, key, [&](auto& tuple) { tuple.SetAt(0, value); });
  } else {
    const uint64_t limit = random() % 10;
    const ScanOrder order = kind == 6 ? ScanOrder::kAscending : ScanOrder::kDescending;
    seen.outcome = context.Scan(table, key, key + random() % kKeys, order, [&](Key found, const auto& tuple) {
      seen.rows.emplace_back(found, tuple.template GetAt<uint64_t>(0));
      return seen.rows.size() < limit;
    });
  }
  return seen;
}

TEST(ReplayTransactionTest, AgreesWithTheReferenceAndWithMaps) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  OrderedDatabase replayed, reference;
  MapContext maps(replayed.db);
  ReplayTransaction replay(WorkerId(0));
  reference::ReferenceContext context;
  for (int i = 0; i < 20'000; ++i) {
    const std::mt19937_64 numbers(random());
    const Seen expected = Access(maps, replayed.table(), numbers);
    ASSERT_EQ(Access(replay, replayed.table(), numbers), expected) << i;
    ASSERT_EQ(Access(context, reference.table(), numbers), expected) << i;
    context.Forget();
  }
  EXPECT_EQ(DigestOf(replayed.db, 1), DigestOf(reference.db, 1));
}

// A queue that is read at its low end does not get slower with all that was in it.
TEST(ReplayTransactionTest, ADeletedRowAndAnEmptyLeafLeaveTheIndex) {
  OrderedDatabase database;
  ReplayTransaction replay(WorkerId(0));
  reference::ReferenceContext context;
  for (Key key = 0; key + 2 < kKeys; key += 2) {
    const bool by_replay = key < kKeys / 2;
    EXPECT_EQ(by_replay ? replay.Delete(database.table(), key) : context.Delete(database.table(), key), Outcome::kOk);
    context.Forget();
  }
  BTreeScan scan(database.table().tree(), 0, kKeys, ScanOrder::kAscending);
  size_t batches = 0, entries = 0;
  for (; scan.NextBatch(); entries += scan.entries().size()) ++batches;
  EXPECT_EQ(batches, 1u);
  EXPECT_EQ(entries, 1u);
}

}  // namespace
}  // namespace dbx
