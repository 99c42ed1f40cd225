#include "logging/records/basic_records.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>

namespace dbx::records {
namespace {

// Body of a command or of rows: [txn id][LV elements][rest]. It becomes [LV elements][txn id][rest], so that the
// arguments of a command, which start with the transaction id, are contiguous.
void UnpackVector(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body) {
  const size_t lv_bytes = StoredElements(header) * sizeof(uint64_t);
  if (lv_bytes > 0) {
    std::memmove(body.data(), body.data() + sizeof(TxnId), lv_bytes);
    std::memcpy(body.data() + lv_bytes, &record.txn_id, sizeof record.txn_id);
  }
  record.lv = reinterpret_cast<const uint64_t*>(body.data());
  record.payload = body.subspan(lv_bytes);
}

const char* StatePad(const RecordView& record, RecordFacts& facts) {
  facts.durable = FieldOf<Lsn>(record.body);
  return facts.durable ? nullptr : "PAD without a durable LSN";
}

const char* StateAnchor(const RecordView& record, RecordFacts& facts) {
  if (record.body.size() != record.log_count * sizeof(Lsn)) return "anchor of another number of logs";
  std::memcpy(facts.durable_logs.emplace().data(), record.body.data(), record.body.size());
  return nullptr;
}

const char* StateRunEnd(const RecordView& record, RecordFacts& facts) {
  facts.durable = FieldOf<Lsn>(record.body);
  facts.run_end = FieldOf<format::RunEndBody>(record.body);
  return facts.run_end ? nullptr : "RUN_END is too short";
}

void DescribePad(const RecordView& record, const LsnPerLog*, std::string& text) {
  fmt::format_to(std::back_inserter(text), " durable {}", FieldOf<Lsn>(record.body)->value());
}

void DescribeAnchor(const RecordView& record, const LsnPerLog*, std::string& text) {
  text += " durable [";
  for (uint32_t j = 0; j < record.log_count; ++j) {
    const Lsn durable = *FieldOf<Lsn>(record.body, j * sizeof(Lsn));
    fmt::format_to(std::back_inserter(text), "{}{}", j == 0 ? "" : " ", durable.value());
  }
  text += "]";
}

void DescribeRunEnd(const RecordView& record, const LsnPerLog*, std::string& text) {
  const auto end = *FieldOf<format::RunEndBody>(record.body);
  fmt::format_to(std::back_inserter(text), " durable {} transactions {}", end.durable_lsn, end.txn_count);
  if (end.has_digest != 1) return;
  fmt::format_to(std::back_inserter(text), " digest {:016x}{:016x}", end.digest[0], end.digest[1]);
}

}  // namespace

size_t StoredElements(const format::RecordHeader& header) { return static_cast<size_t>(std::popcount(header.lv_mask)); }

size_t VectorEnd(const format::RecordHeader& header) {
  return sizeof(TxnId) + StoredElements(header) * sizeof(uint64_t);
}

void UnpackRows(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body) {
  UnpackVector(record, header, body);
  record.payload = record.payload.subspan(sizeof(TxnId));
}

void DescribeVector(const RecordView& record, const LsnPerLog* anchor, std::string& text) {
  if (anchor == nullptr) return;
  text += " lv [";
  size_t taken = 0;
  for (uint32_t j = 0; j < record.log_count; ++j) {
    const bool is_stored = (record.header.lv_mask >> j & 1) != 0;
    const Lsn lsn = is_stored ? *FieldOf<Lsn>(record.body, sizeof(TxnId) + taken++ * sizeof(Lsn)) : (*anchor)[j];
    fmt::format_to(std::back_inserter(text), "{}{}{}", j == 0 ? "" : " ", lsn.value(), is_stored ? "*" : "");
  }
  text += "]";
}

const RecordType kCommand = {.name = "command",
                             .role = RecordRole::kTransaction,
                             .leading_bytes = VectorEnd,
                             .unpack = UnpackVector,
                             .describe = DescribeVector};
const RecordType kData = {.name = "data",
                          .role = RecordRole::kTransaction,
                          .leading_bytes = VectorEnd,
                          .has_rows = true,
                          .unpack = UnpackRows,
                          .describe = DescribeVector};
const RecordType kVoid = {.name = "void", .role = RecordRole::kVoid};
const RecordType kPad = {.name = "pad", .evidence = "PAD", .state = StatePad, .describe = DescribePad};
const RecordType kAnchor = {.name = "anchor",
                            .role = RecordRole::kAnchor,
                            .evidence = "anchor",
                            .state = StateAnchor,
                            .describe = DescribeAnchor};
const RecordType kRunEnd = {.name = "run_end", .evidence = "RUN_END", .state = StateRunEnd, .describe = DescribeRunEnd};

}  // namespace dbx::records
