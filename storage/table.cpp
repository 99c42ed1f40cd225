#include "storage/table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

namespace dbx {
namespace {

std::unique_ptr<PageSpace> MakePages(const Schema& schema, size_t tuple_offset, const std::optional<PagedRows>& paged) {
  if (!paged) return nullptr;
  const size_t alignment = schema.row_alignment_bytes;
  return std::make_unique<PageSpace>(PageShape{.row_bytes = RoundUp(tuple_offset + schema.tuple_bytes, alignment),
                                               .tuple_offset = tuple_offset,
                                               .tuple_bytes = schema.tuple_bytes,
                                               .alignment_bytes = alignment,
                                               .page_bytes_min = paged->page_bytes_min,
                                               .rows_per_page = paged->rows_per_page},
                                     paged->checkpoints);
}

// Of a row, whose tuple may lie elsewhere.
size_t RowBytes(const Schema& schema, size_t tuple_offset, bool in_heap) {
  return RoundUp(in_heap ? tuple_offset : tuple_offset + schema.tuple_bytes, schema.row_alignment_bytes);
}

}  // namespace

void Table::NextKeys(KeyPosition& position, std::vector<Key>& keys) const {
  constexpr uint64_t kBuckets = 16;
  constexpr size_t kEntries = 64;
  const size_t before = keys.size();
  if (ordered() && !position.at_end) {
    ScanEntries(*tree_, position.next, ~Key{0}, ScanOrder::kAscending, [&](const BTreeEntry& entry) {
      keys.push_back(entry.key);
      return keys.size() - before < kEntries;
    });
    position.at_end = keys.size() - before < kEntries || keys.back() == ~Key{0};
    if (!position.at_end) position.next = keys.back() + 1;
    return;
  }
  while (keys.size() == before && !position.at_end) {
    const uint64_t end = std::min(position.next + kBuckets, hash_->bucket_count());
    hash_->ForEachRow(position.next, end, [&](const Row& row) { keys.push_back(row.key); });
    position.next = end;
    position.at_end = end == hash_->bucket_count();
  }
}

// Tuples are structs of words of up to 8 bytes, and begin at whole words.
Table::Table(TableId id, Schema schema, const RowLayout& layout, uint32_t workers,
             const std::optional<PagedRows>& paged, bool in_heap)
    : id_(id),
      schema_(std::move(schema)),
      tuple_bytes_(schema_.tuple_bytes),
      layout_(layout),
      tuple_offset_(sizeof(Row) + layout.bytes()),
      pages_(MakePages(schema_, tuple_offset_, paged)),
      in_heap_(in_heap),
      heap_(RowBytes(schema_, tuple_offset_, in_heap), schema_.row_alignment_bytes, workers, pages_.get()) {
  if (schema_.ordered) {
    tree_ = std::make_unique<BTreeIndex>(layout.leaf_log_bytes);
  } else {
    hash_.emplace(schema_.expected_rows, schema_.clustered_key_bits);
  }
}

void Table::KeepVersionsIn(VersionHeap& heap, const heap_format::KeySpread& spread) {
  CHECK(in_heap_ && versions_ == nullptr);
  versions_ = std::make_unique<TableVersions>(heap, id_, schema_.tuple_bytes, spread);
}

void Table::LoadRow(WorkerId worker, Key key, std::span<const std::byte> tuple) {
  CHECK(tuple.size() == tuple_bytes_);
  bool created = false;
  const auto make = [&] {
    created = true;
    Row* const row = Allocate(worker, key);
    row->control.store(0, std::memory_order_relaxed);  // published by the index
    if (versions_) LoadVersion(worker, row);
    std::memcpy(this->tuple(row), tuple.data(), tuple.size());
    if (versions_) SealVersion(row);
    if (pages_) MarkPresent(row);
    return row;
  };
  (void)(ordered() ? tree_->FindOrInsert(key, make) : hash_->FindOrInsert(key, make));
  if (!created) {
    throw Error(ExitStatus::kInternal, "table " + schema_.name + ": key " + std::to_string(key) + " loaded twice");
  }
}

void Table::MarkPresent(const Row* row) {
  const PageSpace::Place place = pages_->PlaceOf(row);
  PageSpace::Latched(*pages_, place.page).SetPresent(place.slot, true);
}

void Table::LoadVersion(WorkerId worker, Row* row) {
  CHECK(versions_->heap().is_loading());
  HeapSlot* const slot = versions_->Take(worker, row->key, TxnId{});
  slot->older = nullptr;
  slot->begin.store(heap_format::kLoadStamp, std::memory_order_relaxed);
  RowVersions& versions = versions_of(row);
  versions.newest.store(slot, std::memory_order_relaxed);
  versions.slots.store(1, std::memory_order_relaxed);
}

void Table::SealVersion(Row* row) {
  HeapSlot* const slot = versions_of(row).newest.load(std::memory_order_relaxed);
  slot->checksum = heap_format::ChecksumOf(*slot);
}

void Table::AdoptVersion(WorkerId worker, HeapSlot* slot) {
  const auto make = [&] {
    Row* const row = Allocate(worker, slot->key);
    row->control.store(0, std::memory_order_relaxed);  // published by the index
    RowVersions& versions = versions_of(row);
    versions.newest.store(slot, std::memory_order_relaxed);
    versions.slots.store(1, std::memory_order_relaxed);
    return row;
  };
  (void)(ordered() ? tree_->FindOrInsert(slot->key, make) : hash_->FindOrInsert(slot->key, make));
}

bool Table::Enter(Row* row) {
  row->control.store(0, std::memory_order_relaxed);  // published by the index
  const auto make = [row] { return row; };
  return (ordered() ? tree_->FindOrInsert(row->key, make) : hash_->FindOrInsert(row->key, make)) == row;
}

void Table::AdoptRow(WorkerId, Row* row) {
  if (Enter(row)) return;
  throw Error(ExitStatus::kCorrupt, "table " + schema_.name + ": key " + std::to_string(row->key) + " in two slots");
}

Row* Table::TakeOut(Key key) {
  Row* const row = Find(key);
  if (row == nullptr || (row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return nullptr;
  Unlink(row);
  return row;
}

void Table::PutBack(Row* row) {
  const bool entered = Enter(row);
  CHECK(entered);
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

size_t Table::memory_bytes() const {
  return index_bytes() + heap_.memory_bytes() + (pages_ ? pages_->memory_bytes() : 0);
}

}  // namespace dbx
