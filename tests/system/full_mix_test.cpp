// Every pair runs the full mix of TPC-C with threads: afterwards the conditions of the standard hold, and no
// transaction has seen what no serial execution shows. Recovery from crashes: crash_test.cpp.
#include <gtest/gtest.h>

#include <numeric>

#include "benchmarks/tpcc/tpcc.h"
#include "logging/schemes.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/registry.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

class FullMixTest : public testing::TestWithParam<PairName> {
 protected:
  FullMixTest() {
    options_ = DefaultOptions();
    options_.cc = GetParam().cc, options_.use_locktable = GetParam().use_locktable;
    options_.log = GetParam().log, options_.log_type = GetParam().log_type;
    options_.workload = WorkloadKind::kTpcc;
    options_.tpcc_full_mix = options_.tpcc_small = options_.verify = true;
    options_.thread_cnt = 4;
    options_.max_txns_per_thread = 1500;
    options_.epoch_period_ms = 1;
    options_.log_dirs = {"logs"};
  }
  RunResult Run() {
    FaultyFileSystem files;
    LogStorage storage(files);
    return Registry::Global().Create(options_)->Run(options_, storage);
  }
  // Procedures end in kNotFound where what they found does not fit together.
  void ExpectConsistentRuns() {
    for (options_.num_wh = 1; options_.num_wh <= 2; ++options_.num_wh) {
      const RunResult run = Run();
      EXPECT_EQ(run.stop_reason, "done");
      EXPECT_NE(run.verified.find('d'), std::string::npos);
      for (const AbortReason reason : {AbortReason::kNotFound, AbortReason::kExists, AbortReason::kRecordTooLarge}) {
        EXPECT_EQ(Sum(run, [&](const WorkerStats& w) { return w.aborts[static_cast<size_t>(reason)]; }), 0u);
      }
      const auto executed = [](const WorkerStats& w) { return w.executed; };
      const auto rollbacks = [](const WorkerStats& w) { return w.user_rollbacks; };
      EXPECT_EQ(Sum(run, executed) + Sum(run, rollbacks), options_.thread_cnt * options_.max_txns_per_thread);
      for (size_t i = 0; i < Tpcc::kProcedureNames.size(); ++i) {
        EXPECT_GT(Sum(run, [&](const WorkerStats& w) { return w.executed_of[i]; }), 100u) << Tpcc::kProcedureNames[i];
      }
    }
  }
  static uint64_t Sum(const RunResult& run, auto&& of) {
    return std::accumulate(run.workers.begin(), run.workers.end(), uint64_t{0},
                           [&](uint64_t sum, const WorkerStats& worker) { return sum + of(worker); });
  }

  Options options_;
};

std::string NameOf(const testing::TestParamInfo<PairName>& info) {
  const PairName& pair = info.param;
  return pair.cc + (pair.use_locktable ? "_table_" : "_rows_") + pair.log + "_" + pair.log_type;
}
INSTANTIATE_TEST_SUITE_P(Pairs, FullMixTest, testing::ValuesIn(Registry::Global().Supported()), NameOf);

TEST_P(FullMixTest, LeavesAConsistentDatabaseAndShowsNobodyAnother) { ExpectConsistentRuns(); }

std::vector<PairName> MultiVersionPairs() {
  std::vector<PairName> pairs = Registry::Global().Supported();
  std::erase_if(pairs, [](const PairName& pair) { return pair.cc != "HEKATON"; });
  return pairs;
}
class FullMixOfSnapshots : public FullMixTest {};
INSTANTIATE_TEST_SUITE_P(Pairs, FullMixOfSnapshots, testing::ValuesIn(MultiVersionPairs()), NameOf);

// The standard's transactions have no anomaly at this level.
TEST_P(FullMixOfSnapshots, LeavesAConsistentDatabaseToo) {
  options_.isolation_level = "SNAPSHOT";
  ExpectConsistentRuns();
}

}  // namespace
}  // namespace dbx
