#include "logging/device/background_read.h"

#include <mutex>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/thread_place.h"

namespace dbx {

BackgroundRead::~BackgroundRead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BackgroundRead::Start(Read read) {
  CHECK(!started());
  if (!thread_.joinable()) {
    try {
      thread_ = Thread([this] { Loop(); });
    } catch (const std::system_error&) {
      // No more threads: recovery continues without read-ahead.
      return ReadHere(std::move(read));
    }
  }
  {
    const std::lock_guard lock(mutex_);
    read_ = std::move(read);
    state_.store(State::kStarted, std::memory_order_release);
  }
  changed_.notify_one();
}

void BackgroundRead::ReadHere(Read read) {
  CHECK(!started());
  read_ = std::move(read);
  Run();
  state_.store(State::kDone, std::memory_order_release);
}

size_t BackgroundRead::Take() {
  CHECK(started());
  if (!done()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done(); });
  }
  // Relaxed: the thread does nothing until it sees kStarted, under the mutex.
  state_.store(State::kIdle, std::memory_order_relaxed);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return bytes_;
}

void BackgroundRead::Loop() {
  // A worker may have created this thread, to work meanwhile.
  const ThreadPlace place = ThreadPlace::OfProcess();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || state_.load(std::memory_order_relaxed) == State::kStarted; });
    if (stopping_) return;
    lock.unlock();
    Run();
    lock.lock();
    state_.store(State::kDone, std::memory_order_release);
    changed_.notify_one();
  }
}

void BackgroundRead::Run() noexcept {
  try {
    bytes_ = read_();
  } catch (...) {
    error_ = std::current_exception();
  }
}

}  // namespace dbx
