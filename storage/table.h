// A table: rows in a heap (storage/heap) and a unique index that leads to them, a hash index in one hop or, if the
// schema says that the table is ordered, a B+tree, which can be scanned (tree(), storage/btree_scan.h).
//
// Threads: Find and the prefetches may run beside everything else, and wait for nothing but a leaf that is being
// changed. FindOrCreate and Unlink lock one bucket, or the leaves that they change. A row that was found stays readable
// until the reader leaves its epoch section (base/epoch.h), even if it is unlinked meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/types.h"
#include "storage/btree_index.h"
#include "storage/btree_scan.h"
#include "storage/hash_index.h"
#include "storage/heap/arena_heap.h"
#include "storage/heap/page_space.h"
#include "storage/heap/table_versions.h"
#include "storage/row.h"
#include "storage/rows_on_demand.h"
#include "storage/schema.h"

namespace dbx {

// That a table's rows lie in pages (page_space.h).
struct PagedRows {
  CheckpointClock& checkpoints;
  size_t page_bytes_min;
  uint32_t rows_per_page;  // 0: as many as a page holds
};

class Table {
 public:
  // `workers` is how many threads may create rows. At most one of `paged` and `in_heap` is there; in_heap: the rows
  // have no tuples, but versions in a persistent heap (table_versions.h), which KeepVersionsIn names.
  Table(TableId id, Schema schema, const RowLayout& layout, uint32_t workers,
        const std::optional<PagedRows>& paged = {}, bool in_heap = false);

  // Once, before any row is there: `heap` outlives this. Throws as TableVersions.
  void KeepVersionsIn(VersionHeap& heap, const heap_format::KeySpread& spread);

  TableId id() const { return id_; }
  const Schema& schema() const { return schema_; }
  uint32_t tuple_bytes() const { return tuple_bytes_; }
  const RowLayout& layout() const { return layout_; }
  bool ordered() const { return tree_ != nullptr; }
  // Of an ordered table.
  const BTreeIndex& tree() const {
    CHECK(ordered());
    return *tree_;
  }
  // Which of `partitions` a row belongs to.
  uint32_t PartitionOf(Key key, uint32_t partitions) const {
    return static_cast<uint32_t>((key >> schema_.partition_key_bits) % partitions);
  }

  // Bit j: partition j has keys from `low` to `high`.
  uint32_t PartitionsOf(Key low, Key high, uint32_t partitions) const {
    uint32_t mask = 0;
    const Key first = low >> schema_.partition_key_bits, last = high >> schema_.partition_key_bits;
    for (Key i = 0; first <= last && i <= last - first && i < partitions; ++i) mask |= 1u << (first + i) % partitions;
    return mask;
  }

  // Of a paged table; nullptr: its rows lie in arenas.
  PageSpace* pages() const { return pages_.get(); }

  // Of a table whose rows have versions in a persistent heap; nullptr: their tuples lie in them.
  TableVersions* versions() const { return versions_.get(); }
  RowVersions& versions_of(Row* row) const { return *reinterpret_cast<RowVersions*>(row->cc_part(layout_.log_bytes)); }

  // Of a present row.
  std::byte* tuple(Row* row) const {
    if (__builtin_expect(versions_ != nullptr, 0)) return versions_of(row).newest.load()->tuple();
    return tuple_in(row);
  }
  const std::byte* tuple(const Row* row) const { return tuple(const_cast<Row*>(row)); }
  // The same where it is known to lie in the row.
  std::byte* tuple_in(Row* row) const { return reinterpret_cast<std::byte*>(row) + tuple_offset_; }
  const std::byte* tuple_in(const Row* row) const { return reinterpret_cast<const std::byte*>(row) + tuple_offset_; }

  // The row with `key`, present or absent, or nullptr.
  Row* Find(Key key) const { return __builtin_expect(ordered(), 0) ? tree_->Find(key) : hash_->Find(key); }

  // The same, but where there is none an absent row (a placeholder) is created: zeroed, initialised by `init(Row&)`
  // before other threads can see it. `init` sets the control word (with Row::kAbsent) and the log metadata.
  template <class Init>
  Row* FindOrCreate(WorkerId worker, Key key, Init&& init) {
    if (Row* row = Find(key)) return row;
    const auto make = [&] {
      Row* row = Allocate(worker, key);
      init(*row);
      return row;
    };
    return ordered() ? tree_->FindOrInsert(key, make) : hash_->FindOrInsert(key, make);
  }
  // The same in an ordered table: `init(Row&, BTreeLeaf&)` runs with the leaf locked that gets the row, and `change`
  // reports how the leaf changed. nullptr: there is no row, and another than `holder` holds the leaf.
  template <class Init>
  Row* FindOrCreate(WorkerId worker, Key key, Init&& init, LeafChange& change, uint64_t holder = 0) {
    const auto make = [&](BTreeLeaf& leaf) {
      Row* row = Allocate(worker, key);
      init(*row, leaf);
      return row;
    };
    return tree_->FindOrInsert(key, make, change, holder);
  }

