#include "system/reference/reference_versions.h"

#include <algorithm>

namespace dbx::reference {
namespace {

bool IsAbsent(const Row* row) { return (row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0; }

}  // namespace

const std::byte* VersionedContext::Seen(Table& table, Key key) {
  const RowName name{&table, key};
  if (SeesNewest(name)) {
    Row* row = table.Find(key);
    return row == nullptr || IsAbsent(row) ? nullptr : table.tuple(row);
  }
  const std::vector<Version>& older = older_[name];
  const auto seen =
      std::find_if(older.rbegin(), older.rend(), [this](const Version& version) { return version.begin <= read_; });
  return seen == older.rend() || seen->absent ? nullptr : seen->tuple.data();
}

Row* VersionedContext::MakeOwn(Table& table, Key key) {
  const RowName name{&table, key};
  Row* row = table.FindOrCreate(WorkerId(0), key, [](Row& fresh) { fresh.control = Row::kAbsent; });
  if (BeginOf(name) == end_) return row;
  const std::byte* tuple = table.tuple(row);
  older_[name].push_back({BeginOf(name), IsAbsent(row), {tuple, tuple + table.tuple_bytes()}});
  begins_[name] = end_;
  overwritten_.push_back({name, end_});
  own_.push_back(name);
  return row;
}

Outcome VersionedContext::Insert(Table& table, Key key, Bytes tuple) {
  if (Seen(table, key) != nullptr) return Outcome::kExists;
  if (!SeesNewest({&table, key})) return Outcome::kConflict;
  Row* row = MakeOwn(table, key);
  std::copy(tuple.begin(), tuple.end(), table.tuple(row));
  row->control.fetch_and(~Row::kAbsent, std::memory_order_relaxed);
  return Outcome::kOk;
}

Outcome VersionedContext::Delete(Table& table, Key key) {
  if (Seen(table, key) == nullptr) return Outcome::kNotFound;
  if (!SeesNewest({&table, key})) return Outcome::kConflict;
  MakeOwn(table, key)->control.fetch_or(Row::kAbsent, std::memory_order_relaxed);
  return Outcome::kOk;
}

// An undone write is overwritten by the version before it: no transaction sees a difference.
void VersionedContext::End(bool undo, uint64_t oldest_read) {
  for (const RowName& name : own_) {
    if (!undo) break;
    const Version& before = older_[name].back();
    Row* row = name.first->Find(name.second);
    std::copy(before.tuple.begin(), before.tuple.end(), name.first->tuple(row));
    row->control.store(before.absent ? Row::kAbsent : 0, std::memory_order_relaxed);
  }
  for (; !overwritten_.empty() && overwritten_.front().end <= oldest_read; overwritten_.pop_front()) {
    const Overwritten& oldest = overwritten_.front();
    std::vector<Version>& older = older_[oldest.row];
    older.erase(older.begin());
    if (older.empty()) older_.erase(oldest.row);
    if (BeginOf(oldest.row) == oldest.end) Forget(oldest.row);
  }
}

// Of a row whose older versions no later transaction sees.
void VersionedContext::Forget(const RowName& name) {
  begins_.erase(name);
  auto [table, key] = name;
  Row* row = table->Find(key);
  if (!table->ordered() || !IsAbsent(row)) return;
  table->Unlink(row);
  table->UnlinkEmptyLeaf(key, stopped_clock_, WorkerId(0), [](BTreeLeaf&, BTreeLeaf&) {});
}

std::vector<uint64_t> OldestReadsBehind(const ReferenceLogs& logs, const std::vector<TxnRef>& order) {
  std::vector<uint64_t> oldest(order.size());
  uint64_t least = UINT64_MAX;
  for (size_t i = order.size(); i-- > 0;) {
    oldest[i] = least;
    least = std::min(least, DecodeRecord(logs, order[i].log, order[i].lsn).read);
  }
  return oldest;
}

}  // namespace dbx::reference
