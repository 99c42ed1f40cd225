// The payload of records that chain rows (row_changes.h): for each row of the write set its change and the LSN of its
// previous record. Models the payloads of logging/payload.h.
#pragma once

#include <cstring>

#include "logging/contract.h"
#include "logging/format.h"
#include "logging/record_builder.h"
#include "logging/row_changes.h"

namespace dbx {

struct RowChangePayload {
  static constexpr PayloadKind kKind = PayloadKind::kData;
  static constexpr format::RecordKind kRecordKind = format::RecordKind::kRowChanges;
  static constexpr bool kTimestamps = false;
  static constexpr uint32_t kFixedBytes = 0;

  static size_t Bytes(const auto& txn) {
    size_t bytes = 0;
    txn.ForEachChange(
        [&](const LoggedChange& change) { bytes += sizeof(format::RowChangeEntry) + AlignRecord(LengthOf(change)); });
    return bytes;
  }
  static void Encode(const auto& txn, std::byte* to) {
    txn.ForEachChange([&](const LoggedChange& change) { to = EncodeChange(change, to); });
  }

 private:
  static format::RowChangeOp OpOf(const LoggedChange& change) {
    if (change.deleted) return format::RowChangeOp::kDelete;
    return change.was_present ? format::RowChangeOp::kUpdate : format::RowChangeOp::kInsert;
  }
  // Of what follows its entry.
  static uint32_t LengthOf(const LoggedChange& change) {
    switch (OpOf(change)) {
      case format::RowChangeOp::kInsert:
        return change.table->tuple_bytes();
      case format::RowChangeOp::kDelete:
        return 0;
      case format::RowChangeOp::kUpdate:
        break;
    }
    uint32_t bytes = 0;
    for (const ByteRange& range : change.ranges) {
      bytes += static_cast<uint32_t>(sizeof(format::ByteRun)) + AlignRecord(range.end - range.offset);
    }
    return bytes;
  }

  // Returns the place behind what it wrote.
  static std::byte* EncodeChange(const LoggedChange& change, std::byte* to) {
    format::RowChangeEntry entry{};
    entry.key = change.key;
    std::memcpy(&entry.previous, change.meta, sizeof entry.previous);
    entry.table = change.table->id().value();
    entry.op = static_cast<uint8_t>(OpOf(change));
    entry.length = LengthOf(change);
    std::memcpy(to, &entry, sizeof entry);
    to += sizeof entry;
    if (change.deleted) return to;
    if (!change.was_present) return CopyPadded(change.image, change.table->tuple_bytes(), to);
    for (const ByteRange& range : change.ranges) {
      const format::ByteRun run{range.offset, range.end - range.offset};
      std::memcpy(to, &run, sizeof run);
      to = CopyPadded(change.image + range.offset, run.bytes, to + sizeof run);
    }
    return to;
  }
};

}  // namespace dbx
