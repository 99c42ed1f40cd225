#include "logging/differential/backward_pass.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

BackwardPass::BackwardPass(ForwardPass& forward, const RestartPoint& point, const Database& database, bool read_ahead)
    : forward_(forward),
      point_(point),
      low_(LowestOf(forward, point)),
      reader_(forward.reader().source(), forward.reader().block_starts(), {low_, forward.reader().position()},
              read_ahead, &forward.kept()),
      transactions_(point.method),
      player_(forward.reader().source(), database) {}

// Behind a redo forward only losers are left to undo, and most logs have them at their ends, if at all.
Lsn BackwardPass::LowestOf(const ForwardPass& forward, const RestartPoint& point) {
  return point.method == DiffMethod::kDl1p ? point.needed : std::max(point.needed, forward.losers_begin());
}

void BackwardPass::Run() {
  if (low_ == forward_.reader().position()) return;
  RecordHeader header;
  std::span<const std::byte> body;
  bool below_begin = false;
  while (reader_.Previous(header, body)) {
    const Lsn at(header.lsn);
    if (!below_begin && point_.number > 0 && at < point_.begin) {
      below_begin = true;
      transactions_.PassBegin();
    }
    if (below_begin && transactions_.IsClosed()) return;
    PrefetchAhead();
    Visit(header, body);
  }
}

// The shape of each record was checked when the log was read forward, and its checksum when it was read again.
void BackwardPass::Visit(const RecordHeader& header, std::span<const std::byte> body) {
  const Lsn at(header.lsn);
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::kCommit:
      return transactions_.Commit(*FieldOf<TxnId>(body), forward_.Counts(at));
    case RecordKind::kAbort:
      return transactions_.Abort(*FieldOf<TxnId>(body), forward_.Counts(at));
    case RecordKind::kCheckpointEnd:
      if (point_.number > 0 && at == point_.end) VisitEnd(body);
      return;
    case RecordKind::kChange:
      return VisitChange(header, body);
    default:
      return;
  }
}

void BackwardPass::VisitEnd(std::span<const std::byte> body) {
  const auto end = *FieldOf<format::CheckpointEndBody>(body);
  for (uint32_t i = 0; i < end.active; ++i) transactions_.List(*FieldOf<TxnId>(body, sizeof end + i * sizeof(TxnId)));
}

void BackwardPass::VisitChange(const RecordHeader& header, std::span<const std::byte> body) {
  const SlotChange change = player_.Decode(header, body);
  if (!transactions_.Change(change.txn, change.Has(format::kChangeFirst), IsInBackup(change.number))) return;
  point_.method == DiffMethod::kPl2p ? player_.Play(change, Image::kBefore) : player_.Play(change);
}

void BackwardPass::PrefetchAhead() const {
  RecordHeader header;
  std::span<const std::byte> body;
  if (reader_.Ahead(ChangePlayer::kAhead, header, body)) player_.Prefetch(header, body);
}

}  // namespace dbx
