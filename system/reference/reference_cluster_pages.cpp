// Pages of a cluster, each replayed by itself; the rows that are left, and whether the pages are trees.
#include <algorithm>
#include <cstring>
#include <set>

#include "system/reference/reference_cluster.h"
#include "system/reference/reference_file.h"

namespace dbx::reference {
namespace {

constexpr size_t kPageBytes = 16384, kPageHeader = 48, kSlot = 2, kRowCell = 40, kChildCell = 16;
constexpr ClusterTxn kNoTxn{};

using Image = std::vector<std::byte>;

struct Version {
  ClusterTxn writer;
  bool present = false;
  Image image;
};
struct PageRow {
  Version now;
  std::optional<Version> before;
};
struct Page {
  bool formatted = false;
  uint64_t lsn = 0;
  uint32_t tree = 0;
  uint8_t level = 0;
  uint64_t right = 0, high_key = 0;
  std::map<Key, PageRow> rows;
  std::map<Key, uint64_t> children;

  bool IsBelowHighKey(Key key) const { return right == 0 || key < high_key; }
};
using Pages = std::map<uint64_t, Page>;

[[noreturn]] void Refuse(uint64_t page, const std::string& what) {
  throw Error(ExitStatus::kCorrupt, "cluster's logs: page " + std::to_string(page) + ": " + what);
}

// ---- Pages as they were loaded ----

// Fills pages with cells, which have these sizes, from left to right. Returns the first page's cells' numbers, and so
// on, by page.
template <class Put>
std::map<Key, uint64_t> FillLevel(const std::vector<std::pair<Key, size_t>>& cells, uint32_t tree, uint8_t level,
                                  uint64_t root, uint64_t& next, Pages& pages, Put&& put) {
  std::map<Key, uint64_t> made;  // by the lowest key
  Page page;
  Key lowest = 0;
  size_t used = kPageHeader;
  const auto begin = [&] {
    page = Page();
    page.formatted = true;
    page.tree = tree;
    page.level = level;
    used = kPageHeader;
  };
  begin();
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto& [key, bytes] = cells[i];
    if (used + bytes + kSlot > kPageBytes) {
      page.right = next + 1;
      page.high_key = key;
      pages[next] = std::move(page);
      made[lowest] = next++;
      begin();
      lowest = key;
    }
    put(page, i);
    used += bytes + kSlot;
  }
  const bool is_root = made.empty();
  pages[is_root ? root : next] = std::move(page);
  if (!is_root) made[lowest] = next++;
  return made;
}

Pages LoadedPages(const Database& loaded) {
  Pages pages;
  uint64_t next = loaded.table_count() + 1;
  for (size_t i = 0; i < loaded.table_count(); ++i) {
    const Table& table = loaded.table(Database::IdOf(i));
    std::map<Key, const Row*> rows;
    table.ForEachRow([&rows](const Row& row) {
      if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) == 0) rows[row.key] = &row;
    });
    const auto tree = static_cast<uint32_t>(i + 1);
    std::vector<std::pair<Key, size_t>> cells;
    std::vector<const Row*> in_order;
    for (const auto& [key, row] : rows) {
      cells.emplace_back(key, kRowCell + table.tuple_bytes());
      in_order.push_back(row);
    }
    std::map<Key, uint64_t> below = FillLevel(cells, tree, 0, tree, next, pages, [&](Page& page, size_t n) {
      const std::byte* tuple = table.tuple(in_order[n]);
      page.rows[in_order[n]->key].now = {kNoTxn, true, Image(tuple, tuple + table.tuple_bytes())};
    });
    for (uint8_t level = 1; !below.empty(); ++level) {
      cells.clear();
      std::vector<uint64_t> children;
      for (const auto& [lowest, page] : below) {
        cells.emplace_back(lowest, kChildCell);
        children.push_back(page);
      }
      below = FillLevel(cells, tree, level, tree, next, pages,
                        [&](Page& page, size_t n) { page.children[cells[n].first] = children[n]; });
    }
  }
  return pages;
}

// ---- Changes ----

void TakeCells(const ClusterChange& change, Page& page) {
  size_t at = 0;
  for (uint32_t i = 0; i < change.cells; ++i) {
    const Bytes rest = change.bytes.subspan(at);
    if (rest.size() < (change.level > 0 ? kChildCell : kRowCell)) Refuse(change.page, "a cell is cut off");
    const Key key = LoadUint(rest, 0, 8);
    if (change.level > 0) {
      page.children[key] = LoadUint(rest, 8, 8);
      at += kChildCell;
      continue;
    }
    const size_t image = LoadUint(rest, 32, 2), before = LoadUint(rest, 34, 2), flags = LoadUint(rest, 38, 1);
    if (rest.size() < kRowCell + image + before) Refuse(change.page, "a row is cut off");
    const auto version = [&](size_t number_at, size_t epoch_at, size_t master_at, bool present, size_t from,
                             size_t bytes) {
      const Bytes body = rest.subspan(from, bytes);
      return Version{{static_cast<uint8_t>(LoadUint(rest, master_at, 1)),
                      static_cast<uint32_t>(LoadUint(rest, epoch_at, 4)), LoadUint(rest, number_at, 8)},
                     present,
                     Image(body.begin(), body.end())};
    };
    PageRow& row = page.rows[key];
    row.now = version(8, 24, 36, (flags & 1) != 0, kRowCell, image);
    if ((flags & 2) != 0) row.before = version(16, 28, 37, (flags & 4) != 0, kRowCell + image, before);
    at += kRowCell + image + before;
  }
  if (at != change.bytes.size()) Refuse(change.page, "more than its cells");
}

