// Which transactions have ended: what multi_master/lock/ends.h claims.
#include "multi_master/lock/ends.h"

#include <gtest/gtest.h>

namespace dbx::mm {
namespace {

const MasterId kM0(0), kM1(1);
TxnName Txn(uint64_t sequence, uint32_t epoch = 1) { return {kM0, ClusterEpoch(epoch), sequence}; }

AfterList After(const Ends& ends, const TxnName& txn) {
  AfterList after;
  ends.RaiseAfter(txn, after);
  return after;
}
VsVector Times(uint64_t first, uint64_t second) {
  VsVector times;
  times.Set(kM0, VsTime(first));
  times.Set(kM1, VsTime(second));
  return times;
}
EndedTxns LowWater(uint64_t low, uint64_t time, std::vector<uint64_t> open = {}) {
  return {kM0, ClusterEpoch(1), low, Times(time, 0), std::move(open), {}};
}

TEST(EndsTest, AnEndIsKnownWithItsPlace) {
  Ends ends;
  EXPECT_FALSE(ends.IsEnded(Txn(3)));
  ends.Add(Txn(3), {kM1, VsTime(40)});
  EXPECT_TRUE(ends.IsEnded(Txn(3)));
  EXPECT_FALSE(ends.IsEnded(Txn(3, 2))) << "a master that comes back has other names";
  EXPECT_EQ(After(ends, Txn(3)), Times(0, 40));
}

TEST(EndsTest, BelowTheLowWaterMarkAllHaveEndedButForTheOpenOnes) {
  Ends ends;
  ends.Learn(LowWater(5, 40, {2, 4}));
  for (const uint64_t sequence : {1, 3, 5}) EXPECT_TRUE(ends.IsEnded(Txn(sequence)));
  for (const uint64_t sequence : {2, 4, 6}) EXPECT_FALSE(ends.IsEnded(Txn(sequence)));
  ends.Add(Txn(4), {kM1, VsTime(8)});
  EXPECT_TRUE(ends.IsEnded(Txn(4)));
}

TEST(EndsTest, AnEndThatIsKnownStaysKnownWhicheverMessageComesLast) {
  Ends ends;
  ends.Learn(LowWater(5, 40, {2, 4}));
  ends.Add(Txn(4), {kM1, VsTime(8)});
  ends.Learn(LowWater(5, 40, {2, 4}));
  ends.Learn(LowWater(3, 20));
  EXPECT_TRUE(ends.IsEnded(Txn(4)));
  EXPECT_TRUE(ends.IsEnded(Txn(5)));
  EXPECT_FALSE(ends.IsEnded(Txn(2)));
}

// Trap 28: an END that a TV in use lacks keeps its time.
TEST(EndsTest, AnEndKeepsItsPlaceUntilTheLeastTvIsPast) {
  Ends ends;
  ends.Add(Txn(1), {kM0, VsTime(10)});
  ends.Learn(LowWater(4, 40));
  ends.Forget(Times(9, 0));
  EXPECT_EQ(After(ends, Txn(1)), Times(10, 0));
  EXPECT_EQ(ends.remembered(), 1u);
  // Of transaction 2, whose END was not told, nothing but the mark's time is known.
  ends.Forget(Times(39, 0));
  EXPECT_EQ(ends.remembered(), 1u);
  ends.Forget(Times(40, 0));
  EXPECT_EQ(ends.remembered(), 0u);
  EXPECT_TRUE(ends.IsEnded(Txn(1)));
}

TEST(EndsTest, AStatementSeesWhatItsTvCovers) {
  Ends ends;
  EXPECT_FALSE(ends.IsSeenBy(Times(100, 100), Txn(1))) << "it has not ended";
  ends.Add(Txn(1), {kM0, VsTime(10)});
  EXPECT_TRUE(ends.IsSeenBy(Times(10, 0), Txn(1)));
  EXPECT_FALSE(ends.IsSeenBy(Times(9, 50), Txn(1)));
}

TEST(EndsTest, AnEndOfWhichOnlyTheLowWaterMarkIsKnownIsNotSeenUntilAllTvsCoverTheMark) {
  Ends ends;
  ends.Add(Txn(1), {kM0, VsTime(10)});
  ends.Learn(LowWater(4, 40, {3}));
  ends.Forget(Times(30, 0));
  EXPECT_TRUE(ends.IsSeenBy(Times(30, 0), Txn(1)));
  EXPECT_FALSE(ends.IsSeenBy(Times(30, 0), Txn(2))) << "its log is not applied so far, or its END were known";
  ends.Forget(Times(40, 0));
  EXPECT_TRUE(ends.IsSeenBy(Times(40, 0), Txn(1)));
  EXPECT_TRUE(ends.IsSeenBy(Times(40, 0), Txn(2)));
  EXPECT_FALSE(ends.IsSeenBy(Times(40, 0), Txn(3))) << "a loser that is not undone yet";
}

// Section 14.13.
TEST(EndsTest, WhereATimeIsUnknownTheLowWaterMarksStandsForIt) {
  Ends ends;
  ends.Learn(LowWater(4, 40));
  EXPECT_EQ(After(ends, Txn(2)), Times(40, 0));
}

TEST(EndsTest, AnEndAboveTheLowWaterMarkIsNotForgotten) {
  Ends ends;
  ends.Add(Txn(9), {kM0, VsTime(10)});
  ends.Forget(Times(50, 0));
  EXPECT_TRUE(ends.IsEnded(Txn(9)));
}

TEST(EndsTest, AReaderWithoutAnEndAddsNothing) {
  Ends ends;
  ends.Add(Txn(1), {kM0, VsTime(0)});
  EXPECT_TRUE(After(ends, Txn(1)).IsEmpty());
}

class OwnTxnsTest : public ::testing::Test {
 protected:
  OwnTxnsTest() {
    for (int i = 0; i < 4; ++i) txns_.Begin();
  }
  OwnTxns txns_{kM0, ClusterEpoch(1)};
};

// Trap 7.
TEST_F(OwnTxnsTest, AnEndIsNotToldBeforeItIsDurable) {
  txns_.End(Txn(1), VsTime(10), true);
  EXPECT_FALSE(txns_.TakeNews(VsTime(9), false));
  const auto news = txns_.TakeNews(VsTime(10), false);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->low, 1u);
  EXPECT_EQ(news->low_after, Times(10, 0));
  EXPECT_FALSE(txns_.TakeNews(VsTime(10), false)) << "told once";
}

TEST_F(OwnTxnsTest, TheMarkStaysBelowTheOldestThatIsActiveOrNotDurable) {
  txns_.End(Txn(1), VsTime(30), false);
  txns_.End(Txn(3), VsTime(20), true);
  const auto early = txns_.TakeNews(VsTime(25), false);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->low, 0u);
  ASSERT_EQ(early->above.size(), 1u);
  EXPECT_EQ(early->above[0].sequence, 3u);
  const auto late = txns_.TakeNews(VsTime(30), false);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->low, 1u) << "2 is active";
  txns_.End(Txn(2), VsTime(0), false);
  const auto last = txns_.TakeNews(VsTime(30), false);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->low, 3u);
  EXPECT_EQ(last->low_after, Times(30, 0)) << "covers all ENDs up to it";
}

TEST_F(OwnTxnsTest, ForThoseWhoseLocksNeverLeftThereIsNoHurry) {
  txns_.End(Txn(1), VsTime(10), false);
  EXPECT_FALSE(txns_.TakeNews(VsTime(10), true));
  txns_.End(Txn(2), VsTime(12), true);
  EXPECT_FALSE(txns_.TakeNews(VsTime(11), true));
  const auto news = txns_.TakeNews(VsTime(12), true);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->low, 2u);
}

}  // namespace
}  // namespace dbx::mm
