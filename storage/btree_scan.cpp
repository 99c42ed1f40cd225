#include "storage/btree_scan.h"

#include <algorithm>

#include "base/check.h"

namespace dbx {

bool BTreeScan::NextBatch() {
  if (done_) return false;
  batch_low_ = low_;
  batch_high_ = high_;
  BTreeIndex::Retry([this] {
    bool found = position_ == Position::kInLeaf;
    if (position_ == Position::kNextLeaf) found = StepToNextLeaf();
    position_ = Position::kUnknown;  // unless the copy says otherwise
    return (found || FindLeaf()) && (order_ == ScanOrder::kAscending ? CopyAscending() : CopyDescending());
  });
  return true;
}

void BTreeScan::Repeat() {
  low_ = batch_low_;
  high_ = batch_high_;
  done_ = false;
  position_ = Position::kUnknown;
}

bool BTreeScan::FindLeaf() {
  leaf_low_ = 0;
  leaf_high_ = BTreeNode::kPadKey;
  return index_.Descend(order_ == ScanOrder::kAscending ? low_ : high_, at_,
                        [this](const BTreeInner* inner, uint64_t, uint32_t child) {
                          parent_low_ = leaf_low_;
                          parent_high_ = leaf_high_;
                          if (child > 0) leaf_low_ = inner->keys[child - 1].get() + 1;
                          // Behind the last key lies the highest of all.
                          leaf_high_ = std::min(leaf_high_, inner->keys[child].get());
                          return true;
                        });
}

// Without a descent from the root, as long as the parent is unchanged. False: it has changed, or has no further child.
bool BTreeScan::StepToNextLeaf() {
  const BTreeInner* const parent = at_.parent;
  const bool ascending = order_ == ScanOrder::kAscending;
  // The parent may have been split meanwhile: its keys, even if fewer by now than at_.index, bound the index.
  if (ascending ? at_.index >= parent->count.get() : at_.index == 0) return false;
  const uint32_t index = ascending ? at_.index + 1 : at_.index - 1;
  BTreeNode* const child = parent->children[index].get();
  const Key low = index > 0 ? parent->keys[index - 1].get() + 1 : parent_low_;
  const Key high = std::min(parent_high_, parent->keys[index].get());
  if (!parent->StillAt(at_.parent_version)) return false;
  PrefetchLines(child, sizeof(BTreeLeaf) / kCacheLineBytes);
  at_.version = child->StableVersion();
  // The child may have been split before its version was loaded.
  if (!parent->StillAt(at_.parent_version)) return false;
  at_.index = index;
  at_.leaf = static_cast<BTreeLeaf*>(child);
  leaf_low_ = low;
  leaf_high_ = high;
  return true;
}

bool BTreeScan::CopyAscending() {
  const BTreeLeaf& leaf = *at_.leaf;
  const uint32_t end = leaf.count.get();
  uint32_t slot = leaf.SlotOf(low_);
  for (count_ = 0; count_ < kBatch && slot < end; ++count_, ++slot) {
    const Key key = leaf.keys[slot].get();
    if (key > high_) break;
    entries_[count_] = {key, leaf.rows[slot].get()};
  }
  const bool more = slot < end && leaf.keys[slot].get() <= high_;
  if (!leaf.StillAt(at_.version)) return false;
  leaf_ = {at_.leaf, at_.version};
  position_ = more ? Position::kInLeaf : Position::kNextLeaf;
  const Key covered = more ? entries_[count_ - 1].key : leaf_high_;
  done_ = covered >= high_;
  if (!done_) low_ = covered + 1;
  return true;
}

bool BTreeScan::CopyDescending() {
  const BTreeLeaf& leaf = *at_.leaf;
  uint32_t slot = high_ == BTreeNode::kPadKey ? leaf.count.get() : leaf.SlotOf(high_ + 1);
  for (count_ = 0; count_ < kBatch && slot > 0; ++count_, --slot) {
    const Key key = leaf.keys[slot - 1].get();
    if (key < low_) break;
    entries_[count_] = {key, leaf.rows[slot - 1].get()};
  }
  const bool more = slot > 0 && leaf.keys[slot - 1].get() >= low_;
  if (!leaf.StillAt(at_.version)) return false;
  leaf_ = {at_.leaf, at_.version};
  position_ = more ? Position::kInLeaf : Position::kNextLeaf;
  const Key covered = more ? entries_[count_ - 1].key : leaf_low_;
  done_ = covered <= low_;
  if (!done_) high_ = covered - 1;
  return true;
}

}  // namespace dbx
