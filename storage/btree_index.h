// The ordered index of a table: key -> Row*, a B+tree with optimistic lock coupling (Leis et al., "The ART of Practical
// Synchronization", DaMoN 2016).
//
// Keys are unique. A non-unique search key is packed into a unique key: the search key in the upper bits, a
// distinguishing or ordering part below (TPC-C: the orders of a customer are w:16 d:4 c:12 o:32), and a look-up is a
// scan of the range. A key need not be the key of the row that it leads to; the tree never looks into a row. Scans:
// storage/btree_scan.h.
//
// Threads: all but the constructor and the destructor may run side by side. Where UnlinkEmpty is called, every caller
// is within an epoch section (base/epoch.h) as long as it uses rows or leaves that it found, LeafRefs included.
//
// A reader descends from the root without locks, and re-checks the version of each node after that of its child is
// loaded; after any change it restarts from the root. A writer descends in the same way and locks only the nodes that
// it changes, from the version that it has read: no thread waits for a lock while it holds one, so there are no
// deadlocks. A full inner node is split on the way down, so there is always room above a full leaf.
//
// Invariants:
//  - The leaves' ranges partition the keys. A leaf's range shrinks only when it is split, which changes its version.
//  - A leaf's version changes when an entry is inserted or erased, when the leaf is split and when it is unlinked, when
//    it begins and ends to be held, and else never.
//  - A leaf held by another is not changed and never waited for: inserts and erases report it (LeafChange::held_by).
//  - Nodes are never merged. An empty leaf stays, with the metadata of its range, until UnlinkEmpty hands range and
//    metadata to a neighbour. The root stays where it is and the tree does not get lower.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "base/spin.h"
#include "storage/btree_node.h"
#include "storage/btree_pool.h"

namespace dbx {

struct BTreeEntry {
  Key key;
  Row* row;
};

enum class UnlinkResult : uint8_t {
  kUnlinked,
  kNotEmpty,
  kOnlyLeaf,  // there is no other leaf
  kHeld,      // the leaf is, or its neighbour that would inherit
};

class BTreeIndex {
 public:
  // `meta_bytes` of log metadata in each leaf, all zero in the first one.
  explicit BTreeIndex(size_t meta_bytes, NodePlacement placement = DefaultNodePlacement());

  // The row that `key` leads to or nullptr; `seen` is the leaf that has or would have it.
  Row* Find(Key key) const {
    LeafRef seen;
    return Find(key, seen);
  }
  Row* Find(Key key, LeafRef& seen) const;

  // Returns the row that `key` leads to or, if there is none, inserts what `make()`, or `make(BTreeLeaf&)`, returns. It
  // runs with the leaf locked that gets the key, so it must not call the index; it may throw. `change` reports the leaf
  // of the key and how it was changed. Returns nullptr where the leaf would have to change and is held by another than
  // `holder`.
  template <class Make>
  Row* FindOrInsert(Key key, Make&& make, LeafChange& change, uint64_t holder = 0) {
    const Place place = FindOrLockPlace(key, change, holder);
    if (place.row != nullptr || place.target == nullptr) return place.row;
    PlaceLock lock(place, change);
    Row* row;
    if constexpr (std::is_invocable_v<Make, BTreeLeaf&>) {
      row = make(*place.target);
    } else {
      row = make();
    }
    place.target->InsertAt(place.slot, key, row);
    return row;
  }
  template <class Make>
  Row* FindOrInsert(Key key, Make&& make) {
    LeafChange change;
    return FindOrInsert(key, std::forward<Make>(make), change);
  }

  // Takes out the entry of `key`. False: there is none, or it leads to another row, or the leaf is held, by any holder.
  // Other threads may still use the row.
  // `leave(BTreeLeaf&)` runs before, with the leaf locked, and must not call the index, nor throw.
  template <class Leave>
  bool Erase(Key key, const Row* row, LeafChange& change, Leave&& leave) {
    uint32_t slot;
    BTreeLeaf* const leaf = LockEntry(key, row, slot, change);
    if (leaf == nullptr) return false;
    leave(*leaf);
    leaf->RemoveAt(slot);
    change.emptied = leaf->count.get() == 0;
    change.after = leaf->UnlockChanged();
    return true;
  }
  bool Erase(Key key, const Row* row, LeafChange& change) {
    return Erase(key, row, change, [](BTreeLeaf&) {});
  }
  bool Erase(Key key, const Row* row) {
    LeafChange change;
    return Erase(key, row, change);
  }

  // Takes the leaf of `key` out of the tree if it is empty. A neighbour inherits its range: `absorb(BTreeLeaf& leaving,
  // BTreeLeaf& heir)`, called with both locked, raises the heir's metadata and control to cover the other's. It must
  // not call the index, nor throw. The heir's version stays: a transaction that reaches the inherited range loads its
  // metadata and control again. The memory is reused once no worker can still have a LeafRef to it.
  template <class Absorb>
  UnlinkResult UnlinkEmpty(Key key, EpochClock& clock, WorkerId worker, Absorb&& absorb) {
    Unlinking unlinking;
    const UnlinkResult result = LockEmptyLeaf(key, unlinking);
    if (result != UnlinkResult::kUnlinked) return result;
    absorb(*unlinking.leaf, *unlinking.heir);
    Unlink(unlinking, clock, worker);
    return result;
  }

