// Time for measuring: the processor's time-stamp counter, calibrated once at start-up against
// CLOCK_MONOTONIC, where the processor says that it ticks at one rate in all power states; else CLOCK_MONOTONIC
// itself. No frequency is read or parsed anywhere.
//
// Thread safe. Ticks of one process compare across its threads; they mean nothing in another process.
#pragma once

#include <cpuid.h>

#include <cstdint>

#include "base/host.h"

namespace dbx {

class Clock {
 public:
  // A reading to subtract from another one; not serialising, so a few instructions may slip across it.
  static uint64_t NowTicks() { return kScale.is_tsc ? host::TimeStamp() : MonotonicNanos(); }

  // The length of a span of ticks. Spans up to 2^63 ns do not overflow.
  static uint64_t ToNanos(uint64_t ticks) {
    // Debian's compilers know this type; it is not part of the standard.
    using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(ticks) * kScale.nanos_per_tick_2_32) >> 32);
  }
  static double ToSeconds(uint64_t ticks) { return static_cast<double>(ToNanos(ticks)) * 1e-9; }

  // Nanoseconds from a point that is fixed within the process.
  static uint64_t NowNanos() { return ToNanos(NowTicks()); }

  static uint64_t MonotonicNanos() { return host::MonotonicNanos(); }

  static bool IsTsc() { return kScale.is_tsc; }

 private:
  struct Scale {
    bool is_tsc;
    uint64_t nanos_per_tick_2_32;  // nanoseconds per tick times 2^32
  };

  static bool HasInvariantTsc() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0) return false;
    return (edx & (1u << 8)) != 0;
  }

  struct Reading {
    uint64_t ticks;
    uint64_t nanos;
  };

  // Both clocks at one moment: of a few attempts the one with the least time between the two readings of the counter,
  // because the thread may be descheduled in between.
  static Reading ReadBoth() {
    Reading best{};
    uint64_t best_gap = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
      const uint64_t before = host::TimeStamp();
      const uint64_t nanos = MonotonicNanos();
      const uint64_t gap = host::TimeStamp() - before;
      if (gap < best_gap) {
        best_gap = gap;
        best = {before + gap / 2, nanos};
      }
    }
    return best;
  }

  static Scale Calibrate() {
    constexpr uint64_t kCalibrationNanos = 4'000'000;  // errs by about 50 ns at each end: 25 millionths
    constexpr Scale kMonotonic{false, uint64_t{1} << 32};
    if (!HasInvariantTsc()) return kMonotonic;
    const Reading begin = ReadBoth();
    Reading end = begin;
    while (end.nanos - begin.nanos < kCalibrationNanos) end = ReadBoth();
    const uint64_t ticks = end.ticks - begin.ticks;
    // A counter below 100 MHz or above 100 GHz is no time-stamp counter (an emulator's, say).
    if (ticks < kCalibrationNanos / 10 || ticks > kCalibrationNanos * 100 * 10) return kMonotonic;
    const double nanos_per_tick = static_cast<double>(end.nanos - begin.nanos) / static_cast<double>(ticks);
    return {true, static_cast<uint64_t>(nanos_per_tick * 4294967296.0)};
  }

  static const Scale kScale;
};

inline const Clock::Scale Clock::kScale = Clock::Calibrate();

}  // namespace dbx
