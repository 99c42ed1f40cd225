#include "logging/differential/record_chain.h"

#include <cstring>

namespace dbx {

using format::RecordHeader;

void RecordIn(const std::byte* bytes, Lsn from, Lsn at, RecordHeader& header, std::span<const std::byte>& body) {
  const std::byte* const record = bytes + (at - from);
  std::memcpy(&header, record, sizeof header);
  body = {record + sizeof header, header.length - sizeof header};
}

std::optional<ChainBreak> CutChain(const RecordCheck& check, const std::byte* bytes, Lsn from, Lsn first, Lsn end,
                                   std::vector<Lsn>& records) {
  constexpr const char* kAstray = "records that do not lead to the next ones";
  for (Lsn at = first; at < end;) {
    RecordHeader header;
    std::span<const std::byte> body;
    if (end - at < sizeof header) return ChainBreak{at, kAstray};
    RecordIn(bytes, from, at, header, body);
    if (const char* fault = check.HeaderFault(header, at)) return ChainBreak{at, fault};
    if (header.length > end - at) return ChainBreak{at, kAstray};
    if (const char* fault = RecordCheck::BodyFault(header, body.data())) return ChainBreak{at, fault};
    records.push_back(at);
    at += header.length;
  }
  return std::nullopt;
}

}  // namespace dbx
