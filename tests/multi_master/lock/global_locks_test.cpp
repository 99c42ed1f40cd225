// The lock process's table, message by message: what multi_master/lock/global_locks.h claims.
#include "multi_master/lock/global_locks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dbx::mm {
namespace {

constexpr auto kS = LockMode::kShared;
constexpr auto kX = LockMode::kExclusive;
const PageId kPage(7), kRight(8);

MasterId M(uint32_t i) { return MasterId(static_cast<uint8_t>(i)); }
TxnName Txn(uint32_t master, uint64_t sequence) { return {M(master), ClusterEpoch(1), sequence}; }
RowLocks Rows(std::initializer_list<RowLock> locks) {
  RowLocks rows;
  for (const RowLock& lock : locks) rows.Add(lock);
  return rows;
}
AfterList After(uint32_t master, uint64_t time) {
  AfterList after;
  after.Set(M(master), VsTime(time));
  return after;
}

// Messages out as "MASTER: KIND PAGE ...", grants beside it in full.
class GlobalLocksTest : public ::testing::Test, public GlobalLocks::Link {
 protected:
  using Texts = std::vector<std::string>;

  GlobalLocksTest() {
    for (uint32_t i = 0; i < 3; ++i) locks_.AddMaster(M(i));
  }
  void Send(MasterId to, MessageType type, std::vector<std::byte> body) override {
    std::string text = std::to_string(to.value()) + ": ";
    if (type == PageGrant::kType) {
      grant_ = *DecodeBody<PageGrant>(body);
      text += "grant " + Name(grant_.page, grant_.generation) + (grant_.mode == kS ? " S" : " X");
    } else if (type == PageReclaim::kType) {
      const auto reclaim = *DecodeBody<PageReclaim>(body);
      text += "reclaim " + Name(reclaim.page, reclaim.generation);
    } else if (type == AbortVictim::kType) {
      text += "abort " + std::to_string(DecodeBody<AbortVictim>(body)->victim.sequence);
    } else if (type == EndedTxns::kType) {
      news_ = *DecodeBody<EndedTxns>(body);
      text += "ends";
    } else {
      text += "least";
    }
    sent_.push_back(text);
  }
  static std::string Name(PageId page, Generation generation) {
    return std::to_string(page.value()) + "g" + std::to_string(generation.value());
  }
  Texts Sent() { return std::exchange(sent_, {}); }

  template <class Message>
  bool On(uint32_t from, const Message& message) {
    return locks_.On(M(from), Message::kType, EncodeBody(message));
  }
  Texts Ask(uint32_t from, LockMode mode, uint64_t generation, PageId page = kPage) {
    EXPECT_TRUE(On(from, PageRequest{page, mode, Generation(generation)}));
    return Sent();
  }
  Texts Release(uint32_t from, LockMode mode, uint64_t generation, PageLsn lsn = {}, RowLocks rows = {},
                AfterList after = {}, std::vector<PageRelease::SplitPage> splits = {}) {
    EXPECT_TRUE(On(from, PageRelease{kPage, mode, Generation(generation), lsn, rows, after, splits}));
    return Sent();
  }
  void HoldAndRelease(uint32_t from, uint64_t generation, const RowLocks& rows, AfterList after = {}) {
    Ask(from, kX, generation);
    Release(from, kX, generation, {M(from), VsTime(++time_)}, rows, after);
  }
  DeadMaster Dead(uint32_t master) { return {M(master), ClusterEpoch(1), VsTime(99), {}, {}, {}}; }

