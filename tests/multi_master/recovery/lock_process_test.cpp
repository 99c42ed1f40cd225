// The lock process after the death of a master: masters that the test plays, and Log Stores.
#include "multi_master/lock/lock_process.h"

#include <gtest/gtest.h>

#include "tests/multi_master/long_lease.h"
#include "tests/multi_master/recovery/store_nodes.h"

namespace dbx::mm {
namespace {

constexpr MasterId kFirst{0}, kDead{1}, kThird{2};
constexpr PageId kPage{10}, kOther{11};

// Keeps what it is sent.
class Played final : public Network::Receiver {
 public:
  explicit Played(Network& network) : network_(network) { network_.Start(*this); }
  ~Played() override { network_.Stop(); }

  bool OnMessage(NodeId, MessageType type, std::span<const std::byte> body) override {
    const std::lock_guard latch(latch_);
    heard_.emplace_back(type, std::vector<std::byte>(body.begin(), body.end()));
    return true;
  }
  void OnLinkDown(NodeId) override {}

  template <class Message>
  void Say(const Message& message) {
    network_.Send({Role::kLocks, 0}, Message::kType, EncodeBody(message));
  }
  // The messages of this kind.
  template <class Message>
  std::vector<Message> Heard() {
    const std::lock_guard latch(latch_);
    std::vector<Message> found;
    for (const auto& [type, body] : heard_) {
      if (type == Message::kType) found.push_back(*DecodeBody<Message>(body));
    }
    return found;
  }
  template <class Message>
  Message Await() {
    EXPECT_TRUE(BecomesSoon([&] { return !Heard<Message>().empty(); }));
    return Heard<Message>().empty() ? Message() : Heard<Message>().back();
  }

 private:
  Network& network_;
  Mutex latch_;
  std::vector<std::pair<MessageType, std::vector<std::byte>>> heard_;
};

class LockProcessTest : public testing::Test {
 protected:
  void Start(const LeaseTerms& lease = LongLease(), uint32_t masters = 3) {
    LockProcessOptions options;
    options.masters = masters;
    options.lease = lease;
    options.cluster = kTestCluster;
    locks_ = std::make_unique<LockProcess>(links_, options);
    locks_->Start();
  }
  ~LockProcessTest() override {
    if (locks_) locks_->Stop();
  }
  // One loser, with the row (kPage, 5).
  void WriteLog() {
    log_.Put(1, kPage, 5);
    newest_ = log_.Put(2, kPage, 6);
    log_.End(2);
    log_.AwaitDurable();
  }
  void Hold(PageId page) { Ask(log_.network(), page); }
  static void Ask(Network& by, PageId page) {
    by.Send({Role::kLocks, 0}, PageRequest::kType, EncodeBody(PageRequest{page, LockMode::kExclusive, Generation(1)}));
  }
  bool OneIsGranted() {
    return BecomesSoon([&] { return locks_->With([](GlobalLocks& locks) { return locks.counters().grants == 1; }); });
  }
  EndedTxns EndOfLoser(MasterId by) { return {kDead, ClusterEpoch(1), 0, {}, {}, {{1, {by, VsTime(50)}}}}; }

