// The dirty tuple table of one worker (Arulraj et al., section 4.1): versions that are installed and not yet durable.
// An entry is a slot's place and length, and no image.
//
// Only a Drain that comes after an entry was written back removes it: the worker's, or that of a group commit. So
// the slot of a removed entry is durable.
//
// Threads: the worker adds; it and a committer write back and remove. A committer may read a place that the worker has
// emptied and filled anew meanwhile: it then writes back a slot more, and the older one is durable.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.h"
#include "base/host.h"
#include "storage/heap/heap_format.h"
#include "storage/persistent_memory.h"

namespace dbx {

class DirtyTuples {
 public:
  static constexpr uint64_t kEntries = 4096;

  bool full() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) == kEntries;
  }

  // REQUIRES: not full.
  void Add(const std::byte* base, const std::byte* from, uint64_t bytes) {
    const auto line = static_cast<uint64_t>(from - base) / heap_format::kLineBytes;
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    entries_[tail % kEntries].store(line << kBytesBits | bytes, std::memory_order_relaxed);
    // Release: a committer that finds the entry finds the slot filled.
    tail_.store(tail + 1, std::memory_order_release);
  }

  // Behind the last entry.
  uint64_t end() const { return tail_.load(std::memory_order_acquire); }
  // Of those that are not removed yet, from the first one up to `end`.
  void WriteBackUntil(uint64_t end, std::byte* base, PersistentWriter& writer) const {
    for (uint64_t at = head_.load(std::memory_order_acquire); at < end; ++at) {
      const uint64_t entry = entries_[at % kEntries].load(std::memory_order_relaxed);
      writer.WriteBack(base + (entry >> kBytesBits) * heap_format::kLineBytes,
                       entry & ((uint64_t{1} << kBytesBits) - 1));
    }
  }
  // What lies before `end` was written back and drained.
  void RemoveUntil(uint64_t end) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    while (head < end && !head_.compare_exchange_weak(head, end, std::memory_order_acq_rel)) continue;
  }

 private:
  static constexpr int kBytesBits = 24;

  Atomic<uint64_t> head_{0};
  Atomic<uint64_t> tail_{0};
  std::array<Atomic<uint64_t>, kEntries> entries_{};
};

}  // namespace dbx
