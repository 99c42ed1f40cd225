#include "system/runs/print_heap.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "logging/device/file_device.h"
#include "logging/device/posix_file_system.h"
#include "logging/gaps/gap_log.h"
#include "storage/heap/heap_format.h"
#include "storage/heap/slot_versions.h"
#include "storage/heap/superblock.h"
#include "storage/heap/version_heap.h"
#include "system/runs/index_file.h"
#include "system/runs/log_directory.h"

namespace dbx {
namespace {

using Report = std::function<void(const Error&)>;

// ---- Records ----

struct PlacedRecord {
  size_t at = 0;  // its offset
  GapRecord record;
};

// The valid ones, by sequence; of one heap, or of all.
std::vector<PlacedRecord> RecordsIn(std::span<const std::byte> bytes, std::optional<uint64_t> heap_id) {
  std::vector<PlacedRecord> records;
  for (size_t at = 0; at < bytes.size() && at < GapLog::kBytes; at += GapLog::kBlockBytes) {
    if (auto record = GapLog::Decode(bytes.subspan(at), heap_id)) records.push_back({at, std::move(*record)});
  }
  std::sort(records.begin(), records.end(), [](const PlacedRecord& a, const PlacedRecord& b) {
    return std::pair(a.record.sequence, a.at) < std::pair(b.record.sequence, b.at);
  });
  return records;
}

// Of the file of that name beside this one, where it is there and can be read.
std::optional<FileBytes> FileBeside(const std::string& path, const char* name) {
  PosixFileSystem files;
  const std::string beside = ParentDirectory(path) + "/" + name;
  if (files.KindOf(beside) != FileSystem::Entry::kFile) return std::nullopt;
  return files.Map(beside);
}

// By the heap beside the log; one that cannot be read is reported where it is asked for.
std::optional<uint64_t> HeapIdBeside(const std::string& gaps_path) {
  try {
    const std::string path = ParentDirectory(gaps_path) + "/" + kHeapFileName;
    if (PosixFileSystem().KindOf(path) != FileSystem::Entry::kFile) return std::nullopt;
    const auto memory = PosixFileSystem().MapPersistent(path, {.copy_on_write = true});
    return ReadSuperblock(memory->bytes(), path).heap_id;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void PrintRecord(const PlacedRecord& placed, bool counts) {
  const GapRecord& record = placed.record;
  std::printf("  record %" PRIu64 " at offset %zu: life %" PRIu64 ", c_p %" PRIu64 ", c_d %" PRIu64, record.sequence,
              placed.at, record.life, record.c_p, record.c_d);
  if (record.clean) std::printf(", clean end");
  if (record.digest) std::printf(" with digest %016" PRIx64 "%016" PRIx64, record.digest->second, record.digest->first);
  std::printf(", %zu gaps", record.gaps.gaps().size());
  for (const GapSet::Gap& gap : record.gaps.gaps()) std::printf(" [%" PRIu64 ", %" PRIu64 ")", gap.low, gap.high);
  std::printf(", %zu long runners", record.long_runners.size());
  for (const LongRunner& runner : record.long_runners) std::printf(" %" PRIu64, runner.stamp);
  std::printf(", last sequences");
  for (const uint64_t sequence : record.last_sequences) std::printf(" %" PRIu64, sequence);
  std::printf("%s\n", counts ? "; it counts" : "");
}

// ---- Slots ----

// Of a table.
struct SlotCounts {
  uint64_t extents = 0, slots = 0, free = 0;
  uint64_t versions = 0, superseded = 0, tombstones = 0, losers = 0;  // by the newest record
  uint64_t in_use = 0;                                                // where there is none
  uint64_t damaged = 0;
};

class HeapPrinter {
 public:
  HeapPrinter(const std::string& path, const Report& report)
      : path_(path),
        report_(report),
        memory_(PosixFileSystem().MapPersistent(path, {.copy_on_write = true})),
        superblock_(ReadSuperblock(memory_->bytes(), "cannot read " + path)),
        heap_(*memory_, superblock_.extent_bytes, 1),
        counts_(superblock_.tables.size()) {}

  void Print() {
    PrintSuperblock();
    FindRecord();
    for (const auto& [word, extents] : ExtentsByOwner()) CountPartition(word, extents);
    for (size_t i = 0; i < counts_.size(); ++i) PrintTable(i);
    if (damages_ > 1) std::printf("  %" PRIu64 " damages, of which the first is reported\n", damages_);
  }

 private:
  using Owned = std::pair<uint64_t, std::vector<uint32_t>>;  // the word of the directory, and its extents

  void PrintSuperblock() const {
    const Superblock& s = superblock_;
    const uint64_t in_use = heap_.used_bytes() / heap_.extent_bytes();
    std::printf("%s\n  heap: database %016" PRIx64 ", run %016" PRIx64 ", schema %016" PRIx64 ", %s, %" PRIu64
                " bytes; extents of %" PRIu64 " bytes, %" PRIu64 " in use, %" PRIu64 " free\n",
                path_.c_str(), s.database_id, s.heap_id, s.schema_hash,
                s.state == Superblock::State::kLoaded ? "loaded" : "loading", s.heap_bytes, s.extent_bytes, in_use,
                heap_.extent_count() - in_use);
    for (size_t copy = 0; copy < 2; ++copy) {
      if (IsWholeSuperblock(memory_->bytes(), copy)) continue;
      std::printf("  superblock %zu is damaged; the other one counts\n", copy);
    }
  }

  void FindRecord() {
    const auto file = FileBeside(path_, kGapsFileName);
    if (file) {
      auto records = RecordsIn(file->bytes, superblock_.heap_id);
      if (!records.empty()) record_ = std::move(records.back().record);
    }
    if (!record_) {
      std::printf("  which versions count is not known: there is no valid record of this heap in %s beside it\n",
                  kGapsFileName);
      return;
    }
    losers_ = LosersOf(*record_);
    std::printf("  by record %" PRIu64 " of life %" PRIu64 ", of which c_p is %" PRIu64 " and c_d %" PRIu64 ":\n",
                record_->sequence, record_->life, record_->c_p, record_->c_d);
  }

  // A partition's slots are looked at together: a key's versions are in one.
  std::vector<Owned> ExtentsByOwner() {
    std::vector<std::pair<uint64_t, uint32_t>> all;
    const auto directory = heap_.directory();
    for (uint32_t extent = 0; extent < directory.size(); ++extent) {
      const uint64_t word = directory[extent].load(std::memory_order_relaxed);
      if (word == 0) continue;
      const size_t table = heap_format::TableOf(word).value();
      if (table >= counts_.size() || heap_format::PartitionOf(word) >= superblock_.tables[table].partitions) {
        Damaged(&directory[extent], "an extent of a partition that is not there");
      } else {
        all.emplace_back(word, extent);
      }
    }
    std::sort(all.begin(), all.end());
    std::vector<Owned> owned;
    for (const auto& [word, extent] : all) {
      if (owned.empty() || owned.back().first != word) owned.push_back({word, {}});
      owned.back().second.push_back(extent);
    }
    return owned;
  }

  void CountPartition(uint64_t word, const std::vector<uint32_t>& extents) {
    const TableId table = heap_format::TableOf(word);
    SlotCounts& counts = counts_[table.value()];
    const size_t slot_bytes = heap_format::SlotBytes(superblock_.tables[table.value()].tuple_bytes);
    std::vector<const HeapSlot*> counted;
    for (const uint32_t extent : extents) {
      ++counts.extents;
      for (size_t i = 0; (i + 1) * slot_bytes <= heap_.extent_bytes(); ++i) {
        ++counts.slots;
        const HeapSlot* const slot = heap_.SlotAt(extent, i, slot_bytes);
        if (Counts(table, *slot, counts)) counted.push_back(slot);
      }
    }
    CountKeys(counted, counts);
  }

  // Whether the slot has a version of a transaction that counts. A loser's may be torn.
  bool Counts(TableId table, const HeapSlot& slot, SlotCounts& counts) {
    const uint64_t begin = slot.begin.load(std::memory_order_relaxed);
    if (begin == 0) return ++counts.free, false;
    if (!record_) return ++counts.in_use, false;
    if (begin >= record_->c_d) return DamagedSlot(slot, counts, "its stamp was never promised");
    if (losers_.Contains(begin)) return ++counts.losers, false;
    const uint32_t tuple_bytes = superblock_.tables[table.value()].tuple_bytes;
    const char* const why = FaultOf(slot, table, tuple_bytes, /*checksum=*/true);
    if (why != nullptr) return DamagedSlot(slot, counts, why);
    return true;
  }

  void CountKeys(std::vector<const HeapSlot*>& counted, SlotCounts& counts) {
    RankVersions(counted, [&](const HeapSlot& slot, VersionRank rank) {
      if (rank == VersionRank::kStampTwice) {
        DamagedSlot(slot, counts, "its stamp is twice on its key");
      } else {
        const bool is_newest = rank == VersionRank::kNewest;
        ++(!is_newest ? counts.superseded : slot.absent() ? counts.tombstones : counts.versions);
      }
    });
  }

  void PrintTable(size_t table) const {
    const SlotCounts& c = counts_[table];
    std::printf("  table %zu: %" PRIu64 " partitions, tuples of %" PRIu32 " bytes, %" PRIu64 " slots in %" PRIu64
                " extents: %" PRIu64 " free, ",
                table, superblock_.tables[table].partitions, superblock_.tables[table].tuple_bytes, c.slots, c.extents,
                c.free);
    if (!record_) {
      std::printf("%" PRIu64 " in use\n", c.in_use);
      return;
    }
    std::printf("%" PRIu64 " counted versions, %" PRIu64 " superseded, %" PRIu64 " tombstones, %" PRIu64
                " losers, %" PRIu64 " damaged\n",
                c.versions, c.superseded, c.tombstones, c.losers, c.damaged);
  }

  bool DamagedSlot(const HeapSlot& slot, SlotCounts& counts, const char* why) {
    ++counts.damaged;
    Damaged(&slot, "a slot with stamp " + std::to_string(slot.begin.load(std::memory_order_relaxed)) + ": " + why);
    return false;
  }
  void Damaged(const void* at, const std::string& why) {
    if (damages_++ > 0) return;
    const auto offset = static_cast<const std::byte*>(at) - memory_->bytes().data();
    report_(Error(ExitStatus::kCorrupt, "damaged heap " + path_ + "@" + std::to_string(offset) + ": " + why));
  }

  const std::string path_;
  const Report& report_;
  const std::unique_ptr<PersistentMemory> memory_;  // a private copy
  const Superblock superblock_;
  VersionHeap heap_;
  std::vector<SlotCounts> counts_;  // by table
  std::optional<GapRecord> record_;
  GapSet losers_;
  uint64_t damages_ = 0;
};

}  // namespace

void PrintHeap(const std::string& path, const Report& report) { HeapPrinter(path, report).Print(); }

void PrintGaps(const std::string& path, const Report& report) {
  const FileBytes file = PosixFileSystem().Map(path);
  std::optional<uint64_t> heap_id = HeapIdBeside(path);
  const std::vector<PlacedRecord> records = RecordsIn(file.bytes, std::nullopt);
  if (!heap_id && !records.empty()) heap_id = records.back().record.heap_id;
  const auto is_of_heap = [&](const PlacedRecord& placed) { return placed.record.heap_id == heap_id; };
  const auto newest = std::find_if(records.rbegin(), records.rend(), is_of_heap);
  if (heap_id)
    std::printf("%s\n  gaps: run %016" PRIx64 ", %zu valid records\n", path.c_str(), *heap_id, records.size());
  for (const PlacedRecord& placed : records) {
    if (is_of_heap(placed)) {
      PrintRecord(placed, newest != records.rend() && placed.at == newest->at);
    } else {
      report(Error(ExitStatus::kMismatch,
                   "cannot use " + path + "@" + std::to_string(placed.at) + ": a record of another heap"));
    }
  }
  if (file.bytes.size() != GapLog::kBytes) {
    report(Error(ExitStatus::kCorrupt, "damaged log " + path + "@" + std::to_string(file.bytes.size()) +
                                           ": a log of gaps has " + std::to_string(GapLog::kBytes) + " bytes"));
  }
  if (records.empty()) throw Error(ExitStatus::kCorrupt, "damaged log " + path + "@0: it has no valid record");
}

void PrintIndexes(const std::string& path, std::span<const std::byte> bytes) {
  const IndexFile file = IndexFile::Decode(bytes, path);
  std::printf("%s: frozen secondary indexes of heap %016" PRIx64 "\n", path.c_str(), file.heap_id);
  for (size_t i = 0; i < file.indexes.size(); ++i) {
    std::printf("  index %zu: %zu entries, %zu bytes of search keys\n", i,
                file.indexes[i].primaries.size() / sizeof(Key), file.indexes[i].slots.size());
  }
}

}  // namespace dbx
