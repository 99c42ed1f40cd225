// Claims about several Page Stores: load is spread, and a master goes on at another one.
#include <gtest/gtest.h>

#include "benchmarks/ycsb/ycsb.h"
#include "tests/multi_master/cluster_workers.h"
#include "tests/multi_master/process/tcp_cluster.h"

namespace dbx::mm {
namespace {

const YcsbConfig kYcsb{.rows = 300, .theta = 0.6, .req_per_query = 3};

TEST(PageStoresTest, MastersReadFromDifferentOnes) {
  Loaded<Ycsb> loaded(kYcsb);
  TcpCluster cluster(2, loaded.db, LongLease(), 2);
  RunWorkers(cluster, loaded.workload, 4, 50, 3);
  for (uint32_t i = 0; i < 2; ++i) EXPECT_GT(cluster.page_store(i).store().counters().pages_sent, 0u);
}

TEST(PageStoresTest, AMasterGoesOnAtAnotherOneThanTheLost) {
  for (uint32_t lost = 0; lost < 2; ++lost) {
    Loaded<Ycsb> loaded(kYcsb);
    TcpCluster cluster(2, loaded.db, LongLease(), 2);
    RunWorkers(cluster, loaded.workload, 4, 50, 3);
    cluster.page_store(lost).Stop();
    EXPECT_EQ(RunWorkers(cluster, loaded.workload, 4, 50, 4).committed, 200u);
    for (uint32_t by = 0; by < 2; ++by) EXPECT_EQ(loaded.Inconsistency(cluster.master(by), kYcsb), std::nullopt);
  }
}

// It is there and takes requests.
TEST(PageStoresTest, AMasterLeavesOneThatDoesNotAnswer) {
  Loaded<Ycsb> loaded(kYcsb);
  TcpCluster cluster(2, loaded.db, LongLease(), 2, /*silent_page_store=*/1);
  EXPECT_EQ(RunWorkers(cluster, loaded.workload, 4, 50, 3).committed, 200u);
  EXPECT_EQ(loaded.Inconsistency(cluster.master(1), kYcsb), std::nullopt);
}

TEST(LogStoresTest, TwoOfThreeGoOn) {
  for (uint32_t lost = 0; lost < kLogStores; ++lost) {
    Loaded<Ycsb> loaded(kYcsb);
    TcpCluster cluster(2, loaded.db);
    RunWorkers(cluster, loaded.workload, 4, 50, 3);
    cluster.log_store(lost).Stop();
    EXPECT_EQ(RunWorkers(cluster, loaded.workload, 4, 50, 4).committed, 200u);
    for (uint32_t by = 0; by < 2; ++by) EXPECT_EQ(loaded.Inconsistency(cluster.master(by), kYcsb), std::nullopt);
  }
}

}  // namespace
}  // namespace dbx::mm
