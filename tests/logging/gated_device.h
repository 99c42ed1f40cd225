// A log whose reads begin and then wait until the test lets them through: a device that is as slow as it likes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {

class GatedDevice final : public ImageDevice {
 public:
  using ImageDevice::ImageDevice;

  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    std::unique_lock lock(mutex_);
    const size_t turn = begun_++;
    changed_.notify_all();
    changed_.wait(lock, [&] { return turn < let_through_; });
    const size_t bytes = ImageDevice::Read(offset, to);
    ++over_;
    return bytes;
  }

  // Reads that have begun so far; those that are over.
  size_t begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  size_t over() {
    const std::lock_guard lock(mutex_);
    return over_;
  }
  // False if they do not begin at all.
  bool AwaitBegun(size_t reads) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return begun_ >= reads; });
  }
  void LetThrough(size_t more) {
    const std::lock_guard lock(mutex_);
    let_through_ += more;
    changed_.notify_all();
  }
  static constexpr size_t kAll = SIZE_MAX / 2;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t begun_ = 0;
  size_t let_through_ = 0;
  size_t over_ = 0;
};

}  // namespace dbx::recovery_test
