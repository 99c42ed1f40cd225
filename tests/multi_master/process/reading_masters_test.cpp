// What reads without locks save where some masters read what others write (Taurus MM, appendix A).
#include <gtest/gtest.h>

#include <cstdio>

#include "base/random.h"
#include "benchmarks/ycsb/ycsb.h"
#include "tests/multi_master/cluster_workers.h"
#include "tests/multi_master/process/tcp_cluster.h"

namespace dbx::mm {
namespace {

constexpr uint64_t kRows = 2000;
constexpr uint32_t kWriters = 2, kReaders = 2;
constexpr std::chrono::milliseconds kTime{1000};

struct Measured {
  uint64_t statements = 0, page_locks = 0, pages_fetched = 0, written = 0, reruns = 0;

  double PagesPerStatement() const {
    return static_cast<double>(page_locks + pages_fetched) / static_cast<double>(statements);
  }
};

// Transactions of four updates; of ten reads of single rows and one of a hundred.
uint64_t WriteUntil(MmTransaction& txn, Table& table, Random& random, const Atomic<bool>& stop) {
  uint64_t committed = 0;
  while (!stop.load()) {
    txn.Begin(BeginTime(host::MonotonicNanos()));
    Outcome outcome = Outcome::kOk;
    for (int i = 0; i < 4 && outcome == Outcome::kOk; ++i) {
      const uint64_t value = random.Next();
      outcome = txn.Update(table, random.Below(kRows), [&](auto& row) { row.template SetAt<uint64_t>(0, value); });
    }
    outcome == Outcome::kOk ? (void)txn.Commit() : txn.Abort();
    committed += outcome == Outcome::kOk;
  }
  return committed;
}
uint64_t ReadUntil(MmTransaction& txn, Table& table, Random& random, const Atomic<bool>& stop) {
  uint64_t statements = 0;
  while (!stop.load()) {
    txn.Begin(BeginTime(host::MonotonicNanos()));
    Outcome outcome = Outcome::kOk;
    for (int i = 0; i < 10 && outcome == Outcome::kOk; ++i, ++statements) {
      outcome = txn.Read(table, random.Below(kRows), [](const auto&) {});
    }
    const Key low = random.Below(kRows - 100);
    const auto see = [](Key, const TupleReader&) { return true; };
    if (outcome == Outcome::kOk) outcome = txn.Scan(table, low, low + 99, ScanOrder::kAscending, see), ++statements;
    outcome == Outcome::kOk ? (void)txn.Commit() : txn.Abort();
  }
  return statements;
}

Measured Measure(Isolation isolation) {
  Loaded<Ycsb> loaded(YcsbConfig{.rows = kRows});
  TcpCluster cluster({.masters = kWriters + kReaders, .isolation = isolation}, loaded.db);
  Table& table = loaded.db.table(TableId(0));
  Atomic<bool> stop{false};
  Atomic<uint64_t> statements{0}, written{0};
  std::vector<Thread> threads;
  for (uint32_t i = 0; i < kWriters + kReaders; ++i) {
    threads.emplace_back([&, i] {
      MmTransaction txn = cluster.master(i).NewTransaction();
      Random random(3, i);
      i < kWriters ? written.fetch_add(WriteUntil(txn, table, random, stop))
                   : statements.fetch_add(ReadUntil(txn, table, random, stop));
    });
  }
  host::SleepFor(kTime);
  stop = true;
  threads.clear();
  Measured measured{statements.load(), 0, 0, written.load(), 0};
  for (uint32_t i = 0; i < kWriters + kReaders; ++i) {
    const PageCounters pages = cluster.master(i).pages().counters();
    measured.page_locks += cluster.master(i).locks().counters().requests;
    measured.pages_fetched += pages.fetched + pages.versions_from_store;
    measured.reruns += cluster.master(i).views().counters().rerun;
  }
  std::printf(
      "%s: %lu statements of readers, %lu transactions of writers, %lu page locks, %lu pages fetched, %lu rerun\n",
      isolation == Isolation::kSerializable ? "locking" : "versioned", measured.statements, measured.written,
      measured.page_locks, measured.pages_fetched, measured.reruns);
  return measured;
}

TEST(ReadingMastersTest, StatementsWithoutLocksNeedFewerPageLocksAndFetches) {
  const Measured locking = Measure(Isolation::kSerializable), versioned = Measure(Isolation::kReadCommitted);
  ASSERT_GT(locking.statements, 0u);
  EXPECT_LT(versioned.PagesPerStatement(), locking.PagesPerStatement());
}

}  // namespace
}  // namespace dbx::mm
