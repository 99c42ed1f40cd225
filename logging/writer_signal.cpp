#include "logging/writer_signal.h"

#include <chrono>
#include <mutex>
#include <utility>

namespace dbx {

void WriterSignal::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

void WriterSignal::Fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_release);
}

void WriterSignal::ThrowIfFailed() const {
  if (failed()) std::rethrow_exception(error_);
}

void WriterSignal::SleepFor(uint64_t nanos) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::nanoseconds(nanos), [this] { return woken_; });
  woken_ = false;
}

void WriterSignal::Sleep() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return woken_; });
  woken_ = false;
}

}  // namespace dbx
