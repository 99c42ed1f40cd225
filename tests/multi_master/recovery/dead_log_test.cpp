// What the log of a dead master says: losers, splits, versions.
#include "multi_master/recovery/dead_log.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace dbx::mm {
namespace {

constexpr MasterId kDead{1};
constexpr ClusterEpoch kEpoch{3};
constexpr PageId kPage{10}, kRight{20}, kLeft{30};

TxnName T(uint64_t sequence) { return {kDead, kEpoch, sequence}; }

// Builds the flushes of a log; each change and END takes the next time.
class DeadLogTest : public testing::Test {
 public:
  DeadLogTest& Change(PageId page, const Change& what) {
    flush_.changes.push_back({page, {kDead, VsTime(++time_)}, {}, what});
    return *this;
  }
  DeadLogTest& Put(uint64_t txn, PageId page, Key key) { return Change(page, PutRow{key, T(txn), true, 0, 0, {}}); }
  DeadLogTest& Restore(uint64_t txn, PageId page, Key key) { return Change(page, RestoreRow{key, T(txn)}); }
  DeadLogTest& Format(PageId page, uint8_t level) { return Change(page, FormatPage{TreeId(1), level, {}, 0, 0, {}}); }
  DeadLogTest& End(const TxnName& txn, TxnOutcome outcome = TxnOutcome::kCommitted) {
    flush_.ends.push_back({txn, VsTime(++time_), outcome, {}});
    return *this;
  }
  DeadLogTest& Lfb() {
    const VsTime predecessor = flush_.lfb.time();
    flush_.lfb = {kDead, {}, predecessor};
    flush_.lfb.stamp.Set(kDead, VsTime(++time_));
    log_.Take(flush_);
    flush_.changes.clear();
    flush_.ends.clear();
    return *this;
  }

