// A master's locks, step by step against a lock process that the test plays: what multi_master/lock/local_locks.h
// claims.
#include "multi_master/lock/local_locks.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace dbx::mm {
namespace {

constexpr auto kS = LockMode::kShared;
constexpr auto kX = LockMode::kExclusive;
const PageId kPage(7), kRight(8), kThird(9);
const MasterId kSelf(0), kOther(1);
constexpr uint64_t kMs = 1'000'000;

TxnName Remote(uint64_t sequence) { return {kOther, ClusterEpoch(1), sequence}; }
RowLocks Rows(std::initializer_list<RowLock> locks) {
  RowLocks rows;
  for (const RowLock& lock : locks) rows.Add(lock);
  return rows;
}
AfterList After(MasterId master, uint64_t time) {
  AfterList after;
  after.Set(master, VsTime(time));
  return after;
}
EndedTxns EndOf(uint64_t sequence, uint64_t time) {
  return {kOther, ClusterEpoch(1), 0, {}, {}, {{sequence, {kOther, VsTime(time)}}}};
}

class LocalLocksTest : public ::testing::Test, public LocalLocks::Owner {
 protected:
  using Texts = std::vector<std::string>;

  void SendRequest(const PageRequest& request) override {
    Note("request " + std::to_string(request.page.value()) + (request.mode == kS ? " S" : " X"));
    generation_ = request.generation;
  }
  void SendRelease(const PageRelease& release) override {
    Note("release " + std::to_string(release.page.value()));
    release_ = release;
  }
  void SendWaitReport(const WaitReport& report) override {
    Note(report.blockers.empty() ? "wait over" : "waits");
    report_ = report;
  }
  void OnGrant(const PageLsn& lsn, const AfterList&) override { Note("clock " + std::to_string(lsn.time.value())); }
  void OnEndsTold(const AfterList& ends) override { Note("told " + std::to_string(ends.of(kOther).value())); }
  void FlushUntilDurable(VsTime time) override {
    Note("flush " + std::to_string(time.value()));
    if (during_flush_) during_flush_();
  }
  void FetchPage(PageId page, const PageLsn& lsn) override {
    Note("fetch " + std::to_string(page.value()) + "@" + std::to_string(lsn.time.value()));
  }

  void Note(const std::string& text) {
    const std::lock_guard latch(latch_);
    events_.push_back(text);
  }
  Texts Events() {
    const std::lock_guard latch(latch_);
    return std::exchange(events_, {});
  }

  template <class Message>
  void On(const Message& message) {
    EXPECT_TRUE(locks_.On(Message::kType, EncodeBody(message)));
  }
  void Grant(PageId page, LockMode mode, uint64_t time = 5, const RowLocks& rows = {}, const AfterList& after = {}) {
    On(PageGrant{page, mode, generation_, {kOther, VsTime(time)}, rows, after});
  }
  void Reclaim(PageId page) { On(PageReclaim{page, generation_}); }
  // Leaves the page pinned.
  void Hold(PageId page, LockMode mode, const RowLocks& rows = {}, const AfterList& after = {}) {
    LocalLocks::PageTurn turn(locks_, page, mode);
    EXPECT_FALSE(turn.Poll());
    Grant(page, mode, 5, rows, after);
    EXPECT_TRUE(turn.Poll());
    Events();
  }
  TxnName Begin(uint64_t begun = 1) { return locks_.txns().Begin(BeginTime(begun)); }
  bool Lock(const RowLock& lock) { return locks_.TryLockRow(kPage, lock).empty(); }
  // Unpinned, reclaimed and sent.
  void GiveUp(PageId page) {
    locks_.Unpin(page);
    EXPECT_TRUE(locks_.Evict(page));
    EXPECT_TRUE(locks_.ReleaseDue());
  }

