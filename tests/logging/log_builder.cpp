#include "tests/logging/log_builder.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>

#include "base/check.h"
#include "base/crc32c.h"

namespace dbx {
namespace {

void AppendUint(std::string& to, uint64_t value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); }

void PadToAlignment(std::string& to) {
  to.resize((to.size() + format::kRecordAlignment - 1) / format::kRecordAlignment * format::kRecordAlignment);
}

template <class T>
std::string AsBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void AppendWrites(std::string& body, const std::vector<BuiltWrite>& writes) {
  for (const BuiltWrite& write : writes) {
    format::WriteEntry entry{};
    entry.key = write.key;
    entry.table = write.table.value();
    entry.op = static_cast<uint8_t>(write.is_delete ? format::WriteOp::kDelete : format::WriteOp::kPut);
    entry.length = static_cast<uint32_t>(write.image.size());
    body += AsBytes(entry) + write.image;
    PadToAlignment(body);
  }
}

}  // namespace

LogBuilder::LogBuilder(uint64_t run_id, uint32_t log_index, uint32_t log_count, format::Scheme scheme)
    : anchor_(log_count, 0) {
  CHECK(log_index < log_count);
  std::memcpy(header_.magic, format::kMagic, sizeof header_.magic);
  header_.version = format::kVersion;
  header_.database_id = 0xDB;
  header_.run_id = run_id;
  header_.log_index = static_cast<uint16_t>(log_index);
  header_.log_count = static_cast<uint16_t>(log_count);
  header_.ring_bytes = uint64_t{1} << 20;
  header_.scheme = static_cast<uint8_t>(scheme);
  header_.payload = static_cast<uint8_t>(format::Payload::kCommand);
}

LogBuilder& LogBuilder::RingBytes(uint64_t ring_bytes) {
  header_.ring_bytes = ring_bytes;
  return *this;
}

LogBuilder& LogBuilder::Config(std::string_view text) {
  CHECK(text.size() <= sizeof header_.config);
  std::memset(header_.config, 0, sizeof header_.config);
  std::memcpy(header_.config, text.data(), text.size());
  header_.config_bytes = static_cast<uint32_t>(text.size());
  return *this;
}

LogBuilder& LogBuilder::PayloadIs(format::Payload payload) {
  header_.payload = static_cast<uint8_t>(payload);
  return *this;
}

LogBuilder& LogBuilder::Uncompressed() {
  compress_ = false;
  return *this;
}

format::RecordHeader LogBuilder::HeaderOf(format::RecordKind kind) const {
  format::RecordHeader header{};
  header.salt = format::Salt(header_.run_id, header_.log_index);
  header.lsn = End();
  header.kind = static_cast<uint8_t>(kind);
  header.log_index = static_cast<uint8_t>(header_.log_index);
  return header;
}

// The transaction id and those elements of `lv` that the last anchor does not cover.
std::string LogBuilder::TxnBody(uint64_t txn_id, const Elements& lv, uint16_t& lv_mask) const {
  CHECK(lv.empty() || lv.size() == header_.log_count);
  std::string body;
  AppendUint(body, txn_id);
  for (size_t j = 0; j < lv.size(); ++j) {
    if (compress_ && lv[j] <= anchor_[j]) continue;
    lv_mask = static_cast<uint16_t>(lv_mask | (1u << j));
    AppendUint(body, lv[j]);
  }
  return body;
}

LogBuilder& LogBuilder::Command(uint64_t txn_id, uint16_t procedure, std::string_view args, const Elements& lv) {
  format::RecordHeader header = HeaderOf(format::RecordKind::kCommand);
  header.procedure = procedure;
  std::string body = TxnBody(txn_id, lv, header.lv_mask);
  body += args;
  PadToAlignment(body);
  ++txn_count_;
  return Raw(header, body);
}

LogBuilder& LogBuilder::VersionedCommand(uint64_t txn_id, format::Timestamps timestamps, uint16_t procedure,
                                         std::string_view args, const Elements& lv) {
  PayloadIs(format::Payload::kVersionedCommand);
  format::RecordHeader header = HeaderOf(format::RecordKind::kVersionedCommand);
  header.procedure = procedure;
  std::string body = TxnBody(txn_id, lv, header.lv_mask);
  body += AsBytes(timestamps);
  body += args;
  PadToAlignment(body);
  ++txn_count_;
  return Raw(header, body);
}

