// Transactions of the model of Taurus MM: row locks under page locks, ENDs, aborts.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

bool World::CanStep(size_t t) const {
  const Txn& txn = s.txns[t];
  const Master& my = s.masters[txn.master];
  if (!txn.IsActive() || my.alive == 0) return false;
  if (txn.blockers != 0 && (txn.blockers & my.ended) == 0) return false;
  if (txn.taken != 0 && !HasAppliedDead(txn.master) && !Has(Fault::kEndedUnapplied)) return false;
  if (txn.step == Txn::kUndoes && txn.write_count == 0) return true;
  if (txn.step == Txn::kRuns && (IsThrough(t) || KindOf(t) == '!')) return true;
  const Local& page = my.pages[WantedPage(t)];
  return page.want_mode == 0 && page.releasing == 0;
}

// Dead masters may have undone a part of what a survivor undoes. Its END stands for their changes too.
bool World::HasAppliedDead(size_t m) const {
  for (size_t k = 0; k < scenario_.masters; ++k) {
    if (s.masters[k].alive == 0 && s.masters[m].applied[k] != s.masters[k].last_lfb) return false;
  }
  return true;
}

// The page on which the master looks for a row first: where a version of P that it has says that it is, or where it has
// waited for it.
size_t World::PageFor(size_t m, size_t row) const {
  const Local& right = s.masters[m].pages[kRight];
  if (right.mode != 0 && right.copy.Has(row)) return kRight;
  const PageCopy& copy = s.masters[m].pages[PageOf(row)].copy;
  return copy.there != 0 && !copy.Has(row) ? kRight : PageOf(row);
}

size_t World::WantedPage(size_t t) const {
  const Txn& txn = s.txns[t];
  if (txn.step == Txn::kUndoes) return PageFor(txn.master, txn.writes[txn.write_count - 1].row);
  if (KindOf(t) != 's') return PageFor(txn.master, RowOf(t));
  return s.masters[txn.master].pages[kRight].mode == kExclusive ? 0 : kRight;
}

// Whether the master has the lock of the row's page; a reader or writer of a page without its row moves right.
bool World::HasRow(size_t t, size_t row, uint8_t need, size_t& page) {
  const uint8_t m = s.txns[t].master;
  page = PageFor(m, row);
  s.masters[m].pages[PageOf(row)].fresh = 0;  // it was waited for, and is no more needed
  if (!HasPage(t, page, need)) return false;
  if (PageFor(m, row) == page) return true;
  page = kRight;
  return HasPage(t, page, need);
}

void World::Step(size_t t) {
  Txn& txn = s.txns[t];
  txn.blockers = 0;
  if (txn.step == Txn::kUndoes) return Undo(t);
  if (IsThrough(t)) return End(t, txn.write_count == 0 ? Record::kReadOnly : Record::kCommit);
  if (KindOf(t) == '!') return StartUndo(t);
  if (KindOf(t) == 's') return Split(t);
  const uint8_t need = KindOf(t) == 'w' ? kExclusive : kShared;
  size_t page;
  if (HasRow(t, RowOf(t), need, page)) Access(t, page, need);
}

// Locks the new page first, then the old one. The row locks above the separator move with their rows, a gap lock across
// it is on both pages. No transaction's change: an abort leaves it.
void World::Split(size_t t) {
  Txn& txn = s.txns[t];
  const uint8_t m = txn.master;
  if (!HasPage(t, kRight, kExclusive) || !HasPage(t, 0, kExclusive)) return;
  ++txn.op;
  Local& left = s.masters[m].pages[0];
  Local& right = s.masters[m].pages[kRight];
  if (!left.copy.Has(kMovedRow)) return;
  Append(m, Record::kMoveIn, kNone, kRight, kMovedRow, left.copy.rows[kMovedRow]);
  Append(m, Record::kMoveOut, kNone, 0, kMovedRow, {});
  left.split = right.generation;
  if (!Has(Fault::kSplitLeavesLocks)) right.locks.rows[kMovedRow] = std::exchange(left.locks.rows[kMovedRow], 0);
  if (!Has(Fault::kSplitForgetsGap)) right.locks.rows[kGap] = left.locks.rows[kGap];
  for (size_t k = 0; k < kMasters; ++k) {
    if (!Has(Fault::kSplitForgetsAfter)) right.after[k] = std::max(right.after[k], left.after[k]);
  }
}

// Whether the master has the page lock; if not, asks for it.
bool World::HasPage(size_t t, size_t page, uint8_t need) {
  const uint8_t m = s.txns[t].master;
  Local& local = s.masters[m].pages[page];
  if (local.want_mode != 0 || local.releasing != 0) return false;
  if (local.mode >= need) {
    local.fresh = 0;
    DropEnded(m, page);
    return true;
  }
  if (local.mode != 0) Release(m, page);
  if (local.releasing != 0) return false;
  local.want_mode = need, local.want_generation = ++local.last_generation;
  Message message = {};
  message.kind = Message::kRequest, message.page = static_cast<uint8_t>(page);
  message.mode = need, message.generation = local.want_generation;
  Send(s.to_glm[m], message);
  return false;
}