  uint64_t time_ = 0;
  FollowedFlush flush_{{kDead, {}, {}}, {}, {}, nullptr};
  DeadLog log_{kDead, kEpoch};
};

using Rows = std::vector<UndoLoser::Row>;

// "page: key loser" and "page / separator right", in the log's order.
std::string TextOf(const std::vector<DeadMaster::Step>& steps) {
  std::string text;
  for (const DeadMaster::Step& step : steps) {
    if (!text.empty()) text += ", ";
    text += std::to_string(step.page.value());
    if (step.right == PageId()) {
      text += ": " + std::to_string(step.key) + " T" + std::to_string(step.loser.sequence);
    } else {
      text += " / " + std::to_string(step.key) + " " + std::to_string(step.right.value());
    }
  }
  return text;
}

TEST_F(DeadLogTest, AnEmptyLogHasNothing) {
  const DeadLog::Result result = log_.Finish();
  EXPECT_EQ(result.dead.master, kDead);
  EXPECT_EQ(result.dead.epoch, kEpoch);
  EXPECT_EQ(result.dead.log_end, VsTime());
  EXPECT_TRUE(result.dead.steps.empty() && result.dead.versions.empty() && result.losers.empty());
}

TEST_F(DeadLogTest, ATransactionWithAnEndIsNoLoser) {
  Put(1, kPage, 5).Put(2, kPage, 6).End(T(1)).Put(3, kPage, 7).Lfb().End(T(3), TxnOutcome::kAborted).Lfb();
  const DeadLog::Result result = log_.Finish();
  EXPECT_EQ(result.dead.losers, std::vector<uint64_t>{2});
  EXPECT_EQ(TextOf(result.dead.steps), "10: 6 T2");
  EXPECT_EQ(result.dead.log_end, VsTime(time_));
}

TEST_F(DeadLogTest, ATransactionWhoseEndNoFlushCoversIsALoser) {
  Put(1, kPage, 5).Lfb().End(T(1));
  EXPECT_EQ(log_.Finish().dead.losers, std::vector<uint64_t>{1});
}

TEST_F(DeadLogTest, AReaderIsNoLoser) {
  End(T(1), TxnOutcome::kReadOnly).Put(2, kPage, 5).End(T(2)).Lfb();
  EXPECT_TRUE(log_.Finish().losers.empty());
}

TEST_F(DeadLogTest, RowsAreUndoneLastFirstAndEachOnce) {
  Put(1, kPage, 5).Put(1, kPage, 5).Put(1, kPage, 6).Put(1, kPage, 5).Put(1, kRight, 5).Lfb();
  const DeadLog::Result result = log_.Finish();
  ASSERT_EQ(result.losers.size(), 1u);
  EXPECT_EQ(result.losers[0].rows, (Rows{{kRight, 5}, {kPage, 6}, {kPage, 5}}));
}

TEST_F(DeadLogTest, OneThatHadBegunToUndoItselfIsALoserWithAllOfItsRows) {
  Put(1, kPage, 5).Put(1, kPage, 6).Restore(1, kPage, 6).Lfb();
  const DeadLog::Result result = log_.Finish();
  ASSERT_EQ(result.losers.size(), 1u);
  EXPECT_EQ(result.losers[0].rows, (Rows{{kPage, 6}, {kPage, 5}}));
}

TEST_F(DeadLogTest, TheYoungestLoserIsUndoneFirst) {
  Put(4, kPage, 1).Put(2, kPage, 2).Put(9, kPage, 3).Lfb();
  std::vector<uint64_t> order;
  for (const Loser& loser : log_.Finish().losers) order.push_back(loser.name.sequence);
  EXPECT_EQ(order, (std::vector<uint64_t>{9, 4, 2}));
}

TEST_F(DeadLogTest, SplitsStandBetweenTheRowLocksThatTheyMoveAndLaterOnes) {
  Put(1, kPage, 60).Format(kRight, 0).Change(kPage, SplitLeft{50, kRight}).Put(1, kRight, 70).Lfb();
  EXPECT_EQ(TextOf(log_.Finish().dead.steps), "10: 60 T1, 10 / 50 20, 20: 70 T1");
}

TEST_F(DeadLogTest, ASplitOfARootMovesAllItsRows) {
  Put(1, kPage, 60).Format(kLeft, 0).Format(kRight, 0).Change(kPage, SplitRoot{kLeft, kRight, 50}).Lfb();
  EXPECT_EQ(TextOf(log_.Finish().dead.steps), "10: 60 T1, 10 / 50 20, 10 / 0 30");
}

TEST_F(DeadLogTest, SplitsAboveTheLeavesMoveNoRows) {
  Format(kRight, 1).Change(kPage, SplitLeft{50, kRight});
  Format(kLeft, 2).Format(PageId(40), 2).Change(PageId(50), SplitRoot{kLeft, PageId(40), 50}).Lfb();
  EXPECT_TRUE(log_.Finish().dead.steps.empty());
}

TEST_F(DeadLogTest, EachPageHasItsNewestVersion) {
  Put(1, kPage, 5).Put(1, kRight, 6).Lfb().Put(2, kPage, 7).End(T(1)).End(T(2)).Lfb().Put(3, kRight, 8);
  const std::vector<DeadMaster::Version> versions = log_.Finish().dead.versions;
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0].page, kPage);
  EXPECT_EQ(versions[0].lsn, (PageLsn{kDead, VsTime(4)}));
  EXPECT_EQ(versions[1].lsn, (PageLsn{kDead, VsTime(2)}));
}

TEST_F(DeadLogTest, WhatItUndidOfAnotherMastersLoserIsNotItsOwn) {
  const TxnName other{MasterId(0), ClusterEpoch(1), 7};
  Change(kPage, RestoreRow{5, other}).End(other, TxnOutcome::kAborted).Lfb();
  const DeadLog::Result result = log_.Finish();
  EXPECT_TRUE(result.losers.empty());
  EXPECT_EQ(result.dead.versions.size(), 1u);
}

TEST_F(DeadLogTest, OnlyTheRowsOfTransactionsWithoutAnEndAreKept) {
  for (uint64_t txn = 1; txn <= 1000; ++txn) Put(txn, kPage, txn).End(T(txn)).Lfb();
  EXPECT_EQ(log_.rows_kept_max(), 1u);
}

TEST_F(DeadLogTest, ChangesThatNoMasterMakesAreRefused) {
  Change(kPage, SplitLeft{50, kRight});
  EXPECT_THROW(Lfb(), Error);
  flush_.changes.clear();
  Change(kPage, PutRow{5, {MasterId(0), kEpoch, 1}, true, 0, 0, {}});
  EXPECT_THROW(Lfb(), Error);
}

}  // namespace
}  // namespace dbx::mm
