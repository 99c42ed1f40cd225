// What base/host.h is under the instrument: threads are fibres on cores of the model, time is the cores' (cores.h), and
// atomics are the standard library's, which the compiler's callbacks tell of. Found before the product's header,
// because this folder comes first on the include path.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "tests/fibres/threads.h"
#include "tests/instruments/line_transfers/instrument.h"

namespace dbx {

template <class T>
using Atomic = std::atomic<T>;
template <class T>
using AtomicRef = std::atomic_ref<T>;

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() {
    while (locked_.exchange(1) != 0) lines::BlockOn(this);
  }
  bool try_lock() { return locked_.exchange(1) == 0; }
  void unlock() {
    locked_.store(0);
    if (lines::WakeOne(this)) lines::OnWake();
  }

 private:
  std::atomic<uint32_t> locked_{0};
};

class ConditionVariable : public fibres::Waits<ConditionVariable, Mutex, lines::NowNanos> {
 public:
  void notify_one() {
    if (lines::WakeOne(this)) lines::OnWake();
  }
  void notify_all() {
    if (lines::WakeAll(this)) lines::OnWake();
  }

 private:
  friend class fibres::Waits<ConditionVariable, Mutex, lines::NowNanos>;

  // Nothing can happen between the unlocking, which loses no turn, and the wait.
  void WaitFor(std::unique_lock<Mutex>& lock, uint64_t nanos) {
    const uint64_t turn = std::exchange(lines::turn_ends_at_picos, UINT64_MAX);
    lock.unlock();
    lines::turn_ends_at_picos = turn;
    lines::BlockOn(this, nanos);
    lock.lock();
  }
};

using Thread = fibres::Thread<lines::StartFibre, lines::JoinFibre>;

namespace host {

inline void SleepFor(std::chrono::nanoseconds time) {
  lines::SleepFor(static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)));
}
inline void EndSleepsOnTime() {}
inline void Yield() { lines::OnYield(); }
inline void Pause() { lines::OnPause(); }
inline uint64_t TimeStamp() { return lines::NowNanos(); }
inline uint64_t MonotonicNanos() { return lines::NowNanos(); }
// As if the thread never slept.
inline uint64_t ThreadCpuNanos() { return lines::NowNanos(); }
// The same in every run.
inline uint64_t RandomNumber() {
  static uint64_t number = 0;
  return number += 0x9e3779b97f4a7c15;
}

}  // namespace host
}  // namespace dbx
