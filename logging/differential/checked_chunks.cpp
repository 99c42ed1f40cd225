#include "logging/differential/checked_chunks.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"

namespace dbx {

using format::BlockBelow;
using format::kBlockBytes;
using format::RecordHeader;

void RecordIn(const std::byte* bytes, Lsn from, Lsn at, RecordHeader& header, std::span<const std::byte>& body) {
  const std::byte* const record = bytes + (at - from);
  std::memcpy(&header, record, sizeof header);
  body = {record + sizeof header, header.length - sizeof header};
}

CheckedChunks::CheckedChunks(const LogSource& source, std::span<const Lsn> starts, const LogRange& range, Lsn end,
                             bool read_ahead)
    : source_(source), end_(end), read_ahead_(read_ahead && !source.device->is_memory()), check_(source, range.high) {
  if (range.low >= end) return;
  for (const Lsn start : starts) {
    if (start >= end || (!starts_.empty() && start == starts_.back())) continue;
    // Chunks that end at or below `low` are not read.
    if (start <= range.low) starts_.clear();
    starts_.push_back(start);
  }
  CHECK(starts_.empty() || starts_.front() <= std::max(range.low, source.start));
}

void CheckedChunks::ReadAhead(size_t chunk) {
  if (read_ahead_ && !read_.started()) StartReading(chunk, chunks_[current_ ^ 1], /*ahead=*/true);
}

void CheckedChunks::Load(size_t chunk, std::optional<size_t> next, std::vector<Lsn>& records) {
  const uint64_t begin = Clock::NowTicks();
  if (read_.started()) {
    current_ ^= 1;
  } else {
    StartReading(chunk, chunks_[current_], /*ahead=*/false);
  }
  const size_t got = read_.Take();
  read_ticks_ += Clock::NowTicks() - begin;
  if (got < chunks_[current_].bytes) Refuse(starts_[chunk], "the file is shorter than before");
  if (next) ReadAhead(*next);
  Cut(chunk, records);
}

void CheckedChunks::StartReading(size_t chunk, Chunk& to, bool ahead) {
  to.from = BlockBelow(starts_[chunk]);
  to.bytes = EndOf(chunk) - to.from;
  // Whole blocks, of which the last one may be cut off by the end of the file.
  const size_t read_bytes = RoundUp(to.bytes, kBlockBytes);
  to.buffer.Reserve(0, read_bytes);
  const auto read = [device = source_.device, offset = source_.OffsetOf(to.from),
                     into = std::span(to.buffer.data(), read_bytes)] { return device->Read(offset, into); };
  ahead ? read_.Start(read) : read_.ReadHere(read);
}

void CheckedChunks::Cut(size_t chunk, std::vector<Lsn>& records) const {
  const Lsn end = EndOf(chunk);
  Lsn at = starts_[chunk];
  while (at < end) {
    RecordHeader header;
    std::span<const std::byte> body;
    if (end - at < sizeof header) Refuse(at, "records that do not lead to the next ones");
    RecordIn(bytes(), bytes_from(), at, header, body);
    if (const char* fault = check_.HeaderFault(header, at)) Refuse(at, fault);
    if (header.length > end - at) Refuse(at, "records that do not lead to the next ones");
    if (const char* fault = RecordCheck::BodyFault(header, body.data())) Refuse(at, fault);
    records.push_back(at);
    at += header.length;
  }
}

void CheckedChunks::Refuse(Lsn at, const char* why) const {
  ThrowDamaged(source_, at, std::string(why) + ", though the same record was whole when it was read before");
}

}  // namespace dbx
