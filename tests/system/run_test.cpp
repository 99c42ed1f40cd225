// What a run and a recovery say about themselves, over a file system in memory.
#include <gtest/gtest.h>

#include "base/error.h"
#include "logging/device/faulty_file_system.h"
#include "system/registry.h"

namespace dbx {
namespace {

class RunAndRecovery : public testing::Test {
 protected:
  RunAndRecovery() {
    options_ = DefaultOptions();
    // Pairs that the sanitised builds hold too.
    options_.cc = "SILO", options_.log = "LOG_TAURUS";
    options_.log_type = "LOG_COMMAND";
    options_.num_logger = 2;
    options_.thread_cnt = 2;
    options_.synth_table_size = 500;
    options_.log_limit_bytes = 64 << 20;
    options_.log_dirs = {"logs"};
  }
  RunResult Run() { return Registry::Global().Create(options_)->Run(options_, storage_); }
  RecoveryResult Recover() { return Registry::Global().Create(options_)->Recover(options_, storage_); }

  Options options_;
  FaultyFileSystem files_;
  LogStorage storage_{files_};
};

TEST_F(RunAndRecovery, TakeTheInstructionsThatWereAskedFor) {
  options_.simd = "scalar";
  EXPECT_EQ(Run().simd, "scalar");
  EXPECT_EQ(Recover().simd, "scalar");
}

TEST_F(RunAndRecovery, RefuseInstructionsThatTheMachineLacks) {
  if (__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this machine has them all";
  Run();
  options_.simd = "avx512";
  EXPECT_THROW(Recover(), Error);
}

TEST_F(RunAndRecovery, TheLogRateLeavesOutWarmUp) {
  options_.warmup = 5000;
  options_.max_txns_per_thread = 200;
  const RunResult run = Run();
  uint64_t record_bytes = 0;
  for (const StreamStats& stream : run.streams) record_bytes += stream.record_bytes;
  EXPECT_GT(run.interval_log_bytes, 0u);
  EXPECT_LT(run.interval_log_bytes, record_bytes / 2);
}

// Each transaction waits for a flush, so there are as many.
TEST_F(RunAndRecovery, WithoutLatencyHidingAWorkerHasOneTransactionInFlight) {
  options_.latency_hiding = false;
  options_.read_perc = 0, options_.write_perc = 1;
  const RunResult run = Run();
  for (const StreamStats& stream : run.streams) EXPECT_GE(stream.flushes, options_.max_txns_per_thread);
}

TEST_F(RunAndRecovery, TheMethodsOfACentralLogLeaveLogsThatRecoverTheSame) {
  options_.log = "LOG_ELEDA", options_.num_logger = 1, options_.verify = true;
  for (const char* method : {"ELEDA", "MUTEX", "CONSOLIDATION", "BITMAP"}) {
    SCOPED_TRACE(method);
    options_.central_log = method;
    const RunResult run = Run();
    EXPECT_EQ(Recover().recovered, run.logged_txns);
    ASSERT_TRUE(run.central_log);
    EXPECT_EQ(run.central_log->callbacks, options_.central_log == "ELEDA" ? run.logged_txns : 0);
  }
}

}  // namespace
}  // namespace dbx