  std::mutex latch_;
  Texts events_;
  Generation generation_;
  PageRelease release_;
  WaitReport report_;
  std::function<void()> during_flush_;
  LocalLocks locks_{kSelf, ClusterEpoch(1), *this};
};

// ---- pages ----

// Trap 12: the clock is raised above the page before it can be changed.
TEST_F(LocalLocksTest, TheClockHearsOfAGrantBeforeThePageIsUsed) {
  LocalLocks::PageTurn turn(locks_, kPage, kX);
  EXPECT_FALSE(turn.Poll());
  Grant(kPage, kX, 30);
  EXPECT_EQ(Events(), (Texts{"request 7 X", "clock 30"}));
  EXPECT_TRUE(turn.Poll());
  EXPECT_EQ(Events(), Texts{"fetch 7@30"}) << "at exactly the granted version";
}

TEST_F(LocalLocksTest, AWarmPageSendsNothing) {
  Hold(kPage, kX);
  locks_.Unpin(kPage);
  EXPECT_EQ(locks_.Acquire(kPage, kS, false), PinResult::kPinned);
  EXPECT_EQ(locks_.Acquire(kPage, kX, false), PinResult::kPinned);
  EXPECT_EQ(Events(), Texts{});
}

TEST_F(LocalLocksTest, AThreadThatMayNotWaitAsksForNothing) {
  EXPECT_EQ(locks_.Acquire(kPage, kS, false), PinResult::kWouldWait);
  EXPECT_EQ(Events(), Texts{});
  EXPECT_EQ(locks_.pages_in_use(), 0u);
}

TEST_F(LocalLocksTest, APinnedPageIsReleasedWhenItIsUnpinned) {
  Hold(kPage, kS);
  Reclaim(kPage);
  EXPECT_FALSE(locks_.ReleaseDue());
  EXPECT_EQ(locks_.Acquire(kPage, kS, false), PinResult::kWouldWait) << "it must go";
  locks_.Unpin(kPage);
  EXPECT_TRUE(locks_.ReleaseDue());
  EXPECT_EQ(Events(), Texts{"release 7"});
}

// Trap 25: otherwise two masters may hand a page to each other for ever, and neither uses it.
TEST_F(LocalLocksTest, AFreshGrantIsKeptUntilOneThreadThatWaitedHadItsTurn) {
  LocalLocks::PageTurn first(locks_, kPage, kX), second(locks_, kPage, kX);
  first.Poll();
  Grant(kPage, kX);
  Reclaim(kPage);
  EXPECT_FALSE(locks_.ReleaseDue());
  EXPECT_EQ(locks_.Acquire(kPage, kX, false), PinResult::kWouldWait) << "not that of a thread that has not waited";
  EXPECT_TRUE(first.Poll());
  EXPECT_FALSE(second.Poll()) << "one turn is owed";
  locks_.Unpin(kPage);
  Events();
  EXPECT_TRUE(locks_.ReleaseDue());
  EXPECT_EQ(Events(), (Texts{"release 7", "request 7 X"})) << "for the second one";
}

TEST_F(LocalLocksTest, AThreadThatGivesUpItsPlaceOwesNoTurn) {
  {
    LocalLocks::PageTurn turn(locks_, kPage, kX);
    turn.Poll();
    Grant(kPage, kX);
    Reclaim(kPage);
  }
  EXPECT_TRUE(locks_.ReleaseDue());
}

TEST_F(LocalLocksTest, AnUpgradeIsAReleaseAndARequest) {
  Hold(kPage, kS);
  LocalLocks::PageTurn turn(locks_, kPage, kX);
  EXPECT_FALSE(turn.Poll());
  EXPECT_FALSE(locks_.ReleaseDue()) << "pinned";
  locks_.Unpin(kPage);
  EXPECT_TRUE(locks_.ReleaseDue());
  EXPECT_EQ(Events(), (Texts{"release 7", "request 7 X"}));
  EXPECT_GT(generation_, release_.generation);
}

TEST_F(LocalLocksTest, AReclaimMayOvertakeItsGrant) {
  LocalLocks::PageTurn turn(locks_, kPage, kS);
  turn.Poll();
  Reclaim(kPage);
  Grant(kPage, kS);
  EXPECT_TRUE(turn.Poll());
  locks_.Unpin(kPage);
  EXPECT_TRUE(locks_.ReleaseDue());
}

// Trap 11.
TEST_F(LocalLocksTest, MessagesOfOldGenerationsDoNothing) {
  Hold(kPage, kX);
  const Generation old = generation_;
  GiveUp(kPage);
  LocalLocks::PageTurn turn(locks_, kPage, kX);
  turn.Poll();
  On(PageGrant{kPage, kX, old, {kOther, VsTime(5)}, {}, {}});
  EXPECT_FALSE(turn.Poll());
  Grant(kPage, kX);
  On(PageReclaim{kPage, old});
  EXPECT_TRUE(turn.Poll());
  locks_.Unpin(kPage);
  EXPECT_FALSE(locks_.ReleaseDue());
  EXPECT_EQ(locks_.counters().old_generations, 2u);
}

// Trap 6.
TEST_F(LocalLocksTest, AReleaseFollowsTheFlushOfItsPageAndOfTheEndsThatItDrops) {
  const TxnName txn = Begin();
  Hold(kPage, kX);
  EXPECT_TRUE(Lock(RowLock::Exclusive(txn, 5)));
  locks_.SetLsn(kPage, {kSelf, VsTime(40)});
  locks_.End(txn, VsTime(44));
  GiveUp(kPage);
  EXPECT_EQ(Events(), (Texts{"flush 44", "release 7"}));
  EXPECT_EQ(release_.lsn, (PageLsn{kSelf, VsTime(40)}));
  EXPECT_EQ(release_.after, After(kSelf, 44));
  EXPECT_TRUE(release_.rows.empty());
}

TEST_F(LocalLocksTest, AnEndDuringTheFlushDropsNothingFromTheRelease) {
  const TxnName txn = Begin();
  Hold(kPage, kX);
  EXPECT_TRUE(Lock(RowLock::Exclusive(txn, 5)));
  locks_.SetLsn(kPage, {kSelf, VsTime(40)});
  during_flush_ = [&] { locks_.End(txn, VsTime(44)); };
  GiveUp(kPage);
  EXPECT_EQ(release_.rows, Rows({RowLock::Exclusive(txn, 5)}));
  EXPECT_TRUE(release_.after.IsEmpty()) << "its END is not durable";
}

TEST_F(LocalLocksTest, AnEvictedPageIsReleasedIfNothingNeedsIt) {
  EXPECT_FALSE(locks_.Evict(kPage));
  Hold(kPage, kS);
  EXPECT_FALSE(locks_.Evict(kPage));
  locks_.Unpin(kPage);
  EXPECT_TRUE(locks_.Evict(kPage));
  EXPECT_FALSE(locks_.Evict(kPage));
  EXPECT_TRUE(locks_.ReleaseDue());
  EXPECT_EQ(locks_.pages_in_use(), 0u);
}

// ---- row locks ----

TEST_F(LocalLocksTest, AGrantsListIsMergedWithOwnLocksAndWithoutEndedOwners) {
  const TxnName txn = Begin();
  Hold(kPage, kX);
  EXPECT_TRUE(Lock(RowLock::Exclusive(txn, 5)));
  GiveUp(kPage);
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Exclusive(txn, 5)})) << "own locks are kept";
  On(EndOf(1, 60));
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 6), RowLock::Shared(Remote(2), 6)}), After(MasterId(2), 3));
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Exclusive(txn, 5), RowLock::Shared(Remote(2), 6)}));
  AfterList after = After(MasterId(2), 3);
  after.Set(kOther, VsTime(60));
  EXPECT_EQ(locks_.AfterListOf(kPage), after);
}

