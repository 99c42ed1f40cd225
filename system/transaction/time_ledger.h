// A breakdown of a worker's time (Taurus, Fig. 15): a switch that is compiled in (TIME_PARTS).
//
//   work       the procedure's own code; under two-phase locking with the before-images
//   tracking   the concurrency control: look-up, locks, read and write sets, validation, install, release
//   metadata   the log metadata of accessed rows: LSN vectors cleared, read, merged and published
//   record     reserving a place in the log, waiting for it, and building the record
//   aborted    aborted attempts, and the back-off after them
//   rest       between transactions: the next call, acknowledgements, waiting for the log
//
// Parts exclude each other: within an access, the log's work on metadata does not count as tracking. A clock is read
// whenever the part changes, several times per access, so that a run with a ledger is slower than one without: its
// shares are valid, its throughput is not. The cost of the clock readings is measured once and subtracted. Owned by one
// worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "system/result.h"

namespace dbx {

class TimeLedger {
 public:
  // From now on time counts towards `part`. Returns the part before.
  TimePart Enter(TimePart part) {
    const uint64_t now = Clock::NowTicks();
    ticks_of_attempt_[Index(part_)] += now - since_;
    ++changes_of_attempt_[Index(part_)];
    since_ = now;
    return std::exchange(part_, part);
  }

  // The time since the last call, or since Restart, belongs to one attempt.
  void EndAttempt(bool in_vain) {
    for (size_t i = 0; i < kTimeParts; ++i) {
      // The time before an attempt is attributed by the outcome of the previous one.
      const bool aborted = i == Index(TimePart::kRest) ? after_one_in_vain_ : in_vain;
      const size_t part = aborted ? Index(TimePart::kAborted) : i;
      ticks_[part] += std::exchange(ticks_of_attempt_[i], 0);
      changes_[part] += std::exchange(changes_of_attempt_[i], 0);
    }
    after_one_in_vain_ = in_vain;
  }

  void Restart() { *this = TimeLedger(); }

  // Nanoseconds by part since Restart, without the cost of reading the clock.
  TimeParts parts() const {
    TimeParts parts;
    for (size_t i = 0; i < kTimeParts; ++i) {
      const uint64_t reading = std::min(ticks_[i], changes_[i] * ReadingTicks());
      parts[i] = static_cast<double>(Clock::ToNanos(ticks_[i] - reading));
    }
    return parts;
  }

 private:
  static size_t Index(TimePart part) { return static_cast<size_t>(part); }

  // Of one Enter, by the quickest of many rounds.
  static uint64_t ReadingTicks() {
    static const uint64_t ticks = [] {
      constexpr int kRounds = 100, kChanges = 100;
      uint64_t least = std::numeric_limits<uint64_t>::max();
      for (int round = 0; round < kRounds; ++round) {
        TimeLedger ledger;
        for (int i = 0; i < kChanges; ++i) ledger.Enter(TimePart::kWork);
        const auto& measured = ledger.ticks_of_attempt_[Index(TimePart::kWork)];
        // The first Enter counts towards kRest.
        least = std::min(least, measured / (kChanges - 1));
      }
      return least;
    }();
    return ticks;
  }

  TimePart part_ = TimePart::kRest;
  bool after_one_in_vain_ = false;
  uint64_t since_ = Clock::NowTicks();
  std::array<uint64_t, kTimeParts> ticks_of_attempt_{};
  std::array<uint64_t, kTimeParts> changes_of_attempt_{};
  std::array<uint64_t, kTimeParts> ticks_{};
  std::array<uint64_t, kTimeParts> changes_{};
};

// Until the end of its scope time counts towards one part.
class TimeSpan {
 public:
  TimeSpan(TimeLedger& ledger, TimePart part) : ledger_(ledger), before_(ledger.Enter(part)) {}
  ~TimeSpan() { ledger_.Enter(before_); }
  TimeSpan(const TimeSpan&) = delete;
  TimeSpan& operator=(const TimeSpan&) = delete;

 private:
  TimeLedger& ledger_;
  const TimePart before_;
};

}  // namespace dbx
