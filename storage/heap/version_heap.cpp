#include "storage/heap/version_heap.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "storage/heap/arena.h"

namespace dbx {

VersionHeap::VersionHeap(PersistentMemory& memory, size_t extent_bytes, uint32_t workers)
    : memory_(memory), extent_bytes_(extent_bytes), shift_(std::countr_zero(extent_bytes)) {
  CHECK(std::has_single_bit(extent_bytes) && extent_bytes >= heap_format::kLineBytes);
  const std::span<std::byte> bytes = memory.bytes();
  const size_t before = 2 * heap_format::kBlockBytes;
  // The directory takes as many words as extents fit behind it.
  size_t extents = bytes.size() < before ? 0 : (bytes.size() - before) / (extent_bytes + sizeof(uint64_t));
  const auto first_of = [&](size_t count) {
    return RoundUp(before + count * sizeof(uint64_t), heap_format::kBlockBytes);
  };
  while (extents > 0 && first_of(extents) + extents * extent_bytes > bytes.size()) --extents;
  if (extents == 0) {
    throw Error(ExitStatus::kUsage, "a heap of " + std::to_string(bytes.size()) +
                                        " bytes is too small for an extent of " + std::to_string(extent_bytes) +
                                        " bytes");
  }
  directory_ = {reinterpret_cast<Atomic<uint64_t>*>(bytes.data() + before), extents};
  first_ = bytes.data() + first_of(extents);
  for (uint32_t i = 0; i < workers; ++i) writers_.push_back(memory.NewWriter());
  FindFreeExtents();
}

void VersionHeap::FindFreeExtents() {
  next_ = extent_count();
  while (next_ > 0 && directory_[next_ - 1].load(std::memory_order_relaxed) == 0) --next_;
  for (uint32_t extent = next_; extent-- > 0;) {
    if (directory_[extent].load(std::memory_order_relaxed) == 0) returned_.push_back(extent);
  }
}

uint32_t VersionHeap::TakeExtent(WorkerId worker, TableId table, uint64_t partition) {
  uint32_t extent;
  {
    const std::lock_guard lock(mutex_);
    if (!returned_.empty()) {
      extent = returned_.back();
      returned_.pop_back();
    } else if (next_ < extent_count()) {
      extent = next_++;
    } else {
      throw HeapFull("the heap is full: all " + std::to_string(extent_count()) +
                     " extents are in use; a larger --heap_bytes has more");
    }
  }
  SetOwner(worker, extent, heap_format::OwnerWord(table, partition));
  return extent;
}

void VersionHeap::Prefault(size_t bytes) {
  if (memory_.drains_are_slow()) return;
  uint32_t from, to;
  {
    const std::lock_guard lock(mutex_);
    from = std::max(next_, prefaulted_);
    to = static_cast<uint32_t>(std::min<size_t>(extent_count(), from + (bytes + extent_bytes_ - 1) / extent_bytes_));
    prefaulted_ = std::max(prefaulted_, to);
  }
  FaultInMemory(first_ + from * extent_bytes_, (to - from) * extent_bytes_);
}

void VersionHeap::ReturnExtent(WorkerId worker, uint32_t extent) {
  std::byte* const bytes = reinterpret_cast<std::byte*>(SlotAt(extent, 0, 0));
  std::memset(bytes, 0, extent_bytes_);
  writer(worker).WriteBack(bytes, extent_bytes_);
  writer(worker).Drain();
  SetOwner(worker, extent, 0);
  const std::lock_guard lock(mutex_);
  returned_.push_back(extent);
}

void VersionHeap::SetOwner(WorkerId worker, uint32_t extent, uint64_t word) {
  Atomic<uint64_t>& at = directory_[extent];
  at.store(word, std::memory_order_release);
  if (is_loading_) return;
  writer(worker).WriteBack(reinterpret_cast<const std::byte*>(&at), sizeof at);
  writer(worker).Drain();
}

// All at once: rows of one thread lie between those of others, and a disk would seek for each.
void VersionHeap::EndLoad() {
  PersistentWriter& writer = this->writer(WorkerId(0));
  writer.WriteBack(reinterpret_cast<const std::byte*>(directory_.data()), next_ * sizeof directory_[0]);
  writer.WriteBack(first_, next_ * extent_bytes_);
  writer.Drain();
  is_loading_ = false;
}

size_t VersionHeap::BytesFor(size_t extents, size_t extent_bytes) {
  const size_t before = 2 * heap_format::kBlockBytes + extents * sizeof(uint64_t);
  return RoundUp(before, heap_format::kBlockBytes) + extents * extent_bytes;
}

size_t VersionHeap::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return (next_ - returned_.size()) * extent_bytes_;
}

}  // namespace dbx
