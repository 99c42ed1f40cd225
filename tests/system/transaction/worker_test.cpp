// What a worker counts when a run for a time ends while it waits, and which calls it looks ahead to. The concurrency
// control and the log are stand-ins that do nothing but tell when: one thread, no clock.
#include "system/transaction/worker.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "logging/contract.h"

namespace dbx {
namespace {

struct IdleCc {
  static constexpr CcTraits kTraits = {.name = "IDLE",
                                       .multi_version = false,
                                       .commit_order = CommitOrder::kPhysical,
                                       .reads_are_locked = true,
                                       .copies_writes = false,
                                       .lock_table = false};
  struct Shared {
    EpochClock clock{8};
  };
  template <class State>
  IdleCc(Shared&, State&, WorkerId) {}
  static constexpr size_t kRowBytes = 0;
  void Begin(TxnId) {}
  Outcome Read(Table&, Key, auto&&) { return Outcome::kOk; }
  Outcome Update(Table&, Key, auto&&) { return Outcome::kOk; }
  Outcome Insert(Table&, Key, std::span<const std::byte>) { return Outcome::kOk; }
  Outcome Delete(Table&, Key) { return Outcome::kOk; }
  Outcome Scan(Table&, Key, Key, ScanOrder, auto&&) { return Outcome::kOk; }
  void ForEachRead(auto&&) const {}
  bool LockWrites() { return true; }
  bool read_only() const { return false; }
  bool Recheck() { return true; }
  void Install() {}
  void ForEachWrite(auto&&) const {}
  void Release() {}
  void Abort() {}
};

// Whether a transaction is durable is asked of the test.
struct AskedLog : LogDefaults {
  using CommitPoint = ScalarPoint<Lsn>;
  struct TxnState {};
  static constexpr LogTraits kTraits = {.name = "ASKED",
                                        .scheme = format::Scheme::kSerial,
                                        .payload = PayloadKind::kCommand,
                                        .logs = true,
                                        .fixed_bytes = 0,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = true,
                                        .replay_order = ReplayOrder::kTotal};
  bool Reserve(TxnState&, const LoggedTxn auto&) { return true; }
  void Submit(TxnState&, const LoggedTxn auto&) {}
  void Void(TxnState&) {}
  static size_t point_words() { return CommitPoint::kWords; }
  void SetCommitPoint(const TxnState&, CommitPoint) const {}
  void SetReadOnlyPoint(const TxnState&, CommitPoint) const {}
  void ThrowIfFailed() const {}
  void OwnEnds(const TxnState&, LsnPerLog&) const {}
  uint64_t OwnBytes(const TxnState&) const { return 100; }
  const DurableVector& durable() const { return durable_; }
  bool IsDurable(CommitPoint) const { return is_durable(); }

  std::function<bool()> is_durable;
  DurableVector durable_;
};

struct AskedHeapLog : AskedLog {
  static constexpr LogTraits kTraits = [] {
    LogTraits traits = AskedLog::kTraits;
    traits.version_heap = true;
    return traits;
  }();
};

// Calls are numbered behind their transaction id; hints are noted.
struct NotingWorkload {
  static constexpr std::array kProcedureNames = {"nothing"};
  Outcome Run(auto&, ProcedureId, std::span<const std::byte>) {
    ++runs;
    counted.fetch_add(1);
    return Outcome::kOk;
  }
  static uint64_t NumberOf(const Call& call) {
    uint64_t number;
    std::memcpy(&number, call.args.data() + sizeof(TxnId), sizeof number);
    return number;
  }
  void PrefetchBuckets(const Call& call) { buckets.push_back(NumberOf(call)); }
  void PrefetchRows(const Call& call, WrittenRows written) {
    (written == WrittenRows::kNoTuple ? pointers : rows).push_back(NumberOf(call));
  }

