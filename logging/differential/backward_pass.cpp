#include "logging/differential/backward_pass.h"

#include <algorithm>
#include <string>

#include "base/clock.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

BackwardPass::BackwardPass(LogEnd& end, const RestartPoint& point, std::span<const Lsn> ends, const Database& database,
                           const Options& options)
    : end_(end),
      source_(end.source()),
      point_(point),
      ends_(ends),
      reader_(source_, {source_.First(), end.end()}, options.block_bytes, options.read_ahead, &end.kept()),
      checks_(source_, point, ends, options.with_names),
      transactions_(point.method),
      player_(source_, database) {}

void BackwardPass::Run() {
  RecordHeader header;
  std::span<const std::byte> body;
  bool below_begin = false;
  begin_ticks_ = Clock::NowTicks();
  while (reader_.Previous(header, body)) {
    if (!below_begin && point_.number > 0 && Lsn(header.lsn) < point_.begin) {
      below_begin = true;
      transactions_.PassBegin();
    }
    PrefetchAhead();
    Visit({header, body, source_.log_count});
  }
  checks_.Finish();
  if (const auto& run_end = end_.reader().run_end()) totals_.CheckCount(source_, *run_end, run_end_at_);
  const Ticks all = TicksSoFar();
  run_ticks_ = all.run;
  if (point_.method == DiffMethod::kDl1p) undo_ = all;
}

BackwardPass::Ticks BackwardPass::TicksSoFar() const {
  return {Clock::NowTicks() - begin_ticks_, reader_.read_ticks()};
}

// The shape of each record was checked when it was read.
void BackwardPass::Visit(const RecordView& record) {
  const Lsn at(record.header.lsn);
  const auto kind = static_cast<RecordKind>(record.header.kind);
  // Most are changes, whose shape is decoded once.
  if (kind == RecordKind::kChange) return VisitChange(record, at);
  TakeTotals(record, at);
  switch (kind) {
    case RecordKind::kCommit:
    case RecordKind::kAbort:
      return VisitEnd(record, at);
    case RecordKind::kCheckpointBegin:
      return checks_.VisitCheckpointBegin(FieldOf<format::CheckpointBeginBody>(record.body)->number, at);
    case RecordKind::kCheckpointEnd:
      return VisitCheckpointEnd(record, at);
    default:
      if (IsTransaction(record.header)) {
        ThrowDamaged(source_, at, "transaction of another scheme in a differential log");
      }
  }
}

void BackwardPass::TakeTotals(const RecordView& record, Lsn at) {
  const RecordType& type = *TypeOf(record.header.kind);
  totals_.Count(type);
  if (type.state == nullptr) return;
  RecordFacts facts;
  const char* fault = type.state(record, facts);
  if (fault == nullptr) fault = totals_.Take(source_, type, facts, at);
  if (fault != nullptr) ThrowDamaged(source_, at, fault);
  if (facts.durable_logs) CheckAnchor(*facts.durable_logs, at);
  if (!facts.run_end) return;
  if (at + record.header.length < end_.end()) ThrowDamaged(source_, at, "RUN_END with records behind it");
  run_end_at_ = at;
}

// Those where the ends were searched were compared when they were judged.
void BackwardPass::CheckAnchor(const LsnPerLog& durable, Lsn at) const {
  for (uint32_t log = 0; log < source_.log_count; ++log) {
    if (durable[log] <= ends_[log]) continue;
    ThrowDamaged(source_, at, "anchor that shows log " + std::to_string(log) + " to have been durable up to LSN " +
                                  std::to_string(durable[log].value()) + ", but it ends at LSN " +
                                  std::to_string(ends_[log].value()));
  }
}

void BackwardPass::VisitEnd(const RecordView& record, Lsn at) {
  const bool counts = checks_.VisitEnd(record, at);
  const TxnId txn = *FieldOf<TxnId>(record.body);
  const bool commits = record.header.kind == static_cast<uint8_t>(RecordKind::kCommit);
  commits ? transactions_.Commit(txn, counts) : transactions_.Abort(txn, counts);
}

void BackwardPass::VisitCheckpointEnd(const RecordView& record, Lsn at) {
  checks_.VisitCheckpointEnd(record, at);
  if (point_.number == 0 || at != point_.end) return;
  const auto end = *FieldOf<format::CheckpointEndBody>(record.body);
  for (uint32_t i = 0; i < end.active; ++i) {
    transactions_.List(*FieldOf<TxnId>(record.body, sizeof end + i * sizeof(TxnId)));
  }
}

void BackwardPass::VisitChange(const RecordView& record, Lsn at) {
  const SlotChange change = player_.Decode(record.header, record.body);
  totals_.next_sequence = std::max(totals_.next_sequence, change.txn.sequence() + 1);
  checks_.VisitChange(change, at);
  if (!transactions_.Change(change.txn, change.Has(format::kChangeFirst), IsInBackup(change.number))) return;
  point_.method == DiffMethod::kPl2p ? player_.Play(change, Image::kBefore) : player_.Play(change);
  if (point_.method != DiffMethod::kDl1p) undo_ = TicksSoFar();
}

std::vector<Lsn> BackwardPass::Starts() const {
  std::vector<Lsn> starts(reader_.starts().rbegin(), reader_.starts().rend());
  const std::span<const Lsn> behind = end_.reader().block_starts();
  starts.insert(starts.end(), std::ranges::lower_bound(behind, starts.empty() ? Lsn() : starts.back()), behind.end());
  return starts;
}

void BackwardPass::PrefetchAhead() const {
  RecordHeader header;
  std::span<const std::byte> body;
  if (reader_.Ahead(ChangePlayer::kAhead, header, body)) player_.Prefetch(header, body);
}

}  // namespace dbx
