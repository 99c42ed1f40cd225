#include "logging/log_stream.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/clock.h"
#include "base/host.h"
#include "base/spin.h"
#include "logging/log_writer.h"

namespace dbx {
namespace {

using format::kBlockBytes;

constexpr std::chrono::microseconds kSpaceWait{20};

constexpr uint64_t RoundDownToBlock(uint64_t position) { return position / kBlockBytes * kBlockBytes; }

constexpr uint32_t kMinPadBytes = sizeof(format::RecordHeader) + sizeof(format::PadBody);

// How long a PAD at `position` is, so that it ends a block.
constexpr uint32_t PadBytesAt(uint64_t position) {
  auto bytes = static_cast<uint32_t>(kBlockBytes - position % kBlockBytes);
  return bytes < kMinPadBytes ? bytes + static_cast<uint32_t>(kBlockBytes) : bytes;
}

}  // namespace

LogStream::LogStream(uint32_t index, uint32_t salt, uint64_t ring_bytes, uint64_t max_record_bytes, uint32_t slots,
                     std::unique_ptr<BlockDevice> device, uint64_t& persistent, uint64_t start_lsn)
    : index_(index),
      salt_(salt),
      ring_(RingBytes(ring_bytes)),
      max_record_bytes_(std::min<uint64_t>(max_record_bytes, ring_.size_bytes() / 4)),
      device_(std::move(device)),
      persistent_(persistent),
      start_lsn_(start_lsn),
      started_until_(start_lsn),
      reserved_until_(start_lsn) {
  CHECK(start_lsn % kBlockBytes == 0);
  persistent_ = start_lsn;
  SetSlots(slots);
}

void LogStream::SetSlots(uint32_t count) {
  slots_ = std::vector<Slot>(count);
  for (Slot& slot : slots_) slot.free_until = start_lsn_ + ring_.size_bytes();
}

void LogStream::StartWriter(LogWriter* writer) {
  writer_ = writer;
  if (tracker_ != nullptr) tracker_->Start();
}

void LogStream::ThrowIfFailed() const { writer_->ThrowIfFailed(); }

void LogStream::WaitForSpace(Slot& slot, const Place& place) {
  // The bound was taken before the place, perhaps long before: others may have filled the ring in between. Left there,
  // it would keep the writer from freeing the space that we are about to wait for.
  slot.filling_from.store(place.lsn, std::memory_order_release);
  AwaitSpace(slot, place);
}

void LogStream::AwaitSpace(Slot& slot, const Place& place) {
  SpinWait wait;
  for (bool woken = false;; woken = true) {
    slot.free_until = FreeUntil();
    if (place.end() <= slot.free_until) return;
    writer_->ThrowIfFailed();
    if (!woken) writer_->Wake();
    // The writer wants the processor more than we do.
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

uint64_t LogStream::ReadyUntil() const {
  if (tracker_ != nullptr) return tracker_->FilledUntil();
  // This load comes first: see the head of log_stream.h.
  uint64_t ready = reserved_until_.load(std::memory_order_acquire);
  for (const Slot& slot : slots_) ready = std::min(ready, slot.filling_from.load(std::memory_order_acquire));
  return ready;
}

// Completes a record of the stream itself, no transaction's, whose body is in place.
void LogStream::SealOwnRecord(const Place& place, format::RecordKind kind) {
  SealRecord(at(place), HeaderFor(place, kind));
  if (tracker_ != nullptr) tracker_->FilledByWriter(place);
}

// The writer needs no slot of its own for what it appends: it does not look for ready places meanwhile. It must not
// wait for ring space either, as it alone frees it, so it reserves only what is free, by compare-and-swap.
std::optional<uint64_t> LogStream::AppendOwn(format::RecordKind kind, std::span<const uint64_t> words) {
  const auto bytes = static_cast<uint32_t>(sizeof(format::RecordHeader) + words.size_bytes());
  uint64_t lsn = reserved_until_.load(std::memory_order_relaxed);
  do {
    if (lsn + bytes > FreeUntil()) return std::nullopt;
  } while (!reserved_until_.compare_exchange_weak(lsn, lsn + bytes));
  std::memcpy(ring_.at(lsn) + sizeof(format::RecordHeader), words.data(), words.size_bytes());
  SealOwnRecord({lsn, bytes}, kind);
  counters_.anchor_bytes += bytes;
  return lsn + bytes;
}

void LogStream::AppendPad() {
  uint64_t lsn = reserved_until_.load(std::memory_order_relaxed);
  uint32_t bytes = 0;
  do {
    if (lsn % kBlockBytes == 0) return;
    bytes = PadBytesAt(lsn);
    if (lsn + bytes > FreeUntil()) return;
  } while (!reserved_until_.compare_exchange_weak(lsn, lsn + bytes));
  std::byte* at = ring_.at(lsn);
  const format::PadBody body{persistent_until()};
  std::memset(at + sizeof(format::RecordHeader), 0, bytes - sizeof(format::RecordHeader));
  std::memcpy(at + sizeof(format::RecordHeader), &body, sizeof body);
  SealOwnRecord({lsn, bytes}, format::RecordKind::kPad);
  counters_.pad_bytes += bytes;
  pad_end_ = lsn + bytes;
}

void LogStream::AppendRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest) {
  format::RunEndBody body{};
  body.durable_lsn = persistent_until();
  body.txn_count = txn_count();
  if (digest) {
    body.has_digest = 1;
    body.digest[0] = digest->first;
    body.digest[1] = digest->second;
  }
  // Nothing follows RUN_END, so it fills up its block itself.
  const uint64_t lsn = reserved_until_.load(std::memory_order_relaxed);
  auto bytes = static_cast<uint32_t>(kBlockBytes - lsn % kBlockBytes);
  if (bytes < sizeof(format::RecordHeader) + sizeof body) bytes += static_cast<uint32_t>(kBlockBytes);
  CHECK(lsn + bytes <= FreeUntil());
  reserved_until_.store(lsn + bytes, std::memory_order_release);
  std::byte* at = ring_.at(lsn);
  std::memset(at, 0, bytes);
  std::memcpy(at + sizeof(format::RecordHeader), &body, sizeof body);
  SealOwnRecord({lsn, bytes}, format::RecordKind::kRunEnd);
}

bool LogStream::StartFlush(uint64_t write_bytes_max) {
  const uint64_t end = RoundDownToBlock(ReadyUntil());
  if (end <= started_until_) return false;
  flush_started_nanos_ = Clock::MonotonicNanos();
  while (started_until_ < end) {
    const uint64_t bytes = std::min(end - started_until_, write_bytes_max);
    device_->StartWrite(format::kStreamOffset + (started_until_ - start_lsn_),
                        std::span(ring_.at(started_until_), bytes));
    started_until_ += bytes;
  }
  if (tracker_ != nullptr) tracker_->LookAhead();
  return true;
}

void LogStream::CompleteFlush(bool wait) {
  const uint64_t durable_end = device_->Complete(wait);
  const uint64_t durable = start_lsn_ + (durable_end > format::kStreamOffset ? durable_end - format::kStreamOffset : 0);
  const uint64_t record_end = LastRecordEnd(durable);
  if (record_end <= persistent_until()) return;
  ASSERT(tracker_ == nullptr || record_end <= tracker_->FilledUntil());
  ++counters_.flushes;
  counters_.flush_nanos += Clock::MonotonicNanos() - flush_started_nanos_;
  // Release: whoever sees the position may reuse the ring below it and acknowledge what ends below it.
  AtomicRef<uint64_t>(persistent_).store(record_end, std::memory_order_release);
}

// A flush without a PAD ends within a record as a rule. The records up to there are still in the ring, which is
// reused only below persistent.
uint64_t LogStream::LastRecordEnd(uint64_t durable) const {
  uint64_t end = persistent_until();
  if (pad_end_ <= durable) end = std::max(end, pad_end_);
  while (end < durable) {
    format::RecordHeader header;
    std::memcpy(&header, ring_.at(end), sizeof header);
    if (end + header.length > durable) break;
    end += header.length;
  }
  return end;
}

}  // namespace dbx
