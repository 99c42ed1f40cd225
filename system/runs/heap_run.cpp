#include "system/runs/heap_run.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "logging/format.h"
#include "system/runs/index_file.h"

namespace dbx {
namespace {

constexpr size_t kExtentBytesMin = 64 << 10;
// As many rows as are adopted within about 100 us, or some extents full of them: a partition's last one is not.
constexpr uint64_t kRowsPerPartition = 512;
constexpr uint64_t kExtentsPerPartition = 4;

uint64_t PartitionsFor(const Schema& schema, size_t extent_bytes) {
  const uint64_t slots = heap_format::SlotsIn(extent_bytes, schema.tuple_bytes);
  return std::max<uint64_t>(1, schema.expected_rows / std::max(kRowsPerPartition, kExtentsPerPartition * slots));
}

// Of every table in the database, 16 slots fit.
size_t ExtentBytesFor(const Database& database) {
  size_t most = 0;
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    most = std::max(most, heap_format::SlotBytes(database.table(TableId(i)).tuple_bytes()));
  }
  return std::max(kExtentBytesMin, std::bit_ceil(VersionHeap::kSlotsPerExtentMin * most));
}

// The rows that are expected, a fifth more for the uneven hashes of keys and as much again for versions that are
// superseded and not free yet; in each partition an extent that is not full.
size_t BytesFor(const Database& database, size_t extent_bytes) {
  size_t extents = 0;
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    const Schema& schema = database.table(TableId(i)).schema();
    const size_t slots = heap_format::SlotsIn(extent_bytes, schema.tuple_bytes);
    const size_t partitions = PartitionsFor(schema, extent_bytes);
    const size_t rows = (schema.expected_rows + partitions - 1) / partitions;
    extents += partitions * ((rows + rows / 5 + slots - 1) / slots + 1);
  }
  constexpr size_t kSpareExtents = 64;
  return VersionHeap::BytesFor(extents + extents / 5 + kSpareExtents, extent_bytes);
}

std::vector<Superblock::OfTable> ShapeOf(const Database& database, size_t extent_bytes) {
  std::vector<Superblock::OfTable> tables;
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    const Table& table = database.table(TableId(i));
    tables.push_back(
        {PartitionsFor(table.schema(), extent_bytes), table.tuple_bytes(), table.schema().heap_range_bits});
  }
  return tables;
}

// The same but for the spread of keys, which is that of the load.
bool IsOfTables(const Superblock& superblock, const Database& database) {
  const std::vector<Superblock::OfTable> shape = ShapeOf(database, superblock.extent_bytes);
  return std::ranges::equal(superblock.tables, shape, {}, &Superblock::OfTable::tuple_bytes,
                            &Superblock::OfTable::tuple_bytes);
}

void CheckSuperblock(const Superblock& superblock, const RunNames& names, const Database& database) {
  const auto refuse = [&](const char* why) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + names.heap_path + "@0: " + why);
  };
  if (superblock.heap_id != names.run_id || superblock.database_id != names.database_id) {
    refuse("the heap of another run");
  }
  if (superblock.schema_hash != names.schema_hash || !IsOfTables(superblock, database)) {
    refuse("a heap of tables of another shape");
  }
  if (superblock.state == Superblock::State::kLoading)
    refuse("its load was never complete, and nothing was served from it");
}

void CheckSize(const PersistentMemory& gaps, const std::string& path) {
  if (gaps.bytes().size() == GapLog::kBytes) return;
  throw Error(ExitStatus::kCorrupt, "cannot read " + path + "@0: the file has " + std::to_string(gaps.bytes().size()) +
                                        " bytes, and a log of gaps has " + std::to_string(GapLog::kBytes));
}

