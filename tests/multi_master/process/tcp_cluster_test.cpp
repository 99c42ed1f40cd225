// Claims about a cluster whose processes talk over TCP and whose logs lie in Log Stores on files.
#include "tests/multi_master/process/tcp_cluster.h"

#include <gtest/gtest.h>

#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test.h"
#include "benchmarks/tpcc/tpcc.h"
#include "benchmarks/ycsb/ycsb.h"
#include "tests/multi_master/cluster_workers.h"

namespace dbx::mm {
namespace {

class TcpClusterTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Masters, TcpClusterTest, testing::Values(1, 3));

TEST_P(TcpClusterTest, YcsbLosesNoRowAndNoByte) {
  const YcsbConfig config{.rows = 300, .theta = 0.6, .req_per_query = 3};
  Loaded<Ycsb> loaded(config);
  TcpCluster cluster(GetParam(), loaded.db);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 100, 3).committed, 200u * GetParam());
  for (uint32_t by = 0; by < GetParam(); ++by) {
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
    cluster.process(by).ThrowIfFailed();
  }
  cluster.page_store().ThrowIfFailed();
}

TEST_P(TcpClusterTest, TheFullMixOfTpccKeepsTheConditionsOfTheStandard) {
  TpccConfig config;
  config.warehouses = 2;
  config.full_mix = config.small = true;
  Loaded<Tpcc> loaded(config);
  TcpCluster cluster(GetParam(), loaded.db);
  EXPECT_GT(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 60, 3).committed, 0u);
  for (uint32_t by = 0; by < GetParam(); ++by) {
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
  }
}

TEST_P(TcpClusterTest, TheHistoryOfTestIsWhatItsIsolationAllows) {
  for (const Isolation isolation : {Isolation::kSerializable, Isolation::kReadCommitted}) {
    TestConfig config;
    config.read_committed = isolation == Isolation::kReadCommitted;
    Loaded<TestWorkload> loaded(config);
    TcpCluster cluster({.masters = GetParam(), .isolation = isolation}, loaded.db);
    EXPECT_GT(RunWorkers(cluster, loaded.workload, 2 * GetParam(), 60, 3).committed, 0u);
    EXPECT_EQ(loaded.Inconsistency(cluster.master(0), config), std::nullopt);
    EXPECT_EQ(cluster.master(0).views().counters().versioned > 0, config.read_committed);
    cluster.process(0).ThrowIfFailed();
  }
}

TEST(StrictTest, AReadThatBeginsAfterAnAcknowledgementElsewhereSeesIt) {
  Loaded<Ycsb> loaded(YcsbConfig{.rows = 300});
  TcpCluster cluster({.masters = 2, .isolation = Isolation::kReadCommitted, .strict_reads = true}, loaded.db);
  Table& table = loaded.db.table(TableId(0));
  MmTransaction writer = cluster.master(1).NewTransaction(), reader = cluster.master(0).NewTransaction();
  for (uint64_t value = 1; value <= 20; ++value) {
    writer.Begin(BeginTime(1));
    EXPECT_EQ(writer.Update(table, 5, [&](auto& row) { row.template SetAt<uint64_t>(0, value); }), Outcome::kOk);
    cluster.master(1).log().AwaitDurable(writer.Commit());
    reader.Begin(BeginTime(1));
    uint64_t seen = 0;
    EXPECT_EQ(reader.Read(table, 5, [&](const TupleReader& row) { seen = row.GetAt<uint64_t>(0); }), Outcome::kOk);
    reader.Commit();
    EXPECT_EQ(seen, value);
  }
}

// A grant raises the clock, and there is no record that could become durable with its time.
TEST(ReaderTest, AReaderIsAcknowledgedThoughNothingIsWritten) {
  const YcsbConfig config{.rows = 300};
  Loaded<Ycsb> loaded(config);
  TcpCluster cluster(2, loaded.db);
  for (uint32_t by = 0; by < 2; ++by) {
    MmTransaction txn = cluster.master(by).NewTransaction();
    txn.Begin(BeginTime(1));
    if (by == 0) {
      EXPECT_EQ(txn.Update(loaded.db.table(TableId(0)), 5, [](auto& row) { row.template SetAt<uint64_t>(0, 5); }),
                Outcome::kOk);
    }
    EXPECT_EQ(txn.Read(loaded.db.table(TableId(0)), 5, [](const auto&) {}), Outcome::kOk);
    cluster.master(by).log().AwaitDurable(txn.Commit());
  }
}

}  // namespace
}  // namespace dbx::mm
