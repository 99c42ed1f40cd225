#include "multi_master/message.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "multi_master/wire.h"

namespace dbx::mm {
namespace {

constexpr size_t kCrcBytes = sizeof(MessageHeader::crc);

}  // namespace

void EncodeMessage(const LinkTerms& terms, MessageType type, std::span<const std::byte> body,
                   std::vector<std::byte>& to) {
  CHECK(body.size() <= kMessageBodyBytesMax);
  MessageHeader header{};
  header.version = kMessageVersion;
  header.type = type.value();
  header.body_bytes = static_cast<uint32_t>(body.size());
  header.epoch = terms.epoch.value();
  header.cluster = terms.cluster.value();
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.crc = Crc32cExtend(Crc32c(bytes.subspan(kCrcBytes)), body);
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.insert(to.end(), body.begin(), body.end());
}

std::vector<std::byte> HelloBody(NodeId self) {
  std::vector<std::byte> body;
  WireWriter writer(body);
  writer.Put(self.role);
  writer.Put(self.index);
  return body;
}

std::optional<NodeId> DecodeHello(std::span<const std::byte> body) {
  WireReader reader(body);
  const auto role = reader.Get<Role>();
  const auto index = reader.Get<uint8_t>();
  const bool is_role = role >= Role::kMaster && role <= Role::kLast;
  if (!reader.AtEnd() || !is_role || (role == Role::kMaster && index >= kMastersMax)) return std::nullopt;
  return NodeId{role, index};
}

std::span<std::byte> MessageStream::Room(size_t bytes) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() - end_ < bytes) {
    if (end_ > begin_) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (buffer_.size() - end_ < bytes) buffer_.resize(std::max(end_ + bytes, 2 * buffer_.size()));
  }
  return std::span(buffer_).subspan(end_);
}

void MessageStream::Append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(Room(bytes.size()).data(), bytes.data(), bytes.size());
  Taken(bytes.size());
}

MessageStream::Next MessageStream::Refuse(std::string why) {
  refusal_ = std::move(why);
  return Next::kRefused;
}

MessageStream::Next MessageStream::Take(Message& message) {
  if (!refusal_.empty()) return Next::kRefused;
  MessageHeader header;
  if (end_ - begin_ < sizeof header) return Next::kIncomplete;
  const std::span<const std::byte> bytes = std::span(buffer_).subspan(begin_, end_ - begin_);
  std::memcpy(&header, bytes.data(), sizeof header);
  // What decides how much is waited for comes first.
  if (header.version != kMessageVersion) {
    return Refuse("version " + std::to_string(header.version) + " of messages, not " + std::to_string(kMessageVersion));
  }
  if (header.body_bytes > kMessageBodyBytesMax) {
    return Refuse("a message of " + std::to_string(header.body_bytes) + " bytes, more than " +
                  std::to_string(kMessageBodyBytesMax));
  }
  if (header.cluster != cluster_.value()) {
    return Refuse("a message of cluster " + std::to_string(header.cluster) + ", not " +
                  std::to_string(cluster_.value()));
  }
  const size_t length = sizeof header + header.body_bytes;
  if (bytes.size() < length) return Next::kIncomplete;
  if (Crc32c(bytes.first(length).subspan(kCrcBytes)) != header.crc) return Refuse("a message with a wrong checksum");
  message = {MessageType(header.type), ClusterEpoch(header.epoch), bytes.subspan(sizeof header, header.body_bytes)};
  begin_ += length;
  return Next::kMessage;
}

std::string EpochFault(ClusterEpoch theirs, ClusterEpoch ours) {
  if (theirs == ours) return "";
  return "a message of epoch " + std::to_string(theirs.value()) + ", " + (theirs < ours ? "older" : "newer") +
         " than this process's, " + std::to_string(ours.value());
}

}  // namespace dbx::mm
