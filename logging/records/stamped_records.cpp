#include "logging/records/stamped_records.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>

namespace dbx::records {
namespace {

// Body of a transaction, or its part in this log: [txn id][stamp][rows].
constexpr size_t kLeadingBytes = sizeof(TxnId) + sizeof(Stamp);

size_t LeadingBytes(const format::RecordHeader&) { return kLeadingBytes; }

const char* StateStamped(const RecordView& record, RecordFacts& facts) {
  const auto stamp = FieldOf<Stamp>(record.body, sizeof(TxnId));
  if (!stamp) return "transaction record too short";
  facts.stamp = *stamp;
  return nullptr;
}

void UnpackStamped(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body) {
  record.stamp = *FieldOf<Stamp>(body, sizeof(TxnId));
  // A transaction with parts in several logs counts in the first of them.
  record.counts = header.lv_mask == 0 || static_cast<uint32_t>(std::countr_zero(header.lv_mask)) == record.log;
  record.payload = body.subspan(kLeadingBytes);
}

void DescribeStamped(const RecordView& record, const LsnPerLog*, std::string& text) {
  const Stamp stamp = *FieldOf<Stamp>(record.body, sizeof(TxnId));
  fmt::format_to(std::back_inserter(text), " stamp {} parts {:04x}", stamp.value(), record.header.lv_mask);
}

const char* StateMark(const RecordView& record, RecordFacts& facts) {
  const auto mark = FieldOf<format::MarkBody>(record.body);
  if (!mark) return "mark without a stamp";
  facts.stamp = Stamp(mark->stamp);
  facts.durable_stamp = Stamp(mark->durable_stamp);
  return nullptr;
}

void DescribeMark(const RecordView& record, const LsnPerLog*, std::string& text) {
  const auto mark = *FieldOf<format::MarkBody>(record.body);
  fmt::format_to(std::back_inserter(text), " stamp {} durable {}", mark.stamp, mark.durable_stamp);
}

}  // namespace

const RecordType kStamped = {.name = "stamped",
                             .role = RecordRole::kTransaction,
                             .state = StateStamped,
                             .leading_bytes = LeadingBytes,
                             .has_rows = true,
                             .unpack = UnpackStamped,
                             .describe = DescribeStamped};
const RecordType kMark = {.name = "mark", .state = StateMark, .describe = DescribeMark};

}  // namespace dbx::records
