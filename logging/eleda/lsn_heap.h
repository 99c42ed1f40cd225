// The LSN-heap (ELEDA, section 4.1): a binary min-heap with the first pending LSN of each grasshopper list that has
// one. Owned by the ELEDA worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"

namespace dbx {

class LsnHeap {
 public:
  struct Entry {
    Lsn lsn{};
    uint32_t list = 0;
  };

  explicit LsnHeap(size_t lists) { entries_.reserve(lists); }

  bool empty() const { return entries_.empty(); }
  const Entry& top() const { return entries_.front(); }
  void Clear() { entries_.clear(); }

  void Insert(const Entry& entry) {
    size_t at = entries_.size();
    entries_.push_back(entry);
    for (; at > 0 && entry.lsn < entries_[(at - 1) / 2].lsn; at = (at - 1) / 2) Move((at - 1) / 2, at);
    entries_[at] = entry;
  }

  // The top's list continues with `lsn`.
  void ReplaceTop(Lsn lsn) { SiftDown({lsn, top().list}); }

  void Pop() {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) SiftDown(last);
  }

  // Entries that changed their level, of all calls.
  uint64_t moves() const { return moves_; }

 private:
  void Move(size_t from, size_t to) {
    entries_[to] = entries_[from];
    ++moves_;
  }
  void SiftDown(const Entry& entry) {
    size_t at = 0;
    for (size_t child = 1; child < entries_.size(); child = 2 * at + 1) {
      if (child + 1 < entries_.size() && entries_[child + 1].lsn < entries_[child].lsn) ++child;
      if (entry.lsn <= entries_[child].lsn) break;
      Move(child, at);
      at = child;
    }
    entries_[at] = entry;
  }

  std::vector<Entry> entries_;
  uint64_t moves_ = 0;
};

}  // namespace dbx
