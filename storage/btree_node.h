// The nodes of BTreeIndex: a version for optimistic readers, keys, and the rows or children that the keys lead to.
//
// The version of a node is a counter with three flags below. A writer locks the node (compare-and-swap of the version
// that it has read), changes it, and unlocks it with the counter raised. A reader takes no lock: it loads the version,
// reads, and loads the version again; the read is void if the two differ.
//
//   unlocked --TryLock--> locked --UnlockUnchanged--> unlocked, the same version
//                         locked --UnlockChanged----> unlocked, a new version
//                         locked --UnlockUnlinked---> unlinked, for good
//
// A leaf may be held: only its holder inserts and erases entries, for as long as a transaction lasts. A flag of the
// version says so, and the leaf's control word names the holder, so a writer knows both as they were at the version
// that it locks from. Readers are not affected.
//
//   unlocked --TryHold--> unlocked and held, a new version --EndHold--> unlocked, a new version
//
// Every word of a node is an atomic, loaded with acquire and stored with release (NodeWord). A reader that loads a word
// stored under a lock therefore sees the lock, or a later version, at its second load of the version; if it sees
// neither, it has loaded no such word. No fence is needed, and on x86-64 these are plain moves.
//
// A read is void until the version was loaded again, so nothing read is used to access memory before: a pointer is not
// followed, and an index is bounded by the node's size, whatever it was computed from. Two words of one node, or one
// loaded twice, need not belong together; each alone keeps its own bounds at all times (count <= kSlots, kKeysMax).
//
// Keys lie in ascending order, and every slot behind the last key holds kPadKey. So a search takes a fixed number of
// steps and reads no count; the last slot is never a key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/types.h"
#include "storage/row.h"

namespace dbx {

template <class T>
class NodeWord {
 public:
  T get() const { return word_.load(std::memory_order_acquire); }
  void set(T value) { word_.store(value, std::memory_order_release); }

 private:
  Atomic<T> word_;
};

class BTreeNode {
 protected:
  friend struct LeafRef;
  friend class BTreeIndex;
  friend class BTreeScan;

  // Waits while the node is locked. Acquire: the writes under the lock that produced this version are visible.
  uint64_t StableVersion() const {
    const uint64_t version = version_.load(std::memory_order_acquire);
    return __builtin_expect((version & kLocked) == 0, 1) ? version : AwaitUnlocked();
  }
  // Acquire: see above.
  bool StillAt(uint64_t seen) const { return version_.load(std::memory_order_acquire) == seen; }

  // Of a leaf or an inner node: the lines that a search may touch, all at once instead of one after the other.
  void PrefetchKeys() const { PrefetchLines(this, kKeyLines); }

  // False: the node is held, or no longer at version `seen`. Sequentially consistent: see LeafRef.
  bool TryLock(uint64_t seen) { return (seen & kHeld) == 0 && TryLockAsHolder(seen); }
  // The same for a caller that knows that the node is not held at version `seen`, or that holds it itself.
  bool TryLockAsHolder(uint64_t seen) {
    return (seen & (kLocked | kUnlinked)) == 0 && version_.compare_exchange_strong(seen, seen | kLocked);
  }
  // By the holder of the lock. Release: a reader that loads the new version sees the writes under the lock.
  void UnlockUnchanged() { version_.store(Now() & ~kLocked, std::memory_order_release); }
  uint64_t UnlockChanged() {
    const uint64_t changed = (Now() & ~kLocked) + kStep;
    version_.store(changed, std::memory_order_release);
    return changed;
  }
  void UnlockUnlinked() { version_.store(((Now() & ~kLocked) + kStep) | kUnlinked, std::memory_order_release); }

  static constexpr uint64_t kLocked = 1;
  static constexpr uint64_t kUnlinked = 2;
  static constexpr uint64_t kHeld = 4;
  static constexpr uint64_t kStep = 8;
  static constexpr Key kPadKey = ~Key{0};
  static constexpr int kKeyLines = 9;

  // Relaxed: only the holder of the lock calls it.
  uint64_t Now() const { return version_.load(std::memory_order_relaxed); }

  // How many of the first kKeys - 1 keys are below `key`; kKeys is a power of two. Nothing branches on a key.
  template <uint32_t kKeys>
  static uint32_t CountBelow(const NodeWord<Key> (&keys)[kKeys - 1], Key key) {
    static_assert((kKeys & (kKeys - 1)) == 0);
    uint32_t below = 0;
#pragma GCC unroll 8
    for (uint32_t half = kKeys / 2; half > 0; half /= 2) {
      below += keys[below + half - 1].get() < key ? half : 0;
    }
    return below;
  }

  uint64_t AwaitUnlocked() const;

  Atomic<uint64_t> version_;
};

// A leaf: the entries of a range of keys, and the metadata of concurrency control and log for that range: for its gaps
// as well as its entries (phantom protection). Leaves of 30 entries were slower to look up and to scan.
class alignas(kCacheLineBytes) BTreeLeaf : public BTreeNode {
 public:
  static constexpr uint32_t kSlots = 62;

  // The concurrency control's own word, 0 at first; a leaf that splits hands it on as it is. While the leaf is held it
  // names the holder, so a concurrency control that holds leaves has no other use for it.
  Atomic<uint64_t> control;

