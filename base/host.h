// The host as the engine sees it: threads and their synchronisation, time, and randomness. Nothing else in the engine
// names the standard library's or the system's own for these.
//
// Here they are aliases and direct calls, at no cost. The simulation of the tests puts a header of the same name before
// this one (tests/simulation/seam/base/host.h), in which threads are fibres under a seeded scheduler that may switch at
// every access to an atomic, and time is virtual: a seed then reproduces a run, its crash and its recovery.
#pragma once

#include <emmintrin.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace dbx {

template <class T>
using Atomic = std::atomic<T>;
template <class T>
using AtomicRef = std::atomic_ref<T>;
using Mutex = std::mutex;
using ConditionVariable = std::condition_variable;
// Joins when it is destroyed.
using Thread = std::jthread;

namespace host {

inline void SleepFor(std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); }
// The sleeps of the calling thread end on time, not 50 us later.
inline void EndSleepsOnTime() { prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); }
// Another thread may have the processor.
inline void Yield() { sched_yield(); }
// A hint to the processor within a spin loop.
inline void Pause() { _mm_pause(); }

// Ticks at one rate on most processors; base/clock.h determines which, and the length of a tick. Not by __rdtsc: its
// header, <x86intrin.h>, brings all vector intrinsics into every file.
inline uint64_t TimeStamp() { return __builtin_ia32_rdtsc(); }

inline uint64_t MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Of the calling thread.
inline uint64_t ThreadCpuNanos() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

// A random number from the kernel, unpredictable.
inline uint64_t RandomNumber() {
  uint64_t number = 0;
  ssize_t bytes = 0;
  do {
    bytes = getrandom(&number, sizeof number, 0);
  } while (bytes < 0 && errno == EINTR);
  CHECK(bytes == sizeof number);
  return number;
}

}  // namespace host
}  // namespace dbx
