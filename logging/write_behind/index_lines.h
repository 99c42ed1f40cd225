// What durable indexes would write (INDEX_LINES). The indexes of a heap's tables lie in DRAM and are found again after
// a restart, which flatters write-behind logging beside an engine whose indexes are in persistent memory. With this on
// each change of an index, a key that was not there or one that is deleted, also stores to some lines of the heap that
// hold nothing else, and they are written back and drained with the transaction's group.
//
// Threads: its worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "logging/write_behind/dirty_tuples.h"
#include "storage/heap/heap_format.h"

namespace dbx {

class IndexLines {
 public:
  IndexLines(uint32_t per_change, std::vector<std::byte*> lines) : per_change_(per_change), lines_(std::move(lines)) {}

  static bool IsIndexChange(const HeapSlot& installed) { return installed.older == nullptr || installed.absent(); }

  // Calls write_back(line) for each line that the change has stored to.
  void Change(uint64_t stamp, auto&& write_back) {
    for (uint32_t i = 0; i < per_change_; ++i) {
      next_ = (next_ + kStride) % lines_.size();
      std::memcpy(lines_[next_], &stamp, sizeof stamp);
      write_back(lines_[next_]);
    }
  }

 private:
  static constexpr size_t kStride = 7;  // two changes of an index are of two places, as a rule

  uint32_t per_change_;
  std::vector<std::byte*> lines_;
  size_t next_ = 0;
};

}  // namespace dbx
