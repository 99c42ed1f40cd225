// Deaths of masters in the model of Taurus MM: the fence, what the GLM makes of a dead master's locks, and its losers.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

bool World::CanCrash(size_t m) const {
  size_t alive = 0;
  for (size_t k = 0; k < scenario_.masters; ++k) alive += s.masters[k].alive;
  if (s.crashes == 0 || alive < 2 || s.masters[m].alive == 0 || (scenario_.may_die >> m & 1) == 0) return false;
  return std::any_of(std::begin(s.txns), std::end(s.txns), [m](const Txn& txn) {
    return txn.master == m && (txn.IsActive() || txn.step == Txn::kAckPending);
  });
}

void World::Crash(size_t m) {
  --s.crashes;
  Master& master = s.masters[m];
  master.alive = master.recovered = 0;
  s.to_master[m] = {};
  if (s.reader.is_active != 0 && s.reader.master == m) s.reader = {};
  if (Has(Fault::kNoFence)) return;  // what it has not flushed is appended later
  std::fill(master.records + master.durable, master.records + master.count, Record());
  master.count = master.durable;
}

void World::Recover(size_t m) {
  Master& dead = s.masters[m];
  dead.recovered = 1;
  dead.fenced = Has(Fault::kNoFence) ? 0 : 1;
  s.to_glm[m] = s.to_master[m] = {};
  const uint8_t losers = LosersOf(m);
  ReplayLog(m, losers);
  // A new GLM does not know the losers of masters that died earlier, which this one was to undo.
  for (size_t k = 0; k < scenario_.masters && dead.term != s.term; ++k) {
    if (k != m && s.masters[k].alive == 0 && !Has(Fault::kEarlierLogsUnread)) ReplayLog(k, losers);
  }
  FreePages(m);
  size_t survivor = 0;
  for (size_t k = 0; k < scenario_.masters; ++k) {
    if (s.masters[k].alive != 0) survivor = k;
  }
  TellSurvivors(m);
  for (size_t t = 0; t < kTxns; ++t) {
    if ((losers & BitOf(t)) != 0) TakeOver(t, survivor);
  }
  for (size_t page = 0; page < kPages; ++page) Grant(page);
  EndCollecting();
  if (Has(Fault::kNoFence)) Flush(m);
}

// All transactions of the dead master but its losers have ended; if it left no END of one, nothing builds upon it.
void World::TellSurvivors(size_t m) {
  uint8_t dead = 0, ended = 0;
  for (size_t t = 0; t < kTxns; ++t) {
    const Txn& txn = s.txns[t];
    if (txn.master != m) continue;
    if (txn.step == Txn::kDead) dead |= BitOf(t);
    if (txn.step == Txn::kAcked || txn.step == Txn::kAborted) ended |= BitOf(t);
  }
  for (size_t k = 0; k < scenario_.masters; ++k) {
    if (s.masters[k].alive != 0) OnEndsTold(k, scenario_.tells ? dead | ended : dead);
  }
}

// Transactions of the dead master without a durable END that have changed something. Those with one, and those that
// have changed nothing, have ended.
uint8_t World::LosersOf(size_t m) {
  uint8_t ended = s.ended, wrote = 0, losers = 0;
  for (size_t k = 0; k < scenario_.masters; ++k) {
    for (size_t i = s.masters[k].cut; i < s.masters[k].durable; ++i) {
      const Record& record = s.masters[k].records[i];
      if (record.IsSplit()) continue;
      (record.IsEnd() ? ended : wrote) |= BitOf(record.txn);
      if (record.IsEnd()) s.ends[record.txn] = {static_cast<uint8_t>(k), record.time};
    }
  }
  for (size_t t = 0; t < scenario_.programs.size(); ++t) {
    Txn& txn = s.txns[t];
    if (txn.master != m || txn.step == Txn::kAcked || txn.step == Txn::kAborted || txn.step == Txn::kDead) continue;
    if ((ended & BitOf(t)) != 0) {
      txn.step = txn.step == Txn::kUndoes || txn.step == Txn::kAbortPending ? Txn::kAborted : Txn::kAcked;
    } else if ((wrote & BitOf(t)) != 0) {
      losers |= BitOf(t);
      continue;
    } else {
      txn.step = Txn::kDead;
      s.ends[t] = {static_cast<uint8_t>(m), 0};
    }
    s.ended |= BitOf(t);
  }
  for (size_t t = 0; t < scenario_.programs.size(); ++t) {
    const Txn& txn = s.txns[t];
    if (txn.master == m && (txn.step == Txn::kAcked || txn.step == Txn::kAborted)) s.ended |= BitOf(t);
  }
  return losers;
}

