#include "logging/differential/backward_reader.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"

namespace dbx {

using format::BlockBelow;
using format::kBlockBytes;
using format::RecordHeader;

BackwardReader::BackwardReader(const LogSource& source, std::span<const Lsn> starts, const Range& range,
                               bool read_ahead, KeptLog* kept)
    : source_(source),
      low_(range.low),
      high_(range.high),
      read_ahead_(read_ahead && !source.device->is_memory()),
      kept_(kept),
      file_end_(kept == nullptr ? range.high : kept->begin().value_or(range.high)),
      check_(source, range.high) {
  for (const Lsn start : starts) {
    if (start >= file_end_ || (!starts_.empty() && start == starts_.back())) continue;
    // Chunks that end at or below `low` are not read.
    if (start <= low_) starts_.clear();
    starts_.push_back(start);
  }
  CHECK(starts_.empty() || starts_.front() <= std::max(low_, source.start));
  if (low_ < file_end_) chunks_left_ = starts_.size();
}

bool BackwardReader::Previous(RecordHeader& header, std::span<const std::byte>& body) {
  while (records_.empty()) {
    if (!LoadKept() && !Load()) return false;
  }
  const Lsn at = records_.back();
  if (at < low_) return false;
  records_.pop_back();
  RecordAt(at, header, body);
  return true;
}

bool BackwardReader::Ahead(size_t more, RecordHeader& header, std::span<const std::byte>& body) const {
  if (more >= records_.size()) return false;
  RecordAt(records_[records_.size() - 1 - more], header, body);
  return true;
}

void BackwardReader::RecordAt(Lsn at, RecordHeader& header, std::span<const std::byte>& body) const {
  const std::byte* const bytes = bytes_ + (at - bytes_from_);
  std::memcpy(&header, bytes, sizeof header);
  body = {bytes + sizeof header, header.length - sizeof header};
}

// The last chunk that is kept, which was checked there. The first time the chunk before all of them is read meanwhile.
bool BackwardReader::LoadKept() {
  if (kept_ == nullptr) return false;
  auto chunk = kept_->TakeLast();
  if (!chunk) return false;
  if (read_ahead_ && chunks_left_ > 0 && !read_.started()) {
    StartReading(chunks_left_ - 1, chunks_[current_ ^ 1], /*ahead=*/true);
  }
  kept_chunk_ = *std::move(chunk);
  bytes_ = kept_chunk_.bytes.get();
  bytes_from_ = kept_chunk_.begin;
  for (Lsn at = kept_chunk_.begin; at < kept_chunk_.end;) {
    RecordHeader header;
    std::memcpy(&header, bytes_ + (at - bytes_from_), sizeof header);
    records_.push_back(at);
    at += header.length;
  }
  return true;
}

// Takes the last chunk that is left, and starts to read the one before.
bool BackwardReader::Load() {
  if (chunks_left_ == 0) return false;
  --chunks_left_;
  const uint64_t begin = Clock::NowTicks();
  if (read_.started()) {
    current_ ^= 1;
  } else {
    StartReading(chunks_left_, chunks_[current_], /*ahead=*/false);
  }
  const Chunk& chunk = chunks_[current_];
  const size_t got = read_.Take();
  read_ticks_ += Clock::NowTicks() - begin;
  if (got < chunk.bytes) Refuse(starts_[chunks_left_], "the file is shorter than before");
  if (read_ahead_ && chunks_left_ > 0) StartReading(chunks_left_ - 1, chunks_[current_ ^ 1], /*ahead=*/true);
  bytes_ = chunk.buffer.data();
  bytes_from_ = chunk.from;
  CutChunk();
  return true;
}

void BackwardReader::StartReading(size_t chunk, Chunk& to, bool ahead) {
  to.from = BlockBelow(starts_[chunk]);
  to.bytes = EndOf(chunk) - to.from;
  // Whole blocks, of which the last one may be cut off by the end of the file.
  const size_t read_bytes = RoundUp(to.bytes, kBlockBytes);
  to.buffer.Reserve(0, read_bytes);
  const auto read = [device = source_.device, offset = source_.OffsetOf(to.from),
                     into = std::span(to.buffer.data(), read_bytes)] { return device->Read(offset, into); };
  ahead ? read_.Start(read) : read_.ReadHere(read);
}

void BackwardReader::CutChunk() {
  const Lsn end = EndOf(chunks_left_);
  Lsn at = starts_[chunks_left_];
  while (at < end) {
    RecordHeader header;
    std::span<const std::byte> body;
    if (end - at < sizeof header) Refuse(at, "records that do not lead to the next ones");
    RecordAt(at, header, body);
    if (const char* fault = check_.HeaderFault(header, at)) Refuse(at, fault);
    if (header.length > end - at) Refuse(at, "records that do not lead to the next ones");
    if (const char* fault = RecordCheck::BodyFault(header, body.data())) Refuse(at, fault);
    records_.push_back(at);
    at += header.length;
  }
}

void BackwardReader::Refuse(Lsn at, const char* why) const {
  ThrowDamaged(source_, at, std::string(why) + ", though the same record was whole when it was read before");
}

}  // namespace dbx
