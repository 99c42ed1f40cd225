#include "multi_master/master/stored_log.h"

#include <algorithm>
#include <cstring>
#include <vector>

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

TxnOutcome OutcomeOf(EndKind kind) {
  return kind == EndKind::kCommitted ? TxnOutcome::kCommitted
         : kind == EndKind::kAborted ? TxnOutcome::kAborted
                                     : TxnOutcome::kReadOnly;
}

}  // namespace

Lsn StoredLog::AppendPages(std::span<PageChange> changes) {
  // A body's size does not depend on the times in it. Its length stands in front, as records are filled up.
  const auto bytes = static_cast<uint32_t>(EncodePages(changes).size());
  const auto count = static_cast<uint32_t>(changes.size());
  buffer_.AppendPages(count, sizeof bytes + bytes, [&](VsTime first, std::span<std::byte> to) {
    Stamp(self_, first, changes);
    const std::vector<std::byte> body = EncodePages(changes);
    CHECK(body.size() == bytes);
    std::memcpy(to.data(), &bytes, sizeof bytes);
    std::memcpy(to.data() + sizeof bytes, body.data(), bytes);
  });
  return Lsn();
}

VsTime StoredLog::AppendEnd(const TxnName& txn, EndKind kind, TxnId) { return buffer_.AppendEnd(txn, OutcomeOf(kind)); }

}  // namespace dbx::mm
