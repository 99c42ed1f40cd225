// Whether a process still runs: a counter that it shares with its parent, and moves now and then.
//
// Threads: Beat by one of the child's; the rest by the parent's.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/host.h"

namespace dbx {

class Heartbeat {
 public:
  // Before the fork. Throws Error (kNoSpace).
  Heartbeat();
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // In the child: BeatOfThisProcess moves this one from now on.
  void BelongsToThisProcess();
  // 0: never yet.
  uint64_t count() const;

 private:
  // Relaxed: nothing is read that the other process has written before.
  Atomic<uint64_t>* count_;
};

// Nothing in a process that has none.
void BeatOfThisProcess();

// For how long a counter has not moved, seen by an observer that looks again and again. A time in which the observer
// itself did not look, as it was stopped, too, counts as one of kLookMax.
class Silence {
 public:
  static constexpr std::chrono::milliseconds kLookMax{500};

  // A count of 0 has not begun, and is no silence.
  std::chrono::nanoseconds Observe(uint64_t count, uint64_t now_nanos);

 private:
  uint64_t count_ = 0;
  uint64_t looked_nanos_ = 0;
  std::chrono::nanoseconds silent_{0};
};

}  // namespace dbx
