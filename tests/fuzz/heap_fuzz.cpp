// A small heap whose superblocks, directory, slots and records are the input's: a restart and the reference each take
// it or refuse it, and what the restart takes the reference takes too, with the same rows.
//
//   (kind:u8 ...)*     over two tables of three partitions, in eight extents, and no record:
//     0  extent:u8 table:u8 partition:u8                                              a word of the directory
//     1  extent:u8 slot:u8 stamp:u16 key:u8 table:u8 flags:u8 bytes:u8 value:u8       with its checksum
//     2  block:u8 life:u8 sequence:u8 c_p:u16 c_d:u16 clean:u8 counts:u8 number:u16*  with its checksum
//     3  at:u8 value:u64                                                              both superblocks, sealed
//     4  of_gaps:u8 at:u24 bits:u8                                                    any byte
#include <algorithm>
#include <memory>
#include <utility>

#include "storage/digest.h"
#include "storage/heap/table_versions.h"
#include "system/reference/reference_heap.h"
#include "system/runs/heap_run.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/two_tables.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::fuzz {
namespace {

constexpr uint64_t kRunId = 5;
constexpr uint64_t kPartitions = 3;  // of each table
constexpr size_t kExtentBytes = 4096, kExtents = 8, kSuperblockFieldsEnd = 128;
constexpr uint32_t kTupleBytes[] = {8, 100};
constexpr RowLayout kHeapRowLayout{.cc_bytes = sizeof(RowVersions)};

template <class T>
void Put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

class SmallHeap {
 public:
  SmallHeap()
      : heap_(files_.MapPersistent("heap.pm", {.create_bytes = VersionHeap::BytesFor(kExtents, kExtentBytes)})),
        gaps_(files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes})) {
    Database database({}, 1);
    AddTwoTables(database, kTupleBytes[1]);
    Superblock superblock;
    superblock.heap_id = superblock.database_id = superblock.schema_hash = kRunId;
    superblock.heap_bytes = heap_->bytes().size();
    superblock.extent_bytes = kExtentBytes;
    superblock.state = Superblock::State::kLoaded;
    for (uint16_t i = 0; i < database.table_count(); ++i) {
      const Table& table = database.table(TableId(i));
      superblock.tables.push_back({kPartitions, table.tuple_bytes()});
    }
    WriteSuperblock(*heap_, superblock);
  }

  void Apply(Input& input) {
    switch (input.Take<uint8_t>() % 5) {
      case 0:
        return GiveExtent(input);
      case 1:
        return PutSlot(input);
      case 2:
        return PutRecord(input);
      case 3:
        return ChangeSuperblocks(input);
      default:
        return ChangeByte(input);
    }
  }

  FileSystem& files() { return files_; }
  reference::RunImage Image() const {
    static const std::vector<std::byte> header = FileHeaderOf(kRunId, 0, 1, format::Scheme::kSerial, 1 << 20);
    reference::RunImage image;
    image.logs.push_back({"log-00.log", header, nullptr});
    image.heap = reference::FileImage{"heap.pm", heap_->bytes(), nullptr};
    image.gaps = reference::FileImage{"gaps.log", gaps_->bytes(), nullptr};
    return image;
  }

 private:
  std::byte* At(size_t offset) { return heap_->bytes().data() + offset; }

  void GiveExtent(Input& input) {
    const size_t extent = input.Take<uint8_t>() % kExtents;
    const TableId table(input.Take<uint8_t>());
    Put(At(2 * heap_format::kBlockBytes + extent * sizeof(uint64_t)),
        heap_format::OwnerWord(table, input.Take<uint8_t>()));
  }

  // One of a few keys of the extent's partition, or any.
  Key KeyIn(size_t extent, uint8_t number) {
    static const auto keys = [this] {
      constexpr Key kKeysMax = 256;
      VersionHeap heap(*heap_, kExtentBytes, 1);
      const TableVersions versions(heap, TableId(0), kTupleBytes[0], {kPartitions});
      std::vector<std::vector<Key>> of_partitions(kPartitions);
      for (Key key = 0; key < kKeysMax; ++key) of_partitions[versions.PartitionOf(key)].push_back(key);
      return of_partitions;
    }();
    uint64_t word = 0;
    std::memcpy(&word, At(2 * heap_format::kBlockBytes + extent * sizeof word), sizeof word);
    constexpr uint8_t kAnyFrom = 16;
    if (word == 0 || heap_format::PartitionOf(word) >= kPartitions || number >= kAnyFrom) return number;
    return keys[heap_format::PartitionOf(word)][number];
  }

  void PutSlot(Input& input) {
    const size_t extent = input.Take<uint8_t>() % kExtents, index = input.Take<uint8_t>();
    const auto stamp = input.Take<uint16_t>();
    const Key key = KeyIn(extent, input.Take<uint8_t>());
    const size_t table = input.Take<uint8_t>();
    const auto flags = input.Take<uint8_t>();
    const uint32_t tuple_bytes = input.Take<uint8_t>();
    const size_t slot_bytes = heap_format::SlotBytes(kTupleBytes[table % std::size(kTupleBytes)]);
    std::byte* const slot =
        At(3 * heap_format::kBlockBytes + extent * kExtentBytes + index % (kExtentBytes / slot_bytes) * slot_bytes);
    std::memset(slot, 0, slot_bytes);
    Put<uint64_t>(slot, stamp);
    Put<uint64_t>(slot + offsetof(HeapSlot, key), key);
    Put(slot + offsetof(HeapSlot, table), static_cast<uint16_t>(table));
    Put<uint16_t>(slot + offsetof(HeapSlot, flags), flags);
    Put(slot + offsetof(HeapSlot, tuple_bytes), tuple_bytes);
    slot[sizeof(HeapSlot)] = input.Take<std::byte>();
    // Of a tuple that would reach beyond the slot it stays wrong.
    if (sizeof(HeapSlot) + tuple_bytes > slot_bytes) return;
    Put(slot + offsetof(HeapSlot, checksum), heap_format::ChecksumOf(*reinterpret_cast<const HeapSlot*>(slot)));
  }

  // As logging/gaps/gap_log.cpp lays it out.
  void PutRecord(Input& input) {
    const size_t block = input.Take<uint8_t>() % GapLog::kBlocks;
    std::vector<uint64_t> words{0, 0x647265636b706167, kRunId};
    words.push_back(input.Take<uint8_t>());
    words.push_back(input.Take<uint8_t>());
    words.push_back(input.Take<uint16_t>());
    words.push_back(input.Take<uint16_t>());
    words.insert(words.end(), {0, 0});
    const uint64_t clean = input.Take<uint8_t>(), counts = input.Take<uint8_t>();
    const uint64_t gaps = counts & 7, runners = counts >> 3 & 7, workers = counts >> 6;
    words.insert(words.end(), {clean | gaps << 32, runners | workers << 32});
    for (uint64_t i = 0; i < 2 * gaps + runners + workers; ++i) words.push_back(input.Take<uint16_t>());
    const auto bytes = std::as_writable_bytes(std::span(words));
    Put(bytes.data() + sizeof(uint32_t), static_cast<uint32_t>(bytes.size()));
    Put(bytes.data(), Crc32c(bytes.subspan(sizeof(uint32_t))));
    std::copy(bytes.begin(), bytes.end(), gaps_->bytes().begin() + static_cast<ptrdiff_t>(block * GapLog::kBlockBytes));
  }

  void ChangeSuperblocks(Input& input) {
    constexpr size_t kChecksumAt = 12;
    const size_t at = input.Take<uint8_t>() % kSuperblockFieldsEnd;
    Put(At(at), input.Take<uint64_t>());
    const auto first = heap_->bytes().first(heap_format::kBlockBytes);
    Put(At(kChecksumAt), Crc32cOfSealed(first, kChecksumAt));
    std::copy(first.begin(), first.end(), At(heap_format::kBlockBytes));
  }

  void ChangeByte(Input& input) {
    const auto bytes = input.Take<uint8_t>() % 2 == 0 ? heap_->bytes() : gaps_->bytes();
    const size_t at = input.Take<uint16_t>() | size_t{input.Take<uint8_t>()} << 16;
    bytes[at % bytes.size()] ^= input.Take<std::byte>();
  }

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> heap_, gaps_;
};