TEST_F(LocalLocksTest, UnderSharedOnlyOwnLocksAreSent) {
  const TxnName txn = Begin();
  Hold(kPage, kS, Rows({RowLock::Shared(Remote(1), 6)}));
  EXPECT_TRUE(Lock(RowLock::Shared(txn, 6)));
  EXPECT_TRUE(Lock(RowLock::Gap(txn, 7, 9)));
  GiveUp(kPage);
  EXPECT_EQ(release_.rows, Rows({RowLock::Shared(txn, 6), RowLock::Gap(txn, 7, 9)}));
}

TEST_F(LocalLocksTest, AConflictNamesTheActiveOwnersOnly) {
  const TxnName txn = Begin();
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 6), RowLock::Shared(Remote(2), 6)}));
  On(EndOf(1, 60));
  EXPECT_EQ(locks_.TryLockRow(kPage, RowLock::Exclusive(txn, 6)), std::vector<TxnName>{Remote(2)});
  On(EndOf(2, 61));
  EXPECT_TRUE(Lock(RowLock::Exclusive(txn, 6)));
  EXPECT_EQ(locks_.AfterListOf(kPage), After(kOther, 61));
}

TEST_F(LocalLocksTest, AnInsertIntentionWaitsForGapsAndIsInNoList) {
  const TxnName txn = Begin();
  Hold(kPage, kX, Rows({RowLock::Gap(Remote(1), 6, 9)}));
  EXPECT_FALSE(Lock(RowLock::Insert(txn, 9)));
  EXPECT_TRUE(Lock(RowLock::Insert(txn, 10)));
  EXPECT_EQ(locks_.RowLocksOf(kPage).size(), 1u);
}

