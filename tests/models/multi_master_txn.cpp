// Transactions of the model of Taurus MM: row locks under page locks, ENDs, aborts.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

bool World::CanStep(size_t t) const {
  const Txn& txn = s.txns[t];
  const Master& my = s.masters[txn.master];
  if (!txn.IsActive() || my.alive == 0) return false;
  if (txn.blockers != 0 && (txn.blockers & my.ended) == 0) return false;
  if (txn.step == Txn::kUndoes && txn.write_count == 0) return true;
  if (txn.step == Txn::kRuns && (IsThrough(t) || KindOf(t) == '!')) return true;
  const size_t row = txn.step == Txn::kRuns ? RowOf(t) : txn.writes[txn.write_count - 1].row;
  return my.pages[PageOf(row)].want_mode == 0;
}

void World::Step(size_t t) {
  Txn& txn = s.txns[t];
  txn.blockers = 0;
  if (txn.step == Txn::kUndoes) return Undo(t);
  if (IsThrough(t)) return End(t, txn.write_count == 0 ? Record::kReadOnly : Record::kCommit);
  if (KindOf(t) == '!') return StartUndo(t);
  const uint8_t need = KindOf(t) == 'r' ? kShared : kExclusive;
  const size_t page = PageOf(RowOf(t));
  if (HasPage(t, page, need)) Access(t, page, need);
}

// Whether the master has the page lock; if not, asks for it.
bool World::HasPage(size_t t, size_t page, uint8_t need) {
  const uint8_t m = s.txns[t].master;
  Local& local = s.masters[m].pages[page];
  if (local.mode >= need) {
    local.fresh = 0;
    DropEnded(m, page);
    return true;
  }
  if (local.mode != 0) Release(m, page);
  local.want_mode = need, local.want_generation = ++local.last_generation;
  Send(s.to_glm[m], {Message::kRequest, static_cast<uint8_t>(page), need, local.want_generation, {}, {}, 0, {}});
  return false;
}

uint8_t World::BlockersOf(size_t m, size_t page, size_t row, size_t t, uint8_t need) const {
  uint8_t blockers = 0;
  for (size_t u = 0; u < kTxns; ++u) {
    const uint8_t mode = s.masters[m].pages[page].locks.ModeOf(row, u);
    if (u != t && mode != 0 && Conflict(mode, need)) blockers |= BitOf(u);
  }
  return blockers;
}

void World::Access(size_t t, size_t page, uint8_t need) {
  Txn& txn = s.txns[t];
  const uint8_t row = RowOf(t);
  txn.blockers = BlockersOf(txn.master, page, row, t, need);
  if (txn.blockers != 0) return;
  Local& local = s.masters[txn.master].pages[page];
  local.locks.Set(row, t, std::max(local.locks.ModeOf(row, t), need));
  const Row old = local.copy.rows[row];
  txn.reads[txn.read_count++] = {row, old.value};
  ++txn.op;
  if (need == kShared) return;
  const uint8_t writer = static_cast<uint8_t>(t + 1);
  const uint8_t value = static_cast<uint8_t>(1 + 8 * t + txn.writes_done++);
  txn.writes[txn.write_count++] = {row, old};
  const bool again = old.writer == writer;
  Append(txn.master, Record::kWrite, t, row,
         {value, writer, again ? old.before : old.value, again ? old.before_writer : old.writer});
}

// The last write that is not undone yet; after the first one, the END.
void World::Undo(size_t t) {
  Txn& txn = s.txns[t];
  if (txn.write_count == 0) return End(t, Record::kAbort);
  const Txn::Write write = txn.writes[txn.write_count - 1];
  if (!HasPage(t, PageOf(write.row), kExclusive)) return;
  txn.writes[--txn.write_count] = {};
  Append(txn.master, Record::kUndo, t, write.row, write.old);
}

void World::StartUndo(size_t t) {
  Txn& txn = s.txns[t];
  txn.step = Txn::kUndoes, txn.blockers = 0;
  if (!Has(Fault::kUnlockedBeforeUndo) || KindOf(t) != '!') return;
  for (Local& local : s.masters[txn.master].pages) {
    for (size_t row = 0; row < kRows; ++row) local.locks.Set(row, t, 0);
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
  if (s.masters[m].alive == 0 || local.mode == 0 || local.reclaimed == 0) return false;
  if (local.reclaimed != local.generation && !Has(Fault::kNoGenerations)) return false;
  return local.fresh == 0 || std::none_of(std::begin(s.txns), std::end(s.txns), [m](const Txn& txn) {
           return txn.master == m && txn.IsActive() && txn.blockers == 0;
         });
}

}  // namespace dbx::models::multi_master
