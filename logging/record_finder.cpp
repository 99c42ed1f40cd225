#include "logging/record_finder.h"

#include <cstring>

#include "base/bytes.h"

namespace dbx {

using format::RecordHeader;

bool RecordFinder::HeaderAt(uint64_t at, RecordHeader& header) const {
  const size_t offset = at - piece_at_;
  if (offset + sizeof header > piece_bytes_) return false;
  std::memcpy(&header, piece_.data() + offset, sizeof header);
  return check_.IsHeader(header, Lsn(at));
}

std::optional<std::span<const std::byte>> RecordFinder::BodyOf(const RecordHeader& header) {
  const uint64_t offset = header.lsn - piece_at_;
  const std::byte* record = piece_.data() + offset;
  if (offset + header.length > piece_bytes_) {
    const Lsn from = format::BlockBelow(Lsn(header.lsn));
    const size_t skip = Lsn(header.lsn) - from;
    const size_t wanted = RoundUp(skip + header.length, format::kBlockBytes);
    long_record_.Reserve(0, wanted);
    const size_t got = source_.device->Read(source_.OffsetOf(from), {long_record_.data(), wanted});
    if (got < skip + header.length) return std::nullopt;
    record = long_record_.data() + skip;
  }
  const std::byte* body = record + sizeof header;
  if (RecordCheck::BodyFault(header, body) != nullptr) return std::nullopt;
  return std::span(body, header.length - sizeof header);
}

}  // namespace dbx
