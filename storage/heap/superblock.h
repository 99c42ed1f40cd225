// The superblocks of a persistent heap: whose heap it is, its shape, and whether its load is complete.
//
// There are two copies. A change is made durable in the first and then in the second, so that one of them is whole
// after a crash at any moment; the first whole one counts.
//
// Threads: one, while no other uses the heap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/heap/heap_format.h"
#include "storage/persistent_memory.h"

namespace dbx {

struct Superblock {
  enum class State : uint32_t { kLoading = 1, kLoaded = 2 };
  // Of a table: how its keys are spread (heap_format::KeySpread), and the size of its slots.
  struct OfTable {
    uint64_t partitions;
    uint32_t tuple_bytes;
    uint32_t range_bits = 0;
    bool operator==(const OfTable&) const = default;
  };
  static constexpr size_t kTablesMax = 200;

  uint64_t heap_id = 0;  // of the run
  uint64_t database_id = 0;
  uint64_t schema_hash = 0;
  uint64_t heap_bytes = 0;  // of the whole file
  uint64_t extent_bytes = 0;
  State state = State::kLoading;
  std::vector<OfTable> tables;

  bool operator==(const Superblock&) const = default;
};

// Durable in both copies on return.
void WriteSuperblock(PersistentMemory& memory, const Superblock& superblock);

// The one of a heap, from its bytes. Throws Error "PLACE@OFFSET: why", for which `place` names the file and what it is
// read for: kCorrupt where both copies are damaged or say what cannot be, kMismatch for another version.
Superblock ReadSuperblock(std::span<const std::byte> heap, const std::string& place);

// Whether the first or the second copy (0, 1) is undamaged, in a heap that has both.
bool IsWholeSuperblock(std::span<const std::byte> heap, size_t copy);

}  // namespace dbx
