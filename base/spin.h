// Waiting for another thread that is expected to be done in well under a microsecond.
//
// The waiter pauses, twice as long each time, and after a bounded number of pauses it hands the processor
// over at every further round: with more threads than cores the thread it waits for may not be running.
// Whoever may wait for longer than a few thread switches should sleep instead.
#pragma once

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
  // 1 + 2 + ... + 64 pauses come to a few microseconds, about what a switch of threads costs.
  static constexpr int kPausesMax = 64;
  int pauses_ = 1;
};

}  // namespace dbx
