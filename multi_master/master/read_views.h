// The versions of the database that a master's statements read: TVs in use (Taurus MM, section 5.1.3).
//
// A statement that reads without locks begins with a TV and registers it until it ends. What this master tells as its
// least TV is a lower bound of all that are registered and of all that will be: a TV is taken under the latch under
// which the bound is computed, and how far logs are applied only grows. Below the least TV of all masters Page Stores
// fold versions, after-lists are pruned and ENDs are forgotten.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "base/host.h"
#include "multi_master/master/master_log.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

struct ReadCounters {
  uint64_t versioned = 0;  // statements that began without locks
  uint64_t rerun = 0;      // of those: invalid, so they ran again with locks
  uint64_t strict = 0;     // transactions that waited for the other masters' answers
};

class ReadViews {
 public:
  explicit ReadViews(const MasterLog& log) : log_(log) {}

  // A statement's TV, registered as long as this lives.
  class Use {
   public:
    explicit Use(ReadViews& views);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    const ReadView& view() const { return view_; }

   private:
    friend class ReadViews;
    ReadViews& views_;
    ReadView view_;
  };

  // No TV of this master, now or later, lacks anything of it.
  VsVector Least() const;

  // A statement was invalid, and runs again with locks.
  void CountRerun() { rerun_.fetch_add(1, std::memory_order_relaxed); }
  void CountStrict() { strict_.fetch_add(1, std::memory_order_relaxed); }
  ReadCounters counters() const {
    return {versioned_.load(std::memory_order_relaxed), rerun_.load(std::memory_order_relaxed),
            strict_.load(std::memory_order_relaxed)};
  }

 private:
  const MasterLog& log_;
  mutable Mutex latch_;
  std::vector<const Use*> in_use_;
  // Relaxed counters.
  Atomic<uint64_t> versioned_{0};
  Atomic<uint64_t> rerun_{0};
  Atomic<uint64_t> strict_{0};
};

}  // namespace dbx::mm