// Of ENDs that the lock process tells, this master's log may not have been applied.
TEST_F(LocalLocksTest, TheClockHearsOfToldEndsBeforeTheirLocksGo) {
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 6)}));
  On(EndOf(1, 60));
  EXPECT_EQ(Events(), Texts{"told 60"});
  EXPECT_TRUE(locks_.RowLocksOf(kPage).empty());
}

TEST_F(LocalLocksTest, ATransactionsEndReleasesItsRowLocks) {
  const TxnName first = Begin(), second = Begin();
  Hold(kPage, kX);
  EXPECT_TRUE(Lock(RowLock::Exclusive(first, 5)));
  EXPECT_FALSE(Lock(RowLock::Shared(second, 5)));
  locks_.End(first, VsTime(9));
  EXPECT_TRUE(Lock(RowLock::Shared(second, 5)));
  EXPECT_EQ(locks_.AfterListOf(kPage), After(kSelf, 9));
  EXPECT_EQ(locks_.counters().transactions, 1u);
  EXPECT_EQ(locks_.counters().row_locks, 2u);
}

// Trap 4, and section 14.14.
TEST_F(LocalLocksTest, AReaderNeedsAnEndIfALockOfItsLeft) {
  const TxnName stayed = Begin(), left = Begin();
  Hold(kPage, kS);
  EXPECT_TRUE(Lock(RowLock::Shared(stayed, 5)));
  EXPECT_TRUE(Lock(RowLock::Shared(left, 6)));
  EXPECT_TRUE(locks_.EndWithoutRecord(stayed));
  GiveUp(kPage);
  EXPECT_EQ(release_.rows, Rows({RowLock::Shared(left, 6)}));
  EXPECT_FALSE(locks_.EndWithoutRecord(left));
  locks_.End(left, VsTime(9));
  EXPECT_EQ(locks_.pages_in_use(), 0u);
}

TEST_F(LocalLocksTest, TheAfterListOutlivesAReleaseUntilTheLeastTvCoversIt) {
  Hold(kPage, kX, {}, After(kOther, 30));
  GiveUp(kPage);
  On(LeastTv{After(kOther, 29)});
  EXPECT_EQ(locks_.AfterListOf(kPage), After(kOther, 30));
  On(LeastTv{After(kOther, 30)});
  EXPECT_TRUE(locks_.AfterListOf(kPage).IsEmpty());
  EXPECT_EQ(locks_.pages_in_use(), 0u);
}

// ---- splits: trap 26 ----

TEST_F(LocalLocksTest, ASplitMovesRowLocksAndTheAfterList) {
  const TxnName txn = Begin();
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 4), RowLock::Shared(Remote(1), 9)}), After(kOther, 3));
  EXPECT_TRUE(Lock(RowLock::Exclusive(txn, 8)));
  Hold(kRight, kX);
  locks_.SplitLocks(kPage, 8, kRight);
  EXPECT_EQ(locks_.RowLocksOf(kPage), Rows({RowLock::Shared(Remote(1), 4)}));
  EXPECT_EQ(locks_.RowLocksOf(kRight), Rows({RowLock::Exclusive(txn, 8), RowLock::Shared(Remote(1), 9)}));
  EXPECT_EQ(locks_.AfterListOf(kRight), After(kOther, 3));
  locks_.End(txn, VsTime(50));
  On(EndOf(1, 60));
  EXPECT_TRUE(locks_.RowLocksOf(kRight).empty()) << "moved locks end with their owners";
}