LogBuilder& LogBuilder::Watermark(uint64_t timestamp) {
  return Raw(HeaderOf(format::RecordKind::kWatermark), AsBytes(timestamp));
}

LogBuilder& LogBuilder::Data(uint64_t txn_id, const std::vector<BuiltWrite>& writes, const Elements& lv) {
  format::RecordHeader header = HeaderOf(format::RecordKind::kData);
  std::string body = TxnBody(txn_id, lv, header.lv_mask);
  AppendWrites(body, writes);
  ++txn_count_;
  return Raw(header, body);
}

LogBuilder& LogBuilder::Stamped(uint64_t txn_id, uint64_t stamp, uint16_t parts,
                                const std::vector<BuiltWrite>& writes) {
  format::RecordHeader header = HeaderOf(format::RecordKind::kStamped);
  header.lv_mask = parts;
  std::string body;
  AppendUint(body, txn_id);
  AppendUint(body, stamp);
  AppendWrites(body, writes);
  ++txn_count_;
  return Raw(header, body);
}

LogBuilder& LogBuilder::Mark(uint64_t stamp, uint64_t durable_stamp) {
  return Raw(HeaderOf(format::RecordKind::kMark), AsBytes(format::MarkBody{stamp, durable_stamp}));
}

LogBuilder& LogBuilder::Change(const BuiltChange& change) {
  format::RecordHeader header = HeaderOf(format::RecordKind::kChange);
  header.lv_mask = change.table;
  header.procedure = change.slot;
  header.flags = change.flags;
  std::string body = AsBytes(format::ChangeBody{change.txn_id, change.page, change.number});
  if ((change.flags & format::kChangePresence) != 0) AppendUint(body, change.key);
  body += change.image;
  PadToAlignment(body);
  return Raw(header, body);
}

LogBuilder& LogBuilder::Commit(uint64_t txn_id, const Elements& lv, std::optional<uint64_t> stamp) {
  ++txn_count_;
  return EndTxn(format::RecordKind::kCommit, txn_id, lv, stamp);
}
LogBuilder& LogBuilder::Abort(uint64_t txn_id) { return Raw(HeaderOf(format::RecordKind::kAbort), AsBytes(txn_id)); }
LogBuilder& LogBuilder::Abort(uint64_t txn_id, const Elements& lv, uint64_t stamp) {
  return EndTxn(format::RecordKind::kAbort, txn_id, lv, stamp);
}

LogBuilder& LogBuilder::EndTxn(format::RecordKind kind, uint64_t txn_id, const Elements& lv,
                               std::optional<uint64_t> stamp) {
  format::RecordHeader header = HeaderOf(kind);
  std::string body = TxnBody(txn_id, lv, header.lv_mask);
  if (stamp) {
    header.flags = format::kEndStamped;
    AppendUint(body, *stamp);
  }
  return Raw(header, body);
}

LogBuilder& LogBuilder::CheckpointBegin(uint32_t number) {
  return Raw(HeaderOf(format::RecordKind::kCheckpointBegin), AsBytes(format::CheckpointBeginBody{number, 0}));
}

LogBuilder& LogBuilder::CheckpointEnd(uint32_t number, const std::vector<uint64_t>& active) {
  std::string body = AsBytes(format::CheckpointEndBody{number, static_cast<uint32_t>(active.size())});
  for (const uint64_t txn_id : active) AppendUint(body, txn_id);
  return Raw(HeaderOf(format::RecordKind::kCheckpointEnd), body);
}

LogBuilder& LogBuilder::Void(uint32_t length) {
  CHECK(length >= sizeof(format::RecordHeader) && length % format::kRecordAlignment == 0);
  return Raw(HeaderOf(format::RecordKind::kVoid), std::string(length - sizeof(format::RecordHeader), 'v'));
}

