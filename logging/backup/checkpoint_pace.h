// How fast a checkpoint is written beside transactions: while it copies, its thread works for a while and rests in
// between, so that it uses about a share of a processor. With as many workers as cores, each moment in which it works
// is one in which a worker does not. Time in which it sleeps until a device is done counts as rest.
//
// Threads: the one that writes the checkpoint.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/check.h"
#include "base/host.h"

namespace dbx {

class CheckpointPace {
 public:
  // The share in percent; 100: it never rests.
  explicit CheckpointPace(uint32_t cpu_percent) : percent_(cpu_percent) {
    CHECK(percent_ >= 1 && percent_ <= 100);
    Restart();
  }

  // A checkpoint begins.
  void Restart() {
    from_nanos_ = host::MonotonicNanos();
    from_cpu_nanos_ = host::ThreadCpuNanos();
  }
  // What is left to rest of a while of `passed` nanoseconds in which the thread worked for `worked`.
  static constexpr uint64_t RestNanos(uint32_t percent, uint64_t worked, uint64_t passed) {
    const uint64_t due = worked * 100 / percent;
    return due - std::min(due, passed);
  }
  // Where the thread holds nothing that another may wait for. Ends early if `stopped` says that the run ends.
  void Rest(const std::function<bool()>& stopped) {
    if (percent_ == 100) return;
    const uint64_t passed = host::MonotonicNanos() - from_nanos_;
    if (passed < kWorkNanos) return;
    const uint64_t worked = host::ThreadCpuNanos() - from_cpu_nanos_;
    if (worked < kWorkNanos) return;
    for (uint64_t left = RestNanos(percent_, worked, passed); left > 0 && !stopped();) {
      const uint64_t slice = std::min(left, kSliceNanos);
      host::SleepFor(std::chrono::nanoseconds(slice));
      left -= slice;
    }
    Restart();
  }

 private:
  static constexpr uint64_t kWorkNanos = 500'000;  // from one rest to the next, at least
  static constexpr uint64_t kSliceNanos = 5'000'000;

  const uint32_t percent_;
  uint64_t from_nanos_ = 0;
  uint64_t from_cpu_nanos_ = 0;
};

}  // namespace dbx