  uint64_t runs = 0;
  Atomic<uint64_t> counted{0};  // the same, for other threads
  std::vector<uint64_t> buckets, rows;
  std::vector<uint64_t> pointers;  // of rows in a heap
};

// Of its calls it notes the transaction ids.
struct IdNotingWorkload : NotingWorkload {
  static constexpr bool kKeysFollowFromId = true;
  void PrefetchBuckets(const Call& call) { buckets.push_back(call.txn_id().value); }
  void PrefetchRows(const Call& call, WrittenRows) { rows.push_back(call.txn_id().value); }
};

// All transactions but the first conflict until `may_commit`, or for very long.
struct ConflictingWorkload : NotingWorkload {
  static constexpr uint64_t kRunsMax = 10'000;
  Outcome Run(auto&, ProcedureId, std::span<const std::byte>) {
    return ++runs == 1 || may_commit || runs >= kRunsMax ? Outcome::kOk : Outcome::kConflict;
  }
  bool may_commit = false;
};

CallList Calls(uint64_t count) {
  CallList list;
  list.storage.resize(2 * count);
  for (uint64_t i = 0; i < count; ++i) {
    list.storage[2 * i + 1] = i;
    list.calls.push_back({ProcedureId(0), std::as_writable_bytes(std::span(&list.storage[2 * i], 2))});
  }
  return list;
}

class WorkerTest : public testing::Test {
 protected:
  // A run that has been told to go. Without `txn_count` it goes on until it is stopped.
  WorkerStats Run(const WorkerOptions& options) { return Run(options, workload_, WorkerId(0)); }
  template <class WorkloadT>
  WorkerStats Run(const WorkerOptions& options, WorkloadT& workload, WorkerId id) {
    Worker<IdleCc, AskedLog, WorkloadT> worker(id, shared_, log_, workload, Calls(10), options, nullptr);
    control_.go.store(true);
    worker.Run(control_);
    latencies_ = worker.latency().count();
    return worker.stats();
  }