  // Fetches the leaf of `key`, ahead of a look-up. Reads the inner nodes.
  void PrefetchLeaf(Key key) const;

  // Keys that cut the entries into about equal parts: the ends of the leaves' ranges but the last one's, ascending. For
  // single-threaded phases.
  std::vector<Key> LeafEnds() const;

  // Backs the leaves of `entries` more with pages: as many as ascending runs fill. Other orders take more.
  void Prefault(uint64_t entries) { leaves_.Prefault(entries / BTreeLeaf::kSlots + 1); }

  size_t meta_bytes() const { return meta_bytes_; }
  uint32_t height() const { return root_->level.get() + 1; }  // in nodes
  size_t memory_bytes() const { return leaves_.memory_bytes() + inners_.memory_bytes(); }

 private:
  friend class BTreeScan;

  static constexpr uint32_t kHeightMax = 16;  // splits make a level out of dozens of nodes

  // A leaf as it was found, below a parent whose version shows that it is still there.
  struct Descent {
    BTreeInner* parent = nullptr;
    uint64_t parent_version = 0;
    uint32_t index = 0;  // of the leaf in its parent
    BTreeLeaf* leaf = nullptr;
    uint64_t version = 0;
  };

  // Where a key is to be inserted, or the row that it leads to already.
  struct Place {
    Row* row = nullptr;
    BTreeLeaf* leaf = nullptr;    // locked
    BTreeLeaf* right = nullptr;   // locked: a leaf that was split off to make room
    BTreeLeaf* target = nullptr;  // the one of the two that gets the key; nullptr: another holds the leaf
    uint32_t slot = 0;
  };
  // Unlocks, whether or not `make` threw, and reports.
  class PlaceLock {
   public:
    PlaceLock(const Place& place, LeafChange& change)
        : place_(place), change_(change), entries_before_(place.target->count.get()) {}
    ~PlaceLock();
    PlaceLock(const PlaceLock&) = delete;
    PlaceLock& operator=(const PlaceLock&) = delete;

   private:
    const Place& place_;
    LeafChange& change_;
    const uint32_t entries_before_;
  };

  // The nodes locked to unlink a leaf: from an inner node that keeps other children down to the leaf, and the heir.
  struct Unlinking {
    struct Step {
      BTreeInner* inner;
      uint64_t version;
    };
    BTreeInner* keeper = nullptr;
    uint64_t keeper_version = 0;
    uint32_t index = 0;      // of the child to be unlinked
    Step below[kHeightMax];  // inner nodes with no child but the next one
    uint32_t steps = 0;
    BTreeLeaf* leaf = nullptr;
    BTreeLeaf* heir = nullptr;
    bool heir_is_held = false;

    void Visit(BTreeInner* inner, uint64_t version, uint32_t child);
    bool TryLock(uint64_t leaf_version);
    bool TryLockSteps(uint64_t leaf_version);
    bool TryLockHeir();
  };

  // Descends to the leaf of `key`. Calls visit(inner, version, index of the child) for each inner node, from the root
  // on; its reads of the node are valid if Descend returns true. False: something has changed, or visit returned false.
  template <class Visit>
  bool Descend(Key key, Descent& found, Visit&& visit) const {
    BTreeInner* inner = root_;
    uint64_t version = inner->StableVersion();
    for (;;) {
      const uint32_t index = inner->ChildOf(key);
      BTreeNode* const child = inner->children[index].get();
      const bool child_is_leaf = inner->level.get() == 1;
      if (!visit(inner, version, index) || !inner->StillAt(version)) return false;
      child->PrefetchKeys();
      const uint64_t child_version = child->StableVersion();
      // The child may have been split before its version was loaded.
      if (!inner->StillAt(version)) return false;
      if (child_is_leaf) {
        found = {inner, version, index, static_cast<BTreeLeaf*>(child), child_version};
        return true;
      }
      inner = static_cast<BTreeInner*>(child);
      version = child_version;
    }
  }
  // Calls attempt() until it returns true.
  template <class Attempt>
  static void Retry(Attempt&& attempt) {
    for (SpinWait again; !attempt(); again.Wait()) {
    }
  }

  Place FindOrLockPlace(Key key, LeafChange& change, uint64_t holder);
  bool DescendWithRoom(Key key, Descent& found);
  bool SplitLeaf(const Descent& at, Place& place);
  void SplitInner(BTreeInner* parent, uint64_t parent_version, BTreeInner* inner, uint64_t version, Key key);
  static bool TryLockBoth(BTreeInner* parent, uint64_t parent_version, BTreeNode* child, uint64_t version);
  void GrowRoot(uint64_t version);

  BTreeLeaf* LockEntry(Key key, const Row* row, uint32_t& slot, LeafChange& change);
  static void AppendLeafEnds(const BTreeInner& inner, std::vector<Key>& ends);
  UnlinkResult LockEmptyLeaf(Key key, Unlinking& unlinking);
  void Unlink(Unlinking& unlinking, EpochClock& clock, WorkerId worker);

  BTreeLeaf* NewLeaf();    // locked
  BTreeInner* NewInner();  // locked

  const size_t meta_bytes_;
  BTreePool leaves_;
  BTreePool inners_;
  BTreeInner* const root_;
};

}  // namespace dbx
