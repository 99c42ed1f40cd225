// Two masters over the rows of YCSB, whose transactions tests make step by step.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "benchmarks/ycsb/ycsb.h"
#include "tests/multi_master/cluster_workers.h"
#include "tests/multi_master/master/memory_cluster.h"

namespace dbx::mm {

class ReadTest : public testing::Test {
 protected:
  // Of different leaves, as are kOther and those; kNear is on the leaf of kLeft.
  static constexpr Key kLeft = 0, kNear = 1, kRight = 250;
  static constexpr YcsbConfig kConfig{.rows = 300};

  explicit ReadTest(bool strict_reads = false)
      : loaded_(kConfig),
        cluster_({.masters = 2, .isolation = Isolation::kReadCommitted, .strict_reads = strict_reads}, loaded_.db),
        table_(loaded_.db.table(TableId(0))) {}

  MmTransaction Begin(uint32_t on) {
    MmTransaction txn = cluster_.master(on).NewTransaction();
    txn.Begin(BeginTime(1));
    return txn;
  }
  static void Write(MmTransaction& txn, Table& table, Key key, uint64_t value) {
    ASSERT_EQ(txn.Update(table, key, [&](auto& row) { row.template SetAt<uint64_t>(0, value); }), Outcome::kOk);
  }
  // A transaction that writes one row, durably.
  void WriteAlone(uint32_t on, Key key, uint64_t value) {
    MmTransaction txn = Begin(on);
    Write(txn, table_, key, value);
    cluster_.log(on).AwaitDurable(txn.Commit());
  }
  // In one statement, of a transaction of its own.
  std::map<Key, uint64_t> ScanAll(uint32_t on) {
    std::map<Key, uint64_t> rows;
    MmTransaction txn = Begin(on);
    EXPECT_EQ(txn.Scan(table_, 0, 5000, ScanOrder::kAscending,
                       [&](Key key, const TupleReader& row) {
                         rows[key] = row.GetAt<uint64_t>(0);
                         return true;
                       }),
              Outcome::kOk);
    txn.Commit();
    return rows;
  }
  uint64_t ReadOne(MmTransaction& txn, Key key) {
    uint64_t value = UINT64_MAX;
    txn.Read(table_, key, [&](const TupleReader& row) { value = row.GetAt<uint64_t>(0); });
    return value;
  }
  uint64_t ReadOne(uint32_t on, Key key) {
    MmTransaction txn = Begin(on);
    const uint64_t value = ReadOne(txn, key);
    txn.Commit();
    return value;
  }
  uint64_t reruns(uint32_t on) { return cluster_.master(on).views().counters().rerun; }
  PageCounters pages(uint32_t on) { return cluster_.master(on).pages().counters(); }
  uint64_t requests(uint32_t on) { return cluster_.master(on).locks().counters().requests; }
  // The leaf that the row is on.
  PageId LeafOf(Key key) {
    const PinnedLeaf leaf = cluster_.master(1).trees()[0]->PinLeaf(key, LockMode::kShared);
    return leaf.id();
  }

  Loaded<Ycsb> loaded_;
  MemoryCluster cluster_;
  Table& table_;
};

}  // namespace dbx::mm