// The log of the dead master, in its order: a loser's change adds its row lock, a split moves the row locks, over the
// GLM's lists.
void World::ReplayLog(size_t m, uint8_t losers) {
  const Master& dead = s.masters[m];
  const bool in_order = !Has(Fault::kLosersOnOldPage);
  for (size_t i = dead.cut; i < dead.durable && !in_order; ++i) {
    if (dead.records[i].kind == Record::kMoveOut) ReplaySplit();
  }
  for (size_t i = dead.cut; i < dead.durable; ++i) {
    const Record& record = dead.records[i];
    if (record.kind == Record::kMoveOut && in_order && !Has(Fault::kSplitNotReplayed)) ReplaySplit();
    if (record.kind != Record::kWrite || Has(Fault::kFreedWithoutLosers)) continue;
    if ((losers & BitOf(record.txn)) != 0) s.pages[record.page].locks.Set(record.row, record.txn, kExclusive);
  }
}

void World::ReplaySplit() {
  Global& left = s.pages[0];
  Global& right = s.pages[kRight];
  for (size_t t = 0; t < kTxns; ++t) {
    for (const size_t lock : {kMovedRow, kGap}) {
      right.locks.Set(lock, t, std::max(right.locks.ModeOf(lock, t), left.locks.ModeOf(lock, t)));
    }
  }
  left.locks.rows[kMovedRow] = 0;
}

// A page's LSN becomes the page stores' newest: what the log had of it may be cut off.
void World::FreePages(size_t m) {
  const Master& dead = s.masters[m];
  for (size_t p = 0; p < kPages; ++p) {
    Global& page = s.pages[p];
    if (page.modes[m] != 0) {
      page.modes[m] = page.generations[m] = page.asked[m] = 0;
      Lsn newest = Newest(p).lsn;
      if (Has(Fault::kLsnFromLog)) newest = page.lsn;
      for (size_t i = dead.cut; i < dead.durable && Has(Fault::kLsnFromLog); ++i) {
        const Record& record = dead.records[i];
        if (record.IsOfPage() && record.page == p) newest = {static_cast<uint8_t>(m), record.time};
      }
      if (newest.time > page.lsn.time) page.lsn = newest;
      page.after[m] = std::max(page.after[m], dead.last_lfb);
    }
    Request* end = std::remove_if(page.queue, page.queue + page.count, [m](const Request& r) { return r.master == m; });
    std::fill(end, page.queue + page.count, Request());
    page.count = static_cast<uint8_t>(end - page.queue);
  }
}

// A survivor undoes the rows that the log has of the transaction.
void World::TakeOver(size_t t, size_t survivor) {
  Txn& txn = s.txns[t];
  std::fill(std::begin(txn.writes), std::end(txn.writes), Txn::Write());
  txn.master = static_cast<uint8_t>(survivor);
  txn.step = Txn::kUndoes, txn.taken = 1;
  txn.blockers = txn.write_count = 0;
  uint8_t rows = 0;
  for (size_t m = 0; m < scenario_.masters; ++m) {
    for (size_t i = s.masters[m].cut; i < s.masters[m].durable; ++i) {
      const Record& record = s.masters[m].records[i];
      if (record.txn != t || record.kind != Record::kWrite || (rows & BitOf(record.row)) != 0) continue;
      rows |= BitOf(record.row);
      txn.writes[txn.write_count++] = {record.row, {}};
    }
  }
}

}  // namespace dbx::models::multi_master
