#include "storage/heap/adoption.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/spin.h"
#include "storage/heap/slot_versions.h"

namespace dbx {
namespace {

// What an earlier process stored may not be durable, nor become it by a write-back of what is already stored: after a
// sync that failed the kernel takes the page for clean.
void RestoreOwner(const VersionHeap& heap, uint32_t extent, PersistentWriter& writer) {
  auto& word = const_cast<Atomic<uint64_t>&>(heap.directory()[extent]);
  word.store(word.load(std::memory_order_relaxed), std::memory_order_relaxed);
  writer.WriteBack(reinterpret_cast<const std::byte*>(&word), sizeof word);
}

void Zero(HeapSlot* slot, PersistentWriter& writer) {
  slot->begin.store(0, std::memory_order_relaxed);
  writer.WriteBack(reinterpret_cast<const std::byte*>(slot), sizeof(HeapSlot));
}

}  // namespace

Adoption::Adoption(Database& database, GapSet losers, uint64_t stamps_end, std::string place)
    : database_(database), losers_(std::move(losers)), stamps_end_(stamps_end), place_(std::move(place)) {
  CheckDirectory();
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    Table& table = database.table(TableId(i));
    table.versions()->FindExtents();
    table.TakeRowsFrom(this);
    for (uint64_t partition = 0; partition < table.versions()->partition_count(); ++partition) {
      if (!table.versions()->ExtentsIn(partition).empty()) places_.push_back({&table, partition});
    }
  }
  unadopted_.store(places_.size(), std::memory_order_relaxed);
}

void Adoption::CheckDirectory() const {
  const size_t tables = database_.table_count();
  if (tables == 0) return;
  for (const Atomic<uint64_t>& word : database_.table(TableId(0)).versions()->heap().directory()) {
    const uint64_t owner = word.load(std::memory_order_relaxed);
    if (owner == 0) continue;
    const uint64_t table = heap_format::TableOf(owner).value(), partition = heap_format::PartitionOf(owner);
    if (table >= tables) {
      Refuse(&word,
             "an extent belongs to table " + std::to_string(table) + ", and there are " + std::to_string(tables));
    }
    const uint64_t partitions = database_.table(Database::IdOf(table)).versions()->partition_count();
    if (partition >= partitions) {
      Refuse(&word, "an extent belongs to partition " + std::to_string(partition) + " of table " +
                        std::to_string(table) + ", which has " + std::to_string(partitions));
    }
  }
}

void Adoption::CheckAll(uint32_t threads, bool checksums) const {
  RunInParallel(threads, [&](uint32_t thread) {
    for (size_t i = thread; i < places_.size(); i += threads) {
      (void)Inspect(*places_[i].table, places_[i].partition, checksums);
    }
  });
}

void Adoption::AdoptAll(uint32_t threads) {
  RunInParallel(std::min(threads, database_.workers()), [&](uint32_t thread) {
    while (SweepOne(WorkerId(thread))) continue;
  });
  // Another thread's last partition.
  for (const Place& place : places_) EnsureAdopted(WorkerId(0), *place.table, place.partition);
}

bool Adoption::SweepOne(WorkerId worker) {
  for (;;) {
    if (is_complete()) return false;
    const uint64_t next = next_.fetch_add(1, std::memory_order_relaxed);
    if (next >= places_.size()) return false;
    Table& table = *places_[next].table;
    if (table.versions()->StateOf(places_[next].partition).load(std::memory_order_relaxed) !=
        PartitionState::kUnadopted) {
      continue;
    }
    EnsureAdopted(worker, table, places_[next].partition);
    return true;
  }
}

bool Adoption::HasRowsOf(const Table& table) const { return table.versions()->has_unadopted(); }
void Adoption::EnsureRow(WorkerId worker, Table& table, Key key) {
  EnsureAdopted(worker, table, table.versions()->PartitionOf(key));
}
void Adoption::EnsureRange(WorkerId worker, Table& table, Key low, Key high) {
  const heap_format::KeySpread& spread = table.versions()->spread();
  const uint64_t first = spread.RangeOf(low), last = spread.RangeOf(high);
  // So many ranges may touch every partition.
  const bool all = last - first >= spread.partitions;
  for (uint64_t i = 0; i <= (all ? spread.partitions - 1 : last - first) && HasRowsOf(table); ++i) {
    EnsureAdopted(worker, table, all ? i : spread.PartitionOfRange(first + i));
  }
}

