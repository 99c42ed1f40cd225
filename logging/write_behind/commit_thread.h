// Commits groups beside the workers, where a drain of the heap takes as long as a write of a device: they run
// transactions meanwhile, which the next group commits together. Fast memory needs no such thread: a worker that finds
// a commit due is done with it sooner than another thread could be woken.
//
// Threads: made and destroyed by one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/host.h"
#include "logging/write_behind/group_commit.h"

namespace dbx {

class CommitThread {
 public:
  // From one commit to the next, if there is anything to commit, at least `interval_us`. `commits` outlives this.
  CommitThread(GroupCommit& commits, uint64_t interval_us)
      : commits_(commits), interval_nanos_(interval_us * 1000), thread_([this] { Run(); }) {}
  // Returns behind its last commit.
  ~CommitThread() {
    stop_.store(true);
    thread_.join();
  }
  CommitThread(const CommitThread&) = delete;
  CommitThread& operator=(const CommitThread&) = delete;

 private:
  static constexpr uint64_t kLongestSleepNanos = 1'000'000;  // until it sees that it is to stop
  static constexpr uint64_t kIdleNanos = 20'000;             // from one look for something to commit to the next

  void Run() {
    host::EndSleepsOnTime();
    try {
      while (!stop_.load()) {
        const uint64_t begin = host::MonotonicNanos();
        const bool committed = commits_.has_uncommitted() && commits_.Commit();
        SleepUntil(begin + (committed ? interval_nanos_ : kIdleNanos));
      }
    } catch (...) {
      // Workers find it in `commits`, which keeps it.
    }
  }

  void SleepUntil(uint64_t nanos) const {
    for (uint64_t now = host::MonotonicNanos(); now < nanos && !stop_.load(); now = host::MonotonicNanos()) {
      host::SleepFor(std::chrono::nanoseconds(std::min(nanos - now, kLongestSleepNanos)));
    }
  }

  GroupCommit& commits_;
  const uint64_t interval_nanos_;
  Atomic<bool> stop_{false};
  Thread thread_;  // last: it uses the others
};

}  // namespace dbx
