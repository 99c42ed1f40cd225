#include "multi_master/log/flush_buffer.h"

#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/crc32c.h"

namespace dbx::mm {
namespace {

constexpr std::chrono::microseconds kSpaceWait{20};
// A writer that fails wakes no one.
constexpr std::chrono::milliseconds kLookForFailure{10};

}  // namespace

uint32_t SaltOf(uint64_t cluster, MasterId master) {
  const std::array<uint64_t, 2> of{cluster, master.value()};
  return Crc32c(std::as_bytes(std::span(of)));
}

FlushBuffer::FlushBuffer(const FlushBufferOptions& options, VsClock& clock, std::unique_ptr<BlockDevice> device)
    : clock_(clock) {
  CHECK(options.self == clock.self());
  stream_ =
      std::make_unique<LogStream>(options.self.value(), options.salt, options.ring_bytes, options.max_record_bytes,
                                  kSlot + 1, std::move(device), persistent_, options.start);
  writer_ = std::make_unique<LogWriter>(std::vector<LogStream*>{stream_.get()}, options.writer, *this);
}

// Before what the writer's thread uses.
FlushBuffer::~FlushBuffer() { writer_.reset(); }

VsTime FlushBuffer::AppendEnd(const TxnName& txn, TxnOutcome outcome, TxnId id) {
  std::unique_lock lock(mutex_);
  const Record record = Begin(lock, 1, kEndBytes);
  PlacedWriter writer(record.body.data());
  EncodeEnd({record.first, txn, outcome, id}, writer);
  CHECK(writer.bytes().end() == record.body.data() + kEndBytes);
  Submit(record, kEndKind);
  ++ends_;
  return record.first;
}

FlushBuffer::Record FlushBuffer::Begin(std::unique_lock<Mutex>& lock, uint32_t changes, size_t bytes) {
  CHECK(changes > 0);
  const uint32_t length = AlignRecord(sizeof(format::RecordHeader) + bytes);
  CHECK(length <= stream_->max_record_bytes());
  AwaitSpace(lock, length);
  const VsTime first = clock_.Tick();
  for (uint32_t i = 1; i < changes; ++i) clock_.Tick();
  const LogStream::Place place = stream_->Reserve(kSlot, length);
  std::byte* const at = stream_->at(place);
  std::memset(at + length - format::kRecordAlignment, 0, format::kRecordAlignment);
  return {place, first, std::span(at + sizeof(format::RecordHeader), length - sizeof(format::RecordHeader))};
}

void FlushBuffer::Submit(const Record& record, format::RecordKind kind) {
  SealRecord(stream_->at(record.place), stream_->HeaderFor(record.place, kind));
  if (!has_records_.load()) has_records_.store(true);
  stream_->SubmitPart(kSlot, record.place);
}

// Until a record of `bytes` leaves space for the end of a flush.
void FlushBuffer::AwaitSpace(std::unique_lock<Mutex>& lock, uint32_t bytes) {
  const auto fits = [&] {
    const Lsn end = stream_->reserved_until() + bytes + kFlushEndBytes;
    return end <= stream_->persistent_until() + stream_->ring_bytes();
  };
  while (!fits()) {
    lock.unlock();
    ThrowIfFailed();
    stream_->WakeWriterIfAsleep();
    host::SleepFor(kSpaceWait);
    lock.lock();
  }
  ThrowIfFailed();
}

void FlushBuffer::BeforeFlush(LogStream& stream) {
  const std::lock_guard lock(mutex_);
  if (!has_records_.exchange(false)) return;
  const LfbStamp lfb = clock_.StampLfb();
  const std::array<uint64_t, kLfbWords> words = EncodeLfb(lfb);
  constexpr auto kBytes = static_cast<uint32_t>(sizeof(format::RecordHeader) + sizeof words);
  // Each append has left space for it: the writer, which alone frees space, must not wait for any.
  CHECK(stream.reserved_until() + kBytes <= stream.persistent_until() + stream.ring_bytes());
  const LogStream::Place place = stream.Reserve(kSlot, kBytes);
  std::memcpy(stream.at(place) + sizeof(format::RecordHeader), words.data(), sizeof words);
  SealRecord(stream.at(place), stream.HeaderFor(place, kLfbKind));
  stream.SubmitPart(kSlot, place);
  pending_.push_back({place.end(), lfb});
  ++lfbs_;
  stream.AppendPad();
}

void FlushBuffer::AfterFlush(const LogStream& stream) {
  std::vector<LfbStamp> lfbs;
  {
    const std::lock_guard lock(mutex_);
    for (; !pending_.empty() && pending_.front().end <= stream.persistent_until(); pending_.pop_front()) {
      lfbs.push_back(pending_.front().lfb);
    }
  }
  if (lfbs.empty()) return;
  const VsTime durable = lfbs.back().time();
  // Release: a thread that sees the time may tell other processes of what is durable.
  durable_.store(durable.value(), std::memory_order_release);
  if (told_) told_(durable);
  for (const LfbStamp& lfb : lfbs) {
    if (lfb_told_) lfb_told_(lfb);
  }
  { const std::lock_guard lock(waiting_); }
  durable_moved_.notify_all();
}

void FlushBuffer::WaitDurable(VsTime time) {
  std::unique_lock lock(waiting_);
  while (!durable_moved_.wait_for(lock, kLookForFailure, [&] { return IsDurable(time); })) ThrowIfFailed();
}

void FlushBuffer::Stop() { writer_->Stop(); }

}  // namespace dbx::mm
