// The input of the recovery target: the streams of one to three logs.
//
//   shape:u8 frontier (length:u16 stream)*    the last log's stream goes to the end of the input
//
//   shape     bits 0-1: number of logs less 1 (3: one log, serial); bits 2-3: size of the ring; bits 4-5: 0 as bits 0-1
//             say, or Taurus; 1 Plover; 2 and 3 Silo-R; bit 6: the log is replayed in many versions, where it can be
//   frontier  of Silo-R: blocks:u8, and as many as frontier_input.h says
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "logging/format.h"
#include "tests/fuzz/frontier_input.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {

struct RecoveryInput {
  format::Scheme scheme = format::Scheme::kTaurus;
  bool many_versions = false;
  std::vector<std::byte> frontier;  // Silo-R: the file
  uint64_t ring_bytes = 0;
  std::vector<std::span<std::byte>> streams;

  uint32_t count() const { return static_cast<uint32_t>(streams.size()); }
  format::Payload payload() const {
    return many_versions ? format::Payload::kVersionedCommand : format::Payload::kCommand;
  }

  static RecoveryInput Of(std::span<std::byte> bytes, uint64_t run_id) {
    RecoveryInput input;
    const uint8_t shape = bytes.empty() ? 0 : std::to_integer<uint8_t>(bytes[0]);
    bytes = bytes.subspan(std::min<size_t>(bytes.size(), 1));
    input.scheme = SchemeOf(shape);
    input.many_versions = (shape >> 4 & 7) == 4;
    input.ring_bytes = std::array<uint64_t, 4>{1 << 20, 4096, 512, 0}[shape >> 2 & 3];
    const uint32_t count = (shape & 3) == 3 ? 1 : 1 + (shape & 3);
    if (input.scheme == format::Scheme::kSiloR) bytes = input.TakeFrontier(bytes, run_id, count);
    for (uint32_t log = 0; log < count; ++log) {
      size_t length = bytes.size();
      if (log + 1 < count) {
        uint16_t stored = 0;
        if (bytes.size() >= sizeof stored) std::memcpy(&stored, bytes.data(), sizeof stored);
        bytes = bytes.subspan(std::min(bytes.size(), sizeof stored));
        length = std::min<size_t>(stored, bytes.size());
      }
      input.streams.push_back(bytes.first(length));
      bytes = bytes.subspan(length);
    }
    return input;
  }

 private:
  static format::Scheme SchemeOf(uint8_t shape) {
    if ((shape >> 5 & 1) != 0) return format::Scheme::kSiloR;
    if ((shape >> 4 & 1) != 0) return format::Scheme::kPlover;
    return (shape & 3) == 3 ? format::Scheme::kSerial : format::Scheme::kTaurus;
  }

  // Returns what follows it.
  std::span<std::byte> TakeFrontier(std::span<std::byte> bytes, uint64_t run_id, uint32_t count) {
    Input input(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    const uint32_t blocks = 1 + input.Take<uint8_t>() % 4;
    frontier = FrontierOf(input, blocks, run_id, count);
    return bytes.last(input.Rest().size());
  }
};

// `frontier`: as the input has it.
inline std::vector<std::byte> EncodeInput(uint8_t shape, const std::vector<std::vector<std::byte>>& streams,
                                          const std::vector<std::byte>& frontier = {}) {
  std::vector<std::byte> bytes{std::byte{shape}};
  bytes.insert(bytes.end(), frontier.begin(), frontier.end());
  for (size_t log = 0; log < streams.size(); ++log) {
    const auto length = static_cast<uint16_t>(streams[log].size());
    const auto* stored = reinterpret_cast<const std::byte*>(&length);
    if (log + 1 < streams.size()) bytes.insert(bytes.end(), stored, stored + sizeof length);
    bytes.insert(bytes.end(), streams[log].begin(), streams[log].end());
  }
  return bytes;
}

inline constexpr uint8_t kKinds = static_cast<uint8_t>(format::RecordKind::kLast);

// Makes records of the first `records` pieces of a stream: whatever a mutation did to lengths and places, checksums
// hold again. What follows them stays as it is.
inline void RepairStream(std::span<std::byte> stream, uint64_t run_id, uint32_t log, uint32_t log_count,
                         size_t records) {
  for (size_t at = 0; at + sizeof(format::RecordHeader) <= stream.size() && records > 0; --records) {
    format::RecordHeader header;
    std::memcpy(&header, stream.data() + at, sizeof header);
    const auto rest = static_cast<uint32_t>((stream.size() - at) / 8 * 8);
    header.length = std::clamp<uint32_t>(header.length / 8 * 8, sizeof header, rest);
    header.salt = format::Salt(run_id, log);
    header.lsn = at;
    header.log_index = static_cast<uint8_t>(log);
    if (header.kind < 1 || header.kind > kKinds) header.kind = static_cast<uint8_t>(1 + header.kind % kKinds);
    header.lv_mask = static_cast<uint16_t>(header.lv_mask & ((1u << log_count) - 1));
    const std::span body = stream.subspan(at + sizeof header, header.length - sizeof header);
    header.body_crc = Crc32c(body);
    header.header_crc = Crc32c(std::as_bytes(std::span(&header, 1)).subspan(sizeof header.header_crc));
    std::memcpy(stream.data() + at, &header, sizeof header);
    at += header.length;
  }
}

}  // namespace dbx::fuzz
