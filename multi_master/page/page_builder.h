// The pages of a tree from its rows, sorted by key: how a database is loaded.
//
// The same rows and options give the same pages with the same ids, all at PageLsn(), so each Page Store loads the
// initial pages itself. Pages come to the sink one at a time, leaves from left to right, then the levels above.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/types.h"
#include "multi_master/names.h"
#include "multi_master/page/slotted_page.h"

namespace dbx::mm {

class PageBuilder {
 public:
  using Sink = std::function<void(const SlottedPage& page)>;

  struct Options {
    TreeId tree;
    PageId root;
    PageId first;                        // of the other pages, which are numbered from here on
    size_t page_bytes_max = kPageBytes;  // a page is not filled further
  };

  PageBuilder(const Options& options, Sink sink);

  // Keys ascend.
  void Add(Key key, std::span<const std::byte> image);
  // Builds the levels above. A tree without rows is a root without rows. Returns the first id that was not used.
  PageId Finish();

 private:
  using Children = std::vector<std::pair<Key, PageId>>;  // separator, child

  void BeginPage(uint8_t level, Key lowest);
  void AddCell(Key key, std::span<const std::byte> cell);
  void EmitPage();
  void EmitRoot();

  const Options options_;
  const Sink sink_;
  PageId next_;
  SlottedPage page_;   // is next_
  Key lowest_ = 0;     // of page_
  Children children_;  // the pages of this level before page_
};

}  // namespace dbx::mm
