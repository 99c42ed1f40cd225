#include "storage/heap/table_versions.h"

#include <string>

#include "base/error.h"

namespace dbx {

TableVersions::TableVersions(VersionHeap& heap, TableId table, size_t tuple_bytes, heap_format::KeySpread spread)
    : heap_(heap),
      table_(table),
      tuple_bytes_(static_cast<uint32_t>(tuple_bytes)),
      slot_bytes_(heap_format::SlotBytes(tuple_bytes)),
      slots_per_extent_(static_cast<uint32_t>(heap_format::SlotsIn(heap.extent_bytes(), tuple_bytes))),
      spread_(spread),
      partitions_(spread.partitions),
      free_in_extent_(heap.extent_count()) {
  CHECK(spread.partitions > 0 && spread.range_bits < 64);
  if (slots_per_extent_ < VersionHeap::kSlotsPerExtentMin) {
    throw Error(ExitStatus::kUsage, "tuples of " + std::to_string(tuple_bytes) +
                                        " bytes are too large for a heap with " + "extents of " +
                                        std::to_string(heap.extent_bytes()) + " bytes, which are to hold " +
                                        std::to_string(VersionHeap::kSlotsPerExtentMin) + " versions each");
  }
}

void TableVersions::Extend(WorkerId worker, uint64_t partition) {
  const uint32_t extent = heap_.TakeExtent(worker, table_, partition);
  std::vector<HeapSlot*> slots;
  for (uint32_t i = slots_per_extent_; i-- > 0;) slots.push_back(SlotAt(extent, i));
  AddExtent(partition, extent, slots);
}

void TableVersions::FindExtents() {
  first_extent_.assign(partitions_.size() + 1, 0);
  const auto directory = heap_.directory();
  const auto for_each_own = [&](auto&& visit) {
    for (uint32_t extent = 0; extent < directory.size(); ++extent) {
      const uint64_t word = directory[extent].load(std::memory_order_relaxed);
      if (word != 0 && heap_format::TableOf(word) == table_) visit(extent, heap_format::PartitionOf(word));
    }
  };
  for_each_own([&](uint32_t, uint64_t partition) {
    CHECK(partition < partitions_.size());
    ++first_extent_[partition + 1];
  });
  for (uint64_t partition = 0; partition < partitions_.size(); ++partition) {
    if (first_extent_[partition + 1] > 0) {
      partitions_[partition].value.state.store(PartitionState::kUnadopted, std::memory_order_relaxed);
      unadopted_.fetch_add(1, std::memory_order_relaxed);
    }
    first_extent_[partition + 1] += first_extent_[partition];
  }
  old_extents_.resize(first_extent_.back());
  std::vector<uint32_t> next = first_extent_;
  for_each_own([&](uint32_t extent, uint64_t partition) { old_extents_[next[partition]++] = extent; });
}

std::span<const uint32_t> TableVersions::ExtentsIn(uint64_t partition) const {
  return std::span(old_extents_)
      .subspan(first_extent_[partition], first_extent_[partition + 1] - first_extent_[partition]);
}

void TableVersions::AddExtent(uint64_t number, uint32_t extent, std::span<HeapSlot* const> free_slots) {
  extents_.fetch_add(1, std::memory_order_relaxed);
  Partition& partition = partitions_[number].value;
  const Lock lock(partition);
  free_in_extent_[extent] = static_cast<uint32_t>(free_slots.size());
  if (free_slots.size() == slots_per_extent_) ++partition.free_extents;
  for (HeapSlot* const slot : free_slots) partition.AddFree(slot);
}

void TableVersions::SetAdopted(uint64_t partition) {
  // Release: a worker that finds it adopted, or finds all adopted, finds its rows in the index.
  StateOf(partition).store(PartitionState::kAdopted, std::memory_order_release);
  unadopted_.fetch_sub(1, std::memory_order_acq_rel);
}

void TableVersions::Free(WorkerId worker, HeapSlot* slot) {
  for (const uint32_t extent : FreeInPartition(partitions_[PartitionOf(slot->key)].value, slot)) {
    extents_.fetch_sub(1, std::memory_order_relaxed);
    heap_.ReturnExtent(worker, extent);
  }
}

std::vector<uint32_t> TableVersions::FreeInPartition(Partition& partition, HeapSlot* slot) {
  const Lock lock(partition);
  partition.AddFree(slot);
  if (++free_in_extent_[heap_.ExtentOf(slot)] < slots_per_extent_) return {};
  ++partition.free_extents;
  // A walk removes about half of the slots that it visits, or more: its cost for each slot that is returned is
  // constant.
  if (2 * uint64_t{partition.free_extents} * slots_per_extent_ < partition.free_count) return {};
  return TakeOutFreeExtents(partition);
}

// The last extent with free slots stays: the next version would take it again.
std::vector<uint32_t> TableVersions::TakeOutFreeExtents(Partition& partition) {
  std::vector<uint32_t> leaving;
  HeapSlot* before = nullptr;
  for (HeapSlot* slot = partition.first_free(); slot != nullptr; slot = slot->later) {
    uint32_t& free = free_in_extent_[heap_.ExtentOf(slot)];
    if (free == slots_per_extent_ && partition.free_count > slots_per_extent_) {
      free = kLeaves;
      leaving.push_back(heap_.ExtentOf(slot));
      partition.free_count -= slots_per_extent_;
      --partition.free_extents;
    }
    if (free != kLeaves) {
      before = slot;
    } else {
      before == nullptr ? partition.SetFirstFree(slot->later) : void(before->later = slot->later);
    }
  }
  for (const uint32_t extent : leaving) free_in_extent_[extent] = 0;
  return leaving;
}

uint64_t TableVersions::free_slots() const {
  uint64_t count = 0;
  for (const auto& partition : partitions_) count += partition.value.free_count;
  return count;
}

}  // namespace dbx
