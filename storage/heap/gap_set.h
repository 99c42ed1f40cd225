// Commit-timestamp gaps (Arulraj et al., PVLDB 10(4), section 4.3): the stamps of transactions that count for nothing,
// as half-open ranges. A restart adds the stamps that the last life had promised and not made durable; a range is
// removed when no slot bears a stamp of it any more.
//
// The paper's gap (c_p, c_d) is open at both ends, or closed, by the figure; here it is [c_p + 1, c_d): c_p was
// committed, and c_d has not been promised (docs/errata.md).
//
// Threads: none; constant while others read it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace dbx {

class GapSet {
 public:
  struct Gap {
    uint64_t low, high;  // low <= stamp < high
    bool operator==(const Gap&) const = default;
  };

  // Joins gaps that touch or overlap.
  void Add(Gap gap) {
    if (gap.low >= gap.high) return;
    auto from =
        std::lower_bound(gaps_.begin(), gaps_.end(), gap.low, [](const Gap& a, uint64_t b) { return a.high < b; });
    auto to = from;
    for (; to != gaps_.end() && to->low <= gap.high; ++to) {
      gap.low = std::min(gap.low, to->low);
      gap.high = std::max(gap.high, to->high);
    }
    gaps_.insert(gaps_.erase(from, to), gap);
  }

  bool Contains(uint64_t stamp) const {
    const auto at =
        std::upper_bound(gaps_.begin(), gaps_.end(), stamp, [](uint64_t a, const Gap& b) { return a < b.high; });
    return at != gaps_.end() && at->low <= stamp;
  }

  bool empty() const { return gaps_.empty(); }
  void Clear() { gaps_.clear(); }
  const std::vector<Gap>& gaps() const { return gaps_; }  // ascending, none touches the next

 private:
  std::vector<Gap> gaps_;
};

}  // namespace dbx
