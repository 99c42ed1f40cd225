// The words by which a checkpoint finds the transactions that are being run.
#include "logging/differential/active_transactions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

namespace dbx {
namespace {

using Found = std::vector<std::tuple<uint64_t, uint32_t, uint64_t>>;

Found AllOf(const ActiveTransactions& active) {
  Found found;
  active.ForEach([&](TxnId id, uint32_t log, Lsn first) { found.emplace_back(id.value, log, first.value()); });
  return found;
}

TEST(ActiveTransactionsTest, OneIsActiveFromItsAnnouncementToItsEnd) {
  ActiveTransactions active(3);
  const TxnId id = TxnId::Make(WorkerId(1), 17);
  active.Begin(1, id);
  EXPECT_TRUE(AllOf(active).empty());
  active.Announce(1, id, 15, Lsn(4096));
  EXPECT_EQ(AllOf(active), (Found{{id.value, 15, 4096}}));
  active.Abort(1);
  EXPECT_TRUE(AllOf(active).empty());
}

TEST(ActiveTransactionsTest, WhatEndedIsBoundedByTheLastThatBeganAndHasNotCommitted) {
  ActiveTransactions active(2);
  EXPECT_EQ(active.EndedBelow(), (std::vector<uint64_t>{0, 0}));
  active.Begin(0, TxnId::Make(WorkerId(0), 5));
  EXPECT_EQ(active.EndedBelow(), (std::vector<uint64_t>{5, 0}));
  active.Announce(0, TxnId::Make(WorkerId(0), 5), 0, Lsn(0));
  active.Abort(0);  // it may be tried again
  EXPECT_EQ(active.EndedBelow(), (std::vector<uint64_t>{5, 0}));
  active.Announce(0, TxnId::Make(WorkerId(0), 5), 0, Lsn(8));
  active.Commit(0, TxnId::Make(WorkerId(0), 5));
  EXPECT_TRUE(AllOf(active).empty());
  EXPECT_EQ(active.EndedBelow(), (std::vector<uint64_t>{6, 0}));
}

TEST(ActiveTransactionsTest, AReaderNeverTakesOneTransactionsIdForAnothers) {
  ActiveTransactions active(1);
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    for (uint64_t i = 1; !stop.load(); ++i) {
      const TxnId id = TxnId::Make(WorkerId(0), i);
      active.Begin(0, id);
      active.Announce(0, id, static_cast<uint32_t>(i % 2), Lsn(i * 8));
      active.Commit(0, id);
    }
  });
  for (int i = 0; i < 100000; ++i) {
    active.ForEach([&](TxnId id, uint32_t log, Lsn first) {
      ASSERT_EQ(first.value(), id.sequence() * 8);
      ASSERT_EQ(log, id.sequence() % 2);
    });
  }
  stop.store(true);
  worker.join();
}

// Without it a reader might find neither the word of a transaction nor that it has ended.
TEST(ActiveTransactionsTest, WhatIsNotActiveAnyMoreHasEnded) {
  ActiveTransactions active(1);
  std::atomic<uint64_t> committed{0};
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    for (uint64_t i = 1; !stop.load(); ++i) {
      const TxnId id = TxnId::Make(WorkerId(0), i);
      active.Begin(0, id);
      active.Announce(0, id, 0, Lsn(i * 8));
      active.Commit(0, id);
      committed.store(i);
    }
  });
  while (committed.load() == 0) std::this_thread::yield();
  for (int i = 0; i < 100000; ++i) {
    const uint64_t before = committed.load();
    active.ForEach([](TxnId, uint32_t, Lsn) {});
    ASSERT_GT(active.EndedBelow()[0], before);
  }
  stop.store(true);
  worker.join();
}

}  // namespace
}  // namespace dbx
