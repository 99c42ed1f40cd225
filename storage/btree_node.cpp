#include "storage/btree_node.h"

#include "base/check.h"
#include "base/spin.h"

namespace dbx {

uint64_t BTreeNode::AwaitUnlocked() const {
  SpinWait spin;
  for (;;) {
    // Acquire: as in StableVersion.
    const uint64_t version = version_.load(std::memory_order_acquire);
    if ((version & kLocked) == 0) return version;
    spin.Wait();
  }
}

// Release, as of every word that changes under the lock.
bool BTreeLeaf::TryHold(uint64_t seen, uint64_t holder) {
  ASSERT(holder != 0);
  if (!TryLock(seen)) return false;
  control.store(holder, std::memory_order_release);
  version_.store(((Now() & ~kLocked) + kStep) | kHeld, std::memory_order_release);
  return true;
}

// With the leaf locked: at every version that others can find it at, the flag and the holder's name agree.
void BTreeLeaf::EndHold() {
  const uint64_t held = Now();
  ASSERT((held & (kHeld | kLocked)) == kHeld);
  CHECK(TryLockAsHolder(held));
  control.store(0, std::memory_order_release);
  version_.store((held & ~kHeld) + kStep, std::memory_order_release);
}

void BTreeLeaf::InsertAt(uint32_t slot, Key key, Row* row) {
  const uint32_t entries = count.get();
  ASSERT(entries < kSlots && slot <= entries);
  for (uint32_t i = entries; i > slot; --i) {
    keys[i].set(keys[i - 1].get());
    rows[i].set(rows[i - 1].get());
  }
  keys[slot].set(key);
  rows[slot].set(row);
  count.set(entries + 1);
  last_insert.set(slot);
}

void BTreeLeaf::RemoveAt(uint32_t slot) {
  const uint32_t last = count.get() - 1;
  ASSERT(slot <= last);
  for (uint32_t i = slot; i < last; ++i) {
    keys[i].set(keys[i + 1].get());
    rows[i].set(rows[i + 1].get());
  }
  keys[last].set(kPadKey);
  count.set(last);
  const uint32_t youngest = last_insert.get();
  if (youngest == kNoSlot || youngest < slot) return;
  last_insert.set(youngest == slot ? kNoSlot : youngest - 1);
}

void BTreeLeaf::MoveTail(uint32_t from, BTreeLeaf& to) {
  const uint32_t end = count.get();
  for (uint32_t i = from; i < end; ++i) {
    to.keys[i - from].set(keys[i].get());
    to.rows[i - from].set(rows[i].get());
    keys[i].set(kPadKey);
  }
  to.count.set(end - from);
  count.set(from);
  last_insert.set(kNoSlot);
}

void BTreeInner::InsertChild(uint32_t index, Key separator, BTreeNode* right) {
  const uint32_t end = count.get();
  ASSERT(end < kKeysMax && index <= end);
  for (uint32_t i = end; i > index; --i) {
    keys[i].set(keys[i - 1].get());
    children[i + 1].set(children[i].get());
  }
  keys[index].set(separator);
  children[index + 1].set(right);
  count.set(end + 1);
}

void BTreeInner::RemoveChild(uint32_t index) {
  const uint32_t last = count.get() - 1;
  // The neighbour below takes over the range or, for the first child, the one above.
  for (uint32_t i = index == 0 ? 0 : index - 1; i < last; ++i) keys[i].set(keys[i + 1].get());
  for (uint32_t i = index; i <= last; ++i) children[i].set(children[i + 1].get());
  keys[last].set(kPadKey);
  count.set(last);
}

void BTreeInner::MoveTail(uint32_t from, BTreeInner& to) {
  const uint32_t end = count.get();
  for (uint32_t i = from; i < end; ++i) {
    to.keys[i - from].set(keys[i].get());
    keys[i].set(kPadKey);
  }
  for (uint32_t i = from; i <= end; ++i) to.children[i - from].set(children[i].get());
  to.count.set(end - from);
  to.level.set(level.get());
}

}  // namespace dbx
