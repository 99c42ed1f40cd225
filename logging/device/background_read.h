// Reads on a thread of its own, one read at a time, so that its owner can do something else until a slow device has
// answered. LogReader has one for read-ahead, StripedDevice one per stripe.
//
// States, and the causes of their transitions:
//   kIdle     -> kStarted   Start
//   kIdle     -> kDone      ReadHere; Start where the system cannot create a thread
//   kStarted  -> kDone      the thread
//   kDone     -> kIdle      Take
//
// The thread starts with the first read that needs it and ends with the object, whose destructor waits for a read that
// is under way: the destination must exist as long.
//
// Threads: used by one thread at a time, not always the same.
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

  // Starts a read while none is started. Where the system cannot create a thread, it reads at once.
  void Start(Read read);
  // As Start, but in this thread, for short reads.
  void ReadHere(Read read);

  // Is a read started, and would Take return at once?
  bool started() const { return state_.load(std::memory_order_relaxed) != State::kIdle; }
  // Acquire: the bytes that the thread read are visible.
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
  // States that a thread waits for are set under mutex_. Release and acquire hand over the three below, too.
  Atomic<State> state_{State::kIdle};
  Read read_;
  size_t bytes_ = 0;
  std::exception_ptr error_;
  Thread thread_;
};

}  // namespace dbx
