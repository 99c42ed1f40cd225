// The records of a master's log: those of multi_master/ beside the log's own (PAD, VOID, RUN_END). The grammar is that
// of every log (logging/README.md, logging/format.h): RecordHeader, then the body, filled up to whole words.
//
//   PAGES   u32 changes, u64 time of the first change, bytes    one mini-transaction: all of it or nothing
//   END     u64 time, transaction, u8 outcome, u64 id           a transaction has ended; id: its number in the workload
//   LFB     u64 predecessor, u64 stamp[kMastersMax]             the end of a flush (vs_clock.h, LfbStamp)
//
// The changes of a PAGES record have consecutive times, and what follows the first is for page/ to define. Bodies are
// filled up with zeros, which a reader of PAGES ignores by the lengths within.
//
// The kinds are numbered from 32 on, so that they are unlike every kind of logging/format.h: a reader of other logs
// refuses them, as this one refuses those.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "logging/format.h"
#include "multi_master/names.h"
#include "multi_master/vs_clock.h"
#include "multi_master/wire.h"

namespace dbx::mm {

inline constexpr format::RecordKind kPagesKind{32};
inline constexpr format::RecordKind kEndKind{33};
inline constexpr format::RecordKind kLfbKind{34};
static_assert(kPagesKind > format::RecordKind::kLast);

// Of the records and of the files that Log Stores keep (store_file.h); each file begins with it. 1 had no id in END, 2
// no put pieces.
inline constexpr uint32_t kLogVersion = 3;

enum class TxnOutcome : uint8_t { kCommitted = 1, kAborted = 2, kReadOnly = 3 };

struct PagesRecord {
  uint32_t changes = 0;  // their times: first, first + 1 ...
  VsTime first;
  std::span<const std::byte> body;
};
struct EndRecord {
  VsTime time;
  TxnName txn;
  TxnOutcome outcome = TxnOutcome::kCommitted;
  TxnId id;  // the transaction's number in the workload; 0 if it has none
};

inline constexpr size_t kPagesLeadBytes = 12;
inline constexpr size_t kEndBytes = 30;
inline constexpr size_t kLfbWords = 1 + kMastersMax;

// The body of a PAGES record in front of what page/ writes.
template <class Writer>
void EncodePagesLead(uint32_t changes, VsTime first, Writer& to) {
  to.Put(changes);
  to.Put(first);
}
template <class Writer>
void EncodeEnd(const EndRecord& end, Writer& to) {
  to.Put(end.time);
  to.Put(end.txn);
  to.Put(end.outcome);
  to.Put(end.id.value);
}
inline std::array<uint64_t, kLfbWords> EncodeLfb(const LfbStamp& lfb) {
  std::array<uint64_t, kLfbWords> words{lfb.predecessor.value()};
  for (uint8_t i = 0; i < kMastersMax; ++i) words[1 + i] = lfb.stamp.of(MasterId(i)).value();
  return words;
}

// Nothing: the bytes are no such body.
inline std::optional<PagesRecord> DecodePagesRecord(std::span<const std::byte> body) {
  WireReader reader(body);
  PagesRecord pages;
  pages.changes = reader.Get<uint32_t>();
  pages.first = reader.GetTime();
  pages.body = reader.GetBytes(reader.bytes_left());
  if (!reader.ok() || pages.changes == 0) return std::nullopt;
  return pages;
}
inline std::optional<EndRecord> DecodeEnd(std::span<const std::byte> body) {
  WireReader reader(body);
  EndRecord end;
  end.time = reader.GetTime();
  end.txn = reader.GetTxn();
  end.outcome = reader.Get<TxnOutcome>();
  end.id = TxnId{reader.Get<uint64_t>()};
  if (!reader.ok() || end.outcome < TxnOutcome::kCommitted || end.outcome > TxnOutcome::kReadOnly) return std::nullopt;
  return end;
}
inline std::optional<LfbStamp> DecodeLfb(MasterId master, std::span<const std::byte> body) {
  WireReader reader(body);
  LfbStamp lfb;
  lfb.master = master;
  lfb.predecessor = reader.GetTime();
  for (uint8_t i = 0; i < kMastersMax; ++i) lfb.stamp.Set(MasterId(i), reader.GetTime());
  if (!reader.AtEnd() || lfb.time().value() <= lfb.predecessor.value()) return std::nullopt;
  return lfb;
}

}  // namespace dbx::mm
