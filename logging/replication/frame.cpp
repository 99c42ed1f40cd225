#include "logging/replication/frame.h"

#include <cstring>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/racy.h"
#include "logging/replication/channel.h"

namespace dbx {
namespace {

[[noreturn]] void Refuse(const char* why) { throw Error(ExitStatus::kCorrupt, std::string("no valid frame: ") + why); }

}  // namespace

Frame::Frame(FrameKind kind, uint32_t file) : bytes_(sizeof(FrameHeader)) {
  header().kind = kind;
  header().file = file;
}

void Frame::Add(const void* bytes, size_t count) {
  const auto* const from = static_cast<const std::byte*>(bytes);
  bytes_.insert(bytes_.end(), from, from + count);
}

void Frame::AddRange(uint64_t offset, const std::byte* from, size_t count) {
  AddNumber(offset);
  AddNumber(count);
  const size_t at = bytes_.size();
  bytes_.resize(at + count);
  RacyCopy(bytes_.data() + at, from, count);
}

std::span<const std::byte> Frame::Sealed() {
  header().body_bytes = static_cast<uint32_t>(body_bytes());
  header().checksum = Crc32c(std::span<const std::byte>(bytes_).subspan(sizeof header().checksum));
  return bytes_;
}

bool ReceiveFrame(ReplicaChannel& channel, ReceivedFrame& frame) {
  if (!channel.Receive(std::as_writable_bytes(std::span(&frame.header, 1)))) return false;
  const FrameHeader& header = frame.header;
  if (header.body_bytes > 2 * kFrameBodyBytesMax) Refuse("it is too long");
  frame.body.resize(header.body_bytes);
  if (header.body_bytes > 0 && !channel.Receive(frame.body)) {
    throw Error(ExitStatus::kIo, "the connection was closed within a frame");
  }
  const auto bytes = std::as_bytes(std::span(&header, 1)).subspan(sizeof header.checksum);
  if (Crc32cExtend(Crc32c(bytes), frame.body) != header.checksum) Refuse("its checksum is wrong");
  return true;
}

template <class T>
T FrameReader::Read() {
  T value;
  std::memcpy(&value, Bytes(sizeof value).data(), sizeof value);
  return value;
}
template uint64_t FrameReader::Read<uint64_t>();
template uint32_t FrameReader::Read<uint32_t>();

std::span<const std::byte> FrameReader::Bytes(uint64_t count) {
  if (count > rest_.size()) Refuse("its body is too short");
  const auto bytes = rest_.first(count);
  rest_ = rest_.subspan(count);
  return bytes;
}

std::string FrameReader::Rest() {
  const auto bytes = Bytes(rest_.size());
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace dbx
