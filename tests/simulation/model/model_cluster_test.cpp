#include "tests/simulation/model/model_cluster.h"

#include <gtest/gtest.h>

namespace dbx::sim {
namespace {

ModelPlan PlanOf(uint32_t masters, uint32_t sharing_perc) {
  ModelPlan plan;
  plan.workload.masters = masters;
  plan.workload.workers_per_master = 2;
  plan.workload.rows = 500;
  plan.workload.sharing_perc = sharing_perc;
  plan.workload.mix = SysbenchMix::kWriteOnly;
  plan.warmup_seconds = 0.03;
  plan.seconds = 0.03;
  plan.master.nanos_per_step = 50;
  plan.network.batch_nanos = 4000;
  plan.network.kib_nanos = 100;
  return plan;
}
double ThroughputOf(const ModelResult& result) {
  return static_cast<double>(result.masters.acknowledged) / result.masters.seconds;
}

TEST(ModelClusterTest, MastersThatShareNothingDoNotSlowEachOther) {
  const ModelResult one = RunModel(PlanOf(1, 0)), two = RunModel(PlanOf(2, 0));
  EXPECT_NEAR(ThroughputOf(two) / ThroughputOf(one), 2, 0.2);
}

TEST(ModelClusterTest, SharedPagesCostMessagesAndThroughput) {
  const ModelResult apart = RunModel(PlanOf(2, 0)), shared = RunModel(PlanOf(2, 50));
  EXPECT_GT(shared.masters.locks.reclaims, 10 * apart.masters.locks.reclaims);
  EXPECT_LT(ThroughputOf(shared), ThroughputOf(apart) / 2);
}

TEST(ModelClusterTest, ASlowerProcessorTakesItsTimeFromWorkers) {
  ModelPlan slow = PlanOf(1, 0);
  slow.master.nanos_per_step *= 2;
  EXPECT_NEAR(ThroughputOf(RunModel(PlanOf(1, 0))) / ThroughputOf(RunModel(slow)), 2, 0.3);
}

TEST(ModelClusterTest, ALongerWayTakesTimeFromSharedPages) {
  ModelPlan far = PlanOf(2, 50);
  far.network.latency_nanos *= 4;
  EXPECT_GT(ThroughputOf(RunModel(PlanOf(2, 50))), 1.5 * ThroughputOf(RunModel(far)));
}

TEST(ModelClusterTest, ASeedDecidesEverything) {
  const ModelPlan plan = PlanOf(2, 50);
  ModelPlan other = plan;
  other.seed = 2;
  const std::string first = JsonOf(plan, RunModel(plan));
  EXPECT_EQ(first, JsonOf(plan, RunModel(plan)));
  EXPECT_NE(first, JsonOf(other, RunModel(other)));
}

}  // namespace
}  // namespace dbx::sim
