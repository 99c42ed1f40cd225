// The slots of a table's versions in a persistent heap: which are free, by partition.
//
// A partition has the versions of some keys, about as many rows as are adopted together after a restart: the key
// decides its partition, and its extents are its own. Free slots are known in DRAM alone, in a list for each partition;
// `begin` of a free slot is durably 0. Extents whose slots are all free are returned, by a walk along the list, once
// these slots are half of it; an extent of free slots is kept.
//
// Threads: workers, each under its own WorkerId; a partition has a lock, held for a few instructions, or for
// that walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "base/spin.h"
#include "storage/heap/version_heap.h"

namespace dbx {

// What a row has instead of a tuple, in the concurrency control's part: its newest version, a tombstone perhaps, and
// how many slots are not durably 0 that have been its versions. nullptr, 0: the key was never there, as far as any
// snapshot sees.
struct RowVersions {
  Atomic<HeapSlot*> newest;
  Atomic<uint64_t> slots;

  // The version that is visible at `at`, which no slot may be freed at: nullptr: the key was not there.
  HeapSlot* VisibleAt(Timestamp at) const {
    // Acquire: the version is whole.
    HeapSlot* slot = newest.load(std::memory_order_acquire);
    while (slot != nullptr && slot->begin.load(std::memory_order_relaxed) > at.value()) slot = slot->older;
    return slot;
  }
};

// Whether a partition's slots are known (adoption.h).
enum class PartitionState : uint8_t { kAdopted, kUnadopted, kBeingAdopted };

class TableVersions {
 public:
  // `heap` outlives this. Throws Error (kUsage) where a slot is too large for the extents.
  TableVersions(VersionHeap& heap, TableId table, size_t tuple_bytes, heap_format::KeySpread spread);

  VersionHeap& heap() const { return heap_; }
  uint64_t partition_count() const { return partitions_.size(); }
  size_t slot_bytes() const { return slot_bytes_; }
  uint64_t PartitionOf(Key key) const { return spread_.PartitionOf(key); }
  const heap_format::KeySpread& spread() const { return spread_; }

  // A free slot for a version of `key`, its header but for `begin` filled in, for a version with a tuple. Throws as
  // VersionHeap::TakeExtent.
  HeapSlot* Take(WorkerId worker, Key key, TxnId txn) {
    const uint64_t number = PartitionOf(key);
    Partition& partition = partitions_[number].value;
    for (;;) {
      if (HeapSlot* const slot = TakeFree(partition)) {
        slot->key = key;
        slot->txn = txn;
        slot->table = table_;
        slot->flags = 0;
        slot->tuple_bytes = tuple_bytes_;
        return slot;
      }
      Extend(worker, number);
    }
  }
  // Hints ahead of Take: the key's partition; and, once that is in the cache, its first free slot.
  void PrefetchPartition(Key key) const { PrefetchToWrite(&partitions_[PartitionOf(key)]); }
  void PrefetchSlot(Key key) const {
    PrefetchToWrite(partitions_[PartitionOf(key)].value.free.load(std::memory_order_relaxed));
  }
  // A slot that no transaction reads any more, with its key, and whose `begin` is durably 0.
  void Free(WorkerId worker, HeapSlot* slot);

  // ---- after a restart (adoption.h) ----

  // The partitions that own extents of the heap hold slots of which nothing is known. Before any slot is taken.
  // REQUIRES: the directory names no partition that the table has not.
  void FindExtents();
  bool has_unadopted() const { return unadopted_.load(std::memory_order_acquire) > 0; }
  Atomic<PartitionState>& StateOf(uint64_t partition) { return partitions_[partition].value.state; }
  // The extents that the partition owned at the restart.
  std::span<const uint32_t> ExtentsIn(uint64_t partition) const;
  uint32_t slots_per_extent() const { return slots_per_extent_; }
  HeapSlot* SlotAt(uint32_t extent, uint32_t index) const { return heap_.SlotAt(extent, index, slot_bytes_); }
  // These slots of an extent of the partition are durably free, the others in use.
  void AddExtent(uint64_t partition, uint32_t number, std::span<HeapSlot* const> free_slots);
  // All of its extents are added, and what its slots hold is in the index.
  void SetAdopted(uint64_t partition);

  // Of the heap, and of what DRAM knows about it.
  size_t extent_bytes() const { return extents_.load(std::memory_order_relaxed) * heap_.extent_bytes(); }
  uint64_t free_slots() const;

 private:
  struct Partition {
    Atomic<uint32_t> lock{0};
    Atomic<PartitionState> state{PartitionState::kAdopted};
    uint64_t free_count = 0;
    uint32_t free_extents = 0;        // all of whose slots are free
    Atomic<HeapSlot*> free{nullptr};  // guarded by the lock, but for a prefetch

    HeapSlot* first_free() const { return free.load(std::memory_order_relaxed); }
    void SetFirstFree(HeapSlot* slot) { free.store(slot, std::memory_order_relaxed); }
    void AddFree(HeapSlot* slot) {
      slot->later = first_free();
      SetFirstFree(slot);
      ++free_count;
    }
  };
  class Lock {
   public:
    explicit Lock(Partition& partition) : lock_(partition.lock) {
      SpinWait wait;
      while (lock_.exchange(1, std::memory_order_acquire) != 0) wait.Wait();
    }
    ~Lock() { lock_.store(0, std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Atomic<uint32_t>& lock_;
  };

  HeapSlot* TakeFree(Partition& partition) {
    const Lock lock(partition);
    HeapSlot* const slot = partition.first_free();
    if (slot == nullptr) return nullptr;
    partition.SetFirstFree(slot->later);
    --partition.free_count;
    if (free_in_extent_[heap_.ExtentOf(slot)]-- == slots_per_extent_) --partition.free_extents;
    // Of rows that are inserted one after the other, the next.
    PrefetchToWrite(slot->later);
    return slot;
  }
  // Returns the extents that are all free and not needed; their slots are not in the list any more.
  std::vector<uint32_t> FreeInPartition(Partition& partition, HeapSlot* slot);
  std::vector<uint32_t> TakeOutFreeExtents(Partition& partition);
  // Gives the partition one more extent.
  void Extend(WorkerId worker, uint64_t partition);

  VersionHeap& heap_;
  const TableId table_;
  const uint32_t tuple_bytes_;
  const size_t slot_bytes_;
  const uint32_t slots_per_extent_;
  const heap_format::KeySpread spread_;
  std::vector<CachePadded<Partition>> partitions_;
  // Of the table's extents, by their number in the heap; guarded by their partition's lock.
  std::vector<uint32_t> free_in_extent_;
  static constexpr uint32_t kLeaves = ~0u;  // instead of a count, during the walk: its slots are removed
  Atomic<uint64_t> extents_{0};
  // Of a restart: its extents by partition, of which first_extent_[p] is the place of the first of partition p.
  std::vector<uint32_t> old_extents_, first_extent_;
  Atomic<uint64_t> unadopted_{0};  // partitions
};

}  // namespace dbx
