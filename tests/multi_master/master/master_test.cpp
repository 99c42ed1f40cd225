// Claims about masters over one database: what their transactions leave is what some serial execution leaves.
#include "multi_master/master/master.h"

#include <gtest/gtest.h>

#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test.h"
#include "benchmarks/tpcc/tpcc.h"
#include "benchmarks/ycsb/ycsb.h"
#include "tests/multi_master/cluster_workers.h"
#include "tests/multi_master/master/memory_cluster.h"

namespace dbx::mm {
namespace {

class MastersTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Masters, MastersTest, testing::Values(1, 2, 3));

TEST_P(MastersTest, YcsbLosesNoRowAndNoByte) {
  const YcsbConfig config{.rows = 300, .theta = 0.6, .req_per_query = 3};
  Loaded<Ycsb> loaded(config);
  MemoryCluster cluster({.masters = GetParam()}, loaded.db);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 200, 3).committed, 400u * GetParam());
  for (uint32_t by = 0; by < GetParam(); ++by)
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
}

TEST_P(MastersTest, SysbenchLeavesAnIndexThatFitsItsRows) {
  const SysbenchConfig config{
      .masters = GetParam(), .workers_per_master = 2, .tables = 1, .rows = 300, .sharing_perc = 50};
  Loaded<Sysbench> loaded(config);
  MemoryCluster cluster({.masters = GetParam()}, loaded.db);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 20, 3).committed, 40u * GetParam());
  for (uint32_t by = 0; by < GetParam(); ++by)
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
}

TEST_P(MastersTest, TheHistoryOfTestIsSerializable) {
  TestConfig config;
  config.expected_transactions = 10'000;
  Loaded<TestWorkload> loaded(config);
  MemoryCluster cluster({.masters = GetParam()}, loaded.db);
  EXPECT_GT(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 150, 3).committed, 0u);
  for (uint32_t by = 0; by < GetParam(); ++by)
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
}

TEST_P(MastersTest, TheFullMixOfTpccKeepsTheConditionsOfTheStandard) {
  TpccConfig config;
  config.warehouses = 2;
  config.full_mix = config.small = true;
  Loaded<Tpcc> loaded(config);
  MemoryCluster cluster({.masters = GetParam()}, loaded.db);
  EXPECT_GT(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 60, 3).committed, 0u);
  for (uint32_t by = 0; by < GetParam(); ++by)
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
}

TEST(MasterTest, ASmallBufferGivesPageLocksUp) {
  const YcsbConfig config{.rows = 3000, .theta = 0, .req_per_query = 3};
  Loaded<Ycsb> loaded(config);
  MemoryCluster cluster({.masters = 2, .frames_max = 40}, loaded.db);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 4, 100, 3).committed, 400u);
  EXPECT_GT(cluster.master(0).pages().counters().evicted, 0u);
  EXPECT_EQ(loaded.Inconsistency(cluster.master(0), config), std::nullopt);
}

// multi_master.md, section 11: of pages that no other master uses.
TEST(MasterTest, APageThatStaysHereCostsNoMessage) {
  const YcsbConfig config{.rows = 300, .theta = 0, .req_per_query = 3};
  Loaded<Ycsb> loaded(config);
  MemoryCluster cluster({.masters = 2}, loaded.db);
  MmTransaction txn = cluster.master(0).NewTransaction();
  Table& table = loaded.db.table(TableId(0));
  const auto update_all = [&] {
    txn.Begin(BeginTime(1));
    for (Key key = 0; key < config.rows; ++key) {
      ASSERT_EQ(txn.Update(table, key, [](auto& row) { row.template SetAt<uint64_t>(0, 5); }), Outcome::kOk);
    }
    txn.Commit();
  };
  update_all();
  const uint64_t requests = cluster.master(0).locks().counters().requests;
  update_all();
  EXPECT_EQ(cluster.master(0).locks().counters().requests, requests);
}

TEST(MasterTest, ARollbackLeavesNothingBehind) {
  const YcsbConfig config{.rows = 300};
  Loaded<Ycsb> loaded(config);
  MemoryCluster cluster({.masters = 2}, loaded.db);
  Table& table = loaded.db.table(TableId(0));
  MmTransaction txn = cluster.master(0).NewTransaction();
  txn.Begin(BeginTime(1));
  const std::vector<std::byte> tuple(table.tuple_bytes());
  EXPECT_EQ(txn.Update(table, 5, [](auto& row) { row.template SetAt<uint64_t>(8, 1); }), Outcome::kOk);
  EXPECT_EQ(txn.Insert(table, 1000, tuple), Outcome::kOk);
  EXPECT_EQ(txn.Delete(table, 7), Outcome::kOk);
  EXPECT_EQ(txn.Insert(table, 7, tuple), Outcome::kOk);
  EXPECT_EQ(txn.Insert(table, 7, tuple), Outcome::kExists);
  EXPECT_EQ(txn.Read(table, 1001, [](const auto&) {}), Outcome::kNotFound);
  txn.Abort();
  EXPECT_EQ(loaded.Inconsistency(cluster.master(1), config), std::nullopt);
}

TEST(MasterTest, AScanOnOneMasterKeepsAnotherFromInsertingInItsRange) {
  const YcsbConfig config{.rows = 300};
  Loaded<Ycsb> loaded(config);
  MemoryCluster cluster({.masters = 2}, loaded.db);
  Table& table = loaded.db.table(TableId(0));
  MmTransaction scan = cluster.master(0).NewTransaction(), insert = cluster.master(1).NewTransaction();
  const std::vector<std::byte> tuple(table.tuple_bytes());
  const auto count = [&] {
    uint64_t rows = 0;
    const auto visit = [&](Key, const TupleReader&) { return ++rows, true; };
    EXPECT_EQ(scan.Scan(table, 200, 500, ScanOrder::kDescending, visit), Outcome::kOk);
    return rows;
  };
  scan.Begin(BeginTime(1));
  EXPECT_EQ(count(), 100u);
  insert.Begin(BeginTime(2));
  EXPECT_EQ(insert.Insert(table, 400, tuple), Outcome::kConflict) << "the scan has not ended";
  EXPECT_EQ(insert.last_wait(), WaitResult::kTimedOut);
  insert.Abort();
  EXPECT_EQ(count(), 100u) << "a phantom";
  scan.Commit();
  insert.Begin(BeginTime(3));
  EXPECT_EQ(insert.Insert(table, 400, tuple), Outcome::kOk);
  insert.Commit();
}

}  // namespace
}  // namespace dbx::mm
