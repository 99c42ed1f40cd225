// Claims about the versions that a Page Store makes of pages, on changes in any order of arrival.
#include "multi_master/store/page_versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace dbx::mm {
namespace {

constexpr PageId kPage{7};
constexpr Key kKey = 40;

MasterId M(uint32_t i) { return MasterId(static_cast<uint8_t>(i)); }

SlottedPage NeverFormatted(PageId) { return SlottedPage(); }

// Changes of one page by two masters, one after the other: the n-th writes n into its row.
class History {
 public:
  explicit History(uint32_t changes, uint64_t seed = 1) {
    Random random(seed);
    PageLsn last;
    for (uint32_t n = 1; n <= changes; ++n) {
      const PageLsn lsn{M(static_cast<uint32_t>(random.Below(2))), VsTime(last.time.value() + 1 + random.Below(5))};
      images_.push_back(std::make_shared<uint64_t>(n));
      changes_.push_back({kPage, lsn, last, n == 1 ? Change(Empty()) : Change(Put(n))});
      last = lsn;
    }
  }

  const PageChange& at(size_t n) const { return changes_[n - 1]; }
  PageLsn lsn(size_t n) const { return at(n).lsn; }
  size_t size() const { return changes_.size(); }
  void Send(PageVersions& to, size_t n) const { to.Take(std::span(&changes_[n - 1], 1), images_[n - 1]); }

 private:
  static FormatPage Empty() {
    FormatPage format;
    format.tree = TreeId(1);
    return format;
  }
  PutRow Put(uint32_t n) {
    return {kKey, TxnName{M(0), ClusterEpoch(1), n}, true, 0, 0, std::as_bytes(std::span(images_.back().get(), 1))};
  }
  std::vector<std::shared_ptr<uint64_t>> images_;
  std::vector<PageChange> changes_;
};

// What the row of a version says; 0: there is no row.
uint64_t Value(const SlottedPage& page) {
  const auto slot = page.Find(kKey);
  if (!slot) return 0;
  uint64_t value = 0;
  std::memcpy(&value, page.RowAt(*slot).current.image.data(), sizeof value);
  return value;
}

TEST(PageVersionsTest, EveryVersionCanBeReadByItsLsn) {
  const History history(20);
  PageVersions versions(NeverFormatted);
  for (size_t n = 1; n <= history.size(); ++n) history.Send(versions, n);
  for (size_t n = 2; n <= history.size(); ++n) {
    const PageVersion version = versions.At(kPage, history.lsn(n));
    ASSERT_TRUE(version);
    EXPECT_EQ(Value(*version.page), n);
    EXPECT_EQ(version.page->lsn(), history.lsn(n));
    EXPECT_TRUE(version.newest.Covers(history.lsn(n).master, history.lsn(n).time));
    EXPECT_FALSE(version.newest.Covers(history.lsn(n).master, VsTime(history.lsn(n).time.value() + 1)));
  }
}

TEST(PageVersionsTest, ChangesMayArriveInAnyOrderAndTwice) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const History history(12, seed);
    PageVersions versions(NeverFormatted);
    Random random(seed, 1);
    std::vector<size_t> order;
    for (size_t n = 1; n <= history.size(); ++n) order.insert(order.end(), 1 + random.Below(2), n);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    for (const size_t n : order) history.Send(versions, n);
    EXPECT_EQ(versions.waiting(), 0u) << seed;
    EXPECT_EQ(versions.kept(), history.size()) << seed;
    EXPECT_EQ(Value(*versions.At(kPage, history.lsn(history.size())).page), history.size()) << seed;
  }
}

TEST(PageVersionsTest, AVersionWhoseChangesHaveNotAllArrivedIsNotServed) {
  const History history(5);
  PageVersions versions(NeverFormatted);
  for (const size_t n : {1, 2, 4, 5}) history.Send(versions, n);
  EXPECT_EQ(versions.waiting(), 2u);
  EXPECT_TRUE(versions.At(kPage, history.lsn(2)));
  EXPECT_FALSE(versions.At(kPage, history.lsn(3)));
  EXPECT_FALSE(versions.At(kPage, history.lsn(5)));
  history.Send(versions, 3);
  EXPECT_EQ(Value(*versions.At(kPage, history.lsn(5)).page), 5u);
}

TEST(PageVersionsTest, AReaderGetsTheNewestVersionThatItsTimesCover) {
  const History history(20);
  PageVersions versions(NeverFormatted);
  for (size_t n = 1; n <= history.size(); ++n) history.Send(versions, n);
  VsVector tv;
  for (size_t n = 1; n < history.size(); ++n) {
    tv.RaiseTo(history.lsn(n).master, history.lsn(n).time);
    EXPECT_EQ(versions.Newest(kPage, tv).page->lsn(), history.lsn(n)) << n;
  }
}

