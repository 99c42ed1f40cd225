// The slots of a table's versions in a persistent heap: which are free, by partition.
//
// A partition has the versions of some keys, about as many rows as are adopted together after a restart: the key
// decides its partition, and its extents are its own. Free slots are known in DRAM alone, in a list for each extent;
// `begin` of a free slot is durably 0. A partition takes slots from one extent until it has none, and keeps the list of
// that one in its own cache line.
//
// Threads: workers, each under its own WorkerId; a partition has a lock, held for a few instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  TableVersions(VersionHeap& heap, TableId table, size_t tuple_bytes, uint64_t partitions);

  VersionHeap& heap() const { return heap_; }
  uint64_t partition_count() const { return partitions_.size(); }
  size_t slot_bytes() const { return slot_bytes_; }
  uint64_t PartitionOf(Key key) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Mix64(key)) * partitions_.size() >> 64);
  }

  // A free slot for a version of `key`, its header but for `begin` filled in, for a version with a tuple. Throws Error
  // (kNoSpace).
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
  // What Take reads first.
  void PrefetchPartition(Key key) const { PrefetchToWrite(&partitions_[PartitionOf(key)]); }
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
  // Of the partition, in a list of those with free slots; that from which slots are taken is in none, and its slots
  // are the partition's.
  struct Extent {
    Extent* next = nullptr;
    Extent* before = nullptr;
    HeapSlot* free = nullptr;
    uint32_t free_count = 0;
    uint32_t number = 0;
  };
  struct Partition {
    Atomic<uint32_t> lock{0};
    Atomic<PartitionState> state{PartitionState::kAdopted};
    uint32_t taken_from = kNoExtent;
    uint32_t free_count = 0;  // of that extent, as `free`
    HeapSlot* free = nullptr;
    Extent* with_free = nullptr;
  };
  static constexpr uint32_t kNoExtent = ~0u;
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

  static HeapSlot* TakeFree(Partition& partition) {
    const Lock lock(partition);
    if (partition.free == nullptr && !TakeFromNext(partition)) return nullptr;
    HeapSlot* const slot = partition.free;
    partition.free = slot->later;
    --partition.free_count;
    // Its place in the list is read, and it is filled, when the next one is taken.
    PrefetchToWrite(partition.free);
    return slot;
  }
  // From another extent with free slots. False: there is none.
  static bool TakeFromNext(Partition& partition);
  static void Link(Partition& partition, Extent& extent);
  static void Unlink(Partition& partition, Extent& extent);
  // Returns an extent that has become all free and is not needed, or nullptr.
  std::unique_ptr<Extent> FreeInPartition(Partition& partition, uint32_t extent, HeapSlot* slot);
  // Gives the partition one more extent.
  void Extend(WorkerId worker, uint64_t partition);

  VersionHeap& heap_;
  const TableId table_;
  const uint32_t tuple_bytes_;
  const size_t slot_bytes_;
  const uint32_t slots_per_extent_;
  std::vector<CachePadded<Partition>> partitions_;
  std::vector<std::unique_ptr<Extent>> by_number_;  // of the heap's extents, those of this table
  Atomic<uint64_t> extents_{0};
  // Of a restart: its extents by partition, of which first_extent_[p] is the place of the first of partition p.
  std::vector<uint32_t> old_extents_, first_extent_;
  Atomic<uint64_t> unadopted_{0};  // partitions
};

}  // namespace dbx
