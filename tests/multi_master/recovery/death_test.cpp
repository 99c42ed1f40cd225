// Masters die at random moments in clusters over TCP. DBX_SEED=N runs seed N alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test.h"
#include "benchmarks/ycsb/ycsb.h"
#include "tests/multi_master/process/tcp_cluster.h"
#include "tests/multi_master/recovery/mortal_workers.h"

namespace dbx::mm {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr uint64_t kCounters = 200;
const YcsbConfig kRows{.rows = kCounters, .theta = 0.6, .req_per_query = 3};

void Sleep(uint64_t micros) { host::SleepFor(std::chrono::microseconds(micros)); }

// True: it has become so in time.
bool Becomes(auto&& is_so) {
  const uint64_t deadline = host::MonotonicNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(kPatience).count());
  while (!is_so()) {
    if (host::MonotonicNanos() > deadline) return false;
    Sleep(2000);
  }
  return true;
}

bool AllIsUndone(TcpCluster& cluster, size_t deaths) {
  return Becomes([&] {
    const std::vector<MasterDeath> of = cluster.locks().deaths();
    return of.size() == deaths && std::all_of(of.begin(), of.end(), [](const auto& d) { return d.undone_nanos > 0; });
  });
}

bool HasFailed(const MasterProcess& process) {
  try {
    process.ThrowIfFailed();
  } catch (const Error&) {
    return true;
  }
  return false;
}

bool NoRowLockIsLeft(TcpCluster& cluster) {
  return Becomes([&] { return cluster.locks().With([](GlobalLocks& locks) { return locks.CountRowLocks() == 0; }); });
}

// Calls run(seed) for each, or for that of the environment.
void ForEachSeed(uint64_t seeds, auto&& run) {
  const char* only = std::getenv("DBX_SEED");
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  for (uint64_t seed = first; seed < (only != nullptr ? first + 1 : seeds + 1); ++seed) {
    SCOPED_TRACE("DBX_SEED=" + std::to_string(seed));
    run(seed);
    if (::testing::Test::HasFailure()) return;
  }
}

// A transaction that has written some rows, durably, and will not end.
struct Unfinished {
  Unfinished(Master& master, const Counts& counts, Key first, Key count) : txn(master.NewTransaction()) {
    txn.Begin(BeginTime(1));
    for (Key key = first; key < first + count; ++key) CHECK(counts.Add(txn, key) == Outcome::kOk);
    master.log().AwaitDurable(master.log().last_record());
  }
  MmTransaction txn;
};

class DeathTest : public testing::Test {
 protected:
  void Start(uint32_t masters, const LeaseTerms& lease = LongLease()) {
    cluster_.reset();
    loaded_.emplace(kRows);
    cluster_.emplace(masters, loaded_->db, lease);
    counts_.emplace(loaded_->db.table(TableId(0)), kCounters);
    before_ = Counts::LookUntilSeen(*counts_, cluster_->master(0));
  }
  // Two workers on each master, while `meanwhile` runs.
  void Run(uint64_t count, uint64_t seed, auto&& meanwhile) {
    tallies_.assign(2 * cluster_->masters(), {});
    RunInParallel(2 * cluster_->masters() + 1, [&](uint32_t worker) {
      if (worker == tallies_.size()) return meanwhile();
      tallies_[worker] =
          RunMortalWorker(cluster_->master(worker % cluster_->masters()), count,
                          [&](MmTransaction& txn, uint64_t n) { return counts_->Run(txn, worker, n, seed); });
    });
  }
  void Judge(size_t deaths, uint32_t survivor) {
    ASSERT_TRUE(AllIsUndone(*cluster_, deaths));
    const Counts::Seen after = Counts::LookUntilSeen(*counts_, cluster_->master(survivor));
    EXPECT_EQ(Counts::Fault(before_, after, tallies_), "");
    EXPECT_TRUE(NoRowLockIsLeft(*cluster_));
    EXPECT_EQ(cluster_->locks().losers_left(), 0u);
    cluster_->locks().ThrowIfFailed();
    cluster_->page_store().ThrowIfFailed();
    cluster_->process(survivor).ThrowIfFailed();
  }

  std::optional<Loaded<Ycsb>> loaded_;
  std::optional<TcpCluster> cluster_;
  std::optional<Counts> counts_;
  Counts::Seen before_;
  std::vector<MortalTally> tallies_;
};

