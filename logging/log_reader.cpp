#include "logging/log_reader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"

namespace dbx {

using format::RecordHeader;

namespace {

constexpr size_t kCarryBytesMin = 4 * format::kBlockBytes;
// A log that is shorter is read without a thread.
constexpr size_t kBytesForAThread = 64 << 10;

size_t RoundUpToBlock(size_t bytes) { return RoundUp(bytes, format::kBlockBytes); }

}  // namespace

std::string PlaceOf(const LogSource& source, Lsn at) { return source.device->PlaceOf(source.OffsetOf(at)); }

void ThrowDamaged(const LogSource& source, Lsn at, const std::string& why) {
  throw Error(ExitStatus::kCorrupt, "damaged log " + PlaceOf(source, at) + ": " + why);
}

const char* RecordCheck::HeaderFault(const RecordHeader& header, Lsn at) const {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  const size_t crc_bytes = sizeof header.header_crc;
  if (Crc32c({bytes + crc_bytes, sizeof header - crc_bytes}) != header.header_crc) return "header checksum";
  if (header.salt != salt_) return "salt of another run or log";
  if (header.log_index != log_index_) return "index of another log";
  if (header.lsn != at.value()) return "LSN of another place";
  if (TypeOf(header.kind) == nullptr) return "unknown kind";
  if (header.length < sizeof header || header.length % format::kRecordAlignment != 0) return "length";
  if (header.length > stream_end_ - at) return "record longer than the file";
  return nullptr;
}

const char* RecordCheck::BodyFault(const RecordHeader& header, const std::byte* body) {
  if (TypeOf(header.kind)->role == RecordRole::kVoid) return nullptr;
  return Crc32c({body, header.length - sizeof header}) == header.body_crc ? nullptr : "body checksum";
}

void RaiseProofs(const LogSource& source, const RecordType& type, const RecordFacts& facts, Lsn at,
                 ProofPerLog& proofs) {
  const auto raise = [&](uint32_t log, Lsn until) { proofs[log].Raise({until, type.evidence, source.log_index, at}); };
  if (facts.durable) raise(source.log_index, *facts.durable);
  if (!facts.durable_logs) return;
  for (uint32_t log = 0; log < source.log_count; ++log) raise(log, (*facts.durable_logs)[log]);
}

const char* LogTotals::Take(const LogSource& source, const RecordType& type, const RecordFacts& facts, Lsn at) {
  stamp = std::max(stamp, facts.stamp);
  durable_stamp = std::max(durable_stamp, facts.durable_stamp);
  next_sequence = std::max(next_sequence, facts.next_sequence);
  RaiseProofs(source, type, facts, at, proofs);
  const bool is_ahead = facts.durable_logs && (*facts.durable_logs)[source.log_index] > at;
  return is_ahead ? "anchor ahead of its own place" : nullptr;
}

void LogTotals::CheckCount(const LogSource& source, const format::RunEndBody& run_end, Lsn at) const {
  if (source.is_cut() ? run_end.txn_count >= txns : run_end.txn_count == txns) return;
  ThrowDamaged(source, at,
               "RUN_END counts " + std::to_string(run_end.txn_count) + " transactions, the log holds " +
                   std::to_string(txns));
}

void ReadBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

void ReadBuffer::Reserve(size_t carry_bytes, size_t data_bytes) {
  if (memory_ && carry_bytes <= carry_bytes_ && data_bytes <= data_bytes_) return;
  carry_bytes_ = std::max(RoundUpToBlock(carry_bytes), kCarryBytesMin);
  data_bytes_ = RoundUpToBlock(data_bytes);
  memory_.reset();
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(format::kBlockBytes, carry_bytes_ + data_bytes_)));
  if (!memory_) throw std::bad_alloc();
}

void ReadBuffer::MakeRoom(size_t carry_bytes, size_t used_bytes) {
  if (carry_bytes <= carry_bytes_) return;
  ReadBuffer longer;
  longer.Reserve(carry_bytes, data_bytes_);
  if (used_bytes > 0) std::memcpy(longer.data(), data(), used_bytes);
  memory_ = std::move(longer.memory_);
  carry_bytes_ = longer.carry_bytes_;
}

LogReader::LogReader(const LogSource& source, size_t block_bytes, uint32_t buffer_count)
    : source_(source),
      stream_end_(std::min(source.FileEnd(), source.frozen_end)),
      check_(source, stream_end_),
      is_memory_(source.device->is_memory()),
      position_(source.First()),
      loaded_until_(format::BlockBelow(position_)),
      watermark_(source.first_timestamp) {
  CHECK(source.log_count >= 1 && source.log_count <= format::kMaxLogs && source.log_index < source.log_count);
  CHECK(buffer_count >= 2);
  // A short log needs no long buffers.
  block_bytes_ = std::min(RoundUpToBlock(std::max<size_t>(block_bytes, 1)) * source.device->disks(),
                          RoundUpToBlock(std::max<size_t>(stream_end_ - std::min(stream_end_, loaded_until_), 1)));
  for (uint32_t i = 0; i < buffer_count; ++i) buffers_.push_back(std::make_unique<ReadBuffer>());
  needed_ = sizeof(RecordHeader);
}

void LogReader::Start(RecordBatch& batch) const {
  batch.buffer = buffer_;
  batch.bytes = cursor_;
  batch.first = batch.end = position_;
  batch.anchor = anchor_;
  batch.watermark = watermark_;
}

