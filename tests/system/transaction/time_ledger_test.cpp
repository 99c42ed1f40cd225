// Where workers' time goes (TIME_PARTS): parts exclude each other, and make up the run.
#include "system/transaction/time_ledger.h"

#include <gtest/gtest.h>

#include <numeric>

#include "concurrency_control/no_wait.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/two_phase_locking.h"
#include "logging/payload.h"
#include "logging/taurus/taurus_log.h"
#include "system/command_line/parse_options.h"
#include "system/pairs/pair_node.h"
#include "system/run.h"
#include "system/transaction/timed_log.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

double& Of(TimeParts& parts, TimePart part) { return parts[static_cast<size_t>(part)]; }

void Spend(uint64_t nanos) {
  const uint64_t begin = Clock::NowTicks();
  while (Clock::ToNanos(Clock::NowTicks() - begin) < nanos) {
  }
}

TEST(TimeLedgerTest, APartWithinAnotherIsNotCountedTwice) {
  constexpr uint64_t kInner = 3'000'000, kOuter = 1'000'000;
  const uint64_t begin = Clock::NowTicks();
  TimeLedger ledger;
  {
    const TimeSpan outer(ledger, TimePart::kTracking);
    Spend(kOuter);
    const TimeSpan inner(ledger, TimePart::kMetadata);
    Spend(kInner);
  }
  ledger.EndAttempt(/*in_vain=*/false);
  const auto elapsed = static_cast<double>(Clock::ToNanos(Clock::NowTicks() - begin));
  TimeParts parts = ledger.parts();
  EXPECT_LE(std::accumulate(parts.begin(), parts.end(), 0.0), elapsed);
  EXPECT_GE(Of(parts, TimePart::kMetadata), kInner * 0.99);
  EXPECT_GE(Of(parts, TimePart::kTracking), kOuter * 0.99);
  EXPECT_EQ(Of(parts, TimePart::kAborted), 0);
  EXPECT_EQ(Of(parts, TimePart::kWork), 0);
}

TEST(TimeLedgerTest, AnAttemptInVainIsAbortedWhateverItDidAndSoIsItsBackOff) {
  constexpr uint64_t kNanos = 1'000'000;
  TimeLedger ledger;
  for (const bool in_vain : {true, false}) {
    {
      const TimeSpan work(ledger, TimePart::kWork);
      Spend(kNanos);
    }
    ledger.EndAttempt(in_vain);
    if (in_vain) Spend(kNanos);  // the back-off
  }
  TimeParts parts = ledger.parts();
  EXPECT_GE(Of(parts, TimePart::kAborted), 2 * kNanos * 0.99);
  EXPECT_GE(Of(parts, TimePart::kWork), kNanos * 0.99);
  ledger.Restart();
  parts = ledger.parts();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0.0), 0);
}

// The whole of a run with a ledger: nothing is lost between the parts, and nothing is counted twice.
TEST(TimedLogTest, TheWorkersTimeIsTheSumOfItsParts) {
  using Log = TimedLog<TaurusLog<DataPayload>>;
  using Cc = TwoPhaseLocking<Log, RowLocks, NoWait>;
  Options options = DefaultOptions();
  options.cc = "NO_WAIT", options.log = "LOG_TAURUS", options.log_type = "LOG_DATA";
  options.thread_cnt = 2, options.num_logger = 2;
  options.synth_table_size = 1000;
  options.max_txns_per_thread = 2000;
  options.log_dirs = {"logs"};
  options.verify = true;
  SelectLsnVectorOps("scalar");
  FaultyFileSystem files;
  LogStorage storage(files);
  auto ycsb = MakeWorkload<Ycsb>(options);
  PairNode<Cc, Log> node(options.num_logger, options.thread_cnt);
  RunResult run = MeasureRun(options, storage, node, &ycsb);
  ASSERT_EQ(run.stop_reason, "done");
  for (WorkerStats& worker : run.workers) {
    EXPECT_EQ(worker.executed, options.max_txns_per_thread);
    // Work and metadata take about as long as the readings of the clock that are subtracted: nothing may be left.
    for (const TimePart part : {TimePart::kTracking, TimePart::kRecord, TimePart::kRest}) {
      EXPECT_GT(Of(worker.time_parts, part), 0) << static_cast<int>(part);
    }
    const double sum = std::accumulate(worker.time_parts.begin(), worker.time_parts.end(), 0.0);
    EXPECT_LE(sum, worker.run_seconds * 1e9);
  }
}

}  // namespace
}  // namespace dbx
