// What a log writer and the threads that use its streams tell each other: they wake it, and it tells them that it has
// failed.
//
// Threads: any, except where a comment says otherwise.
#pragma once

#include <exception>

#include "base/host.h"

namespace dbx {

class WriterSignal {
 public:
  // Ends the writer's sleep, or the next one, if it does not sleep.
  void Wake();

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Threads that wait for the writer get `error`, unless there has been one before.
  void Fail(std::exception_ptr error);
  // Throws the error if the writer has failed.
  void ThrowIfFailed() const;

  // By the writer. Until it is woken; the first, for `nanos` at most.
  void SleepFor(uint64_t nanos);
  void Sleep();

 private:
  Mutex mutex_;
  ConditionVariable wake_;
  bool woken_ = false;  // guarded by mutex_
  Atomic<bool> failed_{false};
  std::exception_ptr error_;  // written once, under mutex_, before failed_
};

}  // namespace dbx