  GlobalLocks locks_{*this};
  PageGrant grant_;
  EndedTxns news_;
  Texts sent_;
  uint64_t time_ = 0;
};

TEST_F(GlobalLocksTest, AGrantHasTheLastReleasesVersionRowLocksAndAfterList) {
  const RowLocks rows = Rows({RowLock::Exclusive(Txn(0, 1), 5)});
  EXPECT_EQ(Ask(0, kX, 1), Texts{"0: grant 7g1 X"});
  EXPECT_EQ(grant_.lsn, PageLsn());
  Release(0, kX, 1, {M(0), VsTime(30)}, rows, After(2, 20));
  EXPECT_EQ(Ask(1, kS, 1), Texts{"1: grant 7g1 S"});
  EXPECT_EQ(grant_.lsn, (PageLsn{M(0), VsTime(30)}));
  EXPECT_EQ(grant_.rows, rows);
  EXPECT_EQ(grant_.after, After(2, 20));
}

TEST_F(GlobalLocksTest, ReadersShareAndAWriterReclaimsEachOnce) {
  Ask(0, kS, 1);
  EXPECT_EQ(Ask(1, kS, 1), Texts{"1: grant 7g1 S"});
  EXPECT_EQ(Ask(2, kX, 1), (Texts{"0: reclaim 7g1", "1: reclaim 7g1"}));
  EXPECT_EQ(Release(0, kS, 1), Texts{});
  EXPECT_EQ(Release(1, kS, 1), Texts{"2: grant 7g1 X"});
}

TEST_F(GlobalLocksTest, AReaderBehindAWriterWaitsForItsTurn) {
  Ask(0, kS, 1);
  Ask(1, kX, 1);
  EXPECT_EQ(Ask(2, kS, 1), Texts{});
  EXPECT_EQ(Release(0, kS, 1), (Texts{"1: grant 7g1 X", "1: reclaim 7g1"}));
  EXPECT_EQ(Release(1, kX, 1), Texts{"2: grant 7g1 S"});
}

// Trap 11.
TEST_F(GlobalLocksTest, TheAskersOlderGenerationIsAConflictingHolder) {
  Ask(0, kS, 1);
  EXPECT_EQ(Ask(0, kX, 2), Texts{"0: reclaim 7g1"}) << "its release has been overtaken";
  EXPECT_EQ(Release(0, kS, 1), Texts{"0: grant 7g2 X"});
}

// Trap 11.
TEST_F(GlobalLocksTest, MessagesOfOldGenerationsDoNothing) {
  HoldAndRelease(0, 1, {});
  Ask(0, kX, 2);
  Ask(1, kX, 1);
  EXPECT_EQ(Release(0, kX, 1, {M(0), VsTime(90)}, Rows({RowLock::Shared(Txn(0, 1), 5)})), Texts{});
  EXPECT_TRUE(locks_.RowLocksOf(kPage).empty());
  EXPECT_EQ(Ask(0, kX, 2), Texts{});
  EXPECT_EQ(Ask(1, kX, 1), Texts{});
  EXPECT_EQ(locks_.counters().old_generations, 3u);
  EXPECT_EQ(Release(0, kX, 2, {M(0), VsTime(91)}), Texts{"1: grant 7g1 X"});
}

TEST_F(GlobalLocksTest, UnderExclusiveTheListIsReplaced) {
  HoldAndRelease(0, 1, Rows({RowLock::Shared(Txn(0, 1), 5), RowLock::Shared(Txn(1, 1), 5)}));
  HoldAndRelease(1, 1, Rows({RowLock::Shared(Txn(1, 1), 5)}));
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Shared(Txn(1, 1), 5)}));
}

// Trap 3.
TEST_F(GlobalLocksTest, UnderSharedOnlyTheSendersPartIsReplaced) {
  Ask(0, kS, 1);
  Ask(1, kS, 1);
  Release(0, kS, 1, {}, Rows({RowLock::Shared(Txn(0, 1), 5)}));
  Release(1, kS, 1, {}, Rows({RowLock::Shared(Txn(1, 1), 6)}));
  const RowLocks both = Rows({RowLock::Shared(Txn(0, 1), 5), RowLock::Shared(Txn(1, 1), 6)});
  EXPECT_EQ(locks_.RowLocksOf(kPage), both);
}

// Trap 26.
TEST_F(GlobalLocksTest, ListsOfPagesSplitOffGoWithTheRelease) {
  const RowLocks moved = Rows({RowLock::Exclusive(Txn(1, 1), 9)});
  Ask(0, kX, 1);
  Ask(0, kX, 2, kRight);
  Release(0, kX, 1, {M(0), VsTime(5)}, {}, {}, {{kRight, Generation(2), moved, After(2, 4)}});
  EXPECT_EQ(locks_.RowLocksOf(kRight), moved);
  EXPECT_EQ(locks_.AfterListOf(kRight), After(2, 4));
}

TEST_F(GlobalLocksTest, AListOfASplitOffPageThatWasReleasedSinceDoesNothing) {
  Ask(0, kX, 1);
  Ask(1, kX, 1, kRight);
  Release(0, kX, 1, {M(0), VsTime(5)}, {}, {}, {{kRight, Generation(1), Rows({RowLock::Shared(Txn(2, 1), 9)}), {}}});
  EXPECT_TRUE(locks_.RowLocksOf(kRight).empty());
}

// Trap 2.
TEST_F(GlobalLocksTest, LocksOfEndedOwnersBecomeAfterLists) {
  HoldAndRelease(0, 1, Rows({RowLock::Exclusive(Txn(0, 1), 5), RowLock::Shared(Txn(0, 3), 5)}));
  EXPECT_TRUE(On(0, EndedTxns{M(0), ClusterEpoch(1), 2, After(0, 40), {}, {{1, {M(0), VsTime(33)}}}}));
  EXPECT_EQ(Sent(), (Texts{"1: ends", "2: ends"})) << "the other masters are told";
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Shared(Txn(0, 3), 5)}));
  Ask(1, kX, 1);
  EXPECT_EQ(grant_.after, After(0, 33));
}

