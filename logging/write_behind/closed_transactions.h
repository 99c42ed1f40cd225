// The transactions of one worker that are closed and that no record covers yet: their stamps, ascending, and what a
// record says of the last one that it covers. A record's c_p may lie below transactions that have closed since, so the
// worker's newest sequence number alone would claim too much, and a lost acknowledgement would not be found.
//
// Threads: the worker adds; one committer at a time removes.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.h"
#include "base/host.h"

namespace dbx {

class ClosedTransactions {
 public:
  // No fewer than transactions of a worker wait for their acknowledgement, so that it seldom is full.
  static constexpr uint64_t kEntries = 1 << 15;

  // By the worker. Not the other way round: only it adds.
  bool full() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) == kEntries;
  }
  // REQUIRES: not full.
  void Add(uint64_t stamp, uint64_t sequence) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    Entry& entry = entries_[tail % kEntries];
    entry.stamp.store(stamp, std::memory_order_relaxed);
    entry.sequence.store(sequence, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);
  }

  // Removes those with stamps up to `until` but for `listed`, which is of a long runner. Returns the number behind that
  // of the last one, or `before` if there is none.
  uint64_t RemoveUntil(uint64_t until, uint64_t listed, uint64_t before) {
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    uint64_t head = head_.load(std::memory_order_relaxed);
    for (; head < tail; ++head) {
      const Entry& entry = entries_[head % kEntries];
      const uint64_t stamp = entry.stamp.load(std::memory_order_relaxed);
      if (stamp > until || stamp == listed) break;
      before = entry.sequence.load(std::memory_order_relaxed) + 1;
    }
    head_.store(head, std::memory_order_release);
    return before;
  }

 private:
  struct Entry {
    Atomic<uint64_t> stamp, sequence;
  };

  Atomic<uint64_t> head_{0};
  Atomic<uint64_t> tail_{0};
  std::array<Entry, kEntries> entries_{};
};

}  // namespace dbx