// None: it is refused.
std::optional<Digest128> Restarted(SmallHeap& heap) {
  Digest128 digest;
  const auto restart = [&] {
    Database database(kHeapRowLayout, 1);
    database.ExpectVersionHeap();
    AddTwoTables(database, kTupleBytes[1]);
    const RunNames names{kRunId, kRunId, kRunId, "heap.pm", "gaps.log", "indexes.pm"};
    const auto run = HeapRun::Open(heap.files(), names, /*private_copy=*/true, FlushInstruction::kAuto, database);
    run->Check(1, /*checksums=*/true);
    run->AdoptAll(1);
    digest = DigestOf(database);
  };
  if (!IsTaken(restart)) return std::nullopt;
  return digest;
}

std::optional<Digest128> Referenced(const SmallHeap& heap) {
  Digest128 digest;
  const auto load = [&] {
    Database database({}, 1);
    AddTwoTables(database, kTupleBytes[1]);
    reference::LoadHeap(heap.Image(), database);
    digest = DigestOf(database);
  };
  if (!IsTaken(load)) return std::nullopt;
  return digest;
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx::fuzz;
  Input input(data, size);
  SmallHeap heap;
  while (!input.empty()) heap.Apply(input);
  const auto restarted = Restarted(heap);
  const auto referenced = Referenced(heap);
  // A restart checks more: the reference does not know to which partition a key belongs, nor the schema.
  if (!restarted) return 0;
  Require(referenced.has_value(), "a restart takes what the reference refuses");
  Require(restarted == referenced, "a restart finds other rows than the reference");
  return 0;
}