  // Adds a present row, its control word 0 but for being there and its log metadata all zero, as is its concurrency
  // control's part, in recycled memory too: in the initial load, and where a row is rebuilt (rows_on_demand.h).
  // Threads may load side by side, each as another worker. Throws Error when the key exists.
  void LoadRow(WorkerId worker, Key key, std::span<const std::byte> tuple);

  // Of a paged table that is restored from its pages, each slot once: a row that is there, with its key and tuple in
  // place, enters the index; the slot of one that is not is free for new rows of `worker`. Throws Error (kCorrupt) when
  // the key exists.
  void AdoptRow(WorkerId worker, Row* row);
  // Of a table in a heap after a restart (heap/adoption.h): a row whose only version is in this slot enters the index.
  // The key is in no other slot.
  void AdoptVersion(WorkerId worker, HeapSlot* slot);
  // After a restart: rows enter the index when they are needed. `rows` outlives this, or is replaced: nullptr: all
  // have.
  void TakeRowsFrom(RowsOnDemand* rows) { rows_on_demand_ = rows; }
  // Whether a key that is not in the index may have a row elsewhere.
  bool has_rows_elsewhere() const { return rows_on_demand_ != nullptr && rows_on_demand_->HasRowsOf(*this); }
  // From then on the index has the row of the key, or all rows of [low, high]. Throws Error (kCorrupt).
  void EnsureRow(WorkerId worker, Key key) { rows_on_demand_->EnsureRow(worker, *this, key); }
  void EnsureRange(WorkerId worker, Key low, Key high) { rows_on_demand_->EnsureRange(worker, *this, low, high); }
  // Takes a present row out of the index, while nothing else uses the table; nullptr: there is none. PutBack enters it
  // again, as one that was loaded, if nothing has its key.
  Row* TakeOut(Key key);
  void PutBack(Row* row);
  void AdoptFreeSlot(WorkerId worker, Row* row) { Recycle(worker, row); }
  // The same of all slots of a page that is zeros, which need not be touched for it.
  void AdoptFreePage(WorkerId worker, uint32_t page) { heap_.AdoptPage(worker, page); }

  // Unlinks an absent row, already marked kGone by the caller, which holds its lock, from the index. Its leaf must not
  // be held.
  void Unlink(Row* row) {
    if (!ordered()) return hash_->Erase(row);
    const bool found = tree_->Erase(row->key, row);
    CHECK(found);
  }
  // The same in an ordered table: `leave(BTreeLeaf&)` runs with the leaf locked that loses the row, and may mark the
  // row, and `change` reports how the leaf changed. False: nothing was done, as the leaf is held.
  template <class Leave>
  bool Unlink(Row* row, Leave&& leave, LeafChange& change) {
    const bool found = tree_->Erase(row->key, row, change, leave);
    CHECK(found || change.held_by != 0);
    return found;
  }
  // Of an ordered table: see BTreeIndex.
  template <class Absorb>
  UnlinkResult UnlinkEmptyLeaf(Key key, EpochClock& clock, WorkerId worker, Absorb&& absorb) {
    return tree_->UnlinkEmpty(key, clock, worker, absorb);
  }
  // Gives the memory of an unlinked row to `worker` for new rows, once no thread can still hold a pointer to it:
  // EpochClock::RetireEpoch after Unlink, Recycle when SafeEpoch is above that. The control word stays kGone until the
  // `init` of the row's next incarnation.
  void Recycle(WorkerId worker, Row* row) { heap_.Recycle(worker, row); }

