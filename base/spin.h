// Waiting for another thread that is expected to be done in well under a microsecond.
//
// The waiter pauses, twice as long each time, and after a bounded number of pauses it yields the processor at every
// further round: with more threads than cores the thread it waits for may not be running. For waits that may last
// longer than a few thread switches: LongWait, which sleeps after these.
#pragma once

#include <chrono>

#include "base/host.h"

namespace dbx {

class SpinWait {
 public:
  // One round. The caller tests its condition between rounds.
  void Wait() {
    if (pauses_ > kPausesMax) {
      host::Yield();
      return;
    }
    for (int i = 0; i < pauses_; ++i) host::Pause();
    pauses_ *= 2;
  }
  bool yielding() const { return pauses_ > kPausesMax; }

 private:
  // 1 + 2 + ... + 64 pauses take a few microseconds, about as long as a thread switch.
  static constexpr int kPausesMax = 64;
  int pauses_ = 1;
};

class LongWait {
 public:
  // One round, as above.
  void Wait() {
    if (yields_ == kYieldsMax) return host::SleepFor(kSleep);
    yields_ += spin_.yielding();
    spin_.Wait();
  }

 private:
  // Each lets every other thread of the processor run for a while.
  static constexpr int kYieldsMax = 256;
  static constexpr std::chrono::microseconds kSleep{20};
  SpinWait spin_;
  int yields_ = 0;
};

}  // namespace dbx
