#include "multi_master/log/lfb_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "logging/record_builder.h"

namespace dbx::mm {
namespace {

using format::RecordHeader;
using format::RecordKind;

constexpr size_t kBufferBytesMax = 16 << 20;
constexpr uint32_t kRecordBytesMax = 8 << 20;

}  // namespace

LfbReader::LfbReader(Network& network, const LfbReaderOptions& options)
    : network_(network),
      options_(options),
      set_(options.set),
      turn_(options.first_store),
      first_(options.start),
      part_begin_(options.start),
      last_lfb_(options.predecessor) {}

void LfbReader::Damaged(const std::string& why) const {
  const Lsn at = first_ + parsed_;
  throw Error(ExitStatus::kCorrupt, "cannot read log of master " + std::to_string(options_.log.value()) + "@" +
                                        std::to_string(at.value()) + ": " + why);
}

Lsn LfbReader::position() {
  const std::lock_guard lock(mutex_);
  return first_;
}

Lsn LfbReader::received() {
  const std::lock_guard lock(mutex_);
  return end();
}

void LfbReader::SetStores(const StoreSet& set) {
  const std::lock_guard lock(mutex_);
  set_ = set;
  shunned_until_nanos_ = {};
}

// To the next store that is not passed over, or to the next one.
void LfbReader::Turn(uint64_t now) {
  for (uint32_t step = 1; step <= kLogStores; ++step) {
    if (shunned_until_nanos_[(turn_ + step) % kLogStores] > now) continue;
    turn_ += step;
    return;
  }
  ++turn_;
}

void LfbReader::Ask(bool turn) {
  if (turn) Turn(host::MonotonicNanos());
  LogMessage read;
  read.log = options_.log;
  read.set = set_;
  read.at = asked_at_ = end();
  read.length = options_.read_bytes;
  is_asked_ = true;
  asked_nanos_ = host::MonotonicNanos();
  network_.Send({Role::kLogStore, set_.stores[turn_ % kLogStores]}, kLogRead, EncodeLog(read));
}

bool LfbReader::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  const std::optional<LogMessage> data = DecodeLog(body);
  if (!data || type != kLogData || from.role != Role::kLogStore) return false;
  const std::lock_guard lock(mutex_);
  // A late answer of a store that was asked before, too, if it fits.
  if (data->log != options_.log || data->raw || data->at != end() || data->length == 0) return true;
  if (data->at == data->part_begin && data->part_begin > part_begin_) BeginPart();
  const size_t bytes_before = buffer_.size();
  buffer_.insert(buffer_.end(), data->bytes.begin(), data->bytes.end());
  buffer_.resize(bytes_before + data->length);
  is_asked_ = false;
  if (buffer_.size() - taken_ < kBufferBytesMax) Ask(false);
  came_.notify_all();
  return true;
}

// What no LFB has covered before the seal was never durable; whole groups in front of it are taken first.
void LfbReader::BeginPart() {
  const Lsn begin = end();
  pending_parts_.push_back(begin);
  part_begin_ = begin;
}

void LfbReader::OnLinkDown(NodeId peer) {
  if (peer.role != Role::kLogStore) return;
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < kLogStores; ++i) {
    if (set_.stores[i] != peer.index) continue;
    shunned_until_nanos_[i] =
        host::MonotonicNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(options_.shunned).count());
  }
  if (!is_asked_ || peer.index != set_.stores[turn_ % kLogStores]) return;
  is_asked_ = false;
  came_.notify_all();
}

