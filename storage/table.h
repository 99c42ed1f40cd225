// A table: rows in huge-page arenas and a unique hash index that leads to them in one hop.
//
// Threads: Find and the prefetches never block and may run beside everything else. FindOrCreate and Unlink
// lock one bucket. A row that was found stays readable until the finder leaves its epoch section
// (base/epoch.h), even if it is unlinked meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "storage/arena.h"
#include "storage/hash_index.h"
#include "storage/row.h"
#include "storage/schema.h"

namespace dbx {

class Table {
 public:
  // `meta_bytes` of log metadata beside each row; `workers` is how many threads may create rows.
  Table(TableId id, Schema schema, size_t meta_bytes, uint32_t workers);

  TableId id() const { return id_; }
  const Schema& schema() const { return schema_; }
  uint32_t tuple_bytes() const { return tuple_bytes_; }
  size_t meta_bytes() const { return meta_bytes_; }
  // Which of `partitions` a row belongs to.
  uint32_t PartitionOf(Key key, uint32_t partitions) const {
    return static_cast<uint32_t>((key >> schema_.partition_key_bits) % partitions);
  }

  std::byte* tuple(Row* row) const { return reinterpret_cast<std::byte*>(row) + tuple_offset_; }
  const std::byte* tuple(const Row* row) const { return reinterpret_cast<const std::byte*>(row) + tuple_offset_; }

  // The row that bears `key`, present or absent, or nullptr.
  Row* Find(Key key) const { return index_.Find(key); }

  // The same, but where there is none an absent row is created: zeroed, made by `init(Row&)` before
  // anyone can see it. `init` sets the control word (with Row::kAbsent) and the log metadata.
  template <class Init>
  Row* FindOrCreate(WorkerId worker, Key key, Init&& init) {
    if (Row* row = index_.Find(key)) return row;
    return index_.FindOrInsert(key, [&] {
      Row* row = Allocate(worker, key);
      init(*row);
      return row;
    });
  }

  // Adds a present row, its control word 0 but for being there and its log metadata all zero (initial load).
  // Threads may load side by side, each as another worker. Throws Error when the key exists.
  void LoadRow(WorkerId worker, Key key, std::span<const std::byte> tuple);

  // Takes an absent row, already marked kGone by the caller who holds its lock, out of the index.
  void Unlink(Row* row) { index_.Erase(row); }
  // Gives the memory of an unlinked row to `worker` for new rows, once no thread can still hold a pointer
  // to it: EpochClock::RetireEpoch after Unlink, Recycle when SafeEpoch is above that. The control word stays
  // kGone until the `init` of the row's next life.
  void Recycle(WorkerId worker, Row* row);

  void PrefetchBucket(Key key) const { index_.PrefetchBucket(key); }
  // Fetches the first `lines` cache lines of the row of `key`. Reads the bucket, so PrefetchBucket goes well
  // ahead of it; touches no row.
  void PrefetchRow(Key key, int lines) const {
    const Row* row = index_.Guess(key);
    if (row != nullptr) PrefetchLines(row, lines);
  }
  // Backs the next `rows` rows that this worker creates with pages, ahead of a measured interval.
  void PrefaultRows(WorkerId worker, uint64_t rows) { arenas_[worker.value()].Prefault(rows * row_bytes_); }

  // Visits every row in the index, absent ones too, in no particular order; for single-threaded phases.
  void ForEachRow(const std::function<void(const Row&)>& visit) const;
  // The same over the part-th of `parts` parts of the index, so that several threads may share the work.
  template <class Visit>
  void ForEachRowOfPart(uint64_t part, uint64_t parts, Visit&& visit) const {
    const uint64_t count = index_.bucket_count();
    index_.ForEachRow(count * part / parts, count * (part + 1) / parts, visit);
  }

  uint64_t row_count() const;   // present rows; walks the index
  size_t memory_bytes() const;  // arenas and index, in pages that are in use
  size_t index_bytes() const { return index_.memory_bytes(); }

 private:
  Row* Allocate(WorkerId worker, Key key) {
    Row* const row = arenas_[worker.value()].Allocate();
    row->key = key;
    return row;
  }

  TableId id_;
  Schema schema_;
  uint32_t tuple_bytes_;
  size_t meta_bytes_;
  size_t tuple_offset_;
  size_t row_bytes_;  // a whole row, rounded up to its alignment
  HashIndex index_;
  std::vector<RowArena> arenas_;  // one per worker
};

}  // namespace dbx
