// The input of the target for chains of rows: the streams of one to three runs.
//
//   shape:u8 first_keys:u8 (length:u16 stream)*    the last run's stream goes to the end of the input
//
//   shape       number of runs less 1, modulo 3
//   first_keys  bit k: the row of key k is rebuilt by itself, before all others are
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "logging/format.h"
#include "logging/row_changes.h"

namespace dbx::fuzz {

inline constexpr Key kChainKeys = 8;

struct RowChainsInput {
  uint8_t first_keys = 0;
  std::vector<std::span<std::byte>> streams;  // oldest first

  static RowChainsInput Of(std::span<std::byte> bytes) {
    RowChainsInput input;
    uint8_t head[2] = {};
    if (!bytes.empty()) std::memcpy(head, bytes.data(), std::min<size_t>(bytes.size(), 2));
    bytes = bytes.subspan(std::min<size_t>(bytes.size(), 2));
    input.first_keys = head[1];
    for (int run = head[0] % 3; run >= 0; --run) {
      size_t length = bytes.size();
      if (run > 0) {
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
};

inline constexpr uint32_t kChainTupleBytes[] = {8, 24};

// Gives a change the length of what its kind holds, which follows it in `left` bytes; one without room is a delete.
inline void RepairChange(format::RowChangeEntry& entry, std::byte* what, size_t left) {
  using format::RowChangeOp;
  const uint32_t tuple_bytes = kChainTupleBytes[entry.table];
  auto op = static_cast<RowChangeOp>(std::clamp<uint8_t>(entry.op, 1, static_cast<uint8_t>(RowChangeOp::kLast)));
  entry.length = 0;
  if (op == RowChangeOp::kInsert) entry.length = tuple_bytes;
  format::ByteRun run;
  if (op == RowChangeOp::kUpdate && left >= sizeof run + 8) {
    std::memcpy(&run, what, sizeof run);
    run.offset %= tuple_bytes;
    run.bytes = std::clamp<uint32_t>(run.bytes, 1, std::min<uint32_t>(tuple_bytes - run.offset, 8));
    std::memcpy(what, &run, sizeof run);
    entry.length = sizeof run + 8;  // a run is padded
  }
  if (RoundedUpToWords(entry.length) > left) {
    op = RowChangeOp::kDelete;
    entry.length = 0;
  }
  entry.op = static_cast<uint8_t>(op);
}

// Makes the stream's records ones of changes of rows of the tables, each of which names its row's previous record.
// Their checksums hold no longer.
inline void RepairLinks(std::span<std::byte> stream) {
  std::map<std::pair<uint16_t, Key>, RowLink> last;
  format::RecordHeader header;
  format::RowChangeEntry entry;
  constexpr size_t kLengthMin = sizeof header + sizeof(TxnId) + sizeof entry;
  for (size_t at = 0; at + kLengthMin <= stream.size(); at += header.length) {
    std::memcpy(&header, stream.data() + at, sizeof header);
    header.kind = static_cast<uint8_t>(format::RecordKind::kRowChanges);
    header.lv_mask = 0;
    const size_t end = at + std::clamp<size_t>(header.length, kLengthMin, stream.size() - at);
    size_t place = at + sizeof header + sizeof(TxnId);
    for (; place + sizeof entry <= end; place += sizeof entry + RoundedUpToWords(entry.length)) {
      std::memcpy(&entry, stream.data() + place, sizeof entry);
      entry.key %= kChainKeys;
      entry.table %= 2;
      RepairChange(entry, stream.data() + place + sizeof entry, end - place - sizeof entry);
      RowLink& previous = last[{entry.table, entry.key}];
      entry.previous = previous.word();
      previous = RowLink(Lsn(at));
      std::memcpy(stream.data() + place, &entry, sizeof entry);
    }
    header.length = static_cast<uint32_t>(place - at);
    std::memcpy(stream.data() + at, &header, sizeof header);
  }
}

}  // namespace dbx::fuzz
