// Counters that one thread writes and others may read meanwhile, for statistics of a run that goes on.
//
// A plain word stays a plain word: its writer adds to it by a load and a store, without a locked instruction, and a
// reader gets some value that it had, not torn and not older than the last one it read. Nothing else is ordered by
// them. They are no part of base/host.h, as a statistic decides nothing: the simulation need not switch threads there.
#pragma once

#include <cstdint>

namespace dbx {

// By the one thread that writes the counter.
inline void AddLive(uint64_t& counter, uint64_t more) { __atomic_store_n(&counter, counter + more, __ATOMIC_RELAXED); }
// By any thread.
inline uint64_t ReadLive(const uint64_t& counter) { return __atomic_load_n(&counter, __ATOMIC_RELAXED); }

// The waits of one thread, the one that it is in included.
class LiveWaits {
 public:
  struct Reading {
    uint64_t count = 0;  // that have begun
    uint64_t ticks = 0;  // in all of them
  };

  // By the thread that waits.
  void Begin(uint64_t now_ticks) {
    AddLive(count_, 1);
    __atomic_store_n(&since_, now_ticks, __ATOMIC_RELAXED);
  }
  void End(uint64_t now_ticks) {
    const uint64_t waited = now_ticks - since_;
    __atomic_store_n(&since_, 0, __ATOMIC_RELAXED);
    // Release: a reader that sees this wait among the ended ones does not see it as the current one too.
    __atomic_store_n(&ended_ticks_, ended_ticks_ + waited, __ATOMIC_RELEASE);
  }

  // By any thread. A wait that ends meanwhile may be missing, and is in the next reading; none is counted twice.
  Reading Read(uint64_t now_ticks) const {
    const uint64_t ended = __atomic_load_n(&ended_ticks_, __ATOMIC_ACQUIRE);
    const uint64_t since = ReadLive(since_);
    return {ReadLive(count_), ended + (since != 0 && since < now_ticks ? now_ticks - since : 0)};
  }

 private:
  uint64_t count_ = 0;
  uint64_t ended_ticks_ = 0;
  uint64_t since_ = 0;  // 0: it does not wait
};

}  // namespace dbx
