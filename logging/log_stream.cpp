#include "logging/log_stream.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/clock.h"
#include "base/host.h"
#include "base/spin.h"

namespace dbx {
namespace {

using format::kBlockBytes;

constexpr std::chrono::microseconds kSpaceWait{20};

constexpr uint32_t kMinPadBytes = sizeof(format::RecordHeader) + sizeof(format::PadBody);

// How long a PAD at `position` is, so that it ends a block.
constexpr uint32_t PadBytesAt(Lsn position) {
  auto bytes = static_cast<uint32_t>(kBlockBytes - position.value() % kBlockBytes);
  return bytes < kMinPadBytes ? bytes + static_cast<uint32_t>(kBlockBytes) : bytes;
}

}  // namespace

LogStream::LogStream(uint32_t index, uint32_t salt, uint64_t ring_bytes, uint64_t max_record_bytes, uint32_t slots,
                     std::unique_ptr<BlockDevice> device, uint64_t& persistent, Lsn start_lsn)
    : index_(index),
      salt_(salt),
      ring_(RingBytes(ring_bytes)),
      max_record_bytes_(std::min<uint64_t>(max_record_bytes, ring_.size_bytes() / 4)),
      device_(std::move(device)),
      persistent_(persistent),
      start_lsn_(start_lsn),
      started_until_(start_lsn),
      reserved_until_(start_lsn.value()) {
  CHECK(start_lsn == format::BlockBelow(start_lsn));
  persistent_ = start_lsn.value();
  SetSlots(slots);
}

void LogStream::SetSlots(uint32_t count) {
  slots_ = std::vector<Slot>(count);
  space_waits_ = std::vector<CachePadded<LiveWaits>>(count);
  for (Slot& slot : slots_) {
    slot.free_until = start_lsn_ + ring_.size_bytes();
    slot.last_end = start_lsn_;
  }
}

void LogStream::StartWriter(WriterSignal& writer) {
  writer_ = &writer;
  if (tracker_ != nullptr) tracker_->Start();
}

void LogStream::ThrowIfFailed() const { writer_->ThrowIfFailed(); }

void LogStream::AwaitSpace(Slot& slot, const Place& place) {
  // The worker's copy of how far the ring is free may be old: that is no wait.
  if (!times_space_waits_ || place.end() <= FreeUntil()) return AwaitFreeSpace(slot, place);
  LiveWaits& waits = space_waits_[static_cast<size_t>(&slot - slots_.data())].value;
  waits.Begin(Clock::NowTicks());
  AwaitFreeSpace(slot, place);
  waits.End(Clock::NowTicks());
}

void LogStream::AwaitFreeSpace(Slot& slot, const Place& place) {
  SpinWait wait;
  for (bool woken = false;; woken = true) {
    slot.free_until = FreeUntil();
    if (place.end() <= slot.free_until) return;
    writer_->ThrowIfFailed();
    if (!woken) writer_->Wake();
    // Yield: the log writer needs the CPU to free ring space.
    if (wait.yielding()) {
      host::SleepFor(kSpaceWait);
    } else {
      wait.Wait();
    }
  }
}

void LogStream::WakeWriter() { writer_->Wake(); }

uint64_t LogStream::txn_count() const {
  return std::accumulate(slots_.begin(), slots_.end(), uint64_t{0},
                         [](uint64_t sum, const Slot& slot) { return sum + slot.txn_count; });
}

Lsn LogStream::ReadyUntil() const {
  if (tracker_ != nullptr) return tracker_->FilledUntil();
  // This load comes first: see the head of log_stream.h.
  uint64_t ready = reserved_until_.load(std::memory_order_acquire);
  for (const Slot& slot : slots_) ready = std::min(ready, slot.filling_from.load(std::memory_order_acquire));
  return Lsn(ready);
}

// Completes a record of the stream itself, not of a transaction, whose body is in place.
void LogStream::SealOwnRecord(const Place& place, format::RecordKind kind) {
  SealRecord(at(place), HeaderFor(place, kind));
  if (tracker_ != nullptr) tracker_->FilledByWriter(place);
}

// The writer needs no slot for its own records: it does not look for ready places meanwhile. It must not wait for ring
// space either, as it alone frees it, so it reserves only free space, by compare-and-swap.
std::optional<Lsn> LogStream::AppendOwn(format::RecordKind kind, std::span<const uint64_t> words) {
  const auto bytes = static_cast<uint32_t>(sizeof(format::RecordHeader) + words.size_bytes());
  uint64_t reserved = reserved_until_.load(std::memory_order_relaxed);
  do {
    if (Lsn(reserved + bytes) > FreeUntil()) return std::nullopt;
  } while (!reserved_until_.compare_exchange_weak(reserved, reserved + bytes));
  const Place place{Lsn(reserved), bytes};
  std::memcpy(at(place) + sizeof(format::RecordHeader), words.data(), words.size_bytes());
  SealOwnRecord(place, kind);
  counters_.anchor_bytes += bytes;
  return place.end();
}

void LogStream::AppendPad() {
  uint64_t reserved = reserved_until_.load(std::memory_order_relaxed);
  Place place;
  do {
    if (reserved % kBlockBytes == 0) return;
    place = {Lsn(reserved), PadBytesAt(Lsn(reserved))};
    if (place.end() > FreeUntil()) return;
  } while (!reserved_until_.compare_exchange_weak(reserved, reserved + place.bytes));
  std::byte* to = at(place);
  const format::PadBody body{persistent_until().value()};
  std::memset(to + sizeof(format::RecordHeader), 0, place.bytes - sizeof(format::RecordHeader));
  std::memcpy(to + sizeof(format::RecordHeader), &body, sizeof body);
  SealOwnRecord(place, format::RecordKind::kPad);
  counters_.pad_bytes += place.bytes;
  pad_end_ = place.end();
}

void LogStream::AppendRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest) {
  format::RunEndBody body{};
  body.durable_lsn = persistent_until().value();
  body.txn_count = txn_count();
  if (digest) {
    body.has_digest = 1;
    body.digest[0] = digest->first;
    body.digest[1] = digest->second;
  }
  // Nothing follows RUN_END, so it fills up its block itself.
  const Lsn lsn(reserved_until_.load(std::memory_order_relaxed));
  auto bytes = static_cast<uint32_t>(kBlockBytes - lsn.value() % kBlockBytes);
  if (bytes < sizeof(format::RecordHeader) + sizeof body) bytes += static_cast<uint32_t>(kBlockBytes);
  const Place place{lsn, bytes};
  CHECK(place.end() <= FreeUntil());
  reserved_until_.store(place.end().value(), std::memory_order_release);
  std::memset(at(place), 0, bytes);
  std::memcpy(at(place) + sizeof(format::RecordHeader), &body, sizeof body);
  SealOwnRecord(place, format::RecordKind::kRunEnd);
}