  IdleCc::Shared shared_;
  AskedLog log_;
  NotingWorkload workload_;
  RunControl control_;
  uint64_t latencies_ = 0;
};

// A thread that sees that the worker has left finds the number of the transaction that it would run next.
TEST_F(WorkerTest, APauseKeepsItBetweenTwoTransactions) {
  log_.is_durable = [] { return true; };
  control_.ended_below = std::vector<CachePadded<Atomic<uint64_t>>>(1);
  Thread thread([this] { Run({}); });
  uint64_t before = 0;
  for (int pause = 0; pause < 200; ++pause) {
    while (workload_.counted.load() == before) host::Yield();
    control_.pause.store(true);
    while (!shared_.clock.IsIdle(WorkerId(0))) host::Yield();
    const uint64_t runs = workload_.counted.load(), ended = control_.ended_below[0].value.load();
    EXPECT_EQ(ended, runs);
    host::SleepFor(std::chrono::microseconds(pause % 8 == 0 ? 200 : 0));
    EXPECT_EQ(workload_.counted.load(), runs);
    before = runs;
    control_.pause.store(false);
  }
  control_.stop.store(true);
  thread.join();
}

TEST_F(WorkerTest, WhatIsFoundDurableAfterTheEndDoesNotCount) {
  // The third question is answered when the run has been stopped: the worker was waiting meanwhile.
  log_.is_durable = [this, asked = 0]() mutable {
    if (++asked == 3) control_.stop.store(true);
    return true;
  };
  const WorkerStats stats = Run({});
  EXPECT_EQ(stats.acknowledged, 2u);
  EXPECT_EQ(stats.acknowledged_log_bytes, 200u);
  EXPECT_EQ(latencies_, 2u);
  EXPECT_EQ(stats.executed, 3u);
  EXPECT_EQ(stats.acknowledged_late, 1u);
  EXPECT_GT(stats.late_nanos_max, 0u);
}

TEST_F(WorkerTest, WhatIsExecutedAfterTheEndDoesNotCount) {
  log_.is_durable = [] { return true; };
  control_.stop.store(true);
  WorkerOptions options;
  options.warmup_count = 1;
  EXPECT_EQ(Run(options).executed, 0u);
}

TEST_F(WorkerTest, OfACountOfTransactionsAllCount) {
  // Nothing is durable before the last one has been executed.
  log_.is_durable = [this] { return workload_.runs == 5; };
  WorkerOptions options;
  options.txn_count = 5;
  const WorkerStats stats = Run(options);
  EXPECT_EQ(stats.acknowledged, 5u);
  EXPECT_EQ(stats.acknowledged_log_bytes, 500u);
  EXPECT_EQ(latencies_, 5u);
}

TEST_F(WorkerTest, WarmUpThatIsFoundDurableLaterDoesNotCount) {
  log_.is_durable = [this] { return workload_.runs > 3; };
  WorkerOptions options;
  options.warmup_count = 3, options.txn_count = 2;
  const WorkerStats stats = Run(options);
  EXPECT_EQ(stats.acknowledged, 2u);
  EXPECT_EQ(stats.executed, 2u);
  EXPECT_EQ(latencies_, 2u);
}

TEST_F(WorkerTest, ACommittedTransactionIsAcknowledgedWhileTheNextOneIsTriedAgain) {
  ConflictingWorkload workload;
  log_.is_durable = [&workload] {
    workload.may_commit = workload.runs > 1;
    return workload.may_commit;
  };
  WorkerOptions options;
  options.txn_count = 2;
  Run(options, workload, WorkerId(0));
  EXPECT_LT(workload.runs, ConflictingWorkload::kRunsMax);
}

TEST_F(WorkerTest, AWorkerWithAFullQueueRunsNothingMoreOnceItIsStopped) {
  log_.is_durable = [this, asked = 0]() mutable {
    if (++asked == 10) control_.stop.store(true);
    return asked > 20;
  };
  WorkerOptions options;
  options.ack_queue_length = 2;
  const WorkerStats stats = Run(options);
  EXPECT_EQ(workload_.runs, 2u);
  EXPECT_EQ(stats.executed, 2u);
  EXPECT_EQ(stats.acknowledged, 0u);
}

TEST_F(WorkerTest, LooksAsFarAheadAsItIsTold) {
  log_.is_durable = [] { return true; };
  WorkerOptions options;
  options.txn_count = 2;
  Run(options);
  EXPECT_EQ(workload_.buckets, (std::vector<uint64_t>{6, 7}));
  EXPECT_EQ(workload_.rows, (std::vector<uint64_t>{3, 4}));
  options.lookahead = 3;
  workload_.buckets.clear(), workload_.rows.clear();
  Run(options);
  EXPECT_EQ(workload_.buckets, (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(workload_.rows, (std::vector<uint64_t>{2, 3}));
}

TEST_F(WorkerTest, LooksForRowsOfAHeapBeforeTheirVersions) {
  AskedHeapLog log;
  log.is_durable = [] { return true; };
  WorkerOptions options;
  options.txn_count = 2;
  Worker<IdleCc, AskedHeapLog, NotingWorkload> worker(WorkerId(0), shared_, log, workload_, Calls(10), options,
                                                      nullptr);
  control_.go.store(true);
  worker.Run(control_);
  EXPECT_EQ(workload_.buckets, (std::vector<uint64_t>{6, 7}));
  EXPECT_EQ(workload_.pointers, (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(workload_.rows, (std::vector<uint64_t>{2, 3}));
}

// Without that, a call shows the id of its last run.
TEST_F(WorkerTest, ShowsCallsAheadWithTheIdsThatTheyWillRunUnder) {
  log_.is_durable = [] { return true; };
  WorkerOptions options;
  options.txn_count = 20, options.first_sequence = 1001;
  IdNotingWorkload workload;
  Run(options, workload, WorkerId(5));
  ASSERT_EQ(workload.buckets.size(), 20u);
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(workload.buckets[i], TxnId::Make(WorkerId(5), 1001 + i + 6).value);
  }
  for (uint64_t i = 3; i < 20; ++i) EXPECT_EQ(workload.rows[i], TxnId::Make(WorkerId(5), 1001 + i + 3).value);
}

TEST_F(WorkerTest, LooksNowhereWithoutLookAhead) {
  log_.is_durable = [] { return true; };
  WorkerOptions options;
  options.txn_count = 5, options.lookahead = 0;
  Run(options);
  EXPECT_TRUE(workload_.buckets.empty());
  EXPECT_TRUE(workload_.rows.empty());
}

}  // namespace
}  // namespace dbx