TEST_F(GlobalLocksTest, AReleaseMayNameOwnersThatHaveEnded) {
  On(0, EndedTxns{M(0), ClusterEpoch(1), 2, After(0, 40), {}, {}});
  HoldAndRelease(0, 1, Rows({RowLock::Exclusive(Txn(0, 1), 5)}));
  EXPECT_TRUE(locks_.RowLocksOf(kPage).empty());
  EXPECT_EQ(locks_.AfterListOf(kPage), After(0, 40));
}

// Section 14.2.
TEST_F(GlobalLocksTest, AfterListsArePrunedWhenEveryMastersLeastTvCoversThem) {
  HoldAndRelease(0, 1, {}, After(0, 40));
  On(0, LeastTv{After(0, 50)});
  On(1, LeastTv{After(0, 50)});
  EXPECT_EQ(Sent(), Texts{}) << "one has not told any";
  On(2, LeastTv{After(0, 39)});
  EXPECT_EQ(locks_.AfterListOf(kPage), After(0, 40));
  On(2, LeastTv{After(0, 40)});
  EXPECT_TRUE(locks_.AfterListOf(kPage).IsEmpty());
  EXPECT_EQ(locks_.least_tv(), After(0, 40));
}

TEST_F(GlobalLocksTest, AnIdlePageKeepsItsVersionOnly) {
  HoldAndRelease(0, 1, {});
  EXPECT_EQ(locks_.pages_in_use(), 0u);
  EXPECT_EQ(locks_.LsnOf(kPage), (PageLsn{M(0), VsTime(1)}));
}

// ---- death ----

// Trap 10.
TEST_F(GlobalLocksTest, TheRowLocksOutliveAHolderOfExclusive) {
  const RowLocks rows = Rows({RowLock::Exclusive(Txn(0, 1), 5)});
  HoldAndRelease(0, 1, rows);
  Ask(1, kX, 1);
  locks_.OnLeaseOver(M(1));
  locks_.OnMasterDead(Dead(1));
  locks_.FreePages(M(1));
  Ask(2, kX, 1);
  EXPECT_EQ(grant_.rows, rows);
}

TEST_F(GlobalLocksTest, ADeadMastersPagesWaitForTheEndOfItsLog) {
  Ask(1, kX, 1);
  Ask(2, kX, 1);
  locks_.OnLeaseOver(M(1));
  EXPECT_EQ(Release(1, kX, 1, {M(1), VsTime(9)}), Texts{}) << "its messages do nothing";
  DeadMaster dead = Dead(1);
  dead.versions = {{kPage, {M(1), VsTime(8)}}};
  locks_.OnMasterDead(dead);
  EXPECT_EQ(Sent(), (Texts{"0: ends", "2: ends"}));
  locks_.FreePages(M(1));
  EXPECT_EQ(Sent(), Texts{"2: grant 7g1 X"});
  EXPECT_EQ(grant_.lsn, (PageLsn{M(1), VsTime(8)}));
  EXPECT_EQ(grant_.after, After(1, 99)) << "the log's end";
}

// Trap 9, and rule 6: its other transactions have ended.
TEST_F(GlobalLocksTest, LosersRowLocksStayAndTheOthersGo) {
  HoldAndRelease(1, 1, Rows({RowLock::Shared(Txn(1, 1), 5), RowLock::Shared(Txn(0, 1), 6)}));
  locks_.OnLeaseOver(M(1));
  DeadMaster dead = Dead(1);
  dead.steps = {{kPage, 9, {}, Txn(1, 2)}};
  dead.losers = {2};
  locks_.OnMasterDead(dead);
  locks_.FreePages(M(1));
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Exclusive(Txn(1, 2), 9), RowLock::Shared(Txn(0, 1), 6)}));
  EXPECT_EQ(news_.open, std::vector<uint64_t>{2});
  EXPECT_TRUE(On(0, EndedTxns{M(1), ClusterEpoch(1), 0, {}, {}, {{2, {M(0), VsTime(70)}}}})) << "undone by a survivor";
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Shared(Txn(0, 1), 6)}));
  EXPECT_EQ(locks_.AfterListOf(kPage).of(M(0)), VsTime(70));
}