TEST(PageVersionsTest, OlderVersionsAreFoldedAndNewerOnesRemain) {
  const History history(20);
  PageVersions versions(NeverFormatted);
  for (size_t n = 1; n <= history.size(); ++n) history.Send(versions, n);
  VsVector least;
  for (size_t n = 1; n <= 12; ++n) least.RaiseTo(history.lsn(n).master, history.lsn(n).time);
  versions.FoldBelow(least);
  EXPECT_EQ(versions.kept(), 8u);
  EXPECT_FALSE(versions.At(kPage, history.lsn(11)));
  for (size_t n = 12; n <= history.size(); ++n) EXPECT_EQ(Value(*versions.At(kPage, history.lsn(n)).page), n);
  EXPECT_FALSE(versions.Newest(kPage, VsVector()));
  history.Send(versions, 5);
  EXPECT_EQ(versions.kept(), 8u) << "a change that was folded is passed over";
}

// However often it is folded between its changes, and while it rests: what can be read is what an unfolded page says.
TEST(PageVersionsTest, APageThatIsFoldedAllTheTimeHasTheSameVersions) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const History history(40, seed);
    PageVersions folded(NeverFormatted), whole(NeverFormatted);
    Random random(seed, 2);
    VsVector least, newest;
    for (size_t n = 1; n <= history.size(); ++n) {
      history.Send(folded, n);
      history.Send(whole, n);
      newest.RaiseTo(history.lsn(n).master, history.lsn(n).time);
      if (random.Chance(0.5)) least = newest;
      for (uint64_t folds = random.Below(4); folds > 0; --folds) folded.FoldBelow(least);
      const PageVersion version = folded.Newest(kPage, newest), expected = whole.Newest(kPage, newest);
      ASSERT_EQ(version.page->lsn(), expected.page->lsn());
      ASSERT_EQ(Value(*version.page), n == 1 ? 0 : n);
      ASSERT_EQ(version.newest, expected.newest);
      ASSERT_EQ(folded.Newest(kPage, least).page != nullptr, whole.Newest(kPage, least).page != nullptr);
    }
    folded.FoldBelow(newest);
    EXPECT_EQ(folded.kept(), 0u);
    EXPECT_EQ(Value(*folded.At(kPage, history.lsn(history.size())).page), history.size());
  }
}

TEST(PageVersionsTest, AChangeThatDoesNotFitIsAnErrorWhenItIsReadOrFolded) {
  const History history(5);
  PageVersions versions(NeverFormatted);
  for (size_t n = 1; n <= history.size(); ++n) history.Send(versions, n);
  PageChange wrong = history.at(5);
  wrong.previous = history.lsn(5);
  wrong.lsn.time = VsTime(wrong.lsn.time.value() + 1);
  wrong.what = RestoreRow{kKey + 1, {M(0), ClusterEpoch(1), 1}};
  versions.Take(std::span(&wrong, 1), nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(versions.At(kPage, wrong.lsn), Error);
  EXPECT_EQ(Value(*versions.At(kPage, history.lsn(5)).page), 5u);
  VsVector all;
  all.RaiseTo(wrong.lsn.master, wrong.lsn.time);
  all.RaiseTo(M(1 - wrong.lsn.master.value()), wrong.lsn.time);
  EXPECT_THROW(versions.FoldBelow(all), Error);
}

TEST(PageVersionsTest, APageWithoutChangesIsAsItWasLoaded) {
  PageVersions versions([](PageId id) {
    SlottedPage page;
    page.Format(id, TreeId(3), 0, PageId(), 0);
    return page;
  });
  EXPECT_EQ(versions.At(kPage, PageLsn()).page->tree(), TreeId(3));
  EXPECT_EQ(versions.Newest(kPage, VsVector()).page->id(), kPage);
  EXPECT_FALSE(versions.At(kPage, {M(0), VsTime(1)}));
}

TEST(PageVersionsTest, ASecondHistoryOfAPageIsAnError) {
  const History history(5), other(5, 2);
  PageVersions versions(NeverFormatted);
  for (size_t n = 1; n <= history.size(); ++n) history.Send(versions, n);
  PageChange fork = history.at(4);
  fork.lsn = {M(2), VsTime(history.lsn(5).time.value() + 1)};
  EXPECT_THROW(versions.Take(std::span(&fork, 1), nullptr), Error);
  fork.lsn = {M(2), history.lsn(5).time};
  EXPECT_THROW(versions.Take(std::span(&fork, 1), nullptr), Error);
}

}  // namespace
}  // namespace dbx::mm
