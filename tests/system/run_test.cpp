// What a run and a recovery say about themselves, over a file system in memory.
#include "system/run.h"

#include <gtest/gtest.h>

#include "logging/device/faulty_file_system.h"
#include "system/registry.h"

namespace dbx {
namespace {

class RunAndRecovery : public testing::Test {
 protected:
  RunAndRecovery() {
    options_ = DefaultOptions();
    options_.log = "LOG_TAURUS";
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

}  // namespace
}  // namespace dbx
