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

  // Adds a present row while nobody else uses the key (initial load). Throws Error when the key exists.
  void LoadRow(WorkerId worker, Key key, std::span<const std::byte> tuple);

  // Takes an absent row, already marked kGone by the caller who holds its lock, out of the index. Its
  // memory may be reused by `Recycle` once no thread can still hold a pointer to it.
  void Unlink(Row* row) { index_.Erase(row); }
  void Recycle(WorkerId worker, Row* row);

  void PrefetchBucket(Key key) const { index_.PrefetchBucket(key); }
  // Fetches the start of the row of `key`, and of each following cache line up to `lines`.
  void PrefetchRow(Key key, int lines) const;

  // Visits every row in the index, absent ones too, in no particular order; for single-threaded phases.
  void ForEachRow(const std::function<void(const Row&)>& visit) const;

  uint64_t row_count() const;     // present rows; walks the index
  size_t memory_bytes() const;    // arenas and index
  size_t index_bytes() const { return index_.memory_bytes(); }

 private:
  Row* Allocate(WorkerId worker, Key key);

  TableId id_;
  Schema schema_;
  uint32_t tuple_bytes_;
  size_t meta_bytes_;
  size_t tuple_offset_;
  size_t row_bytes_;
  HashIndex index_;
  std::vector<RowArena> arenas_;  // one per worker
};

}  // namespace dbx
