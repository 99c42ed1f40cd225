// Messages and log records as bytes: fixed little-endian fields one after the other, and lists behind their lengths.
//
// The same fields go into a vector that grows (WireWriter), or, on the path of transactions, are measured first and
// then written to where they stay (WireCounter, PlacedWriter).
//
// A WireReader is for bytes that a peer or a disk has sent, which may be any: it never reads behind their end. After
// the first field that does not fit it yields zeros, and ok() is false; a decoder asks once, at the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "multi_master/names.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

static_assert(std::endian::native == std::endian::little);

// Where the fields of a writer go.
class GrowingBytes {
 public:
  explicit GrowingBytes(std::vector<std::byte>& to) : to_(to) {}
  void Append(const std::byte* bytes, size_t count) { to_.insert(to_.end(), bytes, bytes + count); }

 private:
  std::vector<std::byte>& to_;
};
// There is space for all that is written.
class PlacedBytes {
 public:
  explicit PlacedBytes(std::byte* to) : at_(to) {}
  void Append(const std::byte* bytes, size_t count) {
    if (count > 0) std::memcpy(at_, bytes, count);
    at_ += count;
  }
  const std::byte* end() const { return at_; }

 private:
  std::byte* at_;
};
class CountedBytes {
 public:
  void Append(const std::byte*, size_t count) { count_ += count; }
  size_t count() const { return count_; }

 private:
  size_t count_ = 0;
};

template <class Bytes>
class BasicWireWriter {
 public:
  explicit BasicWireWriter(auto&&... to) : to_(to...) {}

  const Bytes& bytes() const { return to_; }

  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void Put(T value) {
    to_.Append(reinterpret_cast<const std::byte*>(&value), sizeof value);
  }
  template <class Tag, class Rep>
  void Put(StrongInt<Tag, Rep> value) {
    Put(value.value());
  }
  void Put(VsTime time) { Put(time.value()); }
  void Put(const PageLsn& lsn) {
    Put(lsn.master);
    Put(lsn.time);
  }
  void Put(const TxnName& txn) {
    Put(txn.master);
    Put(txn.epoch);
    Put(txn.sequence);
  }
  // The elements that are not 0, behind a mask of 16 bits that tells which.
  void Put(const VsVector& vector) {
    uint16_t mask = 0;
    for (uint8_t i = 0; i < kMastersMax; ++i) {
      if (vector.of(MasterId(i)).value() > 0) mask = static_cast<uint16_t>(mask | 1u << i);
    }
    Put(mask);
    for (uint8_t i = 0; i < kMastersMax; ++i) {
      if (mask >> i & 1) Put(vector.of(MasterId(i)));
    }
  }
  // Behind their number.
  void PutList(std::span<const std::byte> bytes) {
    Put(static_cast<uint32_t>(bytes.size()));
    PutBytes(bytes);
  }
  void PutBytes(std::span<const std::byte> bytes) { to_.Append(bytes.data(), bytes.size()); }

 private:
  Bytes to_;
};
using WireWriter = BasicWireWriter<GrowingBytes>;
using PlacedWriter = BasicWireWriter<PlacedBytes>;
using WireCounter = BasicWireWriter<CountedBytes>;

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> from) : rest_(from) {}

  // All fields read so far were there.
  bool ok() const { return ok_; }
  // They were, and nothing follows them.
  bool AtEnd() const { return ok_ && rest_.empty(); }
  size_t bytes_left() const { return rest_.size(); }
  // What was read cannot be.
  void Refuse() {
    ok_ = false;
    rest_ = {};
  }

  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) T Get() {
    T value{};
    const std::span<const std::byte> bytes = GetBytes(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  template <class T>
  requires(requires { typename T::rep_type; }) T Get() { return T(Get<typename T::rep_type>()); }
  MasterId GetMaster() {
    const auto master = Get<MasterId>();
    if (master.value() >= kMastersMax) Refuse();
    return ok_ ? master : MasterId();
  }
  VsTime GetTime() { return VsTime(Get<uint64_t>()); }
  PageLsn GetPageLsn() {
    const MasterId master = GetMaster();
    return {master, GetTime()};
  }
  TxnName GetTxn() {
    const MasterId master = GetMaster();
    const auto epoch = Get<ClusterEpoch>();
    return {master, epoch, Get<uint64_t>()};
  }
  LockMode GetMode() {
    const auto mode = Get<LockMode>();
    if (mode != LockMode::kShared && mode != LockMode::kExclusive) Refuse();
    return ok_ ? mode : LockMode::kShared;
  }
  VsVector GetVector() {
    const auto mask = Get<uint16_t>();
    VsVector vector;
    for (uint8_t i = 0; i < kMastersMax; ++i) {
      if (mask >> i & 1) vector.Set(MasterId(i), GetTime());
    }
    return vector;
  }
  std::span<const std::byte> GetList() { return GetBytes(Get<uint32_t>()); }
  // The number of items of a list, each of which takes `item_bytes` at least.
  uint32_t GetCount(size_t item_bytes) {
    const auto count = Get<uint32_t>();
    if (uint64_t{count} * item_bytes > rest_.size()) Refuse();
    return ok_ ? count : 0;
  }
  std::span<const std::byte> GetBytes(size_t count) {
    if (count > rest_.size()) Refuse();
    if (!ok_) return {};
    const std::span<const std::byte> bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// The body of a message that has Encode and Decode.
template <class Message>
std::vector<std::byte> EncodeBody(const Message& message) {
  std::vector<std::byte> body;
  WireWriter writer(body);
  message.Encode(writer);
  return body;
}

template <class Message>
std::optional<Message> DecodeBody(std::span<const std::byte> body) {
  WireReader reader(body);
  Message message = Message::Decode(reader);
  if (!reader.AtEnd()) return std::nullopt;
  return message;
}

}  // namespace dbx::mm
