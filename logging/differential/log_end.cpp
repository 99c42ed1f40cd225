#include "logging/differential/log_end.h"

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "logging/record_finder.h"

namespace dbx {

using format::BlockBelow;
using format::RecordHeader;

namespace {

constexpr uint64_t kProbeBytes = 64 << 10;
// The distance of the first probe, and what the search narrows the end down to: little beside a ring.
constexpr uint64_t kStepBytesMax = 1 << 20;
constexpr uint64_t StepBytesFor(uint64_t ring_bytes) {
  return std::clamp<uint64_t>(ring_bytes / 8, format::kBlockBytes, kStepBytesMax);
}
// The buffer that records are cut from, and the one that is read meanwhile.
constexpr uint32_t kBuffers = 2;

class Gallop {
 public:
  Gallop(const LogSource& source, Lsn known)
      : source_(source),
        known_(known),
        limit_(std::min(source.FileEnd(), source.frozen_end)),
        durable_(known),
        records_(source, limit_) {}

  Lsn Run() {
    // Within a ring's length of what is known little can be proved, and little is to be read.
    if (limit_ <= known_ || limit_ - known_ <= source_.ring_bytes) return known_;
    if (source_.frozen()) {
      durable_ = limit_;
    } else {
      Search();
    }
    return durable_ == known_ ? known_ : StartUpTo(durable_);
  }

 private:
  void Search() {
    Lsn low = known_, high = limit_;
    const uint64_t least = StepBytesFor(source_.ring_bytes);
    for (uint64_t step = least; step < limit_ - known_; step *= 2) {
      if (!Probe(known_ + step)) {
        high = known_ + step;
        break;
      }
      low = known_ + step;
    }
    while (high - low > least) {
      const Lsn middle = low + (high - low) / 2;
      (Probe(middle) ? low : high) = middle;
    }
  }

  // Whether records start behind the place, which may prove something.
  bool Probe(Lsn at) {
    bool found = false;
    VisitRecords(at, kProbeBytes, [&](const RecordHeader& header, std::span<const std::byte> body) {
      found = true;
      Believe(header, body);
    });
    return found;
  }

  void Believe(const RecordHeader& header, std::span<const std::byte> body) {
    Raise(source_.DurableBefore(Lsn(header.lsn + header.length)));
    RecordFacts facts;
    const RecordType& type = *TypeOf(header.kind);
    if (type.state == nullptr || type.state({header, body, source_.log_count}, facts) != nullptr) return;
    if (facts.durable) Raise(*facts.durable);
  }
  void Raise(Lsn durable) { durable_ = std::max(durable_, std::min(durable, limit_)); }

  // The last start of a record up to `at` that a piece of the log shows.
  Lsn StartUpTo(Lsn at) {
    const Lsn from(at.value() - std::min(at.value(), kProbeBytes));
    Lsn start = known_;
    VisitRecords(std::max(from, known_), 2 * kProbeBytes, [&](const RecordHeader& header, std::span<const std::byte>) {
      if (known_ <= Lsn(header.lsn) && Lsn(header.lsn) <= at) start = Lsn(header.lsn);
    });
    return start;
  }

  // The records in the block of `from` and behind it: from the first valid header up to a record that is not whole.
  void VisitRecords(Lsn from, uint64_t bytes, const auto& visit) {
    const uint64_t first = std::max(BlockBelow(from), source_.First()).value();
    const uint64_t block = BlockBelow(from).value();
    const uint64_t end = std::min(block + records_.Load(block, bytes), limit_.value());
    RecordHeader header;
    uint64_t at = first;
    while (at < end && !records_.HeaderAt(at, header)) at += format::kRecordAlignment;
    while (at < end && records_.HeaderAt(at, header)) {
      const auto body = records_.BodyOf(header);
      if (!body) return;
      visit(header, *body);
      at += header.length;
    }
  }

  const LogSource& source_;
  const Lsn known_;
  const Lsn limit_;  // of the file
  Lsn durable_;      // the log was up to here
  RecordFinder records_;
};

}  // namespace

Lsn FindDurableStart(const LogSource& source, Lsn known) { return Gallop(source, known).Run(); }

void LogEnd::Run() {
  // To its reader the log is one that was truncated there.
  LogSource tail = source_;
  tail.needed = FindDurableStart(source_, known_);
  const uint64_t begin = Clock::NowTicks();
  reader_.emplace(tail, options_.block_bytes, kBuffers);
  for (RecordBatch batch; reader_->Cut(batch) == LogReader::Result::kBatch; batch.buffer->Release()) {
    kept_.Append(batch.first, {batch.bytes, batch.end - batch.first});
  }
  read_ticks_ = Clock::NowTicks() - begin;
}

}  // namespace dbx
