// The memory of a table's rows. Chosen when the engine is compiled, so that no call of a transaction is virtual; the
// arena heap is the one kind. Where it lies in pages (page_space.h) a row's page and slot mean the same in every
// process that recovers the run; otherwise an address means nothing beyond its process.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "storage/row.h"

namespace dbx {

// Of rows of one size. `workers` may use it side by side, each under its own WorkerId.
//
//   Allocate(worker)       a row whose bytes are all zero; the control word of a recycled one is kGone. Throws Error
//                          (kNoSpace).
//   Recycle(worker, row)   takes back a row that no thread can reach any more
//   Prefault(worker, rows) backs the next `rows` rows that the worker creates with pages, ahead of a measured interval
//   memory_bytes()         in whole pages that are in use
template <class H>
concept TableHeap = requires(H heap, const H& read, WorkerId worker, Row* row, uint64_t rows) {
  { heap.Allocate(worker) } -> std::same_as<Row*>;
  { heap.Recycle(worker, row) } -> std::same_as<void>;
  { heap.Prefault(worker, rows) } -> std::same_as<void>;
  { read.memory_bytes() } -> std::same_as<size_t>;
};

}  // namespace dbx