TEST_F(LocalLocksTest, AReleaseTakesTheListsOfPagesSplitOffAlong) {
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 4), RowLock::Shared(Remote(1), 9)}));
  Hold(kRight, kX);
  locks_.SplitLocks(kPage, 4, kRight);
  const Generation right = generation_;
  Hold(kThird, kX);
  locks_.SplitLocks(kRight, 9, kThird);
  GiveUp(kPage);
  ASSERT_EQ(release_.splits.size(), 2u);
  EXPECT_EQ(release_.splits[0].generation, right);
  EXPECT_EQ(release_.splits[0].rows, Rows({RowLock::Shared(Remote(1), 4)}));
  EXPECT_EQ(release_.splits[1].page, kThird) << "split off from the page split off";
  EXPECT_EQ(release_.splits[1].rows, Rows({RowLock::Shared(Remote(1), 9)}));
}

// Releases may overtake each other, by the threads that send them; the master may die between two.
TEST_F(LocalLocksTest, AReleaseTakesTheListsOfPagesAlongWhoseReleaseIsNotSent) {
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 4), RowLock::Shared(Remote(1), 9)}));
  Hold(kRight, kX);
  locks_.SplitLocks(kPage, 4, kRight);
  Hold(kThird, kX);
  locks_.SplitLocks(kRight, 9, kThird);
  locks_.SetLsn(kRight, {kSelf, VsTime(6)});
  PageRelease first;
  during_flush_ = [&] {
    during_flush_ = nullptr;
    GiveUp(kPage);
    first = release_;
  };
  GiveUp(kRight);
  ASSERT_EQ(first.page, kPage);
  ASSERT_EQ(first.splits.size(), 2u);
  EXPECT_EQ(first.splits[0].rows, Rows({RowLock::Shared(Remote(1), 4)}));
  EXPECT_EQ(first.splits[1].rows, Rows({RowLock::Shared(Remote(1), 9)}));
  EXPECT_EQ(release_.page, kRight);
  ASSERT_EQ(release_.splits.size(), 1u);
  EXPECT_EQ(release_.splits[0].page, kThird);
}

TEST_F(LocalLocksTest, APageSplitOffThatWasReleasedIsNotTakenAlong) {
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 9)}));
  Hold(kRight, kX);
  locks_.SplitLocks(kPage, 4, kRight);
  GiveUp(kRight);
  EXPECT_EQ(release_.rows, Rows({RowLock::Shared(Remote(1), 9)}));
  GiveUp(kPage);
  EXPECT_TRUE(release_.splits.empty());
}

// ---- waits ----

// Trap 24.
TEST_F(LocalLocksTest, AWaitForWhatHasEndedSinceTheLookIsOverAtOnce) {
  const TxnName txn = Begin();
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 6)}));
  const std::vector<TxnName> blockers = locks_.TryLockRow(kPage, RowLock::Exclusive(txn, 6));
  On(EndOf(1, 60));
  LocalTxns::RowWait wait(locks_.txns(), txn, blockers, 0);
  EXPECT_EQ(wait.Poll(0), WaitResult::kLookAgain);
}

TEST_F(LocalLocksTest, AWaitIsOverWhenTheLastBlockerHasEnded) {
  const TxnName txn = Begin();
  LocalTxns::RowWait wait(locks_.txns(), txn, {Remote(1), Remote(2)}, 0);
  On(EndOf(2, 61));
  EXPECT_EQ(wait.Poll(0), std::nullopt);
  On(EndedTxns{kOther, ClusterEpoch(1), 1, {}, {}, {}});
  EXPECT_EQ(wait.Poll(0), WaitResult::kLookAgain);
}

// Trap 30: the blocker may need the page to come to its end.
TEST_F(LocalLocksTest, AWaitingTransactionHasNoPagePinned) {
  const TxnName txn = Begin();
  Hold(kPage, kX, Rows({RowLock::Shared(Remote(1), 6)}));
  std::thread waiter(
      [&] { EXPECT_EQ(locks_.WaitForEnds(txn, {Remote(1)}, std::vector<PageId>{kPage}), WaitResult::kLookAgain); });
  Reclaim(kPage);
  const uint64_t deadline = host::MonotonicNanos() + 2000 * kMs;
  while (!locks_.ReleaseDue() && host::MonotonicNanos() < deadline) std::this_thread::yield();
  EXPECT_EQ(release_.rows, Rows({RowLock::Shared(Remote(1), 6)}));
  On(EndOf(1, 60));
  waiter.join();
}

