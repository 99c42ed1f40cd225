// Claims about rows that are not there yet.
#include <gtest/gtest.h>

#include "benchmarks/test/test.h"
#include "tests/multi_master/cluster_workers.h"
#include "tests/multi_master/master/memory_cluster.h"

namespace dbx::mm {
namespace {

struct Shelves {
  explicit Shelves(uint32_t slots) : config{.slots = slots}, loaded(config), cluster({.masters = 1}, loaded.db) {}

  Table& table() { return loaded.workload.table(test::Place::kShelf); }
  void Insert(Key key) {
    const test::TestRow row{};
    MmTransaction txn = cluster.master(0).NewTransaction();
    for (Outcome outcome = Outcome::kConflict; outcome == Outcome::kConflict;) {
      txn.Begin(BeginTime(1));
      outcome = txn.Insert(table(), key, std::as_bytes(std::span(&row, 1)));
      outcome == Outcome::kOk ? (void)txn.Commit() : txn.Abort();
    }
  }
  // Of a range, twice in one transaction. Nothing: it was rolled back.
  std::optional<std::pair<int, int>> CountTwice(Key low, Key high) {
    MmTransaction txn = cluster.master(0).NewTransaction();
    int counts[2] = {};
    txn.Begin(BeginTime(2));
    for (int& count : counts) {
      const auto see = [&](Key, const auto&) { return ++count > 0; };
      if (txn.Scan(table(), low, high, ScanOrder::kAscending, see) == Outcome::kOk) continue;
      txn.Abort();
      return std::nullopt;
    }
    txn.Commit();
    return std::pair(counts[0], counts[1]);
  }

  TestConfig config;
  Loaded<TestWorkload> loaded;
  MemoryCluster cluster;
};

// Pages are full once loaded: an insert lets its page go to split it, and others scan it meanwhile.
TEST(PhantomTest, AScannedRangeKeepsItsRowsWhileItsPageIsSplit) {
  constexpr uint32_t kSlots = 1 << 14;
  Shelves shelves(kSlots);
  int wrong = 0;
  for (Key key = 33; key + 2 < kSlots; key += 64) {
    Atomic<bool> inserted{false};
    Thread inserter([&] {
      shelves.Insert(key);
      inserted = true;
    });
    while (!inserted.load()) {
      const auto counts = shelves.CountTwice(key - 2, key + 2);
      wrong += counts && counts->first != counts->second;
    }
    inserter.join();
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace dbx::mm
