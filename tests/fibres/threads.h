// The parts of base/host.h that are the same over any scheduler of fibres: threads, and waits for a condition.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace dbx::fibres {

// A thread that kStart runs as a fibre. Joins when it is destroyed.
template <auto kStart, auto kJoin>
class Thread {
 public:
  Thread() = default;
  template <class Body, class... Args>
  explicit Thread(Body&& body, Args&&... args)
      : id_(kStart(std::bind(std::forward<Body>(body), std::forward<Args>(args)...))), joinable_(true) {}
  Thread(Thread&& other) noexcept : id_(other.id_), joinable_(std::exchange(other.joinable_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    if (joinable_) join();
    id_ = other.id_;
    joinable_ = std::exchange(other.joinable_, false);
    return *this;
  }
  ~Thread() {
    if (joinable_) join();
  }
  bool joinable() const { return joinable_; }
  void join() {
    kJoin(id_);
    joinable_ = false;
  }

 private:
  uint32_t id_ = 0;
  bool joinable_ = false;
};

// The waits of the condition variable Self, by its WaitFor(lock, nanos), which may return early.
template <class Self, class Mutex, auto kNowNanos>
class Waits {
 public:
  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate&& predicate) {
    while (!predicate()) self().WaitFor(lock, UINT64_MAX);
  }
  template <class Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, std::chrono::nanoseconds time, Predicate&& predicate) {
    const uint64_t deadline = kNowNanos() + static_cast<uint64_t>(std::max<int64_t>(time.count(), 0));
    while (!predicate()) {
      const uint64_t now = kNowNanos();
      if (now >= deadline) return false;
      self().WaitFor(lock, deadline - now);
    }
    return true;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace dbx::fibres
