// The extents of a persistent heap (heap_format.h), and to which partitions they belong.
//
// All extents have one size. A partition takes an extent for its slots and gives it back once all of them are free. The
// free extents are known in DRAM alone: those whose directory word is 0.
//
// Threads: workers take extents and give them back, each under its own WorkerId.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/host.h"
#include "storage/heap/heap_format.h"
#include "storage/persistent_memory.h"

namespace dbx {

// No extent is free: what is freed later makes room. A type of its own, as a device without space fails with kNoSpace
// too.
class HeapFull final : public Error {
 public:
  explicit HeapFull(const std::string& what) : Error(ExitStatus::kNoSpace, what) {}
};

class VersionHeap {
 public:
  static constexpr size_t kSlotsPerExtentMin = 16;

  // `memory`, which outlives this, is that of a new heap, which is zeros, or of one with the same size of extents.
  // Throws Error (kUsage) where it is too small for one extent. `extent_bytes` is a power of two; `workers` is how many
  // threads write to it.
  VersionHeap(PersistentMemory& memory, size_t extent_bytes, uint32_t workers);

  size_t extent_bytes() const { return extent_bytes_; }
  uint32_t extent_count() const { return static_cast<uint32_t>(directory_.size()); }
  PersistentMemory& memory() const { return memory_; }
  // By which the worker's thread makes durable what it stores.
  PersistentWriter& writer(WorkerId worker) const { return *writers_[worker.value()]; }

  // Around the initial load, outside of its threads. No version in the heap counts during the load, and nothing is
  // written back; all of it is durable on return from EndLoad.
  void BeginLoad() { is_loading_ = true; }
  void EndLoad();
  bool is_loading() const { return is_loading_; }

  // An extent of free slots, for the partition: that it belongs to it is durable on return, or by EndLoad. Throws
  // HeapFull; and Error, whatever its status, where the memory failed.
  uint32_t TakeExtent(WorkerId worker, TableId table, uint64_t partition);
  // The same backwards, of an extent all of whose slots are durably free. It is zeroed: another table's slots will lie
  // elsewhere in it.
  void ReturnExtent(WorkerId worker, uint32_t extent);

  // Backs the next `bytes` of extents that were never used with pages, ahead of a measured interval; nothing on a disk,
  // to which such pages would be written. By any worker. Throws Error (kNoSpace).
  void Prefault(size_t bytes);

  HeapSlot* SlotAt(uint32_t extent, size_t index, size_t slot_bytes) const {
    return reinterpret_cast<HeapSlot*>(first_ + extent * extent_bytes_ + index * slot_bytes);
  }
  uint32_t ExtentOf(const HeapSlot* slot) const {
    return static_cast<uint32_t>(static_cast<size_t>(reinterpret_cast<const std::byte*>(slot) - first_) >> shift_);
  }

  // The directory: a word for each extent.
  std::span<const Atomic<uint64_t>> directory() const { return directory_; }
  // Of extents that belong to partitions.
  size_t used_bytes() const;
  // Of the directory and all extents: a heap of so many bytes holds `extents` of them.
  static size_t BytesFor(size_t extents, size_t extent_bytes);

 private:
  void FindFreeExtents();
  void SetOwner(WorkerId worker, uint32_t extent, uint64_t word);

  PersistentMemory& memory_;
  const size_t extent_bytes_;
  const int shift_;
  std::span<Atomic<uint64_t>> directory_;
  std::byte* first_ = nullptr;  // extent 0
  std::vector<std::unique_ptr<PersistentWriter>> writers_;
  bool is_loading_ = false;
  mutable Mutex mutex_;
  std::vector<uint32_t> returned_;  // guarded by mutex_, as is next_
  uint32_t next_ = 0;               // extents from here on are free, as those in returned_ are
  uint32_t prefaulted_ = 0;         // up to here; guarded by mutex_
};

}  // namespace dbx
