// Scans beside changes of the inner node that they step along, with every node right before a page that cannot be
// accessed: whatever a scan uses before it has validated it, it loads nothing beyond the node. One thread; what others
// would do happens between two batches.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/storage/btree_rows.h"

namespace dbx {
namespace {

class BTreeBounds : public testing::Test {
 protected:
  static constexpr Key kGap = 1000;
  static constexpr size_t kChildren = 63;  // of an inner node that is full

  // Inner nodes that ascending inserts left with room for one child, of which the first gets it.
  BTreeBounds() {
    for (Key key = 0; Leaves() < 3 * kChildren; key += kGap) {
      rows_.Insert(index_, key);
      last_ = key;
    }
    SplitALeaf(1);
  }
  size_t Leaves() { return index_.LeafEnds().size(); }
  // Splits one of the leaves from `key` on, and the inner node above it if that is full.
  void SplitALeaf(Key key) {
    for (const size_t leaves = Leaves(); Leaves() == leaves; ++key) rows_.Insert(index_, key);
  }
  // Scans everything, and splits the first inner node when the batch with `key` has come.
  std::vector<Key> ScanAndSplitAt(Key key, ScanOrder order) {
    std::vector<Key> loaded;
    BTreeScan scan(index_, kLowestKey, kHighestKey, order);
    while (scan.NextBatch()) {
      bool there = false;
      for (const BTreeEntry& entry : scan.entries()) {
        there |= entry.key == key;
        if (entry.key % kGap == 0) loaded.push_back(entry.key);
      }
      if (there) SplitALeaf(30 * BTreeLeaf::kSlots * kGap + 1);
    }
    if (order == ScanOrder::kDescending) std::ranges::reverse(loaded);
    return loaded;
  }

  std::vector<Key> Loaded() const {
    std::vector<Key> keys;
    for (Key key = 0; key <= last_; key += kGap) keys.push_back(key);
    return keys;
  }

  BTreeIndex index_{8, NodePlacement::kBeforeGuardPages};
  Rows rows_;
  Key last_ = 0;
};

// Any child, the last one too: where the node is split the scan stands beyond all that is left of it.
class BTreeBoundsOfChild : public BTreeBounds, public testing::WithParamInterface<size_t> {};

TEST_P(BTreeBoundsOfChild, AScanGoesOnThoughItsInnerNodeIsSplitMeanwhile) {
  const Key end_of_child = index_.LeafEnds()[GetParam()];
  EXPECT_EQ(ScanAndSplitAt(end_of_child, ScanOrder::kAscending), Loaded());
}

TEST_P(BTreeBoundsOfChild, AScanDownGoesOnThoughItsInnerNodeIsSplitMeanwhile) {
  const Key end_of_child = index_.LeafEnds()[GetParam()];
  EXPECT_EQ(ScanAndSplitAt(end_of_child, ScanOrder::kDescending), Loaded());
}

INSTANTIATE_TEST_SUITE_P(Children, BTreeBoundsOfChild, testing::Values(0, 1, 30, 31, 32, 61, 62));

// Or else the tests above show nothing.
TEST_F(BTreeBounds, WhatLiesBehindANodeCannotBeAccessed) {
  const LeafRef first = ScanLeaves(index_, kLowestKey, kLowestKey).front();
  auto* const behind = reinterpret_cast<std::byte*>(first.leaf + 1) + kCacheLineBytes;
  EXPECT_DEATH(AtomicRef<std::byte>(*behind).load(), "");
}

}  // namespace
}  // namespace dbx
