#include "logging/record_at.h"

#include <cstring>
#include <mutex>

#include "base/bytes.h"

namespace dbx {

std::span<const std::byte> RecordsAt::Read(Lsn lsn, RecordBuffer& buffer) const {
  const auto refuse = [&](const char* why) { ThrowDamaged(source_, lsn, why); };
  format::RecordHeader header;
  if (lsn < source_.First() || lsn + sizeof header > end_) refuse("no record of the log can be here");
  std::memcpy(&header, Load(lsn, sizeof header, buffer), sizeof header);
  if (const char* const why = check_.HeaderFault(header, lsn)) refuse(why);
  const std::byte* const record = Load(lsn, header.length, buffer);
  if (const char* const why = RecordCheck::BodyFault(header, record + sizeof header)) refuse(why);
  return {record, header.length};
}

// In whole blocks. A record that does not end in its first block is read again from there on.
const std::byte* RecordsAt::Load(Lsn lsn, size_t bytes, RecordBuffer& buffer) const {
  const uint64_t offset = source_.OffsetOf(lsn), first = offset / format::kBlockBytes * format::kBlockBytes;
  const size_t wanted = RoundUp(offset + bytes - first, format::kBlockBytes);
  const bool is_rest = bytes > sizeof(format::RecordHeader);
  if (is_rest && offset + bytes - first <= buffer.loaded_) return buffer.blocks_.get() + (offset - first);
  if (buffer.bytes_ < wanted) {
    buffer.blocks_ = AllocateBlocks(wanted);
    buffer.bytes_ = wanted;
  }
  const std::lock_guard lock(device_mutex_);
  buffer.loaded_ = source_.device->Read(first, {buffer.blocks_.get(), wanted});
  if (buffer.loaded_ < offset + bytes - first) ThrowDamaged(source_, lsn, "the file ends within a record");
  return buffer.blocks_.get() + (offset - first);
}

}  // namespace dbx
