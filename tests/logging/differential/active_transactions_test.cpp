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
  active.End(1);
  EXPECT_TRUE(AllOf(active).empty());
}

TEST(ActiveTransactionsTest, WhatEndedIsBoundedByTheLastThatBegan) {
  ActiveTransactions active(2);
  EXPECT_EQ(active.EndedBelow(), (std::vector<uint64_t>{0, 0}));
  active.Begin(0, TxnId::Make(WorkerId(0), 5));
  EXPECT_EQ(active.EndedBelow(), (std::vector<uint64_t>{5, 0}));
}

TEST(ActiveTransactionsTest, AReaderNeverTakesOneTransactionsIdForAnothers) {
  ActiveTransactions active(1);
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    for (uint64_t i = 1; !stop.load(); ++i) {
      const TxnId id = TxnId::Make(WorkerId(0), i);
      active.Begin(0, id);
      active.Announce(0, id, static_cast<uint32_t>(i % 2), Lsn(i * 8));
      active.End(0);
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

}  // namespace
}  // namespace dbx
