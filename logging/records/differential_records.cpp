#include "logging/records/differential_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/bytes.h"
#include "logging/records/basic_records.h"
#include "storage/heap/page_space.h"

namespace dbx {
namespace {

constexpr uint16_t kKnownFlags = format::kChangeFirst | format::kChangePresence | format::kChangeCompensation |
                                 format::kChangeRuns | format::kChangeImages | format::kChangeErases;

const char* RunsFault(std::span<const std::byte> image) {
  ChangeRuns runs(image);
  while (runs.Next()) continue;
  return runs.fault();
}

const char* ImageFault(const SlotChange& change) {
  if (change.Has(format::kChangeErases) &&
      !(change.Has(format::kChangePresence) && change.Has(format::kChangeImages))) {
    return "erasure without images";
  }
  if (!change.Has(format::kChangeImages)) return change.Has(format::kChangeRuns) ? RunsFault(change.image) : nullptr;
  if (change.Has(format::kChangeRuns)) return "runs of images before and after";
  return change.image.size() % (2 * format::kRecordAlignment) == 0 ? nullptr : "images of two lengths";
}

}  // namespace

uint64_t StampOfEnd(std::span<const std::byte> body) {
  return *FieldOf<uint64_t>(body, body.size() - sizeof(uint64_t));
}

bool ChangeRuns::End(const char* fault) {
  left_ = {};
  fault_ = fault;
  return false;
}

bool ChangeRuns::Next() {
  format::ChangeRun run;
  if (left_.empty()) return false;
  // A run has one word at least: four bytes are what fills up the record.
  if (left_.size() <= sizeof run) return End(AllZero(left_) ? nullptr : "padding of runs that is not zero");
  std::memcpy(&run, left_.data(), sizeof run);
  left_ = left_.subspan(sizeof run);
  if (run.words == 0) return End("run without words");
  if (run.word < least_word_) return End("runs out of order");
  const size_t bytes = run.words * kWordBytes;
  if (bytes > left_.size()) return End("run longer than its record");
  offset_ = run.word * kWordBytes;
  bytes_ = left_.first(bytes);
  left_ = left_.subspan(bytes);
  // Runs without a gap between them would be one.
  least_word_ = uint32_t{run.word} + run.words + 1;
  return true;
}

const char* DecodeChange(const format::RecordHeader& header, std::span<const std::byte> body, SlotChange& to) {
  const auto change = FieldOf<format::ChangeBody>(body);
  if (!change) return "change too short";
  if (body.size() % format::kRecordAlignment != 0) return "length of a change";
  to.txn = TxnId{change->txn_id};
  to.table = TableId(header.lv_mask);
  to.page = change->page;
  to.slot = header.procedure;
  to.number = change->number;
  to.flags = header.flags;
  if ((to.flags & ~kKnownFlags) != 0) return "unknown flags of a change";
  if (to.Has(format::kChangeFirst) && to.Has(format::kChangeCompensation)) {
    return "compensation without a change before it";
  }
  if (to.slot >= PageSpace::kRowsPerPageMax) return "slot beyond the end of every page";
  to.image = body.subspan(sizeof *change);
  to.key = 0;
  if (to.Has(format::kChangePresence)) {
    const auto key = FieldOf<Key>(to.image);
    if (!key) return "change too short";
    to.key = *key;
    to.image = to.image.subspan(sizeof *key);
  }
  return ImageFault(to);
}

namespace records {
namespace {

void Name(TxnId id, RecordFacts& facts) { facts.next_sequence = std::max(facts.next_sequence, id.sequence() + 1); }

void DescribeTxn(TxnId id, std::string& text) {
  fmt::format_to(std::back_inserter(text), "{}:{}", id.worker().value(), id.sequence());
}

const char* StateChange(const RecordView& record, RecordFacts& facts) {
  SlotChange change;
  if (const auto txn = FieldOf<TxnId>(record.body)) Name(*txn, facts);
  return DecodeChange(record.header, record.body, change);
}

void DescribeChange(const RecordView& record, const LsnPerLog*, std::string& text) {
  SlotChange change;
  // Its faults were found before.
  (void)DecodeChange(record.header, record.body, change);
  text += " txn ";
  DescribeTxn(change.txn, text);
  fmt::format_to(std::back_inserter(text), " table {} page {} slot {} number {}", change.table.value(), change.page,
                 change.slot, change.number);
  if (change.Has(format::kChangeFirst)) text += " first";
  if (change.Has(format::kChangeCompensation)) text += " compensation";
  if (change.Has(format::kChangePresence)) fmt::format_to(std::back_inserter(text), " presence key {}", change.key);
  if (change.Has(format::kChangeErases)) text += " erases";
  const char* const image = change.Has(format::kChangeRuns)     ? "runs"
                            : change.Has(format::kChangeImages) ? "images"
                                                                : "image";
  fmt::format_to(std::back_inserter(text), " {} {} bytes", image, change.image.size());
}

bool IsStamped(const format::RecordHeader& header) { return (header.flags & format::kEndStamped) != 0; }

// Of a COMMIT or a stamped ABORT, without rows.
size_t EndBytes(const format::RecordHeader& header) {
  return VectorEnd(header) + (IsStamped(header) ? sizeof(uint64_t) : 0);
}
void UnpackCommit(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body) {
  UnpackRows(record, header, body.first(VectorEnd(header)));
}

const char* EndFault(const RecordView& record) {
  if ((record.header.flags & ~format::kEndStamped) != 0) return "unknown flags of an end";
  if (uint32_t{record.header.lv_mask} >> record.log_count != 0) return "a mask of more logs than there are";
  return record.body.size() == EndBytes(record.header) ? nullptr : "length of an LSN vector";
}

const char* StateCommit(const RecordView& record, RecordFacts& facts) {
  const auto txn = FieldOf<TxnId>(record.body);
  if (!txn) return "COMMIT without a transaction";
  Name(*txn, facts);
  return EndFault(record);
}

void DescribeStamp(const RecordView& record, std::string& text) {
  if (!IsStamped(record.header)) return;
  fmt::format_to(std::back_inserter(text), " stamp {}", StampOfEnd(record.body));
}

void DescribeCommit(const RecordView& record, const LsnPerLog* anchor, std::string& text) {
  DescribeVector(record, anchor, text);
  DescribeStamp(record, text);
}

const char* StateAbort(const RecordView& record, RecordFacts& facts) {
  const auto txn = FieldOf<TxnId>(record.body);
  if (!txn) return "ABORT without a transaction";
  Name(*txn, facts);
  if (IsStamped(record.header)) return EndFault(record);
  if (record.header.flags != 0) return "unknown flags of an end";
  return record.body.size() == sizeof *txn && record.header.lv_mask == 0 ? nullptr : "length of an ABORT";
}

void DescribeAbort(const RecordView& record, const LsnPerLog* anchor, std::string& text) {
  text += " txn ";
  DescribeTxn(*FieldOf<TxnId>(record.body), text);
  if (IsStamped(record.header)) DescribeVector(record, anchor, text);
  DescribeStamp(record, text);
}

const char* StateCheckpointBegin(const RecordView& record, RecordFacts&) {
  const auto begin = FieldOf<format::CheckpointBeginBody>(record.body);
  if (!begin || record.body.size() != sizeof *begin) return "length of a checkpoint's begin";
  // The backup with which a run begins has no records.
  return begin->number == 0 ? "checkpoint without a number" : nullptr;
}

void DescribeCheckpointBegin(const RecordView& record, const LsnPerLog*, std::string& text) {
  fmt::format_to(std::back_inserter(text), " number {}", FieldOf<format::CheckpointBeginBody>(record.body)->number);
}

const char* StateCheckpointEnd(const RecordView& record, RecordFacts& facts) {
  const auto end = FieldOf<format::CheckpointEndBody>(record.body);
  if (!end) return "length of a checkpoint's end";
  for (size_t at = sizeof *end; const auto txn = FieldOf<TxnId>(record.body, at); at += sizeof *txn) Name(*txn, facts);
  const size_t listed = record.body.size() - sizeof *end;
  if (listed % sizeof(TxnId) != 0 || listed / sizeof(TxnId) != end->active) return "length of a checkpoint's end";
  return end->number == 0 ? "checkpoint without a number" : nullptr;
}

void DescribeCheckpointEnd(const RecordView& record, const LsnPerLog*, std::string& text) {
  const auto end = *FieldOf<format::CheckpointEndBody>(record.body);
  fmt::format_to(std::back_inserter(text), " number {} active [", end.number);
  for (uint32_t i = 0; i < end.active; ++i) {
    if (i > 0) text += " ";
    DescribeTxn(*FieldOf<TxnId>(record.body, sizeof end + i * sizeof(TxnId)), text);
  }
  text += "]";
}

}  // namespace

const RecordType kChange = {.name = "change", .state = StateChange, .describe = DescribeChange};
const RecordType kCommit = {.name = "commit",
                            .role = RecordRole::kTransaction,
                            .state = StateCommit,
                            .leading_bytes = EndBytes,
                            .has_rows = true,  // though never any
                            .unpack = UnpackCommit,
                            .describe = DescribeCommit};
const RecordType kAbort = {.name = "abort", .state = StateAbort, .describe = DescribeAbort};
const RecordType kCheckpointBegin = {
    .name = "checkpoint_begin", .state = StateCheckpointBegin, .describe = DescribeCheckpointBegin};
const RecordType kCheckpointEnd = {
    .name = "checkpoint_end", .state = StateCheckpointEnd, .describe = DescribeCheckpointEnd};

}  // namespace records
}  // namespace dbx