  // The bucket, or the leaf.
  void PrefetchBucket(Key key) const { return ordered() ? tree_->PrefetchLeaf(key) : hash_->PrefetchBucket(key); }
  // Fetches the row of `key` up to the first `tuple_bytes` of its tuple; with all of them, as a logged write needs
  // them, its presence bit, too. Reads the bucket, so PrefetchBucket goes well ahead of it, and touches no row but one
  // in a heap of versions, where 0 bytes, the row alone, go ahead of others.
  void PrefetchRow(Key key, size_t tuple_bytes) const {
    const Row* const row = ordered() ? tree_->Find(key) : hash_->Guess(key);
    if (row == nullptr) return;
    if (__builtin_expect(versions_ != nullptr, 0)) return PrefetchVersion(*row, key, tuple_bytes);
    PrefetchBytes(row, tuple_offset_ + tuple_bytes);
    if (pages_ != nullptr && tuple_bytes >= tuple_bytes_) pages_->PrefetchPresence(row);
  }
  // Backs the next `rows` rows that this worker creates, and an ordered table's leaves for them, with pages, ahead of a
  // measured interval.
  void PrefaultRows(WorkerId worker, uint64_t rows) {
    heap_.Prefault(worker, rows);
    if (versions_ != nullptr) versions_->heap().Prefault(rows * versions_->slot_bytes());
    if (ordered()) tree_->Prefault(rows);
  }

  // Visits every row in the index, absent ones too, in no particular order; for single-threaded phases.
  void ForEachRow(const std::function<void(const Row&)>& visit) const;
  // The same over the part-th of `parts` parts of the index, so that several threads may share the work.
  template <class Visit>
  void ForEachRowOfPart(uint64_t part, uint64_t parts, Visit&& visit) const {
    if (ordered()) return ForEachRowOfRange(part, parts, visit);
    const uint64_t count = hash_->bucket_count();
    hash_->ForEachRow(count * part / parts, count * (part + 1) / parts, visit);
  }

  // Beside transactions: appends the keys of some more rows, absent ones too, from `position` on, which starts with 0,
  // and moves it. Nothing: it has come to the end. A key that is in the index all the while is seen, one that is
  // inserted or erased meanwhile, perhaps, or twice. Within an epoch section.
  struct KeyPosition {
    uint64_t next = 0;  // a first bucket, or a key
    bool at_end = false;
  };
  void NextKeys(KeyPosition& position, std::vector<Key>& keys) const;

  uint64_t row_count() const;   // present rows; walks the index
  size_t memory_bytes() const;  // rows and index, in pages that are in use
  size_t index_bytes() const { return ordered() ? tree_->memory_bytes() : hash_->memory_bytes(); }

 private:
  Row* Allocate(WorkerId worker, Key key) {
    Row* const row = heap_.Allocate(worker);
    row->key = key;
    return row;
  }

  // False: the key has another row.
  bool Enter(Row* row);
  void MarkPresent(const Row* row);
  // Of a row that is loaded: its first version, whose tuple is filled in between.
  void LoadVersion(WorkerId worker, Row* row);
  void SealVersion(Row* row);
  void PrefetchVersion(const Row& row, Key key, size_t tuple_bytes) const {
    if (tuple_bytes == 0) {
      versions_->PrefetchPartition(key);
      return PrefetchBytes(&row, tuple_offset_);
    }
    // A write will take a slot.
    if (tuple_bytes >= tuple_bytes_) versions_->PrefetchSlot(key);
    const HeapSlot* const slot = versions_of(const_cast<Row*>(&row)).newest.load(std::memory_order_relaxed);
    if (slot != nullptr) PrefetchBytes(slot, sizeof(HeapSlot) + tuple_bytes);
  }

  template <class Visit>
  void ForEachRowOfRange(uint64_t part, uint64_t parts, Visit&& visit) const {
    const std::vector<Key> ends = tree_->LeafEnds();
    const uint64_t first = ends.size() * part / parts, last = ends.size() * (part + 1) / parts;
    // The last part has no end but the largest key; the others may be empty.
    if (first == last && part + 1 < parts) return;
    const Key low = first == 0 ? 0 : ends[first - 1] + 1;
    const Key high = part + 1 == parts ? ~Key{0} : ends[last - 1];
    ScanEntries(*tree_, low, high, ScanOrder::kAscending, [&](const BTreeEntry& entry) {
      visit(static_cast<const Row&>(*entry.row));
      return true;
    });
  }

  TableId id_;
  Schema schema_;
  uint32_t tuple_bytes_;
  RowLayout layout_;
  size_t tuple_offset_;
  std::optional<HashIndex> hash_;  // one of the two
  std::unique_ptr<BTreeIndex> tree_;
  std::unique_ptr<PageSpace> pages_;  // in front of the heap, which has rows in it
  const bool in_heap_;
  std::unique_ptr<TableVersions> versions_;  // once the heap is named
  RowsOnDemand* rows_on_demand_ = nullptr;   // after a restart
  ArenaHeap heap_;                           // of whole rows, each rounded up to its alignment
};

}  // namespace dbx
