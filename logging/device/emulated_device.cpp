#include "logging/device/emulated_device.h"

#include <algorithm>
#include <chrono>
#include <mutex>

namespace dbx {
namespace {

constexpr uint64_t kNanosPerSecond = 1'000'000'000;

}  // namespace

void DeviceClock::WaitUntil(uint64_t nanos) {
  for (uint64_t now = NowNanos(); now < nanos; now = NowNanos()) {
    if (nanos - now > kSpinNanosMax) {
      host::SleepFor(std::chrono::nanoseconds(nanos - now));
    } else {
      host::Pause();
    }
  }
}

uint64_t EmulatedDevice::Write(uint32_t file, uint64_t offset, uint64_t bytes, bool durable, uint64_t now) {
  const std::lock_guard lock(mutex_);
  return Transfer({file, offset}, bytes, durable ? profile_.flush_nanos : 0, now);
}

uint64_t EmulatedDevice::Read(uint32_t file, Reader& reader, uint64_t offset, uint64_t bytes, uint64_t now) {
  const std::lock_guard lock(mutex_);
  const uint64_t rate = profile_.AloneBytesPerSecond();
  if (offset == reader.end && rate != 0) {
    const uint64_t ahead_bytes = std::min(bytes, kReadAheadBytes);
    const uint64_t ahead_nanos = ahead_bytes * kNanosPerSecond / rate;
    now -= std::min(ahead_nanos, now);  // not into an earlier transfer: Transfer begins behind it
  }
  reader.end = offset + bytes;
  return Transfer({file, offset}, bytes, 0, now);
}

uint64_t EmulatedDevice::Flush(uint64_t now) {
  const std::lock_guard lock(mutex_);
  uint64_t& slot = *std::min_element(in_flight_.begin(), in_flight_.end());
  return slot = std::max({now, slot, transferred_nanos_}) + profile_.flush_nanos;
}

uint64_t EmulatedDevice::Transfer(Position from, uint64_t bytes, uint64_t flush_nanos, uint64_t now) {
  uint64_t& slot = *std::min_element(in_flight_.begin(), in_flight_.end());
  const uint64_t begin = std::max({now, slot, transferred_nanos_});
  const uint64_t seek_nanos = from == head_ ? 0 : profile_.seek_nanos;
  transferred_nanos_ = TransferEnd(bytes, begin + seek_nanos, now);
  head_ = {from.file, from.offset + bytes};
  return slot = transferred_nanos_ + flush_nanos;
}

uint64_t EmulatedDevice::TransferEnd(uint64_t bytes, uint64_t begin, uint64_t now) {
  const uint64_t rate = profile_.bytes_per_second;
  if (rate == 0 && channel_ == nullptr) return begin;
  const ByteNanos amount = ByteNanos{bytes} * kNanosPerSecond + byte_nanos_left_;
  byte_nanos_left_ = rate == 0 ? 0 : amount % rate;
  const ByteNanos whole = amount - byte_nanos_left_;
  if (channel_ == nullptr) return begin + static_cast<uint64_t>(whole / rate);
  const EmulatedChannel::Carried carried = channel_->Carry(now, begin, whole, rate);
  byte_nanos_left_ += carried.left;
  return carried.end_nanos;
}

}  // namespace dbx
