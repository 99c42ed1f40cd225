#include "storage/table.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx {
namespace {

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Table::Table(TableId id, Schema schema, const RowLayout& layout, uint32_t workers)
    : id_(id),
      schema_(std::move(schema)),
      tuple_bytes_(schema_.tuple_bytes),
      layout_(layout),
      // Tuples are structs of words of up to 8 bytes.
      tuple_offset_(sizeof(Row) + layout.bytes()),
      heap_(RoundUp(tuple_offset_ + tuple_bytes_, schema_.row_alignment_bytes), schema_.row_alignment_bytes, workers) {
  if (schema_.ordered) {
    tree_ = std::make_unique<BTreeIndex>(layout.leaf_log_bytes);
  } else {
    hash_.emplace(schema_.expected_rows, schema_.clustered_key_bits);
  }
}

void Table::LoadRow(WorkerId worker, Key key, std::span<const std::byte> tuple) {
  CHECK(tuple.size() == tuple_bytes_);
  bool created = false;
  const auto make = [&] {
    created = true;
    Row* const row = Allocate(worker, key);
    row->control.store(0, std::memory_order_relaxed);  // published by the index
    std::memcpy(this->tuple(row), tuple.data(), tuple.size());
    return row;
  };
  (void)(ordered() ? tree_->FindOrInsert(key, make) : hash_->FindOrInsert(key, make));
  if (!created) {
    throw Error(ExitStatus::kInternal, "table " + schema_.name + ": key " + std::to_string(key) + " loaded twice");
  }
}

void Table::ForEachRow(const std::function<void(const Row&)>& visit) const { ForEachRowOfPart(0, 1, visit); }

uint64_t Table::row_count() const {
  uint64_t count = 0;
  ForEachRowOfPart(0, 1, [&](const Row& row) {
    // Relaxed: no transaction runs beside a count that is meant to be exact.
    count += (row.control.load(std::memory_order_relaxed) & Row::kAbsent) == 0;
  });
  return count;
}

size_t Table::memory_bytes() const { return index_bytes() + heap_.memory_bytes(); }

}  // namespace dbx
