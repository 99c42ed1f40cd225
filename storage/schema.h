// The shape of a table: its columns, the size of its tuples, how its keys spread over the index.
// Filled once when the workload creates its tables; read-only afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace dbx {

struct Column {
  std::string name;
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
};

struct Schema {
  std::string name;
  std::vector<Column> columns;
  uint32_t tuple_bytes = 0;
  // Rows start on a multiple of this. 64 gives a contended row a cache line of its own.
  uint32_t row_alignment_bytes = 16;
  // Keys that differ only in their lowest `clustered_key_bits` bits share a hash bucket where they
  // fit: rows that are inserted together (the lines of one order) cost one cache miss, not ten.
  uint32_t clustered_key_bits = 0;
  // Rows expected over the table's lifetime; the index is sized for it. More rows still fit.
  uint64_t expected_rows = 0;
  // The index is a B+tree, and the table can be scanned; else it is a hash index.
  bool ordered = false;
  // Keys that differ only in their lowest `partition_key_bits` bits belong to the same partition (logging by
  // partition).
  uint32_t partition_key_bits = 0;
  // In a persistent heap, keys that differ only in their lowest `heap_range_bits` bits are adopted together after a
  // restart: rows that are scanned, or inserted, one after the other. Some hundreds; 0: each key for itself.
  uint32_t heap_range_bits = 0;
};

}  // namespace dbx
