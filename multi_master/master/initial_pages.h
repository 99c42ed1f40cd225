// The pages of a database as it was loaded: each table's rows in a tree of their own.
//
// Built from a loaded Database, row by row in the order of keys, so that every process that loads the same workload
// from the same seed has the same pages, with the same ids, at PageLsn(). Table t has tree t + 1 and the root page
// t + 1; the other pages follow.
//
// Threads: after construction any.
#pragma once

#include <memory>
#include <unordered_map>

#include "multi_master/master/master_pages.h"
#include "multi_master/page/slotted_page.h"
#include "storage/database.h"

namespace dbx::mm {

constexpr TreeId TreeOf(TableId table) { return TreeId(uint32_t{table.value()} + 1); }
constexpr PageId RootOf(TableId table) { return PageId(uint64_t{table.value()} + 1); }

class InitialPages {
 public:
  // A page is filled up to `page_bytes_max`.
  explicit InitialPages(const Database& loaded, size_t page_bytes_max = kPageBytes);

  // The page as it was loaded; one that was never formatted, if it was not.
  SlottedPage Of(PageId page) const;
  size_t count() const { return pages_.size(); }

 private:
  std::unordered_map<PageId, std::unique_ptr<SlottedPage>> pages_;
};

}  // namespace dbx::mm
