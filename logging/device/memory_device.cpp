#include "logging/device/memory_device.h"

#include <algorithm>
#include <random>

#include "base/check.h"
#include "logging/device/posix_file.h"

namespace dbx {

MemoryDevice::MemoryDevice(std::string path, std::vector<std::byte> image, Power power)
    : path_(std::move(path)), power_(std::move(power)), durable_(std::move(image)), current_(durable_) {}

void MemoryDevice::StartWrite(uint64_t offset, std::span<const std::byte> data) {
  const std::lock_guard guard(*power_);
  ThrowIfFailed();
  CHECK(!started_ || offset == started_end_);
  if (!started_) complete_end_ = offset;
  started_ = true;
  started_end_ = offset + data.size();
  if (current_.size() < started_end_) current_.resize(started_end_);
  std::copy(data.begin(), data.end(), current_.begin() + static_cast<ptrdiff_t>(offset));
  pending_.push_back({offset, data.size()});
  ++writes_;
  MaybeFail(write_fault_, "write", offset);
}

uint64_t MemoryDevice::Complete(bool wait) {
  const std::lock_guard guard(*power_);
  ThrowIfFailed();
  if (pending_.empty()) return complete_end_;
  ++syncs_;
  MaybeFail(sync_fault_, "sync", complete_end_);
  do {
    const Range range = pending_.front();
    pending_.pop_front();
    complete_end_ = range.offset + range.bytes;
    if (durable_.size() < complete_end_) durable_.resize(complete_end_);
    const auto from = current_.begin() + static_cast<ptrdiff_t>(range.offset);
    std::copy_n(from, range.bytes, durable_.begin() + static_cast<ptrdiff_t>(range.offset));
  } while (wait && !pending_.empty());
  return complete_end_;
}

size_t MemoryDevice::Read(uint64_t offset, std::span<std::byte> to) {
  const std::lock_guard guard(*power_);
  ThrowIfFailed();
  if (offset >= current_.size()) return 0;
  const size_t bytes = std::min<uint64_t>(to.size(), current_.size() - offset);
  std::copy_n(current_.begin() + static_cast<ptrdiff_t>(offset), bytes, to.begin());
  return bytes;
}

uint64_t MemoryDevice::SizeBytes() {
  const std::lock_guard guard(*power_);
  ThrowIfFailed();
  return current_.size();
}

std::vector<std::byte> MemoryDevice::CrashImage(Crash crash, uint64_t seed) {
  const std::lock_guard guard(*power_);
  std::vector<std::byte> image = durable_;
  if (crash == Crash::kDurableOnly) return image;
  std::mt19937_64 random(seed);
  enum { kOld, kNew, kZero, kGarbage, kFates };
  for (const Range& range : pending_) {
    for (uint64_t at = range.offset; at < range.offset + range.bytes; at += kSectorBytes) {
      const uint64_t end = std::min(at + kSectorBytes, range.offset + range.bytes);
      const uint64_t fate = random() % kFates;
      if (fate == kOld) continue;
      // What lies between the durable bytes and this sector reads as zeros, like any hole.
      if (image.size() < end) image.resize(end);
      for (uint64_t i = at; i < end; ++i) {
        const auto garbage = static_cast<std::byte>(random());
        image[i] = fate == kNew ? current_[i] : fate == kZero ? std::byte{0} : garbage;
      }
    }
  }
  return image;
}

void MemoryDevice::FailWrite(uint64_t nth, int error) {
  const std::lock_guard guard(*power_);
  write_fault_ = {nth, error};
}

void MemoryDevice::FailSync(uint64_t nth, int error) {
  const std::lock_guard guard(*power_);
  sync_fault_ = {nth, error};
}

uint64_t MemoryDevice::write_count() {
  const std::lock_guard guard(*power_);
  return writes_;
}

uint64_t MemoryDevice::sync_count() {
  const std::lock_guard guard(*power_);
  return syncs_;
}

void MemoryDevice::MaybeFail(Fault& fault, const char* verb, uint64_t offset) {
  if (fault.countdown == 0 || --fault.countdown > 0) return;
  try {
    ThrowErrno(verb, path_, offset, fault.error);
  } catch (const Error& failure) {
    failure_ = failure;
    throw;
  }
}

void MemoryDevice::ThrowIfFailed() const {
  if (failure_) throw Error(*failure_);
}

}  // namespace dbx