uint8_t World::BlockersOf(size_t m, size_t page, size_t row, size_t t, uint8_t need) const {
  uint8_t blockers = 0;
  for (size_t u = 0; u < kTxns; ++u) {
    const RowLocks& locks = s.masters[m].pages[page].locks;
    const uint8_t mode = locks.ModeOf(row, u);
    const bool in_gap = need == kExclusive && locks.ModeOf(kGap, u) != 0;
    if (u != t && (in_gap || (mode != 0 && Conflict(mode, need)))) blockers |= BitOf(u);
  }
  return blockers;
}

// A scan reads the rows of the page from its own on.
void World::Access(size_t t, size_t page, uint8_t need) {
  Txn& txn = s.txns[t];
  Local& local = s.masters[txn.master].pages[page];
  const uint8_t first = RowOf(t);
  const bool scans = KindOf(t) == 'g';
  const size_t until = scans ? kRows : first + 1u;
  for (size_t row = first; row < until; ++row) {
    if (local.copy.Has(row)) txn.blockers |= BlockersOf(txn.master, page, row, t, need);
  }
  if (txn.blockers != 0) return;
  const size_t lock = scans ? kGap : first;
  local.locks.Set(lock, t, std::max(local.locks.ModeOf(lock, t), need));
  for (uint8_t row = first; row < until; ++row) {
    CHECK(txn.read_count < kOpsMax);
    if (local.copy.Has(row)) txn.reads[txn.read_count++] = {row, local.copy.rows[row].value};
  }
  ++txn.op;
  if (need == kShared) return;
  const uint8_t row = first;
  const Row old = local.copy.rows[row];
  const uint8_t writer = static_cast<uint8_t>(t + 1);
  const uint8_t value = static_cast<uint8_t>(1 + 8 * t + txn.writes_done++);
  txn.writes[txn.write_count++] = {row, old};
  const bool again = old.writer == writer;
  Append(txn.master, Record::kWrite, t, page, row,
         {value, writer, again ? old.before : old.value, again ? old.before_writer : old.writer});
}

// The last write that is not undone yet; after the first one, the END. Of a dead master's loser, the committed image of
// each row whose writer is still the loser.
void World::Undo(size_t t) {
  Txn& txn = s.txns[t];
  if (txn.write_count == 0) return End(t, Record::kAbort);
  const Txn::Write write = txn.writes[txn.write_count - 1];
  size_t page = PageOf(write.row);
  if (Has(Fault::kUndoOnOldPage) ? !HasPage(t, page, kExclusive) : !HasRow(t, write.row, kExclusive, page)) return;
  txn.writes[--txn.write_count] = {};
  const Row now = s.masters[txn.master].pages[page].copy.rows[write.row];
  if (txn.taken == 0) {
    Append(txn.master, Record::kUndo, t, page, write.row, write.old);
  } else if (now.writer == t + 1) {
    Append(txn.master, Record::kUndo, t, page, write.row, {now.before, now.before_writer, 0, 0});
  }
}

void World::StartUndo(size_t t) {
  Txn& txn = s.txns[t];
  txn.step = Txn::kUndoes, txn.blockers = 0;
  if (!Has(Fault::kUnlockedBeforeUndo) || KindOf(t) != '!') return;
  for (Local& local : s.masters[txn.master].pages) {
    for (size_t row = 0; row < kLocks; ++row) local.locks.Set(row, t, 0);
  }
}

void World::End(size_t t, uint8_t kind) {
  Txn& txn = s.txns[t];
  if (kind == Record::kReadOnly && Has(Fault::kPrintedReaderEnd)) {
    s.ends[t] = {txn.master, 0};
    txn.step = Txn::kAcked;
  } else {
    s.ends[t] = {txn.master, Append(txn.master, kind, t)};
    txn.step = kind == Record::kAbort ? Txn::kAbortPending : Txn::kAckPending;
  }
  s.masters[txn.master].ended |= BitOf(t);
  DropEnded(txn.master);
}

// Among the transactions that wait for one another; one of them is aborted.
bool World::IsInCycle(size_t t) const {
  uint8_t reached = 0, next = BitOf(t);
  while (next != 0) {
    uint8_t more = 0;
    for (size_t u = 0; u < kTxns; ++u) {
      const Txn& txn = s.txns[u];
      if ((next & BitOf(u)) == 0 || txn.step != Txn::kRuns || s.masters[txn.master].alive == 0) continue;
      for (size_t v = 0; v < kTxns; ++v) {
        if ((txn.blockers & BitOf(v)) != 0 && s.txns[v].step == Txn::kRuns) more |= BitOf(v);
      }
    }
    next = more & static_cast<uint8_t>(~reached);
    reached |= more;
  }
  return (reached & BitOf(t)) != 0;
}

// A lock that was granted afresh stays until a transaction of the master has had its turn.
bool World::CanRelease(size_t m, size_t page) const {
  const Local& local = s.masters[m].pages[page];
  if (local.mode == 0 || local.reclaimed == 0 || local.releasing != 0) return false;
  if (local.reclaimed != local.generation && !Has(Fault::kNoGenerations)) return false;
  return local.fresh == 0 || std::none_of(std::begin(s.txns), std::end(s.txns), [m](const Txn& txn) {
           return txn.master == m && txn.IsActive() && txn.blockers == 0;
         });
}

}  // namespace dbx::models::multi_master
