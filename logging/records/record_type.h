// The kinds of records, each as log readers that do not know its scheme see it: LogReader and ExamineTail ask what a
// record states, ReplayLanes unpacks transactions, log_dump describes all.
//
// A scheme with records of its own adds their types here: basic_records.h (every scheme), stamped_records.h (Plover,
// Silo-R), versioned_records.h (schemes that log commands for multi-version replay), differential_records.h
// (differential logging), row_change_records.h (instant recovery).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/types.h"
#include "logging/format.h"
#include "logging/lsn_per_log.h"
#include "logging/records/txn_record.h"

namespace dbx {

// A record whose checksums are right.
struct RecordView {
  const format::RecordHeader& header;
  std::span<const std::byte> body;
  uint32_t log_count;  // of its run
};

// What a record states about its log and about its run.
struct RecordFacts {
  Stamp stamp{};                               // of the transaction, or of a mark
  Stamp durable_stamp{};                       // up to here every log had been durable
  Timestamp reads_at = Timestamp(UINT64_MAX);  // of the transaction
  Timestamp watermark{};                       // no transaction behind it in this log reads below
  std::optional<Lsn> durable;                  // this log was, up to here
  std::optional<LsnPerLog> durable_logs;       // the same of each log
  std::optional<format::RunEndBody> run_end;   // nothing follows in this log
  // Above those of the transactions that it names, be it one itself or not. Transactions without state() name
  // themselves by the start of their bodies.
  uint64_t next_sequence = 0;
};

enum class RecordRole : uint8_t {
  kTransaction,  // the body begins with its id
  kVoid,         // the body is undefined
  kAnchor,       // LV compression (Taurus, section 4.1): the LSN vectors behind it omit elements that it covers
  kOwn,          // of the log's or the scheme's own
};

struct RecordType {
  const char* name;
  RecordRole role = RecordRole::kOwn;
  const char* evidence = "";  // what it is called where it proves that a log was durable
  // Fills in what the record states, and returns why it makes no sense, or nullptr; what it states up to there is
  // filled in. Without this function it states nothing.
  const char* (*state)(const RecordView& record, RecordFacts& facts) = nullptr;

  // Of transactions. The bytes of the body in front of the rows (WriteEntry + image) or the arguments.
  size_t (*leading_bytes)(const format::RecordHeader& header) = nullptr;
  bool has_rows = false;
  bool has_row_changes = false;  // what follows are changes of rows (row_changes.h)
  // Completes the record, whose fields from the header are set. `body` has the leading bytes, and may be changed.
  void (*unpack)(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body) = nullptr;

  // Appends what log_dump prints of it, behind a transaction's id and in front of its payload. `anchor`, where the log
  // has LSN vectors, is the one in force.
  void (*describe)(const RecordView& record, const LsnPerLog* anchor, std::string& text) = nullptr;
};

namespace records {
inline constexpr size_t kKinds = static_cast<size_t>(format::RecordKind::kLast) + 1;
extern const RecordType* const kTypes[kKinds];
}  // namespace records

// nullptr: there is no such kind.
inline const RecordType* TypeOf(uint8_t kind) { return kind < records::kKinds ? records::kTypes[kind] : nullptr; }
inline bool IsTransaction(const format::RecordHeader& header) {
  const RecordType* type = TypeOf(header.kind);
  return type != nullptr && type->role == RecordRole::kTransaction;
}

// A value of a record's body; nothing if the body is too short for it.
template <class T>
std::optional<T> FieldOf(std::span<const std::byte> body, size_t offset = 0) {
  T value;
  if (body.size() < offset + sizeof value) return std::nullopt;
  std::memcpy(&value, body.data() + offset, sizeof value);
  return value;
}

}  // namespace dbx
