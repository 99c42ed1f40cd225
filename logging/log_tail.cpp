#include "logging/log_tail.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

namespace {

constexpr size_t kCloseBytes = 1 << 20;    // a piece of the close search
constexpr size_t kSampleBytes = 64 << 10;  // a piece of the wide search
constexpr size_t kSampleStride = 1 << 20;

constexpr uint64_t BlockBelow(uint64_t at) { return at / format::kBlockBytes * format::kBlockBytes; }

class TailSearch {
 public:
  TailSearch(const LogSource& source, Lsn frontier)
      : source_(source), frontier_(frontier), end_(source.FileEnd().value()), check_(source, Lsn(end_)) {}

  TailFindings Run() {
    const uint64_t ring = std::min(source_.ring_bytes, end_);  // so that nothing below overflows
    const uint64_t close_end = std::min(end_, frontier_.value() + 2 * ring);
    uint64_t at = BlockBelow(frontier_.value());
    for (; at < close_end && !Proved(); at += kCloseBytes) Search(at, kCloseBytes);
    for (; at < end_ && !Proved(); at += kSampleStride) Search(at, kSampleBytes);
    return std::move(findings_);
  }

 private:
  bool Proved() const { return findings_.proofs[source_.log_index].until > frontier_; }

  // Looks for records that start in the piece of `bytes` at `at`, which starts on a block.
  void Search(uint64_t at, size_t bytes) {
    // One block more than the piece, for a header that crosses its end.
    const size_t wanted = bytes + format::kBlockBytes;
    piece_.Reserve(0, wanted);
    piece_bytes_ = source_.device->Read(source_.OffsetOf(Lsn(at)), {piece_.data(), wanted});
    piece_at_ = at;
    const std::byte* data = piece_.data();
    const size_t skip = at < frontier_.value() ? static_cast<size_t>(frontier_.value() - at) : 0;
    if (AllZero(skip)) return;
    CountCut(skip);
    const size_t stop =
        std::min(bytes, piece_bytes_ < sizeof(RecordHeader) ? 0 : piece_bytes_ - sizeof(RecordHeader) + 1);
    for (size_t i = skip; i < stop && !Proved(); i += format::kRecordAlignment) {
      RecordHeader header;
      std::memcpy(&header, data + i, sizeof header);
      const Lsn lsn(at + i);
      if (check_.MayBeHeader(header, lsn) && check_.HeaderFault(header, lsn) == nullptr) Judge(header, lsn);
    }
  }

  bool AllZero(size_t skip) const {
    if (piece_bytes_ <= skip) return true;
    const std::byte* from = piece_.data() + skip;
    return *from == std::byte{0} && std::memcmp(from, from + 1, piece_bytes_ - skip - 1) == 0;
  }

  void CountCut(size_t skip) {
    size_t last = piece_bytes_;
    while (last > skip && piece_.data()[last - 1] == std::byte{0}) --last;
    if (last > skip) findings_.cut_bytes = std::max(findings_.cut_bytes, piece_at_ + last - frontier_.value());
  }

  // Draws the conclusions from a record with a valid header, if its body is valid too.
  void Judge(const RecordHeader& header, Lsn lsn) {
    const std::byte* body = Body(header, lsn);
    if (body == nullptr || RecordCheck::BodyFault(header, body) != nullptr) return;
    ProofPerLog& proofs = findings_.proofs;
    const size_t body_bytes = header.length - sizeof header;
    const uint64_t end = lsn.value() + header.length;
    const uint32_t own = source_.log_index;
    if (source_.ring_bytes > 0 && end > source_.ring_bytes) {
      proofs[own].Raise({Lsn(end - source_.ring_bytes), "record", own, lsn});
    }
    uint64_t durable;
    const auto kind = static_cast<RecordKind>(header.kind);
    if (format::IsTxn(kind) && body_bytes >= sizeof(TxnId)) {
      TxnId id;
      std::memcpy(&id, body, sizeof id);
      findings_.next_sequence = std::max(findings_.next_sequence, id.sequence() + 1);
    }
    if (kind == RecordKind::kStamped && body_bytes >= sizeof(TxnId) + sizeof(uint64_t)) {
      Stamp stamp;
      std::memcpy(&stamp, body + sizeof(TxnId), sizeof stamp);
      findings_.highest_stamp = std::max(findings_.highest_stamp, stamp);
    }
    if (kind == RecordKind::kVersionedCommand) {
      const auto timestamps = TimestampsOf(header, body);
      if (timestamps && timestamps->end <= format::kTimestampMax) {
        findings_.highest_stamp = std::max(findings_.highest_stamp, StampOf(Timestamp(timestamps->end)));
      }
    }
    if (kind == RecordKind::kMark && body_bytes >= sizeof(format::MarkBody)) {
      format::MarkBody mark;
      std::memcpy(&mark, body, sizeof mark);
      findings_.highest_stamp = std::max(findings_.highest_stamp, Stamp(mark.stamp));
      findings_.durable_stamp = std::max(findings_.durable_stamp, Stamp(mark.durable_stamp));
    }
    if (kind == RecordKind::kAnchor && body_bytes == source_.log_count * sizeof durable) {
      for (uint32_t log = 0; log < source_.log_count; ++log) {
        std::memcpy(&durable, body + log * sizeof durable, sizeof durable);
        proofs[log].Raise({Lsn(durable), "anchor", own, lsn});
      }
    } else if ((kind == RecordKind::kPad || kind == RecordKind::kRunEnd) && body_bytes >= sizeof durable) {
      std::memcpy(&durable, body, sizeof durable);
      proofs[own].Raise({Lsn(durable), kind == RecordKind::kPad ? "PAD" : "RUN_END", own, lsn});
    }
  }

  // The body in the piece, or read for it alone; nullptr when the file does not hold all of it.
  const std::byte* Body(const RecordHeader& header, Lsn lsn) {
    const uint64_t at = lsn.value() - piece_at_;
    if (at + header.length <= piece_bytes_) return piece_.data() + at + sizeof header;
    const uint64_t from = BlockBelow(lsn.value());
    const auto skip = static_cast<size_t>(lsn.value() - from);
    const size_t wanted = (skip + header.length + format::kBlockBytes - 1) / format::kBlockBytes * format::kBlockBytes;
    long_record_.Reserve(0, wanted);
    const size_t got = source_.device->Read(source_.OffsetOf(Lsn(from)), {long_record_.data(), wanted});
    return got < skip + header.length ? nullptr : long_record_.data() + skip + sizeof header;
  }

  const LogSource& source_;
  Lsn frontier_;
  uint64_t end_;
  RecordCheck check_;
  ReadBuffer piece_;
  uint64_t piece_at_ = 0;
  size_t piece_bytes_ = 0;
  ReadBuffer long_record_;
  TailFindings findings_;
};

}  // namespace

TailFindings ExamineTail(const LogSource& source, Lsn frontier) { return TailSearch(source, frontier).Run(); }

}  // namespace dbx