TEST_F(LocalLocksTest, TheEndOfABlockerWakesTheThreadThatWaits) {
  const TxnName txn = Begin();
  std::thread waiter([&] { EXPECT_EQ(locks_.WaitForEnds(txn, {Remote(1)}, {}), WaitResult::kLookAgain); });
  // It has been reported, so that only the timeout would wake it.
  while (Events() != Texts{"waits"}) std::this_thread::yield();
  const uint64_t start = host::MonotonicNanos();
  On(EndOf(1, 60));
  waiter.join();
  EXPECT_LT(host::MonotonicNanos() - start, 700 * kMs);
}

TEST_F(LocalLocksTest, AWaitGoesToTheLockProcessAfterTenMillisecondsAndEndsAfterASecond) {
  const TxnName txn = Begin(77);
  {
    LocalTxns::RowWait wait(locks_.txns(), txn, {Remote(1)}, 5);
    EXPECT_EQ(wait.Poll(5 + 10 * kMs - 1), std::nullopt);
    EXPECT_EQ(Events(), Texts{});
    EXPECT_EQ(wait.Poll(5 + 10 * kMs), std::nullopt);
    EXPECT_EQ(wait.Poll(5 + 11 * kMs), std::nullopt);
    EXPECT_EQ(Events(), Texts{"waits"}) << "once";
    EXPECT_EQ(report_.begun, BeginTime(77));
    EXPECT_EQ(report_.blockers, std::vector<TxnName>{Remote(1)});
    EXPECT_EQ(wait.Poll(5 + 1000 * kMs), WaitResult::kTimedOut);
  }
  EXPECT_EQ(Events(), Texts{"wait over"});
}

TEST_F(LocalLocksTest, TheYoungestOfALocalDeadlockIsTheVictim) {
  const TxnName old = Begin(1), young = Begin(9);
  LocalTxns::RowWait first(locks_.txns(), young, {old}, 0);
  LocalTxns::RowWait second(locks_.txns(), old, {young}, 0);
  EXPECT_EQ(first.Poll(0), WaitResult::kVictim);
  EXPECT_EQ(second.Poll(0), std::nullopt);
  EXPECT_EQ(Events(), Texts{}) << "without the lock process";
}

TEST_F(LocalLocksTest, TheLockProcessAbortsTheWaitThatItHeardOf) {
  const TxnName txn = Begin();
  {
    LocalTxns::RowWait wait(locks_.txns(), txn, {Remote(1)}, 0);
    EXPECT_EQ(wait.Poll(10 * kMs), std::nullopt);
  }
  LocalTxns::RowWait wait(locks_.txns(), txn, {Remote(1)}, 0);
  On(AbortVictim{txn, report_.number});
  EXPECT_EQ(wait.Poll(0), std::nullopt) << "it heard of an earlier one";
  EXPECT_EQ(wait.Poll(10 * kMs), std::nullopt);
  On(AbortVictim{txn, report_.number});
  EXPECT_EQ(wait.Poll(10 * kMs), WaitResult::kVictim);
}

// ---- the rest ----

TEST_F(LocalLocksTest, StopEndsAllWaits) {
  const TxnName txn = Begin();
  std::thread page([&] { EXPECT_EQ(locks_.Acquire(kPage, kX, true), PinResult::kStopped); });
  std::thread row([&] { EXPECT_EQ(locks_.WaitForEnds(txn, {Remote(1)}, {}), WaitResult::kStopped); });
  std::thread releases([&] { locks_.RunReleases(); });
  locks_.Stop();
  page.join();
  row.join();
  releases.join();
  EXPECT_EQ(locks_.Acquire(kPage, kX, true), PinResult::kStopped);
}

TEST_F(LocalLocksTest, ABadMessageChangesNothing) {
  LocalLocks::PageTurn turn(locks_, kPage, kX);
  turn.Poll();
  std::vector<std::byte> body = EncodeBody(PageGrant{kPage, kX, generation_, {}, {}, {}});
  body.push_back({});
  EXPECT_FALSE(locks_.On(PageGrant::kType, body));
  EXPECT_FALSE(locks_.On(PageRequest::kType, EncodeBody(PageRequest{kPage, kX, generation_})));
  EXPECT_FALSE(turn.Poll());
}

}  // namespace
}  // namespace dbx::mm
