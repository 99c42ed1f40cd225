// Where a worker has found the leaves of a tree, so that it need not pin the inner pages again: copies of what pages of
// level 1 have said.
//
// A copy may be old, and the page that it was made from may be another master's by now. It leads to the leaf of a key
// nevertheless, or to a leaf left of it, as an older version of the page does (Lehman and Yao): separators are the
// lowest keys of their children, which never change, and pages neither merge nor are used again. The caller looks at
// the leaf's high key, and descends if it says that the leaf was split.
//
// Not for readers of older versions of pages: a leaf may be younger than the version that they read.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "multi_master/page/slotted_page.h"

namespace dbx::mm {

class LeafHints {
 public:
  // A leaf that has the key, or is left of the one that has it. PageId(): it is not known.
  PageId Find(Key key) const {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), key, [](Key k, const Part& p) { return k < p.low; });
    if (part == parts_.begin() || ((--part)->has_high && key >= part->high)) return PageId();
    const auto child = std::upper_bound(part->children.begin(), part->children.end(), key,
                                        [](Key k, const Child& c) { return k < c.first; });
    return (child - 1)->second;
  }

  // `page` is of level 1.
  void Learn(const SlottedPage& page) {
    const Key low = page.KeyAt(0);
    auto part = std::lower_bound(parts_.begin(), parts_.end(), low, [](const Part& p, Key k) { return p.low < k; });
    if (part == parts_.end() || part->low != low) {
      if (parts_.size() == kPartsMax) parts_.clear(), part = parts_.end();
      part = parts_.insert(part, Part());
    }
    part->low = low;
    part->has_high = page.has_right();
    part->high = page.high_key();
    part->children.clear();
    for (uint32_t slot = 0; slot < page.slots(); ++slot) {
      part->children.emplace_back(page.KeyAt(slot), page.ChildAt(slot));
    }
  }

 private:
  using Child = std::pair<Key, PageId>;  // separator, child
  struct Part {
    Key low = 0;
    bool has_high = false;
    Key high = 0;
    std::vector<Child> children;
  };
  // Of 14 KiB each at most; beyond it they are learnt anew.
  static constexpr size_t kPartsMax = 256;

  std::vector<Part> parts_;  // by low
};

}  // namespace dbx::mm
