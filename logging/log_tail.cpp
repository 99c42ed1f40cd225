#include "logging/log_tail.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "logging/record_finder.h"

namespace dbx {

using format::kBlockBytes;
using format::RecordHeader;

namespace {

constexpr size_t kPieceBytes = 1 << 20;  // is read at once
// Of a header behind the first of its places: a header that starts in zeros may end in the bytes behind them.
constexpr size_t kHeaderRest = sizeof(RecordHeader) - format::kRecordAlignment;

constexpr uint64_t BlockBelow(uint64_t at) { return format::BlockBelow(Lsn(at)).value(); }

class TailSearch {
 public:
  TailSearch(const LogSource& source, Lsn frontier)
      : source_(source), frontier_(frontier), end_(source.FileEnd().value()), records_(source, Lsn(end_)) {}

  TailFindings Run() {
    for (uint64_t at = BlockBelow(frontier_.value()); at < end_ && !Proved(); at += kPieceBytes) {
      const uint64_t offset = source_.OffsetOf(Lsn(at));
      at += BlockBelow(source_.device->SkipHole(offset) - offset);
      Search(at);
    }
    return std::move(findings_);
  }

 private:
  bool Proved() const { return findings_.proofs[source_.log_index].until > frontier_; }

  // Looks for records that start in the piece at `at`, block by block, as most of a piece may be zeros.
  void Search(uint64_t at) {
    const size_t got = records_.Load(at, kPieceBytes + kBlockBytes);
    const std::span<const std::byte> piece = records_.piece();
    if (AllZero(piece)) return;
    for (size_t block = 0; block < std::min(got, kPieceBytes) && !Proved(); block += kBlockBytes) {
      const size_t below = std::min<uint64_t>(frontier_.value() - std::min(frontier_.value(), at + block), kBlockBytes);
      const size_t begin = block + below, end = std::min(got, block + kBlockBytes);
      if (begin >= end || AllZero(piece.subspan(begin, std::min(got, end + kHeaderRest) - begin))) continue;
      CountCut(at, piece.first(end), begin);
      for (size_t i = begin; i < end && !Proved(); i += format::kRecordAlignment) Look(at + i);
    }
  }

  // Counts non-zero bytes as cut, from the frontier up to the last of them in `bytes`, which are at `at`.
  void CountCut(uint64_t at, std::span<const std::byte> bytes, size_t begin) {
    size_t last = bytes.size();
    while (last > begin && bytes[last - 1] == std::byte{0}) --last;
    if (last > begin) findings_.cut_bytes = std::max(findings_.cut_bytes, at + last - frontier_.value());
  }

  void Look(uint64_t at) {
    RecordHeader header;
    if (!records_.HeaderAt(at, header)) return;
    if (const auto body = records_.BodyOf(header)) Judge(header, *body);
  }

  // Draws the conclusions from a valid record, whose length proves something by itself.
  void Judge(const RecordHeader& header, std::span<const std::byte> body) {
    const Lsn at(header.lsn);
    const Lsn durable = source_.DurableBefore(at + header.length);
    findings_.proofs[source_.log_index].Raise({durable, "record", source_.log_index, at});
    const RecordType& type = *TypeOf(header.kind);
    if (type.role == RecordRole::kTransaction) TakeName(body);
    if (type.state == nullptr) return;
    // What a malformed record states up to its fault counts.
    RecordFacts facts;
    type.state({header, body, source_.log_count}, facts);
    findings_.next_sequence = std::max(findings_.next_sequence, facts.next_sequence);
    findings_.highest_stamp = std::max(findings_.highest_stamp, facts.stamp);
    findings_.durable_stamp = std::max(findings_.durable_stamp, facts.durable_stamp);
    RaiseProofs(source_, type, facts, at, findings_.proofs);
  }

  void TakeName(std::span<const std::byte> body) {
    const auto id = FieldOf<TxnId>(body);
    if (id) findings_.next_sequence = std::max(findings_.next_sequence, id->sequence() + 1);
  }

  const LogSource& source_;
  Lsn frontier_;
  uint64_t end_;
  RecordFinder records_;
  TailFindings findings_;
};

}  // namespace

TailFindings ExamineTail(const LogSource& source, Lsn frontier) { return TailSearch(source, frontier).Run(); }

bool RecordsLead(const LogSource& source, Lsn from, Lsn to) {
  RecordFinder records(source, to);
  uint64_t at = from.value(), loaded_until = 0;
  while (at < to.value()) {
    if (at + sizeof(RecordHeader) > loaded_until) {
      loaded_until = BlockBelow(at) + records.Load(BlockBelow(at), kPieceBytes);
    }
    RecordHeader header;
    if (!records.HeaderAt(at, header) || !records.BodyOf(header)) return false;
    at += header.length;
  }
  return true;
}

}  // namespace dbx