// Of a log that was found again.
void CheckRecord(const std::optional<GapRecord>& record, const PersistentMemory& gaps, const std::string& path) {
  const auto refuse = [&](const char* why, ExitStatus status = ExitStatus::kCorrupt) {
    throw Error(status, "cannot recover " + path + "@0: " + why);
  };
  for (size_t at = 0; at < GapLog::kBytes && !record; at += GapLog::kBlockBytes) {
    if (!GapLog::Decode(gaps.bytes().subspan(at), std::nullopt)) continue;
    refuse("the log of gaps of another heap", ExitStatus::kMismatch);
  }
  if (!record) refuse("no record in it is valid, and which versions count is not known without one");
  if (record->c_d > format::kTimestampMax / 2) refuse("a timestamp in it leaves no room for those to come");
}

}  // namespace

HeapRun::HeapRun(Database& database, std::unique_ptr<PersistentMemory> memory,
                 std::unique_ptr<PersistentMemory> gaps_memory, const Superblock& superblock)
    : database_(database),
      memory_(std::move(memory)),
      gaps_memory_(std::move(gaps_memory)),
      superblock_(superblock),
      opened_ticks_(Clock::NowTicks()) {
  heap_ = std::make_unique<VersionHeap>(*memory_, superblock.extent_bytes, database.workers());
  std::vector<heap_format::KeySpread> spreads;
  for (const Superblock::OfTable& table : superblock.tables) spreads.push_back({table.partitions, table.range_bits});
  database.KeepVersionsIn(*heap_, spreads);
  gaps_ = std::make_unique<GapLog>(*gaps_memory_, superblock.heap_id);
}

std::unique_ptr<HeapRun> HeapRun::Create(FileSystem& files, const RunNames& names, uint64_t heap_bytes,
                                         FlushInstruction flush, Database& database) {
  Superblock superblock;
  superblock.heap_id = names.run_id, superblock.database_id = names.database_id;
  superblock.schema_hash = names.schema_hash;
  superblock.extent_bytes = ExtentBytesFor(database);
  superblock.heap_bytes = heap_bytes != 0 ? heap_bytes : BytesFor(database, superblock.extent_bytes);
  superblock.tables = ShapeOf(database, superblock.extent_bytes);
  // What the superblock may say (storage/heap/superblock.cpp); so many are never needed.
  for (Superblock::OfTable& table : superblock.tables) {
    table.partitions = std::min<uint64_t>(table.partitions, superblock.heap_bytes / heap_format::kLineBytes);
  }
  const size_t bytes_min = VersionHeap::BytesFor(1, superblock.extent_bytes);
  if (superblock.heap_bytes < bytes_min) {
    throw Error(ExitStatus::kUsage, "--heap_bytes=" + std::to_string(heap_bytes) + " is too small for these tables: " +
                                        std::to_string(bytes_min) + " bytes hold one extent, and each table needs one");
  }
  auto memory = files.MapPersistent(names.heap_path, {.create_bytes = superblock.heap_bytes, .flush = flush});
  auto gaps = files.MapPersistent(names.gaps_path, {.create_bytes = GapLog::kBytes, .flush = flush, .commits = true});
  std::unique_ptr<HeapRun> run(new HeapRun(database, std::move(memory), std::move(gaps), superblock));
  WriteSuperblock(*run->memory_, superblock);
  run->heap_->BeginLoad();
  return run;
}

std::unique_ptr<HeapRun> HeapRun::Open(FileSystem& files, const RunNames& names, bool private_copy,
                                       FlushInstruction flush, Database& database) {
  const PersistentMapping mapping{.copy_on_write = private_copy, .flush = flush};
  auto memory = files.MapPersistent(names.heap_path, mapping);
  const Superblock superblock = ReadSuperblock(memory->bytes(), "cannot recover " + names.heap_path);
  CheckSuperblock(superblock, names, database);
  auto gaps = files.MapPersistent(names.gaps_path, mapping);
  CheckSize(*gaps, names.gaps_path);
  std::unique_ptr<HeapRun> run(new HeapRun(database, std::move(memory), std::move(gaps), superblock));
  CheckRecord(run->gaps_->newest(), *run->gaps_memory_, names.gaps_path);
  run->adoption_ = std::make_unique<Adoption>(database, LosersOf(run->newest()), run->newest().c_d,
                                              "damaged heap " + names.heap_path);
  // A private copy is adopted as a whole, and shows what its rows say.
  if (!private_copy) run->indexes_ = MapIndexFile(files, names.indexes_path, superblock.heap_id, database);
  return run;
}

