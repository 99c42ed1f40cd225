// What masters, the lock process and readers say to Log Stores, and these to them.
//
//   kOpen      writer -> store    this epoch writes the log from `at` on: what lies behind it is cut off
//   kAppend    writer -> store    bytes of the log at `at`; `complete`: two stores have all below
//   kComplete  writer -> store    the same without bytes: told when the log is idle, too
//   kAppended  store -> writer    all below `at` is on this store's disk
//   kFence     fencer -> store    from now on no epoch below this one writes
//   kSeal      fencer -> store    the log of the fenced epochs ends at `at`: what lies behind it is cut off
//   kCopy      fencer -> store    take what you lack of the log from the store `peer`
//   kState     store -> any       what the store has; the answer to kOpen, kFence, kSeal, and to an append with a gap
//   kStale     store -> any       refused for ever: the epoch is fenced or the set of stores is an older one
//   kRead      reader -> store    bytes of the log from `at` on, as soon as there are any; raw: all that the store has
//   kData      store -> reader    bytes, of one epoch's part of the log
//
// All begin with the same fields (LogMessage). Each names the number of the set of Log Stores that its sender knows: a
// fencer with an old set and a writer with a new one need not meet at any store, so stores refuse older numbers
// (multi_master.md, 14.4). kOpen, kFence, kSeal and kCopy bring a new set's members with its number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "multi_master/names.h"
#include "multi_master/network.h"
#include "multi_master/wire.h"

namespace dbx::mm {

inline constexpr MessageType kLogOpen{200};
inline constexpr MessageType kLogAppend{201};
inline constexpr MessageType kLogComplete{202};
inline constexpr MessageType kLogAppended{203};
inline constexpr MessageType kLogFence{204};
inline constexpr MessageType kLogSeal{205};
inline constexpr MessageType kLogCopy{206};
inline constexpr MessageType kLogState{207};
inline constexpr MessageType kLogStale{208};
inline constexpr MessageType kLogRead{209};
inline constexpr MessageType kLogData{210};

inline constexpr uint32_t kLogStores = 3;

// The Log Stores of the cluster, by the indices of their NodeIds. Numbers ascend, and are durable before they are used.
using StoreSetNumber = StrongInt<struct StoreSetNumberTag>;
struct StoreSet {
  StoreSetNumber number;
  std::array<uint8_t, kLogStores> stores{};

  bool Has(uint8_t store) const { return store == stores[0] || store == stores[1] || store == stores[2]; }
  friend bool operator==(const StoreSet&, const StoreSet&) = default;
};

struct LogMessage {
  MasterId log{};
  ClusterEpoch
      epoch{};       // of the writer; kFence, kSeal: the first that may write afterwards; kState, kStale: of the fence;
  StoreSet set{};    // kState, kStale: the store's
  Lsn at{};          // kState: the store's end
  Lsn complete{};    // kState, kData: up to where the store serves; kOpen, kSeal: 0
  Lsn part_begin{};  // kData: where the part of the log begins of which the bytes are: the end of the epochs before
  Lsn part_end{};    // kData: where that part ends, if it is sealed; else 0. kState: up to where the log is sealed
  uint32_t length = 0;  // kAppend, kData: of the bytes; those behind the last that is not 0 are not sent
  uint8_t peer = 0;     // kCopy: a store
  bool raw = false;     // kRead, kData; kState: the log is sealed, be it at 0
  std::span<const std::byte> bytes{};
};

inline std::vector<std::byte> EncodeLog(const LogMessage& message) {
  std::vector<std::byte> body;
  body.reserve(64 + message.bytes.size());
  WireWriter writer(body);
  writer.Put(message.log);
  writer.Put(message.epoch);
  writer.Put(message.set.number);
  for (const uint8_t store : message.set.stores) writer.Put(store);
  writer.Put(message.at);
  writer.Put(message.complete);
  writer.Put(message.part_begin);
  writer.Put(message.part_end);
  writer.Put(message.length);
  writer.Put(message.peer);
  writer.Put(static_cast<uint8_t>(message.raw));
  writer.PutList(message.bytes);
  return body;
}

// `bytes` refers to the body. Nothing: the body is no such message.
inline std::optional<LogMessage> DecodeLog(std::span<const std::byte> body) {
  WireReader reader(body);
  LogMessage message;
  message.log = reader.GetMaster();
  message.epoch = reader.Get<ClusterEpoch>();
  message.set.number = reader.Get<StoreSetNumber>();
  for (uint8_t& store : message.set.stores) store = reader.Get<uint8_t>();
  message.at = reader.Get<Lsn>();
  message.complete = reader.Get<Lsn>();
  message.part_begin = reader.Get<Lsn>();
  message.part_end = reader.Get<Lsn>();
  message.length = reader.Get<uint32_t>();
  message.peer = reader.Get<uint8_t>();
  const auto raw = reader.Get<uint8_t>();
  message.raw = raw != 0;
  message.bytes = reader.GetList();
  const bool fits = message.bytes.size() <= message.length && message.at.value() <= uint64_t{1} << 62;
  if (!reader.AtEnd() || raw > 1 || !fits) return std::nullopt;
  return message;
}

// Without the zeros at the end.
inline std::span<const std::byte> Trimmed(std::span<const std::byte> bytes) {
  while (!bytes.empty() && bytes.back() == std::byte{0}) bytes = bytes.first(bytes.size() - 1);
  return bytes;
}

}  // namespace dbx::mm
