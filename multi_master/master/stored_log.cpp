#include "multi_master/master/stored_log.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace dbx::mm {
namespace {

// The times of StampChanges, from the one on that the flush buffer has given.
void Stamp(MasterId self, VsTime first, std::span<PageChange> changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i].lsn = {self, VsTime(first.value() + i)};
    const auto before = std::find_if(changes.rend() - static_cast<std::ptrdiff_t>(i), changes.rend(),
                                     [&](const PageChange& other) { return other.page == changes[i].page; });
    if (before != changes.rend()) changes[i].previous = before->lsn;
  }
}

// Of rows and cells, that the change carries.
size_t ChangedBytes(const Change& change) {
  if (const auto* put = std::get_if<PutRow>(&change))
    return put->in_pieces ? BytesOfPieces(put->middle) : put->middle.size();
  if (const auto* format = std::get_if<FormatPage>(&change)) return format->cells.size();
  return 0;
}

TxnOutcome OutcomeOf(EndKind kind) {
  return kind == EndKind::kCommitted ? TxnOutcome::kCommitted
         : kind == EndKind::kAborted ? TxnOutcome::kAborted
                                     : TxnOutcome::kReadOnly;
}

}  // namespace

Lsn StoredLog::AppendPages(std::span<PageChange> changes) {
  // A body's size does not depend on the times in it. Its length stands in front, as records are filled up.
  const auto bytes = static_cast<uint32_t>(PagesBytes(changes));
  const auto count = static_cast<uint32_t>(changes.size());
  uint64_t changed_bytes = 0;
  for (const PageChange& change : changes) changed_bytes += ChangedBytes(change.what);
  const VsTime first = buffer_.AppendPages(count, sizeof bytes + bytes, [&](VsTime from, std::span<std::byte> to) {
    Stamp(self_, from, changes);
    std::memcpy(to.data(), &bytes, sizeof bytes);
    EncodePages(changes, to.subspan(sizeof bytes));
    ++volume_.pages_records;
    volume_.pages_bytes += AlignRecord(sizeof(format::RecordHeader) + kPagesLeadBytes + sizeof bytes + bytes);
    volume_.changes += count;
    volume_.changed_bytes += changed_bytes;
  });
  Appended(VsTime(first.value() + count - 1));
  return Lsn();
}

void StoredLog::Appended(VsTime last) {
  uint64_t seen = last_record_.load(std::memory_order_relaxed);
  while (seen < last.value() && !last_record_.compare_exchange_weak(seen, last.value(), std::memory_order_release)) {
  }
}

VsTime StoredLog::AppendEnd(const TxnName& txn, EndKind kind, TxnId id) {
  const VsTime end = buffer_.AppendEnd(txn, OutcomeOf(kind), id);
  Appended(end);
  return end;
}

}  // namespace dbx::mm