LogReader::Result LogReader::Cut(RecordBatch& batch, bool wait) {
  Start(batch);
  size_t records = 0;
  while (!ended_ && records < kBatchRecords && batch.end - batch.first < kBatchBytes) {
    switch (LookAtRecord()) {
      case Look::kRecord:
        if (records == 0) ReadAhead();
        Take();
        batch.end = position_;
        ++records;
        break;
      case Look::kIncomplete:
        if (records > 0) {
          buffer_->Hold();
          return Result::kBatch;
        }
        if (!read_.started() && !StartReading(available(), needed_ - available())) return Result::kNoBuffer;
        if (!wait && !read_.done()) return Result::kNotYet;
        TakeBlock();
        Start(batch);
        break;
      case Look::kBad:
        ended_ = true;
        break;
    }
  }
  if (records > 0) {
    buffer_->Hold();
    return Result::kBatch;
  }
  if (!read_.started()) return Result::kEnded;
  if (!wait && !read_.done()) return Result::kNotYet;
  read_.Take();
  return Result::kEnded;
}

LogReader::Look LogReader::LookAtRecord() {
  RecordHeader header;
  needed_ = sizeof header;
  if (stream_end_ < position_ || stream_end_ - position_ < sizeof header) {
    end_reason_ = position_ == stream_end_ ? "end of file" : "the file ends within a record header";
    return Look::kBad;
  }
  if (available() < needed_) return Look::kIncomplete;
  std::memcpy(&header, cursor_, sizeof header);
  if (const char* fault = check_.HeaderFault(header, position_)) {
    end_reason_ = fault;
    return Look::kBad;
  }
  needed_ = header.length;
  if (available() < needed_) return Look::kIncomplete;
  if (const char* fault = RecordCheck::BodyFault(header, cursor_ + sizeof header)) {
    end_reason_ = fault;
    return Look::kBad;
  }
  return Look::kRecord;
}

void LogReader::Take() {
  RecordHeader header;
  std::memcpy(&header, cursor_, sizeof header);
  const std::byte* body = cursor_ + sizeof header;
  const RecordType& type = *TypeOf(header.kind);
  totals_.Count(type);
  if (type.state != nullptr) Follow(type, {header, {body, header.length - sizeof header}, source_.log_count});
  position_ += header.length;
  cursor_ += header.length;
}

void LogReader::Follow(const RecordType& type, const RecordView& record) {
  RecordFacts facts;
  if (const char* fault = type.state(record, facts)) Refuse(fault);
  if (facts.reads_at < watermark_) Refuse("transaction that reads below a watermark before it");
  watermark_ = std::max(watermark_, facts.watermark);
  if (const char* fault = totals_.Take(source_, type, facts, position_)) Refuse(fault);
  if (facts.durable_logs) anchor_ = *facts.durable_logs;
  if (facts.run_end) End(*facts.run_end);
}

void LogReader::End(const format::RunEndBody& run_end) {
  run_end_ = run_end;
  totals_.CheckCount(source_, run_end, position_);
  ended_ = true;
  end_reason_ = "clean end";
}

Lsn LogReader::RecordStartUpTo(Lsn at) const {
  const auto behind = std::upper_bound(block_starts_.begin(), block_starts_.end(), at);
  return behind == block_starts_.begin() ? source_.First() : *(behind - 1);
}

void LogReader::Refuse(const std::string& why) const { ThrowDamaged(source_, position_, why); }

ReadBuffer* LogReader::FreeBuffer() const {
  for (const auto& buffer : buffers_) {
    if (buffer.get() != buffer_ && buffer->IsFree()) return buffer.get();
  }
  return nullptr;
}

void LogReader::ReadAhead() {
  if (is_memory_ || read_.started() || loaded_until_ >= stream_end_) return;
  // How much of this block must go in front of the next one will be known at its end.
  StartReading(0, 0);
}

// Asks for the block at loaded_until_. False when no buffer is free.
bool LogReader::StartReading(size_t carry_bytes, size_t needed_bytes) {
  ReadBuffer* next = FreeBuffer();
  if (next == nullptr) return false;
  const auto left = static_cast<size_t>(stream_end_ - loaded_until_);
  const size_t bytes = std::min(std::max(block_bytes_, RoundUpToBlock(needed_bytes)), RoundUpToBlock(left));
  next->Reserve(carry_bytes, bytes);
  next_buffer_ = next;
  next_bytes_ = bytes;
  const auto read = [device = source_.device, offset = source_.OffsetOf(loaded_until_),
                     to = std::span(next->data(), bytes)] { return device->Read(offset, to); };
  const bool is_short_log = loaded_until_ <= source_.First() && left < kBytesForAThread && bytes >= left;
  if (is_memory_ || is_short_log) {
    read_.ReadHere(read);
  } else {
    read_.Start(read);
  }
  return true;
}

// Waits for the block whose read was started, and continues in it with the rest of the last one.
void LogReader::TakeBlock() {
  const auto left = static_cast<size_t>(stream_end_ - loaded_until_);
  const size_t got = std::min(read_.Take(), left);
  // A file that shrank meanwhile ends where its bytes do.
  if (got < std::min(next_bytes_, left)) {
    stream_end_ = loaded_until_ + got;
    check_ = RecordCheck(source_, stream_end_);
  }
  const size_t carry = available();
  next_buffer_->MakeRoom(carry, got);
  if (carry > 0) std::memcpy(next_buffer_->data() - carry, cursor_, carry);
  if (buffer_ != nullptr) buffer_->Release();
  next_buffer_->Hold();
  buffer_ = next_buffer_;
  block_starts_.push_back(position_);
  // In the first block reading may begin behind its start.
  const size_t skipped = position_ > loaded_until_ ? static_cast<size_t>(position_ - loaded_until_) : 0;
  cursor_ = buffer_->data() - carry + skipped;
  loaded_until_ += got;
}

}  // namespace dbx
