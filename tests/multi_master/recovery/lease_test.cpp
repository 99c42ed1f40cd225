// Leases on both sides.
#include "multi_master/lock/lease.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "multi_master/lock/local_locks.h"

namespace dbx::mm {
namespace {

constexpr LeaseTerms kTerms{.request_nanos = 250, .use_nanos = 1000, .dead_nanos = 2000, .start_nanos = 9000};
constexpr MasterId kFirst{0}, kSecond{1};

TEST(LeaseTest, ItIsAskedForAtIntervals) {
  Lease lease(kTerms);
  EXPECT_TRUE(lease.NextRequest(100));
  EXPECT_FALSE(lease.NextRequest(349));
  const auto second = lease.NextRequest(350);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->leaves);
  lease.OnGrant({second->number});
  EXPECT_FALSE(lease.NextRequest(599));
  EXPECT_TRUE(lease.NextRequest(600));
}

TEST(LeaseTest, ItLastsFromTheSendingOfTheRequestWhenTheAnswerIsLate) {
  Lease lease(kTerms);
  const auto request = lease.NextRequest(100);
  EXPECT_FALSE(lease.IsOver(5000));  // it has no locks yet
  lease.OnGrant({request->number});
  EXPECT_FALSE(lease.IsOver(1099));
  EXPECT_TRUE(lease.IsOver(1100));
}

TEST(LeaseTest, ALateAnswerToAnEarlierRequestDoesNotShortenIt) {
  Lease lease(kTerms);
  const auto first = lease.NextRequest(0), second = lease.NextRequest(500);
  lease.OnGrant({second->number});
  lease.OnGrant({first->number});
  EXPECT_FALSE(lease.IsOver(1499));
  EXPECT_TRUE(lease.IsOver(1500));
}

TEST(LeaseTest, AnAnswerThatWasNotAskedForCountsForNothing) {
  Lease lease(kTerms);
  const auto request = lease.NextRequest(0);
  lease.OnGrant({request->number});
  lease.OnGrant({request->number});
  lease.OnGrant({LeaseNumber(99)});
  EXPECT_TRUE(lease.IsOver(1000));
}

TEST(LeaseTest, ItHasLeftWhenItsLastRequestIsAnswered) {
  Lease lease(kTerms);
  const auto request = lease.NextRequest(0);
  const LeaseRequest last = lease.Leave(10);
  EXPECT_TRUE(last.leaves);
  lease.OnGrant({request->number});
  EXPECT_FALSE(lease.HasLeft());
  lease.OnGrant({last.number});
  EXPECT_TRUE(lease.HasLeft());
}

class LeasesTest : public testing::Test {
 protected:
  std::vector<MasterId> Expired(uint64_t now) { return leases_.Expired(now); }
  bool Ask(MasterId master, uint64_t now, bool leaves = false) {
    return leases_.OnRequest(master, {LeaseNumber(1), leaves}, now);
  }
  Leases leases_{2, kTerms, /*start_nanos=*/0};
};

TEST_F(LeasesTest, AMasterIsTakenForDeadAfterItsLastRequest) {
  EXPECT_TRUE(Ask(kFirst, 0) && Ask(kSecond, 0) && Ask(kSecond, 1500));
  EXPECT_TRUE(Expired(1999).empty());
  EXPECT_EQ(Expired(2000), std::vector<MasterId>{kFirst});
  EXPECT_TRUE(leases_.MarkDead(kFirst));
  EXPECT_FALSE(leases_.MarkDead(kFirst));
  EXPECT_TRUE(Expired(2000).empty());
  EXPECT_FALSE(Ask(kFirst, 2001));
}

TEST_F(LeasesTest, OneThatHasNeverAskedIsTakenForDeadSomeTimeAfterTheStart) {
  EXPECT_TRUE(Ask(kFirst, 8000));
  EXPECT_TRUE(Expired(8999).empty());
  EXPECT_EQ(Expired(9000), std::vector<MasterId>{kSecond});
  EXPECT_TRUE(leases_.MarkDead(kSecond));
  EXPECT_TRUE(Expired(9999).empty());
  EXPECT_FALSE(Ask(kSecond, 10'000));
}

TEST_F(LeasesTest, AfterABrokenLinkNoRequestCounts) {
  EXPECT_TRUE(Ask(kFirst, 0));
  leases_.OnLinkDown(kFirst);
  EXPECT_FALSE(Ask(kFirst, 1000));
  EXPECT_EQ(Expired(2000), std::vector<MasterId>{kFirst});
}

TEST_F(LeasesTest, OneThatHasLeftInOrderIsNotDead) {
  EXPECT_TRUE(Ask(kFirst, 0) && Ask(kFirst, 10, /*leaves=*/true));
  leases_.OnLinkDown(kFirst);
  EXPECT_TRUE(Ask(kSecond, 999'000));
  EXPECT_TRUE(Expired(1'000'000).empty());
  EXPECT_FALSE(leases_.MarkDead(kFirst));
  EXPECT_FALSE(leases_.FirstLiving() == kFirst);
}

TEST_F(LeasesTest, TheFirstThatLivesIsGivenWork) {
  EXPECT_TRUE(Ask(kFirst, 0) && Ask(kSecond, 0));
  EXPECT_EQ(leases_.FirstLiving(), kFirst);
  leases_.MarkDead(kFirst);
  EXPECT_EQ(leases_.FirstLiving(), kSecond);
  EXPECT_FALSE(leases_.AllAreDead());
  leases_.MarkDead(kSecond);
  EXPECT_EQ(leases_.FirstLiving(), std::nullopt);
  EXPECT_TRUE(leases_.AllAreDead());
}

// A master whose lease is over, and that does not know it yet.
struct LateOwner final : LocalLocks::Owner {
  void SendRequest(const PageRequest&) override {}
  void SendRelease(const PageRelease&) override {}
  void SendWaitReport(const WaitReport&) override {}
  void OnGrant(const PageLsn&, const AfterList&) override {}
  void OnEndsTold(const AfterList&) override {}
  void FlushUntilDurable(VsTime) override {}
  void FetchPage(PageId, const PageLsn&) override {}
  void RequireLease() override { throw Error(ExitStatus::kIo, "the lease is over"); }
};

TEST(LeaseTest, WithoutItATransactionThatLeavesNoRecordIsNotAcknowledged) {
  LateOwner owner;
  LocalLocks locks(kFirst, ClusterEpoch(1), owner);
  const TxnName txn = locks.txns().Begin(BeginTime(1));
  EXPECT_THROW((void)locks.EndWithoutRecord(txn), Error);
}

}  // namespace
}  // namespace dbx::mm