std::optional<LfbGroup> LfbReader::Next(std::chrono::nanoseconds time) {
  const uint64_t deadline = host::MonotonicNanos() + static_cast<uint64_t>(time.count());
  const auto patience = std::chrono::nanoseconds(options_.patience);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (TakeUntilLfb()) break;
    const uint64_t now = host::MonotonicNanos();
    if (now >= deadline) return std::nullopt;
    const bool is_late = is_asked_ && now - asked_nanos_ >= static_cast<uint64_t>(patience.count());
    if (!is_asked_ || is_late) Ask(is_late || asked_nanos_ != 0);
    const Lsn had = end();
    const uint64_t wait = std::min<uint64_t>(deadline - now, static_cast<uint64_t>(patience.count()));
    came_.wait_for(lock, std::chrono::nanoseconds(wait), [&] { return !is_asked_ || end() != had; });
  }
  LfbGroup group = std::exchange(group_, {});
  const auto begin = buffer_.begin() + static_cast<ptrdiff_t>(taken_);
  // Of their size exactly: a group may be kept for long.
  group.bytes.assign(begin, begin + static_cast<ptrdiff_t>(parsed_));
  Drop(std::exchange(parsed_, 0));
  return group;
}

// Moves what is left only when that is the smaller part: a log may be read much faster than its groups are taken.
void LfbReader::Drop(size_t bytes) {
  taken_ += bytes;
  first_ += bytes;
  if (2 * taken_ < buffer_.size()) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
}

// False: the LFB that ends the group is not there yet.
bool LfbReader::TakeUntilLfb() {
  for (;;) {
    if (!pending_parts_.empty() && Crosses(pending_parts_.front())) {
      Drop(pending_parts_.front() - first_);
      group_.records.clear();
      parsed_ = 0;
      pending_parts_.pop_front();
    }
    switch (LookAtRecord()) {
      case Look::kLfb:
        return true;
      case Look::kIncomplete:
        return false;
      case Look::kRecord:
        break;
    }
  }
}

// The next record is not of the part that ends there: it begins there, or is cut off by the seal.
bool LfbReader::Crosses(Lsn part_end) const {
  const Lsn at = first_ + parsed_;
  if (at >= part_end) return true;
  RecordHeader header;
  if (part_end - at < sizeof header) return true;
  std::memcpy(&header, buffer_.data() + taken_ + parsed_, sizeof header);
  // A header that is not right is not skipped: it is reported.
  return header.header_crc == HeaderCrc(header) && at + header.length > part_end;
}

LfbReader::Look LfbReader::LookAtRecord() {
  const std::span<const std::byte> rest = std::span(buffer_).subspan(taken_ + parsed_);
  RecordHeader header;
  if (rest.size() < sizeof header) return Look::kIncomplete;
  std::memcpy(&header, rest.data(), sizeof header);
  const Lsn at = first_ + parsed_;
  if (header.header_crc != HeaderCrc(header)) Damaged("a record header's checksum is wrong");
  if (header.salt != options_.salt || header.log_index != options_.log.value()) Damaged("a record of another log");
  if (header.lsn != at.value()) Damaged("a record of another place");
  if (header.length < sizeof header || header.length % format::kRecordAlignment != 0 ||
      header.length > kRecordBytesMax) {
    Damaged("a record's length cannot be");
  }
  if (rest.size() < header.length) return Look::kIncomplete;
  const auto body = rest.subspan(sizeof header, header.length - sizeof header);
  const auto kind = static_cast<RecordKind>(header.kind);
  if (kind != RecordKind::kVoid && Crc32c(body) != header.body_crc) Damaged("a record's checksum is wrong");
  if (kind == kPagesKind || kind == kEndKind) {
    const bool is_whole = kind == kPagesKind ? DecodePagesRecord(body).has_value() : DecodeEnd(body).has_value();
    if (!is_whole) Damaged("a malformed record");
    group_.records.push_back({kind, at, parsed_ + sizeof header, body.size()});
  } else if (kind == kLfbKind) {
    const std::optional<LfbStamp> lfb = DecodeLfb(options_.log, body);
    if (!lfb || lfb->predecessor != last_lfb_) Damaged("an LFB that does not follow the one before it");
    group_.lfb = *lfb;
    last_lfb_ = lfb->time();
  } else if (kind != RecordKind::kPad && kind != RecordKind::kVoid) {
    Damaged("a record of a kind that this log does not have");
  }
  parsed_ += header.length;
  group_.end = first_ + parsed_;
  return kind == kLfbKind ? Look::kLfb : Look::kRecord;
}

}  // namespace dbx::mm