bool LogStream::StartFlush(uint64_t write_bytes_max) {
  const Lsn end = format::BlockBelow(ReadyUntil());
  if (end <= started_until_) return false;
  flush_started_nanos_ = Clock::MonotonicNanos();
  while (started_until_ < end) {
    const uint64_t bytes = std::min(end - started_until_, write_bytes_max);
    device_->StartWrite(format::kStreamOffset + (started_until_ - start_lsn_), std::span(at(started_until_), bytes));
    started_until_ += bytes;
  }
  if (tracker_ != nullptr) tracker_->LookAhead();
  return true;
}

void LogStream::CompleteFlush(bool wait) {
  const uint64_t durable_end = device_->Complete(wait);
  const Lsn durable = start_lsn_ + (durable_end > format::kStreamOffset ? durable_end - format::kStreamOffset : 0);
  const Lsn record_end = LastRecordEnd(durable);
  if (record_end <= persistent_until()) return;
  ASSERT(tracker_ == nullptr || record_end <= tracker_->FilledUntil());
  AddLive(counters_.flushes, 1);
  AddLive(counters_.flush_nanos, Clock::MonotonicNanos() - flush_started_nanos_);
  // Release: a worker that sees the position may reuse the ring below it and acknowledge transactions whose records end
  // below it.
  AtomicRef<uint64_t>(persistent_).store(record_end.value(), std::memory_order_release);
}

// A flush without a PAD ends within a record as a rule. The records up to there are still in the ring, which is
// reused only below persistent.
Lsn LogStream::LastRecordEnd(Lsn durable) const {
  Lsn end = persistent_until();
  if (pad_end_ <= durable) end = std::max(end, pad_end_);
  while (end < durable) {
    format::RecordHeader header;
    std::memcpy(&header, at(end), sizeof header);
    if (end + header.length > durable) break;
    end += header.length;
  }
  return end;
}

}  // namespace dbx
