#include "logging/differential/backward_pass.h"

#include <algorithm>
#include <string>

#include "base/cache_line.h"
#include "base/error.h"
#include "logging/differential/slot_change.h"
#include "storage/heap/page_space.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

BackwardPass::BackwardPass(ForwardPass& forward, const RestartPoint& point, const Database& database, bool read_ahead)
    : forward_(forward),
      source_(forward.reader().source()),
      point_(point),
      database_(database),
      reader_(source_, forward.reader().block_starts(), {point.needed, forward.reader().position()}, read_ahead,
              &forward.kept()),
      changed_(database.table_count()) {}

void BackwardPass::Run() {
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
      return transactions_.Commit(*FieldOf<TxnId>(body), forward_.IsWinner(at));
    case RecordKind::kAbort:
      return transactions_.Abort(*FieldOf<TxnId>(body));
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
  const Lsn at(header.lsn);
  SlotChange change;
  if (const char* fault = DecodeChange(header, body, change)) Refuse(at, fault);
  if (const char* fault = FaultOf(change, database_)) Refuse(at, fault);
  PageSpace& pages = PagesOf(change, at);
  if (!transactions_.Change(change.txn, change.Has(format::kChangeFirst), IsInBackup(change.number))) return;
  if (change.page >= pages.page_count()) pages.GrowTo(change.page + 1);
  std::vector<bool>& changed = changed_[change.table.value()];
  if (change.page >= changed.size()) changed.resize(change.page + 1);
  changed[change.page] = true;
  PageSpace::Latched latched(pages, change.page);
  ApplyChange(change, pages, latched);
}

PageSpace& BackwardPass::PagesOf(const SlotChange& change, Lsn at) const {
  PageSpace& pages = *database_.table(change.table).pages();
  if (change.page < pages.pages_max()) return pages;
  throw Error(ExitStatus::kNoSpace, "no memory for page " + std::to_string(change.page) + " of table " +
                                        database_.table(change.table).schema().name + ", which " +
                                        PlaceOf(source_, at) + " names");
}

void BackwardPass::PrefetchAhead() const {
  RecordHeader header;
  std::span<const std::byte> body;
  SlotChange change;
  if (!reader_.Ahead(kAhead, header, body) || header.kind != static_cast<uint8_t>(RecordKind::kChange)) return;
  if (DecodeChange(header, body, change) != nullptr || change.table.value() >= database_.table_count()) return;
  const PageSpace& pages = *database_.table(change.table).pages();
  if (change.page >= pages.page_count() || change.slot >= pages.rows_per_page()) return;
  Row* const row = pages.RowAt({change.page, change.slot});
  const size_t bytes =
      static_cast<size_t>(pages.TupleOf(row) - reinterpret_cast<std::byte*>(row)) + pages.tuple_bytes();
  PrefetchBytesToWrite(row, std::min(bytes, kPrefetchedBytesMax));
}

}  // namespace dbx