void HeapRun::EndLoad(FileSystem& files, const RunNames& names) {
  heap_->EndLoad();
  WriteIndexFile(files, names.indexes_path, superblock_.heap_id, database_);
  superblock_.state = Superblock::State::kLoaded;
  WriteSuperblock(*memory_, superblock_);
  gaps_->Append(FirstRecordOf(superblock_.heap_id, database_.workers()));
  NoteAdopted();
  NoteReady();
}

void HeapRun::StartLife(uint32_t threads) {
  const uint64_t life = newest().life + 1;
  if (life > uint64_t{1} << (TxnId::kSequenceBits - kSequenceBitsOfLife)) {
    throw Error(ExitStatus::kNoSpace, "the heap has had " + std::to_string(life - 1) +
                                          " lives, and there are no numbers for the transactions of one more");
  }
  // Where all of the gaps do not fit into a record, the losers go first: they are the same whatever life follows.
  const size_t gaps = LosersOf(newest()).gaps().size();
  const bool sweep_first = !GapLog::Fits(gaps, database_.workers());
  if (sweep_first) {
    // The newest record may not be durable, if the process was killed while it wrote it.
    GapRecord again = newest();
    again.sequence += 1;
    gaps_->Append(again);
    AdoptAll(threads);
  }
  gaps_->Append(NextLifeOf(newest(), database_.workers(), FirstSequenceOf(life), sweep_first));
}

void HeapRun::AdoptAll(uint32_t threads) {
  if (adoption_ == nullptr) return;
  adoption_->AdoptAll(threads);
  NoteAdopted();
}

// Of an extent that holds free slots, and goes on doing so: of each the lines behind the header. After a restart its
// slots are used as any others. Of the table with the largest rows.
std::vector<std::byte*> HeapRun::TakeLines(WorkerId worker) {
  Table* table = &database_.table(TableId(0));
  for (size_t id = 1; id < database_.table_count(); ++id) {
    Table& other = database_.table(Database::IdOf(id));
    if (other.tuple_bytes() > table->tuple_bytes()) table = &other;
  }
  const TableVersions& versions = *table->versions();
  const uint32_t extent = heap_->TakeExtent(worker, table->id(), /*partition=*/0);
  std::vector<std::byte*> lines;
  for (uint32_t slot = 0; slot < versions.slots_per_extent(); ++slot) {
    auto* const begin = reinterpret_cast<std::byte*>(versions.SlotAt(extent, slot));
    for (size_t at = sizeof(HeapSlot); at < versions.slot_bytes(); at += heap_format::kLineBytes) {
      lines.push_back(begin + at);
    }
  }
  return lines;
}

HeapOptions HeapRun::OptionsOfLog(uint64_t flush_interval_us, uint32_t index_lines) {
  HeapOptions options;
  options.heap = memory_.get();
  options.gaps = gaps_.get();
  options.commits_are_slow = memory_->drains_are_slow() || gaps_memory_->drains_are_slow();
  options.workers = database_.workers();
  options.flush_interval_us = flush_interval_us;
  options.index_lines = index_lines;
  for (uint32_t worker = 0; index_lines > 0 && worker < options.workers; ++worker) {
    options.lines_of_indexes.push_back(TakeLines(WorkerId(worker)));
  }
  if (adoption_ == nullptr) return options;
  options.sweep = [this](WorkerId worker) {
    if (adoption_->SweepOne(worker)) return true;
    if (!adoption_->is_complete()) return true;  // another worker adopts the last ones
    NoteAdopted();
    return false;
  };
  return options;
}

void HeapRun::NoteAdopted() {
  uint64_t before = 0;
  adopted_ticks_.compare_exchange_strong(before, Clock::NowTicks());
}

}  // namespace dbx
