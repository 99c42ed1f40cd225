// Rows from arenas in huge pages, one arena per worker: nothing is shared where a row is created. The arenas of a paged
// table take whole pages of its PageSpace.
#pragma once

#include <vector>

#include "storage/heap/arena.h"
#include "storage/heap/table_heap.h"

namespace dbx {

class ArenaHeap {
 public:
  // `row_bytes` is a multiple of `alignment_bytes`, as of RowArena; `pages`, if not null, outlives this.
  ArenaHeap(size_t row_bytes, size_t alignment_bytes, uint32_t workers, PageSpace* pages = nullptr)
      : row_bytes_(row_bytes) {
    arenas_.reserve(workers);
    for (uint32_t i = 0; i < workers; ++i) arenas_.emplace_back(row_bytes, alignment_bytes, pages);
  }

  Row* Allocate(WorkerId worker) { return arenas_[worker.value()].Allocate(); }
  void Recycle(WorkerId worker, Row* row) { arenas_[worker.value()].Recycle(row); }
  void AdoptPage(WorkerId worker, uint32_t page) { arenas_[worker.value()].AdoptPage(page); }
  void Prefault(WorkerId worker, uint64_t rows) { arenas_[worker.value()].Prefault(rows * row_bytes_); }
  size_t memory_bytes() const {
    size_t total = 0;
    for (const RowArena& arena : arenas_) total += arena.memory_bytes();
    return total;
  }

 private:
  size_t row_bytes_;
  std::vector<RowArena> arenas_;  // by worker
};
static_assert(TableHeap<ArenaHeap>);

}  // namespace dbx
