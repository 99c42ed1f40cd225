#include "logging/differential/forward_reader.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"

namespace dbx {

using format::BlockBelow;
using format::kBlockBytes;
using format::RecordHeader;

ForwardReader::ForwardReader(const LogSource& source, std::span<const Lsn> starts, const LogRange& range,
                             bool read_ahead)
    : source_(source),
      range_(range),
      read_ahead_(read_ahead && !source.device->is_memory()),
      check_(source, range.high) {
  if (range.low >= range.high) return;
  for (const Lsn start : starts) {
    if (start >= range.high || (!starts_.empty() && start == starts_.back())) continue;
    // Chunks that end at or below `low` are not read.
    if (start <= range.low) starts_.clear();
    starts_.push_back(start);
  }
  CHECK(!starts_.empty() && starts_.front() <= std::max(range.low, source.start));
}

bool ForwardReader::Next(RecordHeader& header, std::span<const std::byte>& body) {
  while (visited_ == records_.size()) {
    if (!Load()) return false;
  }
  RecordIn(current().buffer.data(), current().from, records_[visited_++], header, body);
  return true;
}

bool ForwardReader::Ahead(size_t more, RecordHeader& header, std::span<const std::byte>& body) const {
  if (more >= records_.size() - visited_) return false;
  RecordIn(current().buffer.data(), current().from, records_[visited_ + more], header, body);
  return true;
}

// The next chunk, whose records below the range are passed over.
bool ForwardReader::Load() {
  if (loaded_ == starts_.size()) return false;
  const size_t chunk = loaded_++;
  const uint64_t begin = Clock::NowTicks();
  if (!read_.started()) StartReading(chunk, /*ahead=*/false);
  const size_t got = read_.Take();
  read_ticks_ += Clock::NowTicks() - begin;
  if (got < current().bytes) Refuse(starts_[chunk], "the file is shorter than before");
  if (read_ahead_ && loaded_ < starts_.size()) StartReading(loaded_, /*ahead=*/true);
  records_.clear();
  const auto fault =
      CutChain(check_, current().buffer.data(), current().from, starts_[chunk], EndOf(chunk), records_);
  if (fault) Refuse(fault->at, fault->why);
  visited_ = static_cast<size_t>(std::lower_bound(records_.begin(), records_.end(), range_.low) - records_.begin());
  return true;
}

void ForwardReader::StartReading(size_t chunk, bool ahead) {
  Chunk& to = chunks_[(chunk + 1) % 2];
  to.from = BlockBelow(starts_[chunk]);
  to.bytes = EndOf(chunk) - to.from;
  // Whole blocks, of which the last one may be cut off by the end of the file.
  const size_t read_bytes = RoundUp(to.bytes, kBlockBytes);
  to.buffer.Reserve(0, read_bytes);
  const auto read = [device = source_.device, offset = source_.OffsetOf(to.from),
                     into = std::span(to.buffer.data(), read_bytes)] { return device->Read(offset, into); };
  ahead ? read_.Start(read) : read_.ReadHere(read);
}

void ForwardReader::Refuse(Lsn at, const char* why) const {
  ThrowDamaged(source_, at, std::string(why) + ", though the same record was whole when it was read before");
}

}  // namespace dbx