void Put(const ClusterChange& change, Page& page) {
  PageRow& row = page.rows[change.key];
  const Image& old = row.now.image;
  if (size_t{change.prefix} + change.suffix > old.size())
    Refuse(change.page, "a row that is built from more than it had");
  Image image(old.begin(), old.begin() + change.prefix);
  image.insert(image.end(), change.bytes.begin(), change.bytes.end());
  image.insert(image.end(), old.end() - change.suffix, old.end());
  if (!row.before || row.now.writer != change.writer) row.before = row.now;
  row.now = {change.writer, change.present, change.present ? image : Image()};
}

// Pieces of a row that keeps its length: what is skipped, then bytes.
void PutPieces(const ClusterChange& change, Page& page) {
  const auto row = page.rows.find(change.key);
  if (row == page.rows.end() || !row->second.now.present) Refuse(change.page, "pieces of a row that is not there");
  Image image = row->second.now.image;
  size_t at = 0;
  for (Bytes left = change.bytes; !left.empty();) {
    if (left.size() < 4) Refuse(change.page, "a piece is cut off");
    at += LoadUint(left, 0, 2);
    const size_t bytes = LoadUint(left, 2, 2);
    if (bytes == 0 || bytes > left.size() - 4 || at + bytes > image.size()) Refuse(change.page, "an impossible piece");
    std::memcpy(image.data() + at, left.data() + 4, bytes);
    at += bytes;
    left = left.subspan(4 + bytes);
  }
  if (!row->second.before || row->second.now.writer != change.writer) row->second.before = row->second.now;
  row->second.now = {change.writer, true, std::move(image)};
}

void Restore(uint64_t number, Key key, const ClusterTxn& writer, Page& page) {
  const auto row = page.rows.find(key);
  if (row == page.rows.end() || row->second.now.writer != writer || !row->second.before) {
    Refuse(number, "a row is restored that its writer has not written");
  }
  row->second.now = *row->second.before;
  row->second.before.reset();
}

void Apply(const ClusterChange& change, Page& page) {
  const bool is_row = (change.kind >= 2 && change.kind <= 4) || change.kind == 8;
  if (change.kind != 1 && !page.formatted) Refuse(change.page, "a change of a page that is not there");
  if ((is_row && page.level != 0) || (change.kind == 7 && page.level == 0))
    Refuse(change.page, "a change of another level");
  if ((is_row || change.kind == 5 || change.kind == 7) && !page.IsBelowHighKey(change.key)) {
    Refuse(change.page, "a key that is right of it");
  }
  const uint64_t lsn = page.lsn;
  switch (change.kind) {
    case 1:
      page = Page();
      page.formatted = true;
      page.lsn = lsn;
      page.tree = change.tree;
      page.level = change.level;
      page.right = change.right;
      page.high_key = change.high_key;
      TakeCells(change, page);
      return;
    case 2:
      Put(change, page);
      return;
    case 3:
      Restore(change.page, change.key, change.writer, page);
      return;
    case 4:
      if (page.rows.erase(change.key) == 0) Refuse(change.page, "a row is removed that is not there");
      return;
    case 5:
      page.rows.erase(page.rows.lower_bound(change.key), page.rows.end());
      page.children.erase(page.children.lower_bound(change.key), page.children.end());
      page.right = change.right;
      page.high_key = change.key;
      return;
    case 6:
      ++page.level;
      page.rows.clear();
      page.children = {{0, change.left}, {change.key, change.right}};
      return;
    case 8:
      PutPieces(change, page);
      return;
    default:
      if (!page.children.emplace(change.key, change.child).second) Refuse(change.page, "a child is there twice");
  }
}

// Each change of a page was made from the version of the one before it.
void ReplayPage(uint64_t number, const std::vector<const ClusterChange*>& changes, Page& page) {
  std::map<uint64_t, const ClusterChange*> by_previous;
  for (const ClusterChange* change : changes) {
    if (!by_previous.emplace(change->previous, change).second) Refuse(number, "two changes of one version");
  }
  for (size_t done = 0; done < changes.size(); ++done) {
    const auto next = by_previous.find(page.lsn);
    if (next == by_previous.end()) Refuse(number, "no change follows version " + std::to_string(page.lsn));
    if (next->second->lsn >> 4 <= page.lsn >> 4) Refuse(number, "its times do not ascend");
    Apply(*next->second, page);
    page.lsn = next->second->lsn;
  }
}

