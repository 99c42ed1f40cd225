// Claims about other masters' flushes and the pages of a master's buffer.
#include "multi_master/master/master_pages.h"
#include "tests/multi_master/master/read_fixture.h"

namespace dbx::mm {
namespace {

class FollowedPagesTest : public ReadTest {
 protected:
  // Page P is in the buffer of master 0, without a page lock.
  void BringToBuffer(Key key, uint64_t value) {
    WriteAlone(0, key, value);
    WriteAlone(1, key, value + 1);
    cluster_.FlushAndApply(1, 0);
  }
  LfbStamp Lfb(uint64_t time) {
    LfbStamp lfb{MasterId(1), {}, {}};
    lfb.stamp.Set(MasterId(1), VsTime(time));
    return lfb;
  }
  // A change of kLeft's page that a flush of master 1 might have.
  PageChange Change(uint64_t previous, uint64_t time) {
    return {LeafOf(kLeft), {MasterId(1), VsTime(time)}, {MasterId(1), VsTime(previous)}, RemoveRow{kLeft}};
  }
};

TEST_F(FollowedPagesTest, AGrantOfAPageThatFollowedItsChangesNeedsNoFetch) {
  BringToBuffer(kLeft, 5);
  const PageCounters before = pages(0);
  EXPECT_GT(before.changes_followed, 0u);
  MmTransaction txn = Begin(0);
  EXPECT_EQ(txn.ReadForUpdate(table_, kLeft, [&](const TupleReader& row) { EXPECT_EQ(row.GetAt<uint64_t>(0), 6u); }),
            Outcome::kOk);
  txn.Commit();
  EXPECT_EQ(pages(0).fetched, before.fetched);
  EXPECT_GT(pages(0).from_buffer, before.from_buffer);
}

TEST_F(FollowedPagesTest, AChangeThatDoesNotFitAnOlderPageDropsIt) {
  BringToBuffer(kLeft, 5);
  const PageChange change = Change(900'000, 900'001);
  cluster_.master(0).pages().ApplyFlush(Lfb(0), std::span(&change, 1));
  EXPECT_EQ(pages(0).dropped, 1u);
  EXPECT_EQ(ReadOne(0, kLeft), 6u) << "fetched anew";
}

TEST_F(FollowedPagesTest, APageThatHasAChangeIsLeftAlone) {
  BringToBuffer(kLeft, 5);
  WriteAlone(0, kLeft, 7);  // under a page lock
  const PageChange change = Change(0, 1);
  const PageCounters before = pages(0);
  cluster_.master(0).pages().ApplyFlush(Lfb(0), std::span(&change, 1));
  EXPECT_EQ(pages(0).changes_followed, before.changes_followed);
  EXPECT_EQ(pages(0).dropped, 0u);
  EXPECT_EQ(ReadOne(0, kLeft), 7u);
}

// Or a statement's TV would cover a flush whose pages it finds as they were before.
TEST_F(FollowedPagesTest, AFlushCountsAsAppliedOnlyWhenItsPagesAreChanged) {
  BringToBuffer(kLeft, 5);
  ASSERT_EQ(ReadOne(0, kLeft), 6u);
  const PageId page = LeafOf(kLeft);
  MasterPages& pages = cluster_.master(0).pages();
  MasterPages::VersionPin pin = pages.PinVersion(page, cluster_.log(0).View(), true);
  ASSERT_NE(pin.shared, nullptr);
  WriteAlone(1, kLeft, 7);
  const VsTime written = cluster_.log(1).last_record();
  host::SleepFor(std::chrono::milliseconds(50));
  EXPECT_FALSE(cluster_.log(0).applied().Covers(MasterId(1), written)) << "the page is latched by a reader";
  pages.UnpinVersion(*pin.shared);
  cluster_.FlushAndApply(1, 0);
  EXPECT_EQ(ReadOne(0, kLeft), 7u);
}

// A page that comes from the Page Store while a flush passes by would miss it for ever.
TEST_F(FollowedPagesTest, AVersionThatAFlushMayHavePassedByIsNotKept) {
  WriteAlone(1, kRight, 8);  // its leaf has room for one more version from now on
  cluster_.FlushAndApply(1, 0);
  const ReadViews::Use old(cluster_.master(0).views());
  WriteAlone(1, kRight, 9);  // not in the buffer of master 0
  cluster_.FlushAndApply(1, 0);
  const MasterPages::VersionPin pin = cluster_.master(0).pages().PinVersion(LeafOf(kRight), old.view(), true);
  ASSERT_NE(pin.own, nullptr);
  EXPECT_EQ(ReadOne(0, kRight), 9u);
}

// A split behind the statement's back.
TEST_F(FollowedPagesTest, APageThatIsNewerThanTheStatementHasNoVersionForIt) {
  const PageId before = LeafOf(kRight);
  const ReadViews::Use old(cluster_.master(0).views());
  WriteAlone(1, kRight, 9);
  ASSERT_NE(LeafOf(kRight), before) << "the leaf was full";
  cluster_.FlushAndApply(1, 0);
  EXPECT_EQ(cluster_.master(0).pages().PinVersion(LeafOf(kRight), old.view(), true).frame(), nullptr);
}

TEST_F(FollowedPagesTest, AVersionOfNowIsKeptForTheNextStatement) {
  WriteAlone(1, kRight, 9);
  cluster_.FlushAndApply(1, 0);
  EXPECT_EQ(ReadOne(0, kRight), 9u);
  const PageCounters before = pages(0);
  EXPECT_EQ(ReadOne(0, kRight), 9u);
  EXPECT_EQ(pages(0).versions_from_store, before.versions_from_store);
  EXPECT_GT(pages(0).versions_from_buffer, before.versions_from_buffer);
}

}  // namespace
}  // namespace dbx::mm
