// The B-link tree, one step at a time.
#include "multi_master/page/paged_tree.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/multi_master/page/tree_fixture.h"

namespace dbx::mm {
namespace {

std::string ImageOf(Key key) { return "row " + std::to_string(key); }

void Fill(TreeUnderTest& test, Key begin, Key end, Key step = 1) {
  for (Key key = begin; key < end; key += step) test.Put(key, 1, ImageOf(key));
}

TEST(PagedTreeTest, RowsArePutReadDeletedRestoredAndPurged) {
  TreeUnderTest test;
  test.Put(5, 1, "a");
  test.Put(5, 2, "b");
  EXPECT_EQ(test.Get(5), "b");
  test.Delete(5, 2);
  EXPECT_EQ(test.Get(5), std::nullopt);
  test.Restore(5, 2);
  EXPECT_EQ(test.Get(5), "a");
  test.Delete(5, 3);
  test.Purge(5);
  EXPECT_FALSE(test.tree().PinLeaf(5, LockMode::kShared).Find(5));
  EXPECT_TRUE(test.CheckAll().rows.empty());
}

TEST(PagedTreeTest, HintsLeadToTheLeafOrLeftOfIt) {
  TreeUnderTest test;
  LeafHints hints;
  Fill(test, 0, 1500, 3);
  for (Key key = 0; key < 1500; ++key) {
    const PageId leaf = test.tree().PinLeaf(key, LockMode::kShared, &hints).id();
    ASSERT_EQ(hints.Find(key), leaf) << key;
  }
  // Most leaves split, and some pages above them.
  Fill(test, 1, 1500, 3);
  size_t old = 0;
  for (Key key = 0; key < 1500; ++key) {
    const PageId leaf = test.tree().PinLeaf(key, LockMode::kShared).id();
    old += hints.Find(key) != leaf;
    ASSERT_EQ(test.tree().PinLeaf(key, LockMode::kShared, &hints).id(), leaf) << key;
    ASSERT_EQ(hints.Find(key), leaf) << key;
  }
  EXPECT_GT(old, 10u) << "it tests nothing";
}

TEST(PagedTreeTest, ItGrowsByAscendingDescendingAndMixedKeys) {
  for (const std::string order : {"ascending", "descending", "mixed"}) {
    SCOPED_TRACE(order);
    TreeUnderTest test;
    std::map<Key, std::string> expected;
    for (Key i = 0; i < 1500; ++i) {
      const Key key = order == "ascending" ? i : order == "descending" ? 1500 - i : i * 7919 % 1500;
      test.Put(key, 1, ImageOf(key));
      expected[key] = ImageOf(key);
    }
    EXPECT_GE(test.source().StoredPages().at(kTestRoot).level(), 2);
    const reference::CheckedTree checked = test.CheckAll();
    EXPECT_EQ(PresentRows(checked), expected);
    EXPECT_EQ(checked.unposted, 0u);
    EXPECT_EQ(test.Scan(), expected);
  }
}

TEST(PagedTreeTest, TheLargestAndTheSmallestKeyAreKeys) {
  TreeUnderTest test;
  Fill(test, 1, 200);
  test.Put(UINT64_MAX, 1, "last");
  test.Put(0, 1, "first");
  EXPECT_EQ(test.Get(UINT64_MAX), "last");
  EXPECT_EQ(test.Get(0), "first");
  EXPECT_EQ(test.CheckAll().rows.size(), 201u);
}

TEST(PagedTreeTest, AscendingKeysLeaveFullPages) {
  TreeUnderTest test;
  Fill(test, 0, 1000);
  size_t used = 0, leaves = 0;
  for (const auto& [id, page] : test.source().StoredPages()) {
    if (!page.is_leaf() || !page.has_right()) continue;
    used += page.bytes_used();
    ++leaves;
  }
  EXPECT_GT(used, leaves * 512 * 8 / 10);
}

TEST(PagedTreeTest, PagesOfFullSizeHoldTheLargestRows) {
  TreeUnderTest test(1024, nullptr, kPageBytes);
  const std::string largest(test.tree().image_bytes_max(), 'x');
  EXPECT_EQ(largest.size(), kImageBytesMax);
  for (Key key = 0; key < 60; ++key) test.Put(key * 17 % 60, 1, largest);
  for (Key key = 0; key < 60; ++key) test.Put(key, 2, std::string(kImageBytesMax, 'y'));
  EXPECT_EQ(test.CheckAll().rows.size(), 60u);
}

TEST(PagedTreeTest, ALeafThatHasRoomIsNotSplit) {
  TreeUnderTest test;
  test.Put(5, 1, "row");
  test.tree().MakeRoom(6, Txn(1), AsBytes("row"));
  EXPECT_EQ(test.tree().splits(), 0u);
  EXPECT_EQ(test.source().NewPage(), PageId(2)) << "the new page was given back";
}

TEST(PagedTreeTest, TheNextKeyMayBeOnAPageFurtherRight) {
  TreeUnderTest test;
  Fill(test, 0, 100, 2);
  for (Key key = 0; key < 98; ++key) {
    PinnedLeaf leaf = test.tree().PinLeaf(key, LockMode::kExclusive);
    const PagedTree::NextKey next = test.tree().FindNext(leaf, key, LockMode::kShared);
    ASSERT_EQ(next.key, key / 2 * 2 + 2) << key;
    ASSERT_TRUE(next.frame->page.Find(*next.key));
    ASSERT_EQ(test.source().Pin(next.frame->id, LockMode::kExclusive, false), nullptr) << "it is not pinned";
  }
  PinnedLeaf leaf = test.tree().PinLeaf(98, LockMode::kShared);
  EXPECT_EQ(test.tree().FindNext(leaf, 98, LockMode::kShared).key, std::nullopt);
}

TEST(PagedTreeTest, LeavesWithoutRowsArePassed) {
  TreeUnderTest test;
  Fill(test, 0, 100);
  for (Key key = 10; key < 90; ++key) {
    test.Delete(key, 2);
    test.Purge(key);
  }
  PinnedLeaf leaf = test.tree().PinLeaf(9, LockMode::kExclusive);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(test.tree().FindNext(leaf, 9, LockMode::kExclusive).key, 90u) << "pages in between stay pinned";
  }
  EXPECT_EQ(test.tree().Put(leaf, 9, Txn(3), AsBytes("new")), PagedTree::PutStatus::kDone);
  EXPECT_EQ(test.Scan().size(), 20u);
}

TEST(PagedTreeTest, ARowThatIsDeletedIsANextKey) {
  TreeUnderTest test;
  Fill(test, 0, 10);
  test.Delete(5, 2);
  PinnedLeaf leaf = test.tree().PinLeaf(4, LockMode::kShared);
  EXPECT_EQ(test.tree().FindNext(leaf, 4, LockMode::kShared).key, 5u);
}

// --- Row locks ---

// Holds a row lock for each row, by page, as a lock table does.
struct MovingLocks : SplitListener {
  void OnSplit(PageId left, PageId right, Key separator) override {
    auto& from = locks[left];
    for (auto lock = from.lower_bound(separator); lock != from.end(); lock = from.erase(lock)) {
      locks[right].insert(*lock);
    }
    ++splits;
  }
  std::map<PageId, std::set<Key>> locks;
  size_t splits = 0;
};

TEST(PagedTreeTest, RowLocksMoveWithTheirRows) {
  MovingLocks locks;
  TreeUnderTest test(1024, &locks);
  for (Key i = 0; i < 800; ++i) {
    const Key key = i * 7919 % 800;
    test.Put(key, 1, ImageOf(key));
    locks.locks[test.tree().PinLeaf(key, LockMode::kShared).id()].insert(key);
  }
  EXPECT_GT(locks.splits, 50u);
  for (Key key = 0; key < 800; ++key) {
    EXPECT_TRUE(locks.locks[test.tree().PinLeaf(key, LockMode::kShared).id()].contains(key)) << key;
  }
  EXPECT_TRUE(locks.locks[kTestRoot].empty());
}

TEST(PagedTreeTest, BothLeavesArePinnedWhileRowLocksMove) {
  struct Probe : SplitListener {
    void OnSplit(PageId left, PageId right, Key) override {
      EXPECT_EQ(source->Pin(left, LockMode::kShared, false), nullptr);
      EXPECT_EQ(source->Pin(right, LockMode::kShared, false), nullptr);
      EXPECT_GT(source->bodies().size(), 0u);
      ++splits;
    }
    MemorySource* source = nullptr;
    size_t splits = 0;
  } probe;
  TreeUnderTest test(1024, &probe);
  probe.source = &test.source();
  Fill(test, 0, 100);
  EXPECT_GT(probe.splits, 4u);
}

// --- Separators that are not posted ---

bool IsPosting(std::span<const PageChange> changes) {
  return std::holds_alternative<InsertChild>(changes.front().what);
}

// The process ends between a split and the posting of its separator, each time that `crashes` says so. Another tree
// writer goes on with the same pages.
void FillWithCrashes(TreeUnderTest& test, const std::vector<Key>& keys, const std::function<bool()>& crashes) {
  for (const Key key : keys) {
    for (;;) {
      test.source().before_record = [&](std::span<const PageChange> changes) {
        if (IsPosting(changes) && crashes()) throw Crash();
      };
      try {
        test.Put(key, 1, ImageOf(key));
        break;
      } catch (const Crash&) {
      }
    }
  }
  test.source().before_record = nullptr;
}

// Keys that descend are all put on the leftmost leaf, so no writer moves right.
std::vector<Key> Descending(Key count) {
  std::vector<Key> keys;
  for (Key key = count; key-- > 0;) keys.push_back(key);
  return keys;
}

TEST(PagedTreeTest, WithoutSeparatorsReadersMoveRight) {
  TreeUnderTest test;
  FillWithCrashes(test, Descending(300), [] { return true; });
  const reference::CheckedTree checked = test.CheckAll();
  EXPECT_GT(checked.unposted, 30u);
  const uint64_t before = test.tree().moves_right();
  for (Key key = 0; key < 300; ++key) EXPECT_EQ(test.Get(key), ImageOf(key));
  EXPECT_GT(test.tree().moves_right(), before + 300);
  EXPECT_EQ(test.CheckAll().unposted, checked.unposted) << "readers change nothing";
  EXPECT_EQ(test.Scan().size(), 300u);
}

TEST(PagedTreeTest, TheNextWriterThatMovesRightPostsTheSeparator) {
  TreeUnderTest test;
  FillWithCrashes(test, Descending(300), [] { return true; });
  for (Key key = 0; key < 300; ++key) test.Put(key, 1, ImageOf(key));
  EXPECT_GT(test.tree().posted_late(), 0u);
  const reference::CheckedTree checked = test.CheckAll();
  EXPECT_EQ(checked.unposted, 0u);
  EXPECT_EQ(checked.rows.size(), 300u);
}

TEST(PagedTreeTest, CrashesAtAnyPostingLeaveATree) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    TreeUnderTest test;
    std::vector<Key> keys;
    for (Key i = 0; i < 600; ++i) keys.push_back(i * 7919 % 600);
    FillWithCrashes(test, keys, [&] { return random.Chance(0.5); });
    EXPECT_EQ(test.CheckAll().rows.size(), 600u);
    if (HasFailure()) return;
  }
}

