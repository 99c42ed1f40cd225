// Builds records in place: the header goes in front of a body that is already there, and the checksums are taken
// while the bytes are in cache. Used by the log schemes and the writer; any thread on its own place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/crc32c.h"
#include "base/types.h"
#include "logging/format.h"

namespace dbx {

constexpr uint32_t AlignRecord(size_t bytes) {
  return static_cast<uint32_t>((bytes + format::kRecordAlignment - 1) & ~(format::kRecordAlignment - 1));
}

// A copy with zeros up to a multiple of the alignment; returns the place behind them. The zeros are stored first: the
// copy then overwrites all of them but its own tail.
inline std::byte* CopyPadded(const std::byte* from, uint32_t bytes, std::byte* to) {
  const uint32_t padded = AlignRecord(bytes);
  if (padded != bytes) std::memset(to + padded - format::kRecordAlignment, 0, format::kRecordAlignment);
  std::memcpy(to, from, bytes);
  return to + padded;
}

// From the fields, not from memory: a load of eight bytes over fields that were just stored one by one would wait until
// all stores before them, some of them to rows that are not in cache yet, have left the store buffer.
inline uint32_t HeaderCrc(const format::RecordHeader& header) {
  uint64_t state = ~uint32_t{0};
  state = _mm_crc32_u64(state, header.body_crc | uint64_t{header.salt} << 32);
  state = _mm_crc32_u64(state, header.length | header.lsn << 32);
  state = _mm_crc32_u64(state, header.lsn >> 32 | uint64_t{header.kind} << 32 | uint64_t{header.log_index} << 40 |
                                   uint64_t{header.lv_mask} << 48);
  return ~_mm_crc32_u32(static_cast<uint32_t>(state), header.procedure | uint32_t{header.flags} << 16);
}

// Completes the record at `at`, whose body is in place behind the header and whose header has the body's checksum.
inline void SealHeader(std::byte* at, format::RecordHeader header) {
  header.header_crc = HeaderCrc(header);
  std::memcpy(at, &header, sizeof header);
}

// Completes the record at `at`, whose body is in place behind the header.
inline void SealRecord(std::byte* at, format::RecordHeader header) {
  header.body_crc = Crc32c(std::span(at + sizeof header, header.length - sizeof header));
  SealHeader(at, header);
}

// The header of a record that takes the place (lsn, bytes) in the log `log_index`. A scheme adds its own fields, the
// procedure for example, before it seals.
inline format::RecordHeader HeaderOf(Lsn lsn, uint32_t bytes, uint32_t salt, uint32_t log_index,
                                     format::RecordKind kind) {
  format::RecordHeader header{};
  header.salt = salt;
  header.length = bytes;
  header.lsn = lsn.value();
  header.kind = static_cast<uint8_t>(kind);
  header.log_index = static_cast<uint8_t>(log_index);
  return header;
}

// A VOID record's body is undefined and not covered by a checksum.
inline void BuildVoid(std::byte* at, Lsn lsn, uint32_t bytes, uint32_t salt, uint32_t log_index) {
  SealHeader(at, HeaderOf(lsn, bytes, salt, log_index, format::RecordKind::kVoid));
}

}  // namespace dbx
