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

inline uint32_t HeaderCrc(const format::RecordHeader& header) {
  return Crc32c(std::as_bytes(std::span(&header, 1)).subspan(sizeof header.header_crc));
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