void Adoption::EnsureAdopted(WorkerId worker, Table& table, uint64_t partition) {
  Atomic<PartitionState>& state = table.versions()->StateOf(partition);
  auto seen = state.load(std::memory_order_acquire);
  if (seen == PartitionState::kAdopted) return;
  if (seen == PartitionState::kUnadopted && state.compare_exchange_strong(seen, PartitionState::kBeingAdopted)) {
    try {
      Adopt(worker, table, partition);
    } catch (...) {
      // It stays as it is: the run must end, and nothing is adopted twice.
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_.store(true, std::memory_order_release);
      throw;
    }
    table.versions()->SetAdopted(partition);
    unadopted_.fetch_sub(1, std::memory_order_acq_rel);
    return;
  }
  for (LongWait wait; state.load(std::memory_order_acquire) != PartitionState::kAdopted; wait.Wait()) {
    if (!failed_.load(std::memory_order_acquire)) continue;
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(failure_);
  }
}

void Adoption::Adopt(WorkerId worker, Table& table, uint64_t partition) {
  TableVersions& versions = *table.versions();
  Found found = Inspect(table, partition, /*checksums=*/false);
  PersistentWriter& writer = versions.heap().writer(worker);
  for (const uint32_t extent : versions.ExtentsIn(partition)) RestoreOwner(versions.heap(), extent, writer);
  for (HeapSlot* slot : found.free) Zero(slot, writer);
  MakeFree(worker, versions, found.dead);
  // Last: an older version of the key would be its newest.
  MakeFree(worker, versions, found.tombstones);
  for (auto* slots : {&found.dead, &found.tombstones})
    found.free.insert(found.free.end(), slots->begin(), slots->end());
  std::sort(found.free.begin(), found.free.end());
  auto next = found.free.begin();
  for (const uint32_t extent : versions.ExtentsIn(partition)) {
    // The slots of an extent are adjacent, and extents ascend as the sorted slots do.
    const auto first = next;
    while (next != found.free.end() && versions.heap().ExtentOf(*next) == extent) ++next;
    versions.AddExtent(partition, extent, std::span(first, next));
  }
  for (HeapSlot* slot : found.versions) table.AdoptVersion(worker, slot);
}

void Adoption::MakeFree(WorkerId worker, const TableVersions& versions, const std::vector<HeapSlot*>& slots) {
  PersistentWriter& writer = versions.heap().writer(worker);
  for (HeapSlot* slot : slots) Zero(slot, writer);
  writer.Drain();
}

Adoption::Found Adoption::Inspect(const Table& table, uint64_t partition, bool checksums) const {
  const TableVersions& versions = *table.versions();
  Found found;
  std::vector<HeapSlot*> counted;
  for (const uint32_t extent : versions.ExtentsIn(partition)) {
    for (uint32_t i = 0; i < versions.slots_per_extent(); ++i) {
      HeapSlot* const slot = versions.SlotAt(extent, i);
      const uint64_t begin = slot->begin.load(std::memory_order_relaxed);
      if (begin == 0) {
        found.free.push_back(slot);
      } else if (begin >= stamps_end_) {
        Refuse(table, *slot, "its stamp was never promised");
      } else if (losers_.Contains(begin)) {
        found.dead.push_back(slot);
      } else {
        CheckSlot(table, partition, *slot, checksums);
        counted.push_back(slot);
      }
    }
  }
  Sort(table, counted, found);
  return found;
}

void Adoption::CheckSlot(const Table& table, uint64_t partition, const HeapSlot& slot, bool checksum) const {
  if (table.versions()->PartitionOf(slot.key) != partition) Refuse(table, slot, "its key is of another partition");
  if (const char* const why = FaultOf(slot, table.id(), table.tuple_bytes(), checksum)) Refuse(table, slot, why);
}

void Adoption::Sort(const Table& table, std::vector<HeapSlot*>& counted, Found& found) const {
  RankVersions(counted, [&](HeapSlot& slot, VersionRank rank) {
    if (rank == VersionRank::kStampTwice) Refuse(table, slot, "its stamp is twice on its key");
    const bool is_newest = rank == VersionRank::kNewest;
    (!is_newest ? found.dead : slot.absent() ? found.tombstones : found.versions).push_back(&slot);
  });
}

void Adoption::Refuse(const Table& table, const HeapSlot& slot, const char* why) const {
  Refuse(&slot,
         "a slot of table " + table.schema().name + " with stamp " + std::to_string(slot.begin.load()) + ": " + why);
}

void Adoption::Refuse(const void* at, const std::string& why) const {
  const auto& memory = database_.table(TableId(0)).versions()->heap().memory();
  const auto offset = static_cast<const std::byte*>(at) - memory.bytes().data();
  throw Error(ExitStatus::kCorrupt, place_ + "@" + std::to_string(offset) + ": " + why);
}

}  // namespace dbx
