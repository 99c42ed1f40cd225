// The bytes of a persistent heap of versions (write-behind logging; logging/write_behind/README.md). All of it is in
// the byte order of the processor, and nothing in it is a pointer that a restart follows.
//
//   heap := superblock superblock' directory extent*
//
// The superblocks are one block each. The directory has a word for each extent: 0, or the table and the partition that
// the extent belongs to. One store makes an extent a partition's, so that no crash leaks one or gives one to two.
//
// A slot holds a version of a row. It counts only by its `begin`: 0 is free, else it is the stamp of the transaction
// that wrote it, and what a restart makes of the slot depends on whether that transaction is recovered. `begin` is
// durably 0 before the rest of a slot is written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"
#include "base/host.h"
#include "base/random.h"
#include "base/types.h"

namespace dbx {

struct HeapSlot {
  static constexpr uint16_t kAbsent = 1;  // of flags: a tombstone, without a tuple

  Atomic<uint64_t> begin;
  Key key;
  TxnId txn;
  TableId table;
  uint16_t flags;
  uint32_t tuple_bytes;
  // Of the process that has mapped the heap, and garbage to the next one.
  HeapSlot* older;    // the version that this one superseded
  HeapSlot* later;    // the next in its worker's queue, or in a free list
  Timestamp end;      // the stamp of its successor
  uint32_t checksum;  // of key, txn, table, flags, tuple_bytes and the tuple
  uint32_t unused;

  bool absent() const { return (flags & kAbsent) != 0; }
  std::byte* tuple() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* tuple() const { return reinterpret_cast<const std::byte*>(this + 1); }
};
static_assert(sizeof(HeapSlot) == 64, "the header is one cache line");

namespace heap_format {

// The stamp of the rows of the initial load.
inline constexpr uint64_t kLoadStamp = 1;
inline constexpr size_t kBlockBytes = 4096, kLineBytes = 64;

// Slots begin at cache lines.
constexpr size_t SlotBytes(size_t tuple_bytes) {
  return (sizeof(HeapSlot) + tuple_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

constexpr size_t SlotsIn(size_t extent_bytes, size_t tuple_bytes) { return extent_bytes / SlotBytes(tuple_bytes); }

// What the slot's checksum is to be, with this tuple or the one that it has.
inline uint32_t ChecksumOf(const HeapSlot& slot, const std::byte* tuple) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&slot);
  constexpr size_t kFrom = offsetof(HeapSlot, key), kTo = offsetof(HeapSlot, older);
  return Crc32cExtend(Crc32c({bytes + kFrom, kTo - kFrom}), {tuple, slot.tuple_bytes});
}
inline uint32_t ChecksumOf(const HeapSlot& slot) { return ChecksumOf(slot, slot.tuple()); }

// How the keys of a table are spread over its partitions: ranges of 2^range_bits keys, by their hash.
struct KeySpread {
  uint64_t partitions = 1;
  uint32_t range_bits = 0;  // below 64

  uint64_t RangeOf(Key key) const { return key >> range_bits; }
  uint64_t PartitionOfRange(uint64_t range) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Mix64(range)) * partitions >> 64);
  }
  uint64_t PartitionOf(Key key) const { return PartitionOfRange(RangeOf(key)); }
};

// The word of the directory of an extent that belongs to a partition of a table.
inline constexpr int kPartitionBits = 48;
constexpr uint64_t OwnerWord(TableId table, uint64_t partition) {
  return (uint64_t{table.value()} << kPartitionBits | partition) + 1;
}
constexpr TableId TableOf(uint64_t word) { return TableId(static_cast<uint16_t>((word - 1) >> kPartitionBits)); }
constexpr uint64_t PartitionOf(uint64_t word) { return (word - 1) & ((uint64_t{1} << kPartitionBits) - 1); }

}  // namespace heap_format
}  // namespace dbx
