// GRASSHOPPER's hopping index (ELEDA, sections 3.2 and 4.2.1): how many bytes of each range [i * 2^H, (i + 1) * 2^H) of
// the log are filled. A range whose count is complete holds no LSN hole, and SBL may hop over it.
//
// Where this differs from the paper:
// - Alg. 1 (line 6) resets an entry when SBL hops over it, though Table 2 lets the ELEDA worker only read the index. A
//   filler whose record was crawled over may still add its bytes then, and its bytes would count for the range that
//   uses the entry next. Here an entry is never reset: it counts the bytes of all its ranges, one after the other, and
//   range i is complete when the entry reaches the size of it and the earlier ones together. A late count only delays.
// - The bytes of a record that lies across a boundary are split. Counted whole where it starts, they would hide a hole
//   of their size in that range.
//
// An entry belongs to one range at a time: the table spans the ring and one range more, so that a filler gets a place
// in a range only when SBL has left the one that used the entry before (SBL >= SDL > place - ring).
//
// Threads: Add: any filler. The rest, which is const: the ELEDA worker.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/fill_tracker.h"

namespace dbx {

class HoppingIndex {
 public:
  // `distance` is a power of two. Everything below `start_lsn` counts as filled.
  HoppingIndex(uint64_t distance, uint64_t ring_bytes, Lsn start_lsn)
      : exponent_(std::countr_zero(distance)), entries_(std::bit_ceil(ring_bytes / distance + 1)) {
    // Neighbouring ranges must not share an entry.
    CHECK(std::has_single_bit(distance) && distance <= ring_bytes);
    const uint64_t range = RangeOf(start_lsn);
    // The last range that used an entry may be a lap back.
    for (uint64_t i = range < entries_.size() ? 0 : range - entries_.size() + 1; i < range; ++i) Entry(i) = Complete(i);
    Entry(range) = Complete(range) - (BeginOf(range + 1) - start_lsn);
  }

  uint64_t RangeOf(Lsn lsn) const { return lsn.value() >> exponent_; }
  Lsn BeginOf(uint64_t range) const { return Lsn(range << exponent_); }
  // How many ranges may hold places that SBL has not passed.
  uint64_t ranges_max() const { return entries_.size() + 1; }

  void Add(const LogPlace& place) {
    for (Lsn from = place.lsn; from < place.end();) {
      const Lsn to = std::min(place.end(), BeginOf(RangeOf(from) + 1));
      // Release: a thread that finds the range complete finds the list nodes of all places added.
      Entry(RangeOf(from)).fetch_add(to - from, std::memory_order_release);
      from = to;
    }
  }

  bool IsComplete(uint64_t range) const {
    return entries_[range & (entries_.size() - 1)].value.load(std::memory_order_acquire) == Complete(range);
  }

 private:
  Atomic<uint64_t>& Entry(uint64_t range) { return entries_[range & (entries_.size() - 1)].value; }
  // The value of the entry when `range` and all before it that use the entry are filled.
  uint64_t Complete(uint64_t range) const { return (range / entries_.size() + 1) << exponent_; }

  const int exponent_;
  std::vector<CachePadded<Atomic<uint64_t>>> entries_;
};

}  // namespace dbx
