#include "storage/heap/table_versions.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace dbx {

TableVersions::TableVersions(VersionHeap& heap, TableId table, size_t tuple_bytes, uint64_t partitions)
    : heap_(heap),
      table_(table),
      tuple_bytes_(static_cast<uint32_t>(tuple_bytes)),
      slot_bytes_(heap_format::SlotBytes(tuple_bytes)),
      slots_per_extent_(static_cast<uint32_t>(heap.extent_bytes() / slot_bytes_)),
      partitions_(partitions),
      by_number_(heap.extent_count()) {
  CHECK(partitions > 0);
  if (slots_per_extent_ < VersionHeap::kSlotsPerExtentMin) {
    throw Error(ExitStatus::kUsage, "tuples of " + std::to_string(tuple_bytes) +
                                        " bytes are too large for a heap with " + "extents of " +
                                        std::to_string(heap.extent_bytes()) + " bytes, which are to hold " +
                                        std::to_string(VersionHeap::kSlotsPerExtentMin) + " versions each");
  }
}

void TableVersions::Extend(WorkerId worker, uint64_t number) {
  auto extent = std::make_unique<Extent>();
  extent->number = heap_.TakeExtent(worker, table_, number);
  extent->partition = number;
  extent->free_count = slots_per_extent_;
  for (uint32_t i = slots_per_extent_; i-- > 0;) {
    HeapSlot* const slot = heap_.SlotAt(extent->number, i, slot_bytes_);
    slot->later = extent->free;
    extent->free = slot;
  }
  extents_.fetch_add(1, std::memory_order_relaxed);
  Partition& partition = partitions_[number].value;
  const Lock lock(partition);
  Link(partition, *extent);
  // Found by those that free its slots, which have taken them under this lock, or come after one that has.
  by_number_[extent->number] = std::move(extent);
}

void TableVersions::Free(WorkerId worker, HeapSlot* slot) {
  const uint32_t number = heap_.ExtentOf(slot);
  std::unique_ptr<Extent> returned;
  {
    Extent& extent = *by_number_[number];
    Partition& partition = partitions_[extent.partition].value;
    const Lock lock(partition);
    slot->later = std::exchange(extent.free, slot);
    if (extent.free_count++ == 0) Link(partition, extent);
    // The last one with free slots stays: the next version would take it again.
    const bool others = extent.before != nullptr || extent.next != nullptr;
    if (extent.free_count == slots_per_extent_ && others) {
      Unlink(partition, extent);
      returned = std::move(by_number_[number]);
    }
  }
  if (returned == nullptr) return;
  extents_.fetch_sub(1, std::memory_order_relaxed);
  heap_.ReturnExtent(worker, number);
}

void TableVersions::Link(Partition& partition, Extent& extent) {
  extent.before = nullptr;
  extent.next = partition.with_free;
  if (extent.next != nullptr) extent.next->before = &extent;
  partition.with_free = &extent;
}

void TableVersions::Unlink(Partition& partition, Extent& extent) {
  (extent.before == nullptr ? partition.with_free : extent.before->next) = extent.next;
  if (extent.next != nullptr) extent.next->before = extent.before;
  extent.before = extent.next = nullptr;
}

uint64_t TableVersions::free_slots() const {
  uint64_t count = 0;
  for (const auto& extent : by_number_) count += extent == nullptr ? 0 : extent->free_count;
  return count;
}

}  // namespace dbx