  MemoryNetwork network_;
  StoreNodes stores_{network_};
  LogNode log_{network_, kDead};
  VsTime newest_;  // of kPage
  Played first_{network_.Join({Role::kMaster, 0})}, third_{network_.Join({Role::kMaster, 2})};
  CutNetwork links_{network_.Join({Role::kLocks, 0})};
  std::unique_ptr<LockProcess> locks_;
};

TEST_F(LockProcessTest, ADeadMastersPageIsGrantedWithItsLosersLocks) {
  Start();
  WriteLog();
  Hold(kPage);
  ASSERT_TRUE(OneIsGranted());
  first_.Say(PageRequest{kPage, LockMode::kExclusive, Generation(1)});
  locks_->OnProcessGone(kDead);
  const PageGrant grant = first_.Await<PageGrant>();
  EXPECT_EQ(grant.lsn, (PageLsn{kDead, newest_}));
  EXPECT_EQ(grant.rows.size(), 1u);
  EXPECT_TRUE(grant.rows.Covers(RowLock::Exclusive(log_.T(1), 5)));
  EXPECT_TRUE(grant.after.Covers(kDead, log_.log().durable_until()));
  VsVector after;
  after.Set(kDead, log_.log().durable_until());
  EXPECT_EQ(first_.Await<UndoLoser>(), (UndoLoser{log_.T(1), true, {{kPage, 5}}, after}));
}

TEST_F(LockProcessTest, ALeaseThatIsOverIsADeath) {
  Start({.request_nanos = 5'000'000, .use_nanos = 50'000'000, .dead_nanos = 100'000'000});
  WriteLog();
  log_.network().Send({Role::kLocks, 0}, LeaseRequest::kType, EncodeBody(LeaseRequest{LeaseNumber(1), false}));
  EXPECT_EQ(first_.Await<UndoLoser>().loser, log_.T(1));
  ASSERT_EQ(locks_->deaths().size(), 1u);
  EXPECT_EQ(locks_->deaths()[0].losers, 1u);
  EXPECT_GT(locks_->deaths()[0].freed_nanos, locks_->deaths()[0].noticed_nanos);
}

TEST_F(LockProcessTest, WhenTheSurvivorDiesAnotherOneUndoes) {
  Start();
  WriteLog();
  locks_->OnProcessGone(kDead);
  first_.Await<UndoLoser>();
  locks_->OnProcessGone(kFirst);
  EXPECT_EQ(third_.Await<UndoLoser>().loser, log_.T(1));
  third_.Say(EndOfLoser(kThird));
  EXPECT_TRUE(BecomesSoon([&] { return locks_->losers_left() == 0; }));
  EXPECT_GT(locks_->deaths()[0].undone_nanos, 0u);
}

TEST_F(LockProcessTest, TheSurvivorsEndOfALoserEndsItsRowLocks) {
  Start();
  WriteLog();
  locks_->OnProcessGone(kDead);
  first_.Await<UndoLoser>();
  EXPECT_EQ(locks_->With([](GlobalLocks& locks) { return locks.CountRowLocks(); }), 1u);
  first_.Say(EndOfLoser(kFirst));
  EXPECT_TRUE(BecomesSoon([&] { return locks_->With([](GlobalLocks& locks) { return locks.CountRowLocks() == 0; }); }));
  EXPECT_TRUE(BecomesSoon([&] { return third_.Heard<EndedTxns>().size() == 2; }));
  EXPECT_EQ(third_.Heard<EndedTxns>()[1].above.size(), 1u);
}

TEST_F(LockProcessTest, WhatADeadMasterSaysDoesNothing) {
  Start();
  WriteLog();
  locks_->OnProcessGone(kDead);
  first_.Await<UndoLoser>();
  locks_->OnProcessGone(kFirst);
  third_.Await<UndoLoser>();
  first_.Say(EndOfLoser(kFirst));
  first_.Say(LeaseRequest{LeaseNumber(1), false});
  first_.Say(PageRequest{kOther, LockMode::kExclusive, Generation(1)});
  third_.Say(PageRequest{kOther, LockMode::kExclusive, Generation(1)});
  EXPECT_EQ(third_.Await<PageGrant>().page, kOther);
  EXPECT_TRUE(first_.Heard<PageGrant>().empty() && first_.Heard<LeaseGrant>().empty());
  EXPECT_EQ(locks_->losers_left(), 1u);
}

TEST_F(LockProcessTest, OtherPagesAreGrantedWhileALogIsRead) {
  Start();
  WriteLog();
  Hold(kPage);
  ASSERT_TRUE(OneIsGranted());
  links_.CutFromStores({0, 1, 2});
  locks_->OnProcessGone(kDead);
  first_.Say(PageRequest{kPage, LockMode::kExclusive, Generation(1)});
  first_.Say(PageRequest{kOther, LockMode::kExclusive, Generation(2)});
  EXPECT_EQ(first_.Await<PageGrant>().page, kOther);
  EXPECT_EQ(locks_->deaths()[0].freed_nanos, 0u);
  links_.CutFromStores({});
  EXPECT_TRUE(BecomesSoon([&] { return first_.Heard<PageGrant>().size() == 2; }));
  EXPECT_EQ(first_.Heard<PageGrant>()[1].page, kPage);
}

TEST_F(LockProcessTest, AMasterThatLeftInOrderIsNotDead) {
  Start();
  first_.Say(LeaseRequest{LeaseNumber(1), true});
  EXPECT_EQ(first_.Await<LeaseGrant>().number, LeaseNumber(1));
  locks_->OnProcessGone(kFirst);
  EXPECT_TRUE(locks_->deaths().empty());
}

TEST_F(LockProcessTest, WithTheLastMasterTheClusterEnds) {
  Start(LongLease(), 2);
  locks_->OnProcessGone(kFirst);
  EXPECT_NO_THROW(locks_->ThrowIfFailed());
  locks_->OnProcessGone(kDead);
  EXPECT_THROW(locks_->ThrowIfFailed(), Error);
}

}  // namespace
}  // namespace dbx::mm