// --- Sources without some page, and pages that form no tree ---

// Shows each page as it was after some number of records: versions that do not belong together, as a reader of older
// versions meets them.
class MixedVersions : public PageSource {
 public:
  MixedVersions(const MemorySource& live, uint64_t seed, size_t oldest) : random_(seed), oldest_(oldest) {
    versions_.resize(1);
    versions_[0][kTestRoot].Format(kTestRoot, kTestTree, 0, PageId(), 0);
    for (const auto& body : live.bodies()) {
      versions_.push_back(versions_.back());
      const std::vector<PageChange> changes = DecodePages(body).value();
      for (const PageChange& change : changes)
        CHECK(Apply(versions_.back()[change.page], change) == ApplyStatus::kApplied);
    }
  }
  PageFrame* Pin(PageId page, LockMode, bool) override {
    const size_t version = random_.Between(oldest_, versions_.size() - 1);
    const auto found = versions_[version].find(page);
    if (found == versions_[version].end()) return nullptr;
    auto frame = std::make_unique<PageFrame>();
    frame->id = page;
    frame->page = found->second;
    pinned_.push_back(std::move(frame));
    return pinned_.back().get();
  }
  void Unpin(PageFrame&, LockMode) override {}
  PageFrame* PinNew(PageId) override { return nullptr; }
  PageId NewPage() override { return PageId(); }
  void GiveBack(PageId) override {}
  Lsn EndMini(std::span<PageChange>) override { return Lsn(); }

