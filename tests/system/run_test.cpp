// What a run and a recovery say about themselves, over a file system in memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "logging/schemes.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/pair_types.h"
#include "system/pairs/registry.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/system/held_pairs.h"

namespace dbx {
namespace {

class RunAndRecovery : public ::testing::Test {
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

// Memory for a million calls of thousands of accesses each is not there.
TEST_F(RunAndRecovery, TheListOfCallsIsBoundedWhereEachIsLong) {
  options_.seconds = 1;
  options_.req_per_query = 2;
  EXPECT_EQ(CallListLength(options_), 1u << 20);
  options_.req_per_query = 2000;
  EXPECT_LE(CallListLength(options_) * options_.req_per_query, 1u << 24);
  EXPECT_GT(CallListLength(options_), 1000u);
  options_.query_list_len = 1 << 20;
  EXPECT_EQ(CallListLength(options_), 1u << 20);
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

// A transaction of k attempts has k - 1 aborts.
TEST_F(RunAndRecovery, AWorkerKnowsTheMostAttemptsOfATransaction) {
  options_.synth_table_size = 2, options_.req_per_query = 2;
  options_.max_txns_per_thread = 5000;
  for (const WorkerStats& worker : Run().workers) {
    const uint64_t aborts = std::accumulate(worker.aborts.begin(), worker.aborts.end(), uint64_t{0});
    EXPECT_EQ(worker.max_tries > 1, aborts > 0);
    EXPECT_GE(worker.max_tries, 1u);
    EXPECT_LE(worker.max_tries, aborts + 1);
  }
}

// Each transaction waits for a flush, so there are as many.
TEST_F(RunAndRecovery, WithoutLatencyHidingAWorkerHasOneTransactionInFlight) {
  options_.latency_hiding = false;
  options_.read_perc = 0, options_.write_perc = 1;
  const RunResult run = Run();
  for (const StreamStats& stream : run.streams) EXPECT_GE(stream.flushes, options_.max_txns_per_thread);
}

// Its epoch would stay the newest that others can see acknowledged, while it waits for them to be warm.
TEST_F(RunAndRecovery, AWorkerThatIsWarmHoldsNoEpochBack) {
  options_.log = "LOG_BATCH", options_.log_type = "LOG_DATA";
  options_.epoch_period_ms = 1, options_.warmup = 100, options_.latency_hiding = false;
  const RunResult run = Run();
  EXPECT_EQ(run.stop_reason, "done");
}

// The arena of its rows has no more; what it has logged must become durable all the same.
TEST_F(RunAndRecovery, AWorkerWithoutMemoryLeavesNobodyWaiting) {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(getpagesize());
  if (bytes > rlim_t{1} << 40) GTEST_SKIP() << "a sanitizer has taken all addresses";
  options_.log = "LOG_BATCH", options_.log_type = "LOG_DATA";
  options_.workload = WorkloadKind::kTest, options_.epoch_period_ms = 1;
  // Each inserts a row: more than there is memory for.
  options_.max_txns_per_thread = 3'000'000, options_.query_list_len = 1000;
  options_.log_limit_bytes = uint64_t{1} << 30;
  const TempDir directory;
  options_.log_dirs = {directory.path()};
  FileLogStorage logs(options_);
  const auto run = [&] {
    const rlimit limit{bytes + (rlim_t{320} << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    alarm(120);
    try {
      Registry::Global().Create(options_)->Run(options_, logs.storage());
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(static_cast<int>(error.status()));
    }
    _exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(5), "no memory: mapping");
}

// Then records carry their whole vectors, and all is recovered as well.
TEST_F(RunAndRecovery, WithoutAnchorsLoseNothing) {
  constexpr uint64_t kOfACleanEnd = 64;
  options_.psn_flush_freq = 0;
  options_.verify = true;
  options_.log_flush_interval_us = 10;
  options_.max_txns_per_thread = 5000;
  const RunResult run = Run();
  for (const StreamStats& stream : run.streams) {
    EXPECT_GT(stream.flushes, 2u);
    EXPECT_LE(stream.anchor_bytes, kOfACleanEnd);
  }
  const RecoveryResult recovery = Recover();
  EXPECT_EQ(recovery.recovered, run.logged_txns);
  EXPECT_EQ(recovery.verified, "a,b,d");
}

TEST_F(RunAndRecovery, OnAnEmulatedDeviceLoseNothingAndNameIt) {
  const TempDir directory;
  options_.log_dirs = {directory / "a", directory / "b"};
  options_.log_device = "bandwidth=50M,flush=100us,seek=50us,channel=60M";
  options_.verify = true;
  FileLogStorage logs(options_);
  const auto engine = Registry::Global().Create(options_);
  const RunResult run = engine->Run(options_, logs.storage());
  const RecoveryResult recovery = engine->Recover(options_, logs.storage());
  EXPECT_EQ(recovery.recovered, run.logged_txns);
  EXPECT_NE(recovery.verified, "");
  for (const auto& directories : {run.directories, recovery.directories}) {
    ASSERT_EQ(directories.size(), 2u);
    for (const LogDirectoryInfo& info : directories) {
      EXPECT_EQ(info.kind, "emulated");
      EXPECT_EQ(info.emulation->profile.name, options_.log_device);
    }
  }
}

// A ring that is full when the time is over: what the device takes afterwards is no throughput. The flush is longer
// than the whole interval, so that all of a ring would be counted too much.
TEST_F(RunAndRecovery, ASlowDeviceAcknowledgesNoMoreThanItTook) {
  const TempDir directory;
  options_.log_dirs = {directory.path()};
  options_.log_device = "bandwidth=20M,flush=100ms";
  options_.log_buffer_size = 256 << 10, options_.max_log_entry_size = 64 << 10;
  options_.log_flush_block_bytes = options_.hopping_distance_bytes = 64 << 10, options_.log_overwrite = true;
  options_.log_type = "LOG_DATA", options_.query_list_len = 1000, options_.log_limit_bytes = 16 << 20;
  for (const auto& [cc, log] : {std::pair("SILO", "LOG_TAURUS"),
                                {"NO_WAIT", "LOG_SERIAL"},
                                {"NO_WAIT", "LOG_ELEDA"},
                                {"NO_WAIT", "LOG_PLOVER"},
                                {"SILO", "LOG_BATCH"}}) {
    SCOPED_TRACE(log);
    options_.cc = cc, options_.log = log;
    options_.num_logger = HasOneLog(options_.log) ? 1 : 2;
    if (!testing::IsHeld(options_)) continue;
    for (const double seconds : {0.05, 0.25}) {
      options_.seconds = seconds;
      FileLogStorage logs(options_);
      const RunResult run = Registry::Global().Create(options_)->Run(options_, logs.storage());
      uint64_t acknowledged = 0, bytes = 0;
      for (const WorkerStats& worker : run.workers) {
        acknowledged += worker.acknowledged, bytes += worker.acknowledged_log_bytes;
      }
      EXPECT_LE(bytes, run.interval_log_bytes);
      EXPECT_EQ(run.latency.count(), acknowledged);
    }
  }
}

// Warm-up that the log still holds belongs to neither side of the check.
TEST_F(RunAndRecovery, AcknowledgedBytesAreThoseOfTheMeasuredTransactions) {
  options_.warmup = 300, options_.max_txns_per_thread = 200;
  options_.read_perc = 0, options_.write_perc = 1;
  const RunResult run = Run();
  uint64_t acknowledged = 0, bytes = 0, logged = 0;
  for (const WorkerStats& worker : run.workers) {
    acknowledged += worker.acknowledged, bytes += worker.acknowledged_log_bytes;
  }
  for (const StreamStats& stream : run.streams) logged += stream.record_bytes;
  EXPECT_EQ(acknowledged, 400u);
  EXPECT_EQ(run.latency.count(), 400u);
  EXPECT_LT(bytes, logged);
  EXPECT_LE(bytes, run.interval_log_bytes);
  EXPECT_GE(bytes, 400u * run.fixed_record_bytes);
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
