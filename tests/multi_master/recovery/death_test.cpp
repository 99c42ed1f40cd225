// Masters die at random moments in clusters over TCP. DBX_SEED=N runs seed N alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "benchmarks/sysbench/sysbench.h"
#include "benchmarks/test/test_workload.h"
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

}  // namespace
}  // namespace dbx::mm
