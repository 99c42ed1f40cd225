// The catalogue: the tables of one database, numbered in the order of their creation, and the secondary
// indexes. Built and loaded before transactions run; the set of tables never changes afterwards.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "storage/schema.h"
#include "storage/secondary_index.h"
#include "storage/table.h"

namespace dbx {

class Database {
 public:
  // `layout` is that of the rows of all tables; `workers` is how many threads create rows.
  Database(const RowLayout& layout, uint32_t workers) : layout_(layout), workers_(workers) {}

  // The rows of tables that are created from now on lie in pages of `page_bytes_min` or more; of table i there are
  // rows_per_page[i] in a page, if it is given.
  void PageEveryTable(size_t page_bytes_min, std::vector<uint32_t> rows_per_page = {}) {
    page_bytes_min_ = page_bytes_min;
    rows_per_page_ = std::move(rows_per_page);
    checkpoints_ = std::make_unique<CheckpointClock>();
  }
  bool paged() const { return checkpoints_ != nullptr; }
  // Of a paged database.
  CheckpointClock& checkpoints() const {
    CHECK(paged());
    return *checkpoints_;
  }

  // The rows of tables that are created from now on have versions in a persistent heap, which is named once all tables
  // are there, with the spread of each one's keys: it outlives this. Throws as TableVersions.
  void ExpectVersionHeap() { in_heap_ = true; }
  void KeepVersionsIn(VersionHeap& heap, std::span<const heap_format::KeySpread> spreads) {
    CHECK(spreads.size() == tables_.size());
    for (size_t i = 0; i < tables_.size(); ++i) tables_[i]->KeepVersionsIn(heap, spreads[i]);
  }

  // The tables that are created from now on are ordered, whatever their schemas say.
  void OrderEveryTable() { order_every_table_ = true; }
  Table& CreateTable(Schema schema) {
    schema.ordered |= order_every_table_;
    const TableId id = IdOf(tables_.size());
    std::optional<PagedRows> pages;
    if (paged()) {
      const uint32_t rows = id.value() < rows_per_page_.size() ? rows_per_page_[id.value()] : 0;
      pages.emplace(PagedRows{*checkpoints_, page_bytes_min_, rows});
    }
    tables_.push_back(std::make_unique<Table>(id, std::move(schema), layout_, workers_, pages, in_heap_));
    return *tables_.back();
  }
  SecondaryIndex& CreateSecondaryIndex(std::string name) {
    secondary_indexes_.push_back(std::make_unique<SecondaryIndex>(std::move(name)));
    return *secondary_indexes_.back();
  }

  uint32_t workers() const { return workers_; }
  size_t table_count() const { return tables_.size(); }
  // Of the table that was created as the index-th, from 0 on.
  static constexpr TableId IdOf(size_t index) { return TableId(static_cast<uint16_t>(index)); }
  Table& table(TableId id) const {
    ASSERT(id.value() < tables_.size());
    return *tables_[id.value()];
  }
  const std::vector<std::unique_ptr<SecondaryIndex>>& secondary_indexes() const { return secondary_indexes_; }

 private:
  RowLayout layout_;
  uint32_t workers_;
  bool order_every_table_ = false;
  size_t page_bytes_min_ = 0;
  std::vector<uint32_t> rows_per_page_;
  bool in_heap_ = false;
  std::unique_ptr<CheckpointClock> checkpoints_;  // in front of the tables, whose pages use it
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::unique_ptr<SecondaryIndex>> secondary_indexes_;
};

}  // namespace dbx
