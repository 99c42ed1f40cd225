// Reads on a thread of its own, one read at a time, so that its owner can do something else until a slow device has
// answered. LogReader has one that is ahead of what it cuts, StripedDevice one per stripe.
//
// States, and who moves on:
//   kIdle     -> kStarted   Start
//   kIdle     -> kDone      ReadHere; Start where the system has no thread to give
//   kStarted  -> kDone      the thread
//   kDone     -> kIdle      Take
//
// The thread starts with the first read that needs it and ends with the object, whose destructor waits for a read that
// is under way: the memory that is read into must live as long.
//
// Threads: one at a time uses it; that need not always be the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "base/host.h"

namespace dbx {

class BackgroundRead {
 public:
  // Returns the number of bytes; may throw.
  using Read = std::function<size_t()>;

  BackgroundRead() = default;
  ~BackgroundRead();
  BackgroundRead(const BackgroundRead&) = delete;
  BackgroundRead& operator=(const BackgroundRead&) = delete;

  // Starts a read while none is started. Where the system has no thread to give, it reads at once.
  void Start(Read read);
  // As Start, but in this thread, for what is not worth another one.
  void ReadHere(Read read);

  // Is there something to take, and would Take return at once?
  bool started() const { return state_.load(std::memory_order_relaxed) != State::kIdle; }
  // Acquire: what the thread wrote before it said so.
  bool done() const { return state_.load(std::memory_order_acquire) == State::kDone; }

  // Waits for the read that was started: the number of bytes. Throws what the read threw; either way the next one can
  // be started.
  size_t Take();

 private:
  enum class State : uint8_t { kIdle, kStarted, kDone };

  void Loop();
  void Run() noexcept;

  Mutex mutex_;
  ConditionVariable changed_;  // to kStarted or kDone, or stopping_: only one side waits at a time
  bool stopping_ = false;      // guarded by mutex_
  // Changed to what somebody waits for under mutex_. Release and acquire hand over the three below, too.
  Atomic<State> state_{State::kIdle};
  Read read_;
  size_t bytes_ = 0;
  std::exception_ptr error_;
  Thread thread_;
};

}  // namespace dbx
