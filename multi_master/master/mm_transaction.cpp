#include "multi_master/master/mm_transaction.h"

#include <algorithm>
#include <array>
#include <utility>

namespace dbx::mm {

void MmTransaction::Begin(BeginTime begun, TxnId id) {
  ASSERT(written_.empty());
  name_ = locks_.txns().Begin(begun);
  id_ = id;
  last_wait_ = WaitResult::kLookAgain;
  if (versions_ != nullptr) versions_->OnBegin();
  // A victim that began anew at once would have the row again before an older transaction of another master has heard
  // of its end, and be in the same deadlock again.
  if (!blockers_.empty()) locks_.WaitForEnds(name_, std::exchange(blockers_, {}), {});
}

VsTime MmTransaction::Commit() {
  if (!wrote() && locks_.EndWithoutRecord(name_)) return log_.last_record();
  locks_.txns().OnEnding(name_);
  const VsTime end = log_.AppendEnd(name_, wrote() ? EndKind::kCommitted : EndKind::kReadOnly, id_);
  locks_.End(name_, end);
  written_.clear();
  return end;
}

void MmTransaction::Abort() {
  for (size_t i = written_.size(); i > 0; --i) Restore(written_[i - 1]);
  if (!wrote() && locks_.EndWithoutRecord(name_)) return;
  locks_.End(name_, log_.AppendEnd(name_, EndKind::kAborted, id_));
  written_.clear();
}

void MmTransaction::Restore(const Written& row) {
  PagedTree& tree = *trees_[row.table.value()];
  PinnedLeaf leaf = tree.PinLeaf(row.key, LockMode::kExclusive);
  tree.Restore(leaf, row.key, name_);
}

MmTransaction::Granted MmTransaction::LockRows(PinnedLeaf& leaf, std::span<const RowLock> asked) {
  for (const RowLock& lock : asked) {
    std::vector<TxnName> blockers = locks_.TryLockRow(leaf.id(), lock);
    if (blockers.empty()) {
      if (kept_ != nullptr) kept_->OnRowLock(locks_.self(), leaf.page().tree(), lock.low, lock.kind);
      continue;
    }
    leaf.LetGo();
    last_wait_ = locks_.WaitForEnds(name_, blockers, {});
    if (last_wait_ == WaitResult::kLookAgain) return Granted::kLookAgain;
    blockers_ = std::move(blockers);
    return Granted::kConflict;
  }
  return Granted::kAll;
}

PinnedLeaf MmTransaction::PinLocked(Table& table, Key key, LockMode mode) {
  const RowLock lock = mode == LockMode::kShared ? RowLock::Shared(name_, key) : RowLock::Exclusive(name_, key);
  for (;;) {
    PinnedLeaf leaf = TreeOf(table).PinLeaf(key, mode, HintsOf(table));
    const Granted granted = LockRows(leaf, std::span(&lock, 1));
    if (granted == Granted::kAll) return leaf;
    if (granted == Granted::kConflict) return {};
  }
}

void MmTransaction::NoteWritten(const Table& table, Key key) {
  const bool is_there = std::any_of(written_.begin(), written_.end(),
                                    [&](const Written& row) { return row.table == table.id() && row.key == key; });
  if (!is_there) written_.push_back({table.id(), key});
}

bool MmTransaction::TryPut(Table& table, PinnedLeaf& leaf, Key key) {
  PagedTree& tree = TreeOf(table);
  if (tree.Put(leaf, key, name_, image_) == PagedTree::PutStatus::kNoRoom) {
    leaf.LetGo();
    tree.MakeRoom(key, name_, image_);
    return false;
  }
  NoteWritten(table, key);
  return true;
}

void MmTransaction::Put(Table& table, PinnedLeaf leaf, Key key) {
  // The row's lock is held: no other transaction changes the row between two tries, but its leaf may be another one.
  while (!TryPut(table, leaf, key)) leaf = TreeOf(table).PinLeaf(key, LockMode::kExclusive);
}

Outcome MmTransaction::Insert(Table& table, Key key, std::span<const std::byte> tuple) {
  ASSERT(tuple.size() == table.tuple_bytes());
  const std::array<RowLock, 2> locks = {RowLock::Insert(name_, key), RowLock::Exclusive(name_, key)};
  for (;;) {
    PinnedLeaf leaf = TreeOf(table).PinLeaf(key, LockMode::kExclusive, HintsOf(table));
    const Granted granted = LockRows(leaf, locks);
    if (granted == Granted::kConflict) return Outcome::kConflict;
    if (granted == Granted::kLookAgain) continue;
    const std::optional<RowView> row = leaf.Find(key);
    if (row && row->current.present) return Outcome::kExists;
    image_.assign(tuple.begin(), tuple.end());
    if (TryPut(table, leaf, key)) return Outcome::kOk;
    // While the leaf was let go, another transaction may have scanned the gap: the row's lock is no lock of a row that
    // is not there.
  }
}

Outcome MmTransaction::Delete(Table& table, Key key) {
  PinnedLeaf leaf = PinLocked(table, key, LockMode::kExclusive);
  if (!leaf) return Outcome::kConflict;
  const std::optional<RowView> row = leaf.Find(key);
  if (!row || !row->current.present) return Outcome::kNotFound;
  TreeOf(table).Delete(leaf, key, name_);
  NoteWritten(table, key);
  return Outcome::kOk;
}

MmTransaction::Granted MmTransaction::LockRange(PinnedLeaf& leaf, Key low, Key key, bool has_row) {
  const std::array<RowLock, 2> locks = {RowLock::Gap(name_, low, key), RowLock::Shared(name_, key)};
  return LockRows(leaf, std::span(locks).first(has_row ? 2 : 1));
}

}  // namespace dbx::mm
