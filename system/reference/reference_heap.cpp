#include "system/reference/reference_heap.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "system/reference/reference_file.h"

namespace dbx::reference {
namespace {

constexpr uint64_t kSlotHeaderBytes = 64, kRecordHeaderBytes = 88, kRecordBytesMax = 16 * kBlockBytes;
constexpr uint64_t kLoaded = 2, kAbsent = 1;

struct Heap {
  uint64_t id = 0, extent_bytes = 0;
  std::vector<std::pair<uint64_t, uint64_t>> tables;  // partitions, bytes of a tuple
  uint64_t extents = 0, first_extent = 0;             // how many, and the offset of the first
};

uint64_t RoundUpToBlocks(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

// The whole of the two copies.
Heap ReadHeap(const FileImage& file, uint64_t run_id) {
  const auto block = [&file](uint64_t at) {
    return FileImage{file.path, file.bytes.subspan(at, kBlockBytes), file.owner};
  };
  if (file.bytes.size() < 2 * kBlockBytes) Bad(file, 0, "it is too short for a heap");
  FileImage superblock = block(0);
  try {
    CheckSealed(superblock, "DBXHEAP\n", kBlockBytes);
  } catch (const Error&) {
    superblock = block(kBlockBytes);
    CheckSealed(superblock, "DBXHEAP\n", kBlockBytes);
  }
  Heap heap;
  heap.id = Load(superblock, 16, 8);
  if (heap.id != run_id) Bad(file, 16, "the heap of another run", ExitStatus::kMismatch);
  if (Load(superblock, 40, 8) != file.bytes.size()) Bad(file, 40, "the file has another size");
  heap.extent_bytes = Load(superblock, 48, 8);
  if (heap.extent_bytes == 0 || heap.extent_bytes > file.bytes.size()) Bad(file, 48, "extents of no such size");
  if (Load(superblock, 64, 4) != kLoaded) Bad(file, 64, "its load was never complete", ExitStatus::kMismatch);
  for (uint64_t i = 0; i < Load(superblock, 68, 4); ++i) {
    heap.tables.emplace_back(Load(superblock, 72 + 16 * i, 8), Load(superblock, 80 + 16 * i, 4));
  }
  // As many extents as fit behind their directory.
  const uint64_t behind = file.bytes.size() - 2 * kBlockBytes;
  heap.extents = behind / (heap.extent_bytes + 8);
  const auto first = [&](uint64_t extents) { return RoundUpToBlocks(2 * kBlockBytes + 8 * extents); };
  while (heap.extents > 0 && first(heap.extents) + heap.extents * heap.extent_bytes > file.bytes.size()) --heap.extents;
  heap.first_extent = first(heap.extents);
  return heap;
}

struct GapRecord {
  uint64_t sequence = 0, c_p = 0, c_d = 0;
  std::vector<std::pair<uint64_t, uint64_t>> gaps;  // half-open
  std::vector<uint64_t> long_runners;

  bool Counts(uint64_t stamp) const {
    const auto in_gap = [stamp](const auto& gap) { return gap.first <= stamp && stamp < gap.second; };
    return stamp <= c_p && std::none_of(gaps.begin(), gaps.end(), in_gap) &&
           std::find(long_runners.begin(), long_runners.end(), stamp) == long_runners.end();
  }
};

// The record that begins here, if it is whole.
std::optional<GapRecord> RecordAt(Bytes bytes, uint64_t heap_id) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const uint64_t length = LoadUint(bytes, 4, 4);
  if (std::memcmp(bytes.data() + 8, "gapkcerd", 8) != 0 || LoadUint(bytes, 16, 8) != heap_id) return std::nullopt;
  const uint64_t gaps = LoadUint(bytes, 76, 4), runners = LoadUint(bytes, 80, 4), workers = LoadUint(bytes, 84, 4);
  if (length != kRecordHeaderBytes + 16 * gaps + 8 * runners + 8 * workers) return std::nullopt;
  if (length > kRecordBytesMax || length > bytes.size()) return std::nullopt;
  if (Crc32c(bytes.subspan(4, length - 4)) != LoadUint(bytes, 0, 4)) return std::nullopt;
  GapRecord record;
  record.sequence = LoadUint(bytes, 32, 8);
  record.c_p = LoadUint(bytes, 40, 8);
  record.c_d = LoadUint(bytes, 48, 8);
  if (record.c_p >= record.c_d || LoadUint(bytes, 72, 4) > 2) return std::nullopt;
  uint64_t at = kRecordHeaderBytes;
  for (uint64_t i = 0; i < gaps; ++i, at += 16) {
    record.gaps.emplace_back(LoadUint(bytes, at, 8), LoadUint(bytes, at + 8, 8));
  }
  for (uint64_t i = 0; i < runners; ++i, at += 8) record.long_runners.push_back(LoadUint(bytes, at, 8));
  return record;
}

GapRecord NewestRecord(const FileImage& file, uint64_t heap_id) {
  std::optional<GapRecord> newest;
  for (uint64_t at = 0; at < file.bytes.size(); at += kBlockBytes) {
    auto record = RecordAt(file.bytes.subspan(at), heap_id);
    if (record && (!newest || record->sequence > newest->sequence)) newest = std::move(record);
  }
  if (!newest) Bad(file, 0, "no record of this heap is whole");
  return *newest;
}

struct Version {
  uint64_t stamp = 0;
  uint64_t at = 0;  // of its slot
};
using Versions = std::unordered_map<uint64_t, Version>;  // of a table, by key: the newest that counts

void CheckSlot(const FileImage& file, uint64_t at, uint64_t table, uint64_t tuple_bytes) {
  const uint64_t flags = Load(file, at + 26, 2), bytes = Load(file, at + 28, 4);
  if (Load(file, at + 24, 2) != table) Bad(file, at + 24, "a slot of another table");
  if (flags > kAbsent) Bad(file, at + 26, "flags that are not known");
  if (bytes != (flags == kAbsent ? 0 : tuple_bytes)) Bad(file, at + 28, "a tuple of another size");
  const uint32_t header = Crc32c(file.bytes.subspan(at + 8, 24));
  if (Crc32cExtend(header, file.bytes.subspan(at + kSlotHeaderBytes, bytes)) != Load(file, at + 56, 4)) {
    Bad(file, at + 56, "the checksum of a version does not match");
  }
}

void ReadExtent(const FileImage& file, const Heap& heap, uint64_t extent, uint64_t table, const GapRecord& record,
                Versions& versions) {
  const uint64_t tuple_bytes = heap.tables[table].second;
  const uint64_t slot_bytes = (kSlotHeaderBytes + tuple_bytes + 63) / 64 * 64;
  const uint64_t begin = heap.first_extent + extent * heap.extent_bytes;
  for (uint64_t i = 0; (i + 1) * slot_bytes <= heap.extent_bytes; ++i) {
    const uint64_t at = begin + i * slot_bytes, stamp = Load(file, at, 8);
    if (stamp == 0) continue;
    if (stamp >= record.c_d) Bad(file, at, "a stamp that was never promised");
    if (!record.Counts(stamp)) continue;
    CheckSlot(file, at, table, tuple_bytes);
    Version& newest = versions[Load(file, at + 8, 8)];
    if (newest.stamp == stamp) Bad(file, at, "a stamp twice on a key");
    if (newest.stamp < stamp) newest = {stamp, at};
  }
}

}  // namespace

void LoadHeap(const RunImage& run, Database& database) {
  const FileImage& file = run.heap.value();
  const Heap heap = ReadHeap(file, Load(run.logs.front(), 24, 8));
  if (heap.tables.size() != database.table_count()) {
    Bad(file, 68, "a heap of another number of tables", ExitStatus::kMismatch);
  }
  const GapRecord record = NewestRecord(run.gaps.value(), heap.id);
  std::vector<Versions> of_tables(heap.tables.size());
  for (uint64_t extent = 0; extent < heap.extents; ++extent) {
    const uint64_t at = 2 * kBlockBytes + 8 * extent, word = Load(file, at, 8);
    if (word == 0) continue;
    const uint64_t table = (word - 1) >> 48, partition = (word - 1) & 0xFFFFFFFFFFFF;
    if (table >= heap.tables.size() || partition >= heap.tables[table].first) {
      Bad(file, at, "an extent of a partition that is not there");
    }
    ReadExtent(file, heap, extent, table, record, of_tables[table]);
  }
  for (size_t i = 0; i < of_tables.size(); ++i) {
    Table& table = database.table(Database::IdOf(i));
    if (table.tuple_bytes() != heap.tables[i].second) {
      Bad(file, 72 + 16 * i, "a table of another shape", ExitStatus::kMismatch);
    }
    for (const auto& [key, version] : of_tables[i]) {
      if (Load(file, version.at + 26, 2) == kAbsent) continue;
      table.LoadRow(WorkerId(0), key, file.bytes.subspan(version.at + kSlotHeaderBytes, table.tuple_bytes()));
    }
  }
}

}  // namespace dbx::reference
