// The contents of a transaction's redo record: the command that was run (command logging), with or without the
// timestamps at which it ran, or the images that it wrote (data logging). A log scheme is a template over one of these;
// they write straight into the transaction's place in the log.
#pragma once

#include <cstring>

#include "logging/contract.h"
#include "logging/format.h"
#include "logging/record_builder.h"

namespace dbx {

// Every body starts with the transaction id; the rest is the payload's.
inline constexpr size_t kTxnIdBytes = sizeof(TxnId);

struct CommandPayload {
  static constexpr PayloadKind kKind = PayloadKind::kCommand;
  static constexpr format::RecordKind kRecordKind = format::RecordKind::kCommand;
  static constexpr bool kTimestamps = false;
  static constexpr uint32_t kFixedBytes = 0;  // of Bytes, whatever the transaction

  static size_t Bytes(const auto& txn) { return txn.args().size() - kTxnIdBytes; }
  static void Encode(const auto& txn, std::byte* to) {
    const std::span<const std::byte> args = txn.args();
    std::memcpy(to, args.data() + kTxnIdBytes, args.size() - kTxnIdBytes);
  }
};

// For multi-version concurrency control with multi-version replay (Taurus, section 4.4). The log then orders writers of
// a row, and readers behind the writer that they read from; a transaction that overwrites what another has read may be
// replayed before it, as the reader's timestamp selects the version that it saw.
struct VersionedCommandPayload {
  static constexpr PayloadKind kKind = PayloadKind::kCommand;
  static constexpr format::RecordKind kRecordKind = format::RecordKind::kVersionedCommand;
  static constexpr bool kTimestamps = true;
  static constexpr uint32_t kFixedBytes = sizeof(format::Timestamps);

  static size_t Bytes(const auto& txn) { return kFixedBytes + CommandPayload::Bytes(txn); }
  static void Encode(const auto& txn, std::byte* to) {
    const format::Timestamps timestamps{txn.read_timestamp().value(), txn.end_timestamp().value()};
    std::memcpy(to, &timestamps, sizeof timestamps);
    CommandPayload::Encode(txn, to + sizeof timestamps);
  }
};

struct DataPayload {
  static constexpr PayloadKind kKind = PayloadKind::kData;
  static constexpr format::RecordKind kRecordKind = format::RecordKind::kData;
  static constexpr bool kTimestamps = false;
  static constexpr uint32_t kFixedBytes = 0;

  static size_t Bytes(const auto& txn) {
    size_t bytes = 0;
    txn.ForEachImage(
        [&](const Table& table, Key, bool deleted, const std::byte*) { bytes += ImageBytes(table, deleted); });
    return bytes;
  }
  static void Encode(const auto& txn, std::byte* to) {
    txn.ForEachImage([&](const Table& table, Key key, bool deleted, const std::byte* image) {
      to = EncodeImage(table, key, deleted, image, to);
    });
  }

  // The same for one row; EncodeImage returns the place behind it.
  static size_t ImageBytes(const Table& table, bool deleted) {
    return sizeof(format::WriteEntry) + (deleted ? 0 : AlignRecord(table.tuple_bytes()));
  }
  static std::byte* EncodeImage(const Table& table, Key key, bool deleted, const std::byte* image, std::byte* to) {
    format::WriteEntry entry{};
    entry.key = key;
    entry.table = table.id().value();
    entry.op = static_cast<uint8_t>(deleted ? format::WriteOp::kDelete : format::WriteOp::kPut);
    entry.length = deleted ? 0 : table.tuple_bytes();
    std::memcpy(to, &entry, sizeof entry);
    to += sizeof entry;
    if (deleted) return to;
    return CopyPadded(image, entry.length, to);
  }
};

// Header, transaction id, and the fixed part of the payload.
template <class Payload>
inline constexpr uint32_t kFixedRecordBytes = sizeof(format::RecordHeader) + kTxnIdBytes + Payload::kFixedBytes;

// Does the place in the log order the transaction's reads too? Single-version commands must be replayed before the
// transactions that overwrote what they read.
template <class Payload>
inline constexpr bool kOrdersReads = Payload::kKind == PayloadKind::kCommand && !Payload::kTimestamps;

}  // namespace dbx