// ---- Trees ----

// Of each tree and level all pages lie side by side, from no key at all to the end; an inner page's children are those
// of the level below with their lowest keys.
void CheckTrees(const Pages& pages) {
  std::map<uint64_t, Key> lowest;  // of a page with a left neighbour
  for (const auto& [number, page] : pages) {
    if (page.right == 0) continue;
    const auto right = pages.find(page.right);
    if (right == pages.end() || right->second.tree != page.tree || right->second.level != page.level) {
      Refuse(number, "its right neighbour is no page of its level");
    }
    if (!lowest.emplace(page.right, page.high_key).second) Refuse(number, "a page with two left neighbours");
  }
  std::map<std::pair<uint32_t, uint8_t>, uint64_t> leftmost;
  const auto low_of = [&lowest](uint64_t number) {
    const auto low = lowest.find(number);
    return low == lowest.end() ? 0 : low->second;
  };
  for (const auto& [number, page] : pages) {
    const Key low = low_of(number);
    if (!lowest.contains(number) && !leftmost.emplace(std::pair{page.tree, page.level}, number).second) {
      Refuse(number, "two pages of a level are the leftmost one");
    }
    const auto holds = [low, &of = page](Key key) { return key >= low && of.IsBelowHighKey(key); };
    if (!page.rows.empty() && !(holds(page.rows.begin()->first) && holds(page.rows.rbegin()->first))) {
      Refuse(number, "a key of another page");
    }
    if (page.level > 0 && page.children.empty()) Refuse(number, "an inner page without children");
    for (const auto& [separator, child] : page.children) {
      const auto below = pages.find(child);
      if (below == pages.end() || below->second.level + 1 != page.level || low_of(child) != separator) {
        Refuse(number, "a child that is not where its separator says");
      }
    }
  }
}

}  // namespace

ClusterReplay ReplayCluster(const ClusterImage& image, const Database& loaded, Database& to) {
  ClusterReplay result;
  std::vector<ClusterLog> logs;
  for (uint32_t i = 0; i < image.masters; ++i) logs.push_back(ReadClusterLog(image, i));
  std::map<uint64_t, std::vector<const ClusterChange*>> changes;
  std::map<ClusterTxn, uint8_t> ended;  // outcome
  std::set<ClusterTxn> losers;
  for (uint32_t i = 0; i < image.masters; ++i) {
    for (const ClusterChange& change : logs[i].changes) changes[change.page].push_back(&change);
    result.changes += logs[i].changes.size();
    for (const auto& [txn, end] : logs[i].ends) {
      // One that a survivor undoes may have ended in its own log, too, in the same way.
      if (ended.emplace(txn, end.first).first->second != end.first) {
        throw Error(ExitStatus::kCorrupt, "cluster's logs: transaction " + std::to_string(std::get<2>(txn)) +
                                              " of master " + std::to_string(std::get<0>(txn)) +
                                              " has ended in two ways");
      }
      if (end.first == 1) result.committed.push_back(end.second);
    }
    for (const auto& stamp : logs[i].stamps) {
      for (uint32_t j = 0; j < image.masters; ++j) {
        const uint64_t last = logs[j].stamps.empty() ? 0 : logs[j].stamps.back()[j];
        if (j != i && stamp[j] > last) {
          throw Error(ExitStatus::kCorrupt, "cluster's logs: that of master " + std::to_string(i) +
                                                " builds upon what that of master " + std::to_string(j) + " lacks");
        }
      }
    }
  }
  std::sort(result.committed.begin(), result.committed.end());
  Pages pages = LoadedPages(loaded);
  for (const auto& [number, of_page] : changes) ReplayPage(number, of_page, pages[number]);
  CheckTrees(pages);
  for (auto& [number, page] : pages) {
    if (page.level > 0) continue;
    if (page.tree == 0 || page.tree > to.table_count()) Refuse(number, "a page of no table");
    Table& table = to.table(Database::IdOf(page.tree - 1));
    for (auto& [key, row] : page.rows) {
      if (row.now.writer != kNoTxn && !ended.contains(row.now.writer)) {
        losers.insert(row.now.writer);
        ++result.rows_restored;
        Restore(number, key, row.now.writer, page);
      }
      if (!row.now.present) continue;
      if (row.now.image.size() != table.tuple_bytes()) Refuse(number, "a row of another length");
      table.LoadRow(WorkerId(0), key, row.now.image);
    }
  }
  result.losers = losers.size();
  return result;
}

}  // namespace dbx::reference
