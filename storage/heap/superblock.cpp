#include "storage/heap/superblock.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "storage/heap/version_heap.h"

namespace dbx {
namespace {

constexpr char kMagic[8] = {'D', 'B', 'X', 'H', 'E', 'A', 'P', '\n'};
constexpr uint32_t kVersion = 1;

// As it stands in a block, zeros behind it.
struct Block {
  char magic[8];
  uint32_t version;
  uint32_t checksum;  // of the block, in which it counts as 0
  uint64_t heap_id, database_id, schema_hash, heap_bytes, extent_bytes;
  uint64_t features;  // none is known
  uint32_t state;
  uint32_t table_count;
  Superblock::OfTable tables[Superblock::kTablesMax];
};
static_assert(sizeof(Block) <= heap_format::kBlockBytes);

uint32_t ChecksumOf(std::span<const std::byte> block) { return Crc32cOfSealed(block, offsetof(Block, checksum)); }

std::vector<std::byte> Encode(const Superblock& superblock) {
  CHECK(superblock.tables.size() <= Superblock::kTablesMax);
  Block block{};
  std::memcpy(block.magic, kMagic, sizeof kMagic);
  block.version = kVersion;
  block.heap_id = superblock.heap_id, block.database_id = superblock.database_id;
  block.schema_hash = superblock.schema_hash;
  block.heap_bytes = superblock.heap_bytes, block.extent_bytes = superblock.extent_bytes;
  block.state = static_cast<uint32_t>(superblock.state);
  block.table_count = static_cast<uint32_t>(superblock.tables.size());
  std::copy(superblock.tables.begin(), superblock.tables.end(), block.tables);
  std::vector<std::byte> bytes(heap_format::kBlockBytes);
  std::memcpy(bytes.data(), &block, sizeof block);
  const uint32_t checksum = ChecksumOf(bytes);
  std::memcpy(bytes.data() + offsetof(Block, checksum), &checksum, sizeof checksum);
  return bytes;
}

[[noreturn]] void Refuse(const std::string& place, size_t offset, const std::string& why,
                         ExitStatus status = ExitStatus::kCorrupt) {
  throw Error(status, place + "@" + std::to_string(offset) + ": " + why);
}

// That a heap can have this shape.
void CheckShape(const Superblock& superblock, size_t bytes, size_t at, const std::string& place) {
  if (superblock.heap_bytes != bytes) {
    Refuse(place, at,
           "the file has " + std::to_string(bytes) + " bytes, and its superblock says " +
               std::to_string(superblock.heap_bytes));
  }
  const auto fits = [&](const Superblock::OfTable& table) {
    // No more than lines: each takes a line of DRAM.
    return table.partitions > 0 && table.partitions <= bytes / heap_format::kLineBytes && table.range_bits < 64 &&
           heap_format::SlotBytes(table.tuple_bytes) * VersionHeap::kSlotsPerExtentMin <= superblock.extent_bytes;
  };
  if (!std::has_single_bit(superblock.extent_bytes) || superblock.extent_bytes < heap_format::kLineBytes ||
      VersionHeap::BytesFor(1, superblock.extent_bytes) > bytes ||
      !std::all_of(superblock.tables.begin(), superblock.tables.end(), fits)) {
    Refuse(place, at, "no heap has this shape");
  }
}

// Of a copy.
bool IsWhole(std::span<const std::byte> copy) {
  Block block;
  std::memcpy(&block, copy.data(), sizeof block);
  return std::memcmp(block.magic, kMagic, sizeof kMagic) == 0 && ChecksumOf(copy) == block.checksum;
}

// None: the copy is damaged.
std::optional<Superblock> Decode(std::span<const std::byte> copy, size_t at, const std::string& place) {
  if (!IsWhole(copy)) return std::nullopt;
  Block block;
  std::memcpy(&block, copy.data(), sizeof block);
  if (block.version != kVersion || block.features != 0) {
    Refuse(place, at, "its version is not known", ExitStatus::kMismatch);
  }
  Superblock superblock;
  superblock.heap_id = block.heap_id, superblock.database_id = block.database_id;
  superblock.schema_hash = block.schema_hash;
  superblock.heap_bytes = block.heap_bytes, superblock.extent_bytes = block.extent_bytes;
  superblock.state = static_cast<Superblock::State>(block.state);
  if (block.table_count > Superblock::kTablesMax ||
      (superblock.state != Superblock::State::kLoading && superblock.state != Superblock::State::kLoaded)) {
    Refuse(place, at, "no heap has this shape");
  }
  superblock.tables.assign(block.tables, block.tables + block.table_count);
  return superblock;
}

}  // namespace

void WriteSuperblock(PersistentMemory& memory, const Superblock& superblock) {
  const std::vector<std::byte> block = Encode(superblock);
  const auto writer = memory.NewWriter();
  for (size_t copy = 0; copy < 2; ++copy) {
    std::byte* const to = memory.bytes().data() + copy * heap_format::kBlockBytes;
    std::memcpy(to, block.data(), block.size());
    writer->WriteBack(to, block.size());
    writer->Drain();
  }
}

Superblock ReadSuperblock(std::span<const std::byte> heap, const std::string& place) {
  if (heap.size() < 2 * heap_format::kBlockBytes) Refuse(place, 0, "the file is too short for a heap");
  for (size_t copy = 0; copy < 2; ++copy) {
    const size_t at = copy * heap_format::kBlockBytes;
    const auto superblock = Decode(heap.subspan(at, heap_format::kBlockBytes), at, place);
    if (!superblock) continue;
    CheckShape(*superblock, heap.size(), at, place);
    return *superblock;
  }
  Refuse(place, 0, "both superblocks are damaged");
}

bool IsWholeSuperblock(std::span<const std::byte> heap, size_t copy) {
  return IsWhole(heap.subspan(copy * heap_format::kBlockBytes, heap_format::kBlockBytes));
}

}  // namespace dbx