// Trap 26.
TEST_F(GlobalLocksTest, ADeadMastersSplitsAreReplayedOverTheLists) {
  HoldAndRelease(0, 1, Rows({RowLock::Exclusive(Txn(0, 1), 5), RowLock::Exclusive(Txn(0, 1), 9)}), After(2, 4));
  Ask(1, kX, 1);
  Ask(1, kX, 2, kRight);
  locks_.OnLeaseOver(M(1));
  DeadMaster dead = Dead(1);
  dead.steps = {{kPage, 10, {}, Txn(1, 1)}, {kPage, 8, kRight, {}}};
  dead.losers = {1};
  locks_.OnMasterDead(dead);
  locks_.FreePages(M(1));
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Exclusive(Txn(0, 1), 5)}));
  EXPECT_EQ(locks_.RowLocksOf(kRight), Rows({RowLock::Exclusive(Txn(0, 1), 9), RowLock::Exclusive(Txn(1, 1), 10)}));
  EXPECT_EQ(locks_.AfterListOf(kRight).of(M(2)), VsTime(4));
}

TEST_F(GlobalLocksTest, ADeadMasterWaitsForNothing) {
  Ask(0, kX, 1);
  Ask(1, kX, 1);
  Ask(2, kX, 1);
  locks_.OnLeaseOver(M(1));
  EXPECT_EQ(Release(0, kX, 1), Texts{"2: grant 7g1 X"});
}

// ---- deadlocks ----

TEST_F(GlobalLocksTest, TheYoungestOfACycleOverMastersIsAborted) {
  On(0, WaitReport{Txn(0, 1), BeginTime(10), WaitNumber(1), {Txn(1, 2)}});
  EXPECT_EQ(Sent(), Texts{});
  On(1, WaitReport{Txn(1, 2), BeginTime(20), WaitNumber(1), {Txn(2, 5), Txn(0, 1)}});
  EXPECT_EQ(Sent(), Texts{"1: abort 2"});
}

TEST_F(GlobalLocksTest, OfEqualBeginTimesTheLargerMasterIsTheYounger) {
  On(2, WaitReport{Txn(2, 1), BeginTime(10), WaitNumber(1), {Txn(0, 9)}});
  On(0, WaitReport{Txn(0, 9), BeginTime(10), WaitNumber(1), {Txn(2, 1)}});
  EXPECT_EQ(Sent(), Texts{"2: abort 1"});
}

TEST_F(GlobalLocksTest, AWaitThatIsOverIsInNoCycle) {
  On(0, WaitReport{Txn(0, 1), BeginTime(10), WaitNumber(1), {Txn(1, 2)}});
  On(0, WaitReport{Txn(0, 1), BeginTime(10), WaitNumber(1), {}});
  On(1, WaitReport{Txn(1, 2), BeginTime(20), WaitNumber(1), {Txn(0, 1)}});
  EXPECT_EQ(Sent(), Texts{});
}

TEST_F(GlobalLocksTest, ReportsOfTheDeadAndOfTheEndedAreForgotten) {
  On(0, WaitReport{Txn(0, 1), BeginTime(10), WaitNumber(1), {Txn(1, 2)}});
  On(1, WaitReport{Txn(1, 3), BeginTime(10), WaitNumber(2), {Txn(1, 2)}});
  locks_.OnLeaseOver(M(0));
  EXPECT_EQ(locks_.reported_waits(), 1u);
  On(1, EndedTxns{M(1), ClusterEpoch(1), 3, {}, {}, {}});
  EXPECT_EQ(locks_.reported_waits(), 0u);
}

// ---- bad input ----

TEST_F(GlobalLocksTest, ABadMessageChangesNothing) {
  Ask(0, kX, 1);
  std::vector<std::byte> body = EncodeBody(PageRelease{kPage, kX, Generation(1), {}, {}, {}, {}});
  body.pop_back();
  EXPECT_FALSE(locks_.On(M(0), PageRelease::kType, body));
  EXPECT_FALSE(On(0, PageRelease{kPage, kS, Generation(1), {}, {}, {}, {}})) << "another mode";
  EXPECT_FALSE(On(0, WaitReport{Txn(1, 1), {}, {}, {}})) << "another master's";
  EXPECT_FALSE(On(0, EndedTxns{M(1), ClusterEpoch(1), 9, {}, {}, {}})) << "another master's";
  EXPECT_FALSE(On(0, PageGrant{kPage, kX, Generation(1), {}, {}, {}})) << "not for the lock process";
  EXPECT_EQ(Ask(1, kX, 1), Texts{"0: reclaim 7g1"}) << "still held";
}

TEST_F(GlobalLocksTest, AnOlderVersionThanTheLastIsRefused) {
  Ask(0, kX, 1);
  Release(0, kX, 1, {M(0), VsTime(30)});
  Ask(1, kX, 1);
  EXPECT_FALSE(On(1, PageRelease{kPage, kX, Generation(1), {M(1), VsTime(29)}, {}, {}, {}}));
}

}  // namespace
}  // namespace dbx::mm