LogBuilder& LogBuilder::Anchor(const Elements& durable) {
  CHECK(durable.size() == header_.log_count);
  std::string body;
  for (uint64_t lsn : durable) AppendUint(body, lsn);
  Raw(HeaderOf(format::RecordKind::kAnchor), body);
  anchor_ = durable;
  return *this;
}

LogBuilder& LogBuilder::Pad(std::optional<uint64_t> durable_lsn) {
  constexpr uint64_t kLeast = sizeof(format::RecordHeader) + sizeof(format::PadBody);
  uint64_t length = format::kBlockBytes - End() % format::kBlockBytes;
  if (length < kLeast) length += format::kBlockBytes;
  std::string body = AsBytes(format::PadBody{durable_lsn.value_or(End())});
  body.resize(length - sizeof(format::RecordHeader));
  return Raw(HeaderOf(format::RecordKind::kPad), body);
}

LogBuilder& LogBuilder::RunEnd(std::optional<uint64_t> durable_lsn, std::optional<uint64_t> txn_count) {
  format::RunEndBody body{};
  body.durable_lsn = durable_lsn.value_or(End());
  body.txn_count = txn_count.value_or(txn_count_);
  return Raw(HeaderOf(format::RecordKind::kRunEnd), AsBytes(body));
}

LogBuilder& LogBuilder::Raw(format::RecordHeader header, std::string_view body) {
  if (header.length == 0) header.length = static_cast<uint32_t>(sizeof header + body.size());
  const auto body_bytes = std::as_bytes(std::span(body));
  const bool is_void = header.kind == static_cast<uint8_t>(format::RecordKind::kVoid);
  header.body_crc = is_void ? 0 : Crc32c(body_bytes);
  header.header_crc = Crc32c(std::as_bytes(std::span(&header, 1)).subspan(sizeof header.header_crc));
  const auto header_bytes = std::as_bytes(std::span(&header, 1));
  starts_.push_back(End());
  stream_.insert(stream_.end(), header_bytes.begin(), header_bytes.end());
  stream_.insert(stream_.end(), body_bytes.begin(), body_bytes.end());
  return *this;
}

LogBuilder& LogBuilder::Hole(uint64_t bytes) {
  CHECK(bytes % format::kRecordAlignment == 0);
  stream_.resize(stream_.size() + bytes);
  return *this;
}

LogBytes LogBuilder::Bytes() const {
  format::FileHeader header = header_;
  header.header_crc = 0;
  header.header_crc = Crc32c(std::as_bytes(std::span(&header, 1)));
  const auto copy = std::as_bytes(std::span(&header, 1));
  LogBytes file(copy.begin(), copy.end());
  file.insert(file.end(), copy.begin(), copy.end());
  file.insert(file.end(), stream_.begin(), stream_.end());
  return file;
}

LogBytes FlipBit(LogBytes file, uint64_t offset, int bit) {
  file.at(offset) ^= std::byte{1} << bit;
  return file;
}

LogBytes Truncate(LogBytes file, uint64_t bytes) {
  CHECK(bytes <= file.size());
  file.resize(bytes);
  return file;
}

LogBytes ZeroBytes(LogBytes file, uint64_t offset, uint64_t bytes) {
  CHECK(offset <= file.size());
  std::fill_n(file.begin() + static_cast<ptrdiff_t>(offset), std::min<uint64_t>(bytes, file.size() - offset),
              std::byte{0});
  return file;
}

LogBytes AppendGarbage(LogBytes file, uint64_t bytes, uint64_t seed) {
  for (; bytes > 0; --bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    file.push_back(std::byte(seed >> 56));
  }
  return file;
}

LogBytes AppendZeros(LogBytes file, uint64_t bytes) {
  file.resize(file.size() + bytes);
  return file;
}

LogBytes Transplant(LogBytes file, uint64_t offset, const LogBytes& other, uint64_t from, uint64_t bytes) {
  CHECK(from + bytes <= other.size());
  if (file.size() < offset + bytes) file.resize(offset + bytes);
  std::copy_n(other.begin() + static_cast<ptrdiff_t>(from), bytes, file.begin() + static_cast<ptrdiff_t>(offset));
  return file;
}

void WriteLogFile(const std::string& path, const LogBytes& file) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  out.close();
  CHECK(out.good());
}

}  // namespace dbx
