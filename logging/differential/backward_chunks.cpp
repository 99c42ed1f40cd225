#include "logging/differential/backward_chunks.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"

namespace dbx {

using format::BlockBelow;
using format::kBlockBytes;
using format::RecordHeader;

namespace {

// Behind a chunk, for the rest of its last record; one that is longer moves the chunk.
constexpr size_t kRestBytes = 4 * kBlockBytes;

// A disk seeks from a chunk to the one below, so it reads several blocks at once; memory does not.
constexpr size_t kBlocksPerSeek = 4;
size_t ChunkBytes(BlockDevice& device, size_t block_bytes) {
  const size_t blocks = device.is_memory() ? 1 : kBlocksPerSeek;
  return RoundUp(std::max<size_t>(block_bytes, 1), kBlockBytes) * device.disks() * blocks;
}

// No record is longer than its ring. What a header says of a ring need not be true.
constexpr uint64_t kRecordBytesMax = 256 << 20;
uint64_t RecordBytesMax(const LogSource& source) {
  return source.ring_bytes == 0 ? kRecordBytesMax : std::min(source.ring_bytes, kRecordBytesMax);
}

}  // namespace

BackwardChunks::BackwardChunks(const LogSource& source, const LogRange& range, size_t block_bytes, bool read_ahead)
    : source_(source),
      range_(range),
      chunk_bytes_(ChunkBytes(*source.device, block_bytes)),
      read_ahead_(read_ahead && !source.device->is_memory()),
      record_bytes_max_(RecordBytesMax(source)),
      check_(source, range.high),
      known_(range.high),
      unread_(RoundUp(range.high.value(), kBlockBytes)) {}

bool BackwardChunks::Load(Chunk& chunk) {
  chunk.records.clear();
  if (known_ <= range_.low) return false;
  for (;;) {
    TakePiece(chunk);
    ReadAhead();
    const std::optional<Lsn> start = FirstStart(chunk);
    KeepFor(start.value_or(known_), chunk);
    if (!start) continue;
    const auto fault = CutChain(check_, chunk.bytes(), chunk.from, *start, known_, chunk.records);
    if (fault) ThrowDamaged(source_, fault->at, std::string(fault->why) + ", but there are valid records behind it");
    known_ = *start;
    starts_.push_back(known_);
    return true;
  }
}

void BackwardChunks::ReadAhead() {
  const bool is_all_read = known_ <= range_.low || unread_ <= BlockBelow(range_.low);
  if (!read_ahead_ || read_.started() || is_all_read) return;
  StartReading(next_, /*ahead=*/true);
}

void BackwardChunks::StartReading(Chunk& to, bool ahead) {
  const Lsn low = BlockBelow(range_.low);
  to.from = Lsn(unread_.value() - std::min<uint64_t>(chunk_bytes_, unread_ - low));
  const size_t bytes = unread_ - to.from;
  to.room = bytes + kRestBytes;
  if (to.buffer == nullptr) to.buffer = std::make_unique<ReadBuffer>();
  to.buffer->Reserve(0, to.room);
  const auto read = [device = source_.device, offset = source_.OffsetOf(to.from),
                     into = std::span(to.buffer->data(), bytes)] { return device->Read(offset, into); };
  ahead ? read_.Start(read) : read_.ReadHere(read);
}

// The blocks below those that were read, with the bytes behind that complete their last record.
void BackwardChunks::TakePiece(Chunk& chunk) {
  const uint64_t begin = Clock::NowTicks();
  if (!read_.started()) StartReading(next_, /*ahead=*/false);
  const size_t got = read_.Take();
  read_ticks_ += Clock::NowTicks() - begin;
  std::swap(chunk.buffer, next_.buffer);
  std::swap(chunk.room, next_.room);
  chunk.from = next_.from;
  const size_t bytes = unread_ - chunk.from;
  // The first piece may be cut off by the end of the file.
  if (chunk.from + got < std::min(unread_, range_.high)) {
    ThrowDamaged(source_, chunk.from + got, "the file is shorter than before");
  }
  if (bytes + completes_.size() > chunk.room) {
    auto longer = std::make_unique<ReadBuffer>();
    chunk.room = bytes + completes_.size();
    longer->Reserve(0, chunk.room);
    std::memcpy(longer->data(), chunk.bytes(), bytes);
    chunk.buffer = std::move(longer);
  }
  if (!completes_.empty()) std::memcpy(chunk.buffer->data() + bytes, completes_.data(), completes_.size());
  unread_behind_ = unread_;
  unread_ = chunk.from;
}

// Nothing: the record that leads to known_ starts further below.
std::optional<Lsn> BackwardChunks::FirstStart(const Chunk& chunk) const {
  if (chunk.from <= range_.low) return range_.low;
  RecordHeader header;
  // What completes the chunk was searched before, but for a header that begins in the chunk.
  const Lsn end = std::min(known_, unread_behind_);
  for (Lsn at = chunk.from; at < end && known_ - at >= sizeof header; at += format::kRecordAlignment) {
    std::memcpy(&header, chunk.bytes() + (at - chunk.from), sizeof header);
    if (check_.IsHeader(header, at)) return at;
  }
  if (known_ - chunk.from > record_bytes_max_) {
    ThrowDamaged(source_, chunk.from, "no record that leads to the valid ones behind it");
  }
  return std::nullopt;
}

// The bytes up to `until` belong to a record that starts below the chunk.
void BackwardChunks::KeepFor(Lsn until, const Chunk& chunk) {
  completes_.assign(chunk.bytes(), chunk.bytes() + (until - chunk.from));
}

}  // namespace dbx
