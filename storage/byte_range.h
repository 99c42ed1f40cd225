// Ranges of a tuple's bytes, such as those that a transaction has changed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dbx {

struct ByteRange {
  uint32_t offset;
  uint32_t end;  // behind the last byte; above `offset`
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Sorts them, and joins those with at most `gap` bytes between them: then they ascend, with more between any two.
inline void JoinRanges(std::vector<ByteRange>& ranges, uint32_t gap) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  size_t kept = 0;
  for (const ByteRange& range : ranges) {
    if (kept > 0 && range.offset <= ranges[kept - 1].end + gap) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace dbx
