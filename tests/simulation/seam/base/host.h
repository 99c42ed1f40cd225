// What base/host.h is in the simulation: the same names over fibres, virtual time and seeded randomness. It is found
// before the product's header, because the simulation is compiled with this folder first on the include path.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>

#include "tests/fibres/threads.h"
#include "tests/simulation/scheduler.h"

namespace dbx {

// One thread runs all fibres, so plain accesses do; a fibre may be interrupted before each.
template <class T>
class Atomic {
 public:
  static constexpr bool is_always_lock_free = true;
  constexpr Atomic() noexcept = default;
  constexpr Atomic(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const {
    sim::Step();
    return value_;
  }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    value_ = value;
  }
  operator T() const { return load(); }  // NOLINT: as std::atomic
  T operator=(T value) {
    store(value);
    return value;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    return std::exchange(value_, value);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst,
                             std::memory_order failure = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired, order, failure);
  }
  T fetch_add(T more, std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    return std::exchange(value_, static_cast<T>(value_ + more));
  }
  T fetch_sub(T less, std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    return std::exchange(value_, static_cast<T>(value_ - less));
  }
  T fetch_or(T bits, std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    return std::exchange(value_, static_cast<T>(value_ | bits));
  }
  T fetch_and(T bits, std::memory_order = std::memory_order_seq_cst) {
    sim::Step();
    return std::exchange(value_, static_cast<T>(value_ & bits));
  }

 private:
  T value_{};
};

template <class T>
class AtomicRef {
 public:
  explicit AtomicRef(T& value) : atomic_(reinterpret_cast<Atomic<T>&>(value)) {
    static_assert(sizeof(Atomic<T>) == sizeof(T));
  }
  T load(std::memory_order order = std::memory_order_seq_cst) const { return atomic_.load(order); }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) const { atomic_.store(value, order); }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) const {
    return atomic_.exchange(value, order);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst) const {
    return atomic_.compare_exchange_weak(expected, desired, order);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst) const {
    return atomic_.compare_exchange_strong(expected, desired, order);
  }
  T fetch_add(T more, std::memory_order order = std::memory_order_seq_cst) const {
    return atomic_.fetch_add(more, order);
  }
  T fetch_or(T bits, std::memory_order order = std::memory_order_seq_cst) const {
    return atomic_.fetch_or(bits, order);
  }

 private:
  Atomic<T>& atomic_;
};

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() {
    sim::Step();
    while (locked_) {
      ++waiting_;
      sim::BlockOn(this);
      --waiting_;
    }
    locked_ = true;
  }
  bool try_lock() {
    sim::Step();
    return !std::exchange(locked_, true);
  }
  void unlock() {
    locked_ = false;
    if (waiting_ > 0) sim::WakeAll(this);
    sim::Step();
  }

 private:
  bool locked_ = false;
  uint32_t waiting_ = 0;  // too many, if a fibre that waited was killed
};

class ConditionVariable : public fibres::Waits<ConditionVariable, Mutex, sim::NowNanos> {
 public:
  void notify_one() {
    sim::Step();
    sim::WakeOne(this);
  }
  void notify_all() {
    sim::Step();
    sim::WakeAll(this);
  }

 private:
  friend class fibres::Waits<ConditionVariable, Mutex, sim::NowNanos>;

  // Unlocking and falling asleep are one step, as of any condition variable.
  void WaitFor(std::unique_lock<Mutex>& lock, uint64_t nanos) {
    if (sim::WakesSpuriously()) nanos = std::min<uint64_t>(nanos, sim::Random() % 1000);
    const int64_t left = std::exchange(sim::steps_left, INT64_MAX);
    lock.unlock();
    sim::steps_left = left;
    sim::BlockOn(this, nanos);
    lock.lock();
  }
};

using Thread = fibres::Thread<sim::StartFibre, sim::JoinFibre>;

namespace host {

inline void SleepFor(std::chrono::nanoseconds time) {
  sim::SleepFor(static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)));
}
inline void EndSleepsOnTime() {}
inline void Yield() { sim::YieldTurn(1000); }
// A spin loop pauses many times before it yields: most pauses only take time.
inline void Pause() {
  sim::Step();
  if (sim::Random() % 8 == 0) sim::YieldTurn(200);
}
inline uint64_t TimeStamp() {
  sim::Step();
  return sim::NowNanos();
}
inline uint64_t MonotonicNanos() { return TimeStamp(); }
// As if the thread never slept.
inline uint64_t ThreadCpuNanos() { return TimeStamp(); }
inline uint64_t RandomNumber() { return sim::Random(); }

}  // namespace host
}  // namespace dbx
