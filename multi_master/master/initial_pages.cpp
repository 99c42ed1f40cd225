#include "multi_master/master/initial_pages.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "multi_master/page/page_builder.h"

namespace dbx::mm {

InitialPages::InitialPages(const Database& loaded, size_t page_bytes_max) {
  const auto keep = [this](const SlottedPage& page) { pages_.emplace(page.id(), std::make_unique<SlottedPage>(page)); };
  PageId next(loaded.table_count() + 1);
  for (size_t i = 0; i < loaded.table_count(); ++i) {
    const Table& table = loaded.table(Database::IdOf(i));
    std::vector<const Row*> rows;
    table.ForEachRow([&](const Row& row) {
      if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) == 0) rows.push_back(&row);
    });
    std::sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->key < b->key; });
    PageBuilder builder({TreeOf(table.id()), RootOf(table.id()), next, page_bytes_max}, keep);
    for (const Row* row : rows) builder.Add(row->key, std::span(table.tuple(row), table.tuple_bytes()));
    next = builder.Finish();
  }
  CHECK(next.value() < kLoadedPagesEnd);
}

SlottedPage InitialPages::Of(PageId page) const {
  const auto found = pages_.find(page);
  return found != pages_.end() ? *found->second : SlottedPage();
}

}  // namespace dbx::mm
