#include "logging/records/versioned_records.h"

#include <fmt/format.h>

#include <iterator>

#include "logging/records/basic_records.h"

namespace dbx::records {
namespace {

// Body of a command: [txn id][LV elements][read][end][arguments].
size_t TimestampsAt(const format::RecordHeader& header) {
  return sizeof(TxnId) + StoredElements(header) * sizeof(uint64_t);
}
size_t LeadingBytes(const format::RecordHeader& header) { return TimestampsAt(header) + sizeof(format::Timestamps); }

const char* StateCommand(const RecordView& record, RecordFacts& facts) {
  const auto timestamps = TimestampsOf(record.header, record.body);
  if (!timestamps) return "transaction record too short";
  if (timestamps->end > format::kTimestampMax) return "impossible timestamps";
  facts.stamp = StampOf(Timestamp(timestamps->end));
  if (timestamps->read >= timestamps->end) return "impossible timestamps";
  facts.reads_at = Timestamp(timestamps->read);
  return nullptr;
}

// The transaction id takes the place of the end timestamp, in front of the arguments.
void UnpackCommand(TxnRecord& record, const format::RecordHeader& header, std::span<std::byte> body) {
  const format::Timestamps timestamps = *TimestampsOf(header, body);
  record.read_timestamp = Timestamp(timestamps.read);
  record.stamp = StampOf(Timestamp(timestamps.end));
  record.lv = reinterpret_cast<const uint64_t*>(body.data() + sizeof(TxnId));
  record.payload = body.subspan(TimestampsAt(header) + sizeof timestamps.read);
  std::memcpy(record.payload.data(), &record.txn_id, sizeof record.txn_id);
}

void DescribeCommand(const RecordView& record, const LsnPerLog* anchor, std::string& text) {
  DescribeVector(record, anchor, text);
  const format::Timestamps timestamps = *TimestampsOf(record.header, record.body);
  fmt::format_to(std::back_inserter(text), " reads at {} ends at {}", timestamps.read, timestamps.end);
}

const char* StateWatermark(const RecordView& record, RecordFacts& facts) {
  const auto timestamp = FieldOf<Timestamp>(record.body);
  if (!timestamp) return "watermark without a timestamp";
  facts.watermark = *timestamp;
  return nullptr;
}

void DescribeWatermark(const RecordView& record, const LsnPerLog*, std::string& text) {
  fmt::format_to(std::back_inserter(text), " no snapshot below {}", FieldOf<Timestamp>(record.body)->value());
}

}  // namespace

std::optional<format::Timestamps> TimestampsOf(const format::RecordHeader& header, std::span<const std::byte> body) {
  return FieldOf<format::Timestamps>(body, TimestampsAt(header));
}

const RecordType kVersionedCommand = {.name = "versioned_command",
                                      .role = RecordRole::kTransaction,
                                      .state = StateCommand,
                                      .leading_bytes = LeadingBytes,
                                      .unpack = UnpackCommand,
                                      .describe = DescribeCommand};
const RecordType kWatermark = {.name = "watermark", .state = StateWatermark, .describe = DescribeWatermark};

}  // namespace dbx::records