  // From now on only `holder`, which is not 0, changes the leaf. False: it is held already, or no longer at version
  // `seen`.
  bool TryHold(uint64_t seen, uint64_t holder);
  // By the holder, of each leaf that it holds: those too that were split off from one (LeafChange::split_off).
  void EndHold();

  // The log metadata; a split copies it to the new leaf.
  Meta meta() { return reinterpret_cast<std::byte*>(this + 1); }

 private:
  friend class BTreeIndex;
  friend class BTreeScan;

  static constexpr uint32_t kNoSlot = 2 * kSlots;  // neither a slot nor next to one

  uint32_t SlotOf(Key key) const { return CountBelow<kSlots + 2>(keys, key); }
  // The row of `key`, where `slot` is SlotOf(key); nullptr: the key is not here.
  Row* RowAt(uint32_t slot, Key key) const {
    return slot < count.get() && keys[slot].get() == key ? rows[slot].get() : nullptr;
  }

  // The holder of the leaf at version `seen`, or 0; valid if it is still at that version.
  uint64_t HolderAt(uint64_t seen) const {
    return __builtin_expect((seen & kHeld) == 0, 1) ? 0 : control.load(std::memory_order_acquire);
  }

  // With both locked, of a leaf that is split off; the control word is copied elsewhere.
  void InheritHold(const BTreeLeaf& from) {
    version_.store(Now() | (from.Now() & kHeld), std::memory_order_relaxed);  // not visible to other threads yet
  }
  // With the leaf locked.
  void InsertAt(uint32_t slot, Key key, Row* row);
  void RemoveAt(uint32_t slot);
  void MoveTail(uint32_t from, BTreeLeaf& to);

  NodeWord<uint32_t> count;
  NodeWord<uint32_t> last_insert;  // the slot of the youngest entry, or kNoSlot
  NodeWord<Key> keys[kSlots + 1];
  NodeWord<Row*> rows[kSlots];
};

// An inner node: children[i] leads to the keys above keys[i - 1] and up to keys[i], where both are there.
class alignas(kCacheLineBytes) BTreeInner : public BTreeNode {
  friend class BTreeIndex;
  friend class BTreeScan;

  static constexpr uint32_t kKeysMax = 62;

  uint32_t ChildOf(Key key) const { return CountBelow<kKeysMax + 2>(keys, key); }

  // With the node locked.
  void InsertChild(uint32_t index, Key separator, BTreeNode* right);
  void RemoveChild(uint32_t index);
  void MoveTail(uint32_t from, BTreeInner& to);

  NodeWord<uint32_t> count;  // of keys; one child more
  NodeWord<uint32_t> level;  // 1: the children are leaves
  NodeWord<Key> keys[kKeysMax + 1];
  NodeWord<BTreeNode*> children[kKeysMax + 1];
};

// The first half is the header and the keys (kKeyLines, with the one that the two halves share).
static_assert(sizeof(BTreeLeaf) == 1024 && sizeof(BTreeInner) == 1024);

// A leaf as a reader saw it.
//
// A transaction that depends on the contents of a range of keys keeps the LeafRefs of its look-ups and scans, and
// validates at commit that they are Unchanged. The load there is sequentially consistent, as is the lock of every
// change: stores (sequentially consistent) of the transaction into the leaf's metadata before that are seen by every
// worker that changes the leaf and loads the metadata afterwards, or else the leaf is not unchanged.
struct LeafRef {
  BTreeLeaf* leaf = nullptr;
  uint64_t version = 0;

  // No entry was inserted or erased since, the leaf is not locked, and no holder began or ended to hold it.
  bool Unchanged() const { return leaf->version_.load() == version; }
  // At that version by leaf->control; a caller other than the holder must see afterwards that it is Unchanged.
  bool held() const { return (version & BTreeNode::kHeld) != 0; }
  friend bool operator==(const LeafRef&, const LeafRef&) = default;
};

// Gives a new row or leaf, which no other thread sees yet, the log metadata of the locked leaf that it comes from.
// Other transactions may be raising that meanwhile; those that raise it after the copy will fail validation: the loads
// are sequentially consistent, as is the lock (LeafRef). Relaxed: published with the copy. `bytes` is a multiple of a
// word's.
inline void CopyLeafMeta(Meta to, Meta from, size_t bytes) {
  ASSERT(bytes % sizeof(uint64_t) == 0);
  auto* const target = reinterpret_cast<uint64_t*>(to);
  auto* const source = reinterpret_cast<uint64_t*>(from);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) {
    AtomicRef<uint64_t>(target[i]).store(AtomicRef<uint64_t>(source[i]).load(), std::memory_order_relaxed);
  }
}

// The effect of an insert or erase on the leaves, for a transaction that has seen them itself: a LeafRef{leaf, before}
// of its own becomes {leaf, after} and is joined by `split_off`; one of another version is void.
struct LeafChange {
  BTreeLeaf* leaf = nullptr;
  uint64_t before = 0;
  uint64_t after = 0;    // as before: nothing was changed
  LeafRef split_off;     // a new leaf that took over the upper part of the range; no leaf: there is none
  bool emptied = false;  // `leaf` has no entry left: UnlinkEmpty may free it
  uint64_t held_by = 0;  // not 0: another holds the leaf, so nothing was inserted or erased

  bool changed() const { return before != after; }
};

}  // namespace dbx