 private:
  Random random_;
  const size_t oldest_;
  std::vector<std::map<PageId, SlottedPage>> versions_;
  std::vector<std::unique_ptr<PageFrame>> pinned_;
};

TEST(PagedTreeTest, ReadersOfMixedVersionsFindWhatAllVersionsHave) {
  TreeUnderTest test;
  Fill(test, 0, 120, 3);
  const size_t oldest = test.source().bodies().size();
  Fill(test, 1, 120, 3);
  Fill(test, 2, 120, 3);
  uint64_t moved = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    MixedVersions source(test.source(), seed, oldest);
    PagedTree tree(source, kTestTree, kTestRoot, nullptr, {512});
    for (Key key = 0; key < 120; key += 3) {
      const PinnedLeaf leaf = tree.PinLeaf(key, LockMode::kShared);
      if (!leaf) {
        ++refused;
        continue;
      }
      ASSERT_TRUE(leaf.Find(key)) << "seed " << seed << ", key " << key;
    }
    moved += tree.moves_right();
  }
  EXPECT_GT(moved, 0u);
  EXPECT_GT(refused, 0u) << "a page that the chosen version does not have";
}

TEST(PagedTreeTest, PagesThatFormNoTreeAreAnError) {
  MemorySource source;
  SlottedPage page;
  std::vector<std::byte> child;
  page.Format(PageId(1), kTestTree, 2, PageId(), 0);
  EncodeChild(0, PageId(2), child);
  ASSERT_TRUE(page.Insert(0, child));
  source.Store(page);
  page.Format(PageId(2), kTestTree, 0, PageId(), 0);
  source.Store(page);
  PagedTree tree(source, kTestTree, PageId(1), nullptr);
  EXPECT_THROW(tree.PinLeaf(5, LockMode::kShared), Error) << "the child is of another level";
  PagedTree other(source, TreeId(9), PageId(1), nullptr);
  EXPECT_THROW(other.PinLeaf(5, LockMode::kShared), Error) << "another tree's root";
  PagedTree absent(source, kTestTree, PageId(77), nullptr);
  EXPECT_THROW(absent.PinLeaf(5, LockMode::kShared), Error) << "no root";
  PagedTree whole(source, kTestTree, PageId(2), nullptr);
  EXPECT_TRUE(whole.PinLeaf(5, LockMode::kExclusive)) << "no page is left pinned";
}

TEST(PagedTreeTest, AFullPoolIsAnErrorAndNothingStaysPinned) {
  TreeUnderTest test(4);
  Fill(test, 0, 200);
  std::vector<PageFrame*> pinned;
  for (const auto& [id, page] : test.source().StoredPages()) {
    if (pinned.size() < 4) pinned.push_back(test.source().Pin(id, LockMode::kShared, true));
  }
  EXPECT_THROW(test.Scan(), Error);
  for (PageFrame* frame : pinned) test.source().Unpin(*frame, LockMode::kShared);
  EXPECT_EQ(test.Scan().size(), 200u);
  Fill(test, 200, 300);
  EXPECT_EQ(test.CheckAll().rows.size(), 300u);
}

}  // namespace
}  // namespace dbx::mm