TEST_F(DeathTest, AMasterDiesAndTheOthersGoOn) {
  ForEachSeed(6, [&](uint64_t seed) {
    Random random(seed);
    const auto masters = static_cast<uint32_t>(2 + random.Below(3));
    const auto victim = static_cast<uint32_t>(random.Below(masters));
    Start(masters);
    Run(60, seed, [&] {
      Sleep(random.Below(150'000));
      cluster_->Lose(victim);
    });
    for (uint32_t worker = 0; worker < tallies_.size(); ++worker) {
      EXPECT_EQ(tallies_[worker].acknowledged.size(),
                worker % masters == victim ? tallies_[worker].acknowledged.size() : 60u);
    }
    Judge(1, victim == 0 ? 1 : 0);
  });
}

TEST_F(DeathTest, ALosersRowsAreUndoneAndFree) {
  Start(2);
  Unfinished loser(cluster_->master(0), *counts_, 0, 50);
  cluster_->Lose(0);
  Run(0, 1, [] {});
  Judge(1, 1);
  EXPECT_EQ(cluster_->master(1).undo().rows_undone(), 50u);
  MmTransaction txn = cluster_->master(1).NewTransaction();
  txn.Begin(BeginTime(1));
  for (Key key = 0; key < 50; ++key) EXPECT_EQ(counts_->Add(txn, key), Outcome::kOk);
  txn.Commit();
}

TEST_F(DeathTest, MastersDieOneAfterTheOther) {
  ForEachSeed(6, [&](uint64_t seed) {
    Random random(seed);
    Start(4);
    Run(60, seed, [&] {
      for (const uint32_t victim : {3u, 0u, 2u}) {
        Sleep(random.Below(80'000));
        cluster_->Lose(victim);
      }
    });
    Judge(3, 1);
  });
}

// The losers of the first are given to master 0, which dies before, while or after it undoes them.
TEST_F(DeathTest, TheSurvivorThatUndoesDiesToo) {
  ForEachSeed(8, [&](uint64_t seed) {
    Random random(seed);
    Start(3);
    Unfinished loser(cluster_->master(2), *counts_, 0, 120);
    Run(20, seed, [&] {
      cluster_->Lose(2);
      const uint64_t undone = random.Below(130);
      const uint64_t deadline = host::MonotonicNanos() + 100'000'000;
      while (cluster_->master(0).undo().rows_undone() < undone && host::MonotonicNanos() < deadline) host::Yield();
      cluster_->Lose(0);
    });
    Judge(2, 1);
  });
}

TEST_F(DeathTest, SeveralDieAtOnceWithLosersOnTheSamePages) {
  ForEachSeed(4, [&](uint64_t seed) {
    Start(4);
    Unfinished first(cluster_->master(1), *counts_, 0, 40), second(cluster_->master(2), *counts_, 40, 40),
        third(cluster_->master(3), *counts_, 80, 40);
    Run(20, seed, [&] {
      for (const uint32_t victim : {1u, 2u, 3u}) cluster_->process(victim).Kill();
      for (const uint8_t victim : {1, 2, 3}) cluster_->locks().OnProcessGone(MasterId(victim));
    });
    Judge(3, 0);
  });
}

TEST_F(DeathTest, AMasterWhoseLeaseRunsOutIsRecovered) {
  Start(2, {.request_nanos = 50'000'000, .use_nanos = 1'000'000'000, .dead_nanos = 2'000'000'000});
  Unfinished loser(cluster_->master(0), *counts_, 0, 10);
  cluster_->process(0).Kill();
  Run(20, 1, [] {});
  Judge(1, 1);
}

// It lives, and is cut off: the lock process takes it for dead. It ends when its log refuses it, or with its lease.
TEST_F(DeathTest, AMasterThatLivesOnGetsNothingAcknowledgedThatIsNotThere) {
  ForEachSeed(4, [&](uint64_t seed) {
    Random random(seed);
    Start(3, {.request_nanos = 50'000'000, .use_nanos = 2'000'000'000, .dead_nanos = 60'000'000'000});
    Run(100, seed, [&] {
      Sleep(random.Below(60'000));
      cluster_->locks().OnProcessGone(MasterId(1));
    });
    EXPECT_TRUE(tallies_[1].died && tallies_[4].died);
    // Its workers may see it before the thread that looks at the lease does.
    EXPECT_TRUE(Becomes([&] { return HasFailed(cluster_->process(1)); }));
    Judge(1, 0);
  });
}

TEST_F(DeathTest, WaitsForADeadMastersTransactionsEnd) {
  Start(2);
  Unfinished reader(cluster_->master(0), *counts_, 0, 0);
  EXPECT_EQ(reader.txn.Read(loaded_->db.table(TableId(0)), 3, [](const auto&) {}), Outcome::kOk);
  MmTransaction writer = cluster_->master(1).NewTransaction();
  Thread death([&] {
    Sleep(100'000);
    cluster_->Lose(0);
  });
  Outcome outcome = Outcome::kConflict;
  while (outcome == Outcome::kConflict) {
    writer.Begin(BeginTime(2));
    outcome = counts_->Add(writer, 3);
    outcome == Outcome::kOk ? (void)writer.Commit() : writer.Abort();
  }
  EXPECT_EQ(outcome, Outcome::kOk);
}

// --- Reads without locks ---

class StrictDeathTest : public testing::Test {
 protected:
  StrictDeathTest()
      : loaded_(kRows),
        cluster_({.masters = 3, .isolation = Isolation::kReadCommitted, .strict_reads = true}, loaded_.db),
        counts_(loaded_.db.table(TableId(0)), kCounters) {}

  // What a strict reader on the master sees of the counter. Nothing: its master has failed.
  std::optional<uint64_t> Look(uint32_t on, Key key) {
    std::optional<uint64_t> value;
    try {
      MmTransaction txn = cluster_.master(on).NewTransaction();
      txn.Begin(BeginTime(1));
      txn.Read(loaded_.db.table(TableId(0)), key, [&](const TupleReader& row) { value = row.GetAt<uint64_t>(0); });
      txn.Commit();
    } catch (const Error&) {
      return std::nullopt;
    }
    return value;
  }
  void Add(uint32_t on, Key key) {
    MmTransaction txn = cluster_.master(on).NewTransaction();
    txn.Begin(BeginTime(1));
    ASSERT_EQ(counts_.Add(txn, key), Outcome::kOk);
    cluster_.master(on).log().AwaitDurable(txn.Commit());
  }

  Loaded<Ycsb> loaded_;
  TcpCluster cluster_;
  Counts counts_;
};

TEST_F(StrictDeathTest, StrictReadsGoOnWithoutADeadMasterAndSeeWhatItHadAcknowledged) {
  const uint64_t before = *Look(0, 5);
  Add(2, 5);
  Unfinished loser(cluster_.master(2), counts_, 6, 10);
  const uint64_t of_loser = *Look(0, 6);
  cluster_.Lose(2);
  Atomic<uint32_t> over{0};
  Thread reader([&] {
    for (const uint32_t on : {0u, 1u}) {
      EXPECT_EQ(Look(on, 5), before + 1);
      EXPECT_EQ(Look(on, 6), of_loser);
      over.fetch_add(1);
    }
  });
  EXPECT_TRUE(Becomes([&] { return over.load() == 2; })) << "a strict read waits for a dead master";
  if (over.load() < 2) cluster_.process(0).Stop(), cluster_.process(1).Stop();
}

TEST_F(StrictDeathTest, AStrictReadOnAMasterThatFailsEnds) {
  Atomic<bool> is_over{false};
  cluster_.process(1).Kill();  // it answers nothing, and is not known as dead
  Thread reader([&] {
    EXPECT_EQ(Look(0, 5), std::nullopt);
    is_over = true;
  });
  Sleep(20'000);
  cluster_.master(0).Fail(std::make_exception_ptr(Error(ExitStatus::kIo, "as the test says")));
  EXPECT_TRUE(Becomes([&] { return is_over.load(); }));
  if (!is_over.load()) cluster_.process(0).Stop();
}

// Other workloads, of which one master dies; its workers' calls are lost.
template <class WorkloadT>
void RunWorkload(const auto& config, uint64_t calls, uint64_t seed, uint32_t masters) {
  Random random(seed);
  Loaded<WorkloadT> loaded(config);
  TcpCluster cluster(masters, loaded.db);
  std::vector<MortalTally> tallies(2 * masters);
  std::vector<CallList> lists(2 * masters);
  RunInParallel(2 * masters + 1, [&](uint32_t worker) {
    if (worker == tallies.size()) {
      Sleep(random.Below(150'000));
      return cluster.Lose(masters - 1);
    }
    CallList& list = lists[worker] = loaded.workload.Generate(WorkerId(worker), calls, seed);
    tallies[worker] = RunMortalWorker(cluster.master(worker % masters), calls, [&](MmTransaction& txn, uint64_t n) {
      Call& call = list.calls[n];
      call.set_txn_id(TxnId::Make(WorkerId(worker), n));
      return loaded.workload.Run(txn, call.procedure, call.args);
    });
  });
  ASSERT_TRUE(AllIsUndone(cluster, 1));
  for (uint32_t by = 0; by + 1 < masters; ++by) {
    EXPECT_EQ(loaded.Inconsistency(cluster.master(by), config), std::nullopt);
    EXPECT_FALSE(tallies[by].died);
    cluster.process(by).ThrowIfFailed();
  }
  EXPECT_TRUE(NoRowLockIsLeft(cluster));
}

TEST(WorkloadDeathTest, YcsbLosesNoRowAndNoByte) {
  ForEachSeed(3, [](uint64_t seed) { RunWorkload<Ycsb>(kRows, 150, seed, 3); });
}

TEST(WorkloadDeathTest, TheHistoryOfTestIsSerializable) {
  TestConfig config;
  config.expected_transactions = 10'000;
  ForEachSeed(5, [&](uint64_t seed) { RunWorkload<TestWorkload>(config, 150, seed, 2 + seed % 3); });
}

TEST(WorkloadDeathTest, SysbenchLeavesAnIndexThatFitsItsRows) {
  ForEachSeed(3, [](uint64_t seed) {
    const SysbenchConfig config{.masters = 3, .workers_per_master = 2, .tables = 1, .rows = 300, .sharing_perc = 50};
    RunWorkload<Sysbench>(config, 20, seed, 3);
  });
}

}  // namespace
}  // namespace dbx::mm
