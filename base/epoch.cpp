#include "base/epoch.h"

#include <algorithm>

namespace dbx {

Epoch EpochClock::SafeEpoch() const {
  // The clock before the slots: a worker whose slot is found idle announces after that, and loads its commit
  // epoch later still, so it gets at least this epoch.
  uint64_t safe = now_.value.load(std::memory_order_seq_cst);
  // An idle slot compares above every epoch. Sequentially consistent loads pair with the exchange in
  // Announce and, as acquire, with the release in Leave.
  for (const auto& slot : slots_) safe = std::min(safe, slot.value.load(std::memory_order_seq_cst));
  return Epoch(safe);
}

EpochTicker::EpochTicker(EpochClock& clock, std::chrono::milliseconds period)
    : thread_([this, &clock, period] { Run(clock, period); }) {}

EpochTicker::~EpochTicker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EpochTicker::Run(EpochClock& clock, std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  // Deadlines instead of pauses, so that late wake-ups do not add up; a deadline long missed is dropped.
  const auto period_nanos = static_cast<uint64_t>(std::chrono::nanoseconds(period).count());
  uint64_t now = host::MonotonicNanos();
  uint64_t deadline = now + period_nanos;
  while (!wake_.wait_for(lock, std::chrono::nanoseconds(deadline - now), [this] { return stop_; })) {
    clock.Advance();
    now = host::MonotonicNanos();
    deadline = std::max(deadline + period_nanos, now);
  }
}

}  // namespace dbx
