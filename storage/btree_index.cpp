#include "storage/btree_index.h"

#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/epoch.h"

namespace dbx {
namespace {

// How a full leaf is split to make room at `slot`: the lower part keeps `kept` entries.
struct SplitPoint {
  uint32_t kept;
  bool into_lower;  // the new entry goes into the lower part
};

// In the middle, but for runs of keys that ascend or descend, wherever they are: there, at the new entry. The run
// continues in the part that has nothing beyond it, and leaves full leaves behind.
SplitPoint ChooseSplit(uint32_t entries, uint32_t slot, uint32_t last_insert) {
  if (slot == entries || slot == last_insert + 1) return {slot, slot < entries};
  if (slot == last_insert) return {slot, slot == 0};
  return {entries / 2, slot <= entries / 2};
}

constexpr auto kVisitNothing = [](BTreeInner*, uint64_t, uint32_t) { return true; };

}  // namespace

BTreeIndex::BTreeIndex(size_t meta_bytes, NodePlacement placement)
    : meta_bytes_(RoundUp(meta_bytes, sizeof(uint64_t))),
      leaves_(RoundUp(sizeof(BTreeLeaf) + meta_bytes_, kCacheLineBytes), placement),
      inners_(sizeof(BTreeInner), placement),
      root_(NewInner()) {
  BTreeLeaf* const first = NewLeaf();
  root_->level.set(1);
  root_->children[0].set(first);
  first->UnlockUnchanged();
  root_->UnlockUnchanged();
}

// The version of a reused node continues from its earlier one.
BTreeLeaf* BTreeIndex::NewLeaf() {
  auto* const leaf = static_cast<BTreeLeaf*>(leaves_.Allocate());
  // Relaxed, as below: no other thread sees the node before it is linked.
  leaf->version_.store((leaf->Now() & ~BTreeNode::kUnlinked) | BTreeNode::kLocked, std::memory_order_relaxed);
  leaf->control.store(0, std::memory_order_relaxed);
  leaf->count.set(0);
  leaf->last_insert.set(BTreeLeaf::kNoSlot);
  for (auto& key : leaf->keys) key.set(BTreeNode::kPadKey);
  return leaf;
}

BTreeInner* BTreeIndex::NewInner() {
  auto* const inner = static_cast<BTreeInner*>(inners_.Allocate());
  inner->version_.store((inner->Now() & ~BTreeNode::kUnlinked) | BTreeNode::kLocked, std::memory_order_relaxed);
  inner->count.set(0);
  for (auto& key : inner->keys) key.set(BTreeNode::kPadKey);
  return inner;
}

Row* BTreeIndex::Find(Key key, LeafRef& seen) const {
  Row* row = nullptr;
  Retry([&] {
    Descent at;
    if (!Descend(key, at, kVisitNothing)) return false;
    row = at.leaf->RowAt(at.leaf->SlotOf(key), key);
    seen = {at.leaf, at.version};
    return at.leaf->StillAt(at.version);
  });
  return row;
}

void BTreeIndex::PrefetchLeaf(Key key) const {
  Descent at;
  // Descend prefetches; a hint needs no second attempt.
  (void)Descend(key, at, kVisitNothing);
}

std::vector<Key> BTreeIndex::LeafEnds() const {
  std::vector<Key> ends;
  AppendLeafEnds(*root_, ends);
  return ends;
}

void BTreeIndex::AppendLeafEnds(const BTreeInner& inner, std::vector<Key>& ends) {
  for (uint32_t i = 0; i <= inner.count.get(); ++i) {
    if (inner.level.get() > 1) AppendLeafEnds(static_cast<const BTreeInner&>(*inner.children[i].get()), ends);
    if (i < inner.count.get()) ends.push_back(inner.keys[i].get());
  }
}

// ---- Insert ----------------------------------------------------------------------------------------------

BTreeIndex::Place BTreeIndex::FindOrLockPlace(Key key, LeafChange& change, uint64_t holder) {
  Place place;
  Retry([&] {
    Descent at;
    if (!DescendWithRoom(key, at)) return false;
    BTreeLeaf* const leaf = at.leaf;
    place = Place{nullptr, leaf, nullptr, leaf, leaf->SlotOf(key)};
    place.row = leaf->RowAt(place.slot, key);
    const bool full = leaf->count.get() == BTreeLeaf::kSlots;
    const uint64_t held_by = leaf->HolderAt(at.version);
    if (!leaf->StillAt(at.version)) return false;
    change = LeafChange{leaf, at.version, at.version, {}, false, 0};
    if (place.row != nullptr) return true;
    if (__builtin_expect(held_by != 0, 0) && held_by != holder) {
      place.target = nullptr;
      change.held_by = held_by;
      return true;
    }
    return full ? SplitLeaf(at, place) : leaf->TryLockAsHolder(at.version);
  });
  return place;
}

// Full inner nodes on the way are split, which ends the attempt.
bool BTreeIndex::DescendWithRoom(Key key, Descent& found) {
  BTreeInner* above = nullptr;
  uint64_t above_version = 0;
  return Descend(key, found, [&](BTreeInner* inner, uint64_t version, uint32_t) {
    if (inner->count.get() < BTreeInner::kKeysMax) {
      above = inner;
      above_version = version;
      return true;
    }
    if (inner == root_) {
      GrowRoot(version);
    } else {
      SplitInner(above, above_version, inner, version, key);
    }
    return false;
  });
}

bool BTreeIndex::SplitLeaf(const Descent& at, Place& place) {
  BTreeLeaf* const leaf = at.leaf;
  BTreeLeaf* const right = NewLeaf();
  if (!TryLockBoth(at.parent, at.parent_version, leaf, at.version)) {
    leaves_.Free(right);
    return false;
  }
  const SplitPoint split = ChooseSplit(leaf->count.get(), place.slot, leaf->last_insert.get());
  // The part that gets the new entry gets the key range between the two as well: a run continues there.
  const Key separator = split.into_lower ? leaf->keys[split.kept].get() - 1 : leaf->keys[split.kept - 1].get();
  leaf->MoveTail(split.kept, *right);
  right->InheritHold(*leaf);
  CopyLeafMeta(right->meta(), leaf->meta(), meta_bytes_);
  right->control.store(leaf->control.load(), std::memory_order_relaxed);
  at.parent->InsertChild(at.index, separator, right);
  at.parent->UnlockChanged();
  place.right = right;
  if (!split.into_lower) {
    place.target = right;
    place.slot -= split.kept;
  }
  return true;
}

bool BTreeIndex::TryLockBoth(BTreeInner* parent, uint64_t parent_version, BTreeNode* child, uint64_t version) {
  if (!parent->TryLock(parent_version)) return false;
  if (child->TryLockAsHolder(version)) return true;
  parent->UnlockUnchanged();
  return false;
}

BTreeIndex::PlaceLock::~PlaceLock() {
  if (place_.right != nullptr) {
    change_.split_off = {place_.right, place_.right->UnlockChanged()};
  } else if (place_.leaf->count.get() == entries_before_) {
    place_.leaf->UnlockUnchanged();
    return;
  }
  change_.after = place_.leaf->UnlockChanged();
}

void BTreeIndex::SplitInner(BTreeInner* parent, uint64_t parent_version, BTreeInner* inner, uint64_t version, Key key) {
  BTreeInner* const right = NewInner();
  if (!TryLockBoth(parent, parent_version, inner, version)) return inners_.Free(right);
  const uint32_t keys = inner->count.get();
  // Where keys ascend, the lower part stays full but for one key, which moves up.
  const uint32_t kept = inner->ChildOf(key) == keys ? keys - 1 : keys / 2;
  const Key separator = inner->keys[kept].get();
  inner->MoveTail(kept + 1, *right);
  inner->keys[kept].set(BTreeNode::kPadKey);
  inner->count.set(kept);
  parent->InsertChild(parent->ChildOf(separator), separator, right);
  right->UnlockChanged();
  inner->UnlockChanged();
  parent->UnlockChanged();
}

// Its keys move into a new only child, which the next attempt splits.
void BTreeIndex::GrowRoot(uint64_t version) {
  BTreeInner* const child = NewInner();
  if (!root_->TryLock(version)) return inners_.Free(child);
  root_->MoveTail(0, *child);
  root_->count.set(0);
  root_->level.set(root_->level.get() + 1);
  root_->children[0].set(child);
  child->UnlockChanged();
  root_->UnlockChanged();
}

// ---- Erase and unlink ------------------------------------------------------------------------------------

// The leaf, locked, that has `row` under `key` in `slot`; nullptr: none has.
BTreeLeaf* BTreeIndex::LockEntry(Key key, const Row* row, uint32_t& slot, LeafChange& change) {
  BTreeLeaf* found = nullptr;
  Retry([&] {
    Descent at;
    if (!Descend(key, at, kVisitNothing)) return false;
    BTreeLeaf* const leaf = at.leaf;
    slot = leaf->SlotOf(key);
    found = row != nullptr && leaf->RowAt(slot, key) == row ? leaf : nullptr;
    change = LeafChange{leaf, at.version, at.version, {}, false, leaf->HolderAt(at.version)};
    if (change.held_by != 0) found = nullptr;
    return found == nullptr ? leaf->StillAt(at.version) : leaf->TryLock(at.version);
  });
  return found;
}

UnlinkResult BTreeIndex::LockEmptyLeaf(Key key, Unlinking& unlinking) {
  UnlinkResult result = UnlinkResult::kUnlinked;
  Retry([&] {
    unlinking = Unlinking{};
    Descent at;
    const bool arrived = Descend(key, at, [&](BTreeInner* inner, uint64_t version, uint32_t index) {
      unlinking.Visit(inner, version, index);
      return true;
    });
    if (!arrived) return false;
    unlinking.leaf = at.leaf;
    const bool empty = at.leaf->count.get() == 0;
    if (!at.leaf->StillAt(at.version)) return false;
    result = UnlinkResult::kNotEmpty;
    if (!empty) return true;
    result = UnlinkResult::kOnlyLeaf;
    if (unlinking.keeper == nullptr) return true;
    result = UnlinkResult::kHeld;
    if (at.version & BTreeNode::kHeld) return true;
    if (!unlinking.TryLock(at.version)) return unlinking.heir_is_held;
    result = UnlinkResult::kUnlinked;
    return true;
  });
  return result;
}

void BTreeIndex::Unlinking::Visit(BTreeInner* inner, uint64_t version, uint32_t child) {
  if (inner->count.get() > 0) {
    keeper = inner;
    keeper_version = version;
    index = child;
    steps = 0;
    return;
  }
  CHECK(steps < kHeightMax);
  below[steps++] = {inner, version};
}

bool BTreeIndex::Unlinking::TryLock(uint64_t leaf_version) {
  if (!keeper->TryLock(keeper_version)) return false;
  if (TryLockSteps(leaf_version)) {
    if (TryLockHeir()) return true;
    for (uint32_t i = 0; i < steps; ++i) below[i].inner->UnlockUnchanged();
    leaf->UnlockUnchanged();
  }
  keeper->UnlockUnchanged();
  return false;
}

// The inner nodes below the keeper and the leaf; all of them or none.
bool BTreeIndex::Unlinking::TryLockSteps(uint64_t leaf_version) {
  uint32_t locked = 0;
  while (locked < steps && below[locked].inner->TryLock(below[locked].version)) ++locked;
  if (locked == steps && leaf->TryLock(leaf_version)) return true;
  while (locked > 0) below[--locked].inner->UnlockUnchanged();
  return false;
}

// The leaf next to this one, on the side of the child of the keeper that takes over the range.
bool BTreeIndex::Unlinking::TryLockHeir() {
  const bool heir_is_below = index > 0;
  BTreeInner* inner = keeper;
  BTreeNode* child = keeper->children[heir_is_below ? index - 1 : 1].get();
  uint64_t inner_version = keeper->Now();
  for (;;) {
    const bool child_is_leaf = inner->level.get() == 1;
    if (!inner->StillAt(inner_version)) return false;
    // A thread that waits must hold no lock: no StableVersion here. TryLock and StillAt fail on a locked version.
    const uint64_t child_version = child->version_.load(std::memory_order_acquire);
    if (!inner->StillAt(inner_version)) return false;
    if (child_is_leaf) {
      heir = static_cast<BTreeLeaf*>(child);
      heir_is_held = (child_version & BTreeNode::kHeld) != 0;
      return heir->TryLock(child_version);
    }
    if (child_version & BTreeNode::kLocked) return false;
    inner = static_cast<BTreeInner*>(child);
    inner_version = child_version;
    child = inner->children[heir_is_below ? inner->count.get() : 0].get();
  }
}

void BTreeIndex::Unlink(Unlinking& unlinking, EpochClock& clock, WorkerId worker) {
  unlinking.keeper->RemoveChild(unlinking.index);
  for (uint32_t i = 0; i < unlinking.steps; ++i) unlinking.below[i].inner->UnlockUnlinked();
  unlinking.leaf->UnlockUnlinked();
  unlinking.heir->UnlockUnchanged();
  unlinking.keeper->UnlockChanged();
  for (uint32_t i = 0; i < unlinking.steps; ++i) inners_.Retire(unlinking.below[i].inner, clock, worker);
  leaves_.Retire(unlinking.leaf, clock, worker);
}

}  // namespace dbx
