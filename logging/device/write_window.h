// The writes that are in flight on one device, oldest first, and the prefix of them that is complete.
//
// Writes finish in any order; the durable prefix ends before the oldest unfinished one, however many behind it have
// finished. Cases: nothing in flight (prefix_end is the end of the last write), the oldest unfinished (the prefix
// stands still), the oldest finished (it and all finished ones behind it are retired). Threads: one, the stream's
// writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace dbx {

class WriteWindow {
 public:
  explicit WriteWindow(size_t capacity) : slots_(capacity) {}

  bool Full() const { return started_ - retired_ == slots_.size(); }
  bool Empty() const { return started_ == retired_; }

  // Takes a slot for the next write. Writes must be gapless; the first may start anywhere.
  size_t Start(uint64_t offset, uint64_t bytes) {
    CHECK(!Full());
    CHECK(started_ == 0 || offset == started_end_);
    if (started_ == 0) prefix_end_ = offset;
    started_end_ = offset + bytes;
    const size_t slot = started_++ % slots_.size();
    slots_[slot] = Slot{started_end_, false};
    return slot;
  }

  void Finish(size_t slot) {
    CHECK(!slots_[slot].finished);
    slots_[slot].finished = true;
    while (!Empty() && slots_[retired_ % slots_.size()].finished) {
      prefix_end_ = slots_[retired_ % slots_.size()].end;
      ++retired_;
    }
  }

  // Everything below is complete.
  uint64_t prefix_end() const { return prefix_end_; }

 private:
  struct Slot {
    uint64_t end = 0;
    bool finished = false;
  };

  std::vector<Slot> slots_;
  uint64_t started_ = 0;  // writes ever started; slot = number mod capacity
  uint64_t retired_ = 0;  // writes at the front that are finished
  uint64_t started_end_ = 0;
  uint64_t prefix_end_ = 0;
};

}  // namespace dbx
