#include "logging/device/emulated_channel.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "base/check.h"

namespace dbx {

EmulatedChannel::Carried EmulatedChannel::Carry(uint64_t now, uint64_t begin, ByteNanos amount, uint64_t device_rate) {
  const std::lock_guard lock(mutex_);
  ForgetUntil(now - std::min(now, kKnownNanos));
  ByteNanos coming = device_rate == 0 ? 0 : amount;  // until the device has transferred it
  ByteNanos buffered = amount - coming;
  uint64_t at = begin;
  while (coming + buffered > 0) {
    const Rest rest = RestAt(at);
    const uint64_t in = coming > 0 ? device_rate : 0;
    uint64_t out = rest.bytes_per_second;
    ByteNanos nanos = rest.end_nanos - at;
    if (coming > 0) nanos = std::min(nanos, coming / in);
    if (out > in) {
      if (buffered >= out - in) {
        nanos = std::min(nanos, buffered / (out - in));
      } else if (in == 0) {
        return {at, buffered};
      } else {  // the buffer is empty, or will be within one nanosecond
        if (buffered > 0) nanos = 1;
        out = in + static_cast<uint64_t>(buffered);
      }
    }
    const uint64_t end = at + static_cast<uint64_t>(nanos);
    Take(at, end, out);
    coming -= in * nanos;
    buffered = buffered + in * nanos - out * nanos;
    at = end;
  }
  return {at, 0};
}

EmulatedChannel::Rest EmulatedChannel::RestAt(uint64_t nanos) const {
  const auto next = taken_.upper_bound(nanos);
  const uint64_t taken = next == taken_.begin() ? 0 : std::prev(next)->second;
  return {bytes_per_second_ - taken, next == taken_.end() ? UINT64_MAX : next->first};
}

void EmulatedChannel::Take(uint64_t from, uint64_t to, uint64_t rate) {
  if (rate == 0) return;
  const auto first = SplitAt(from), behind = SplitAt(to);
  ASSERT(std::next(first) == behind);
  first->second += rate;
  ASSERT(first->second <= bytes_per_second_);
  JoinAt(behind);
  JoinAt(first);
}

EmulatedChannel::Steps::iterator EmulatedChannel::SplitAt(uint64_t nanos) {
  const auto next = taken_.lower_bound(nanos);
  if (next != taken_.end() && next->first == nanos) return next;
  return taken_.emplace_hint(next, nanos, next == taken_.begin() ? 0 : std::prev(next)->second);
}

void EmulatedChannel::JoinAt(Steps::iterator step) {
  const uint64_t before = step == taken_.begin() ? 0 : std::prev(step)->second;
  if (step->second == before) taken_.erase(step);
}

void EmulatedChannel::ForgetUntil(uint64_t nanos) {
  while (taken_.size() > 1 && std::next(taken_.begin())->first <= nanos) taken_.erase(taken_.begin());
}

}  // namespace dbx
