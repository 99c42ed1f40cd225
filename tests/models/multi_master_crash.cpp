// Deaths of masters in the model of Taurus MM: the fence, what the GLM makes of a dead master's locks, and its losers.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

bool World::CanCrash(size_t m) const {
  size_t alive = 0;
  for (size_t k = 0; k < scenario_.masters; ++k) alive += s.masters[k].alive;
  if (s.crashes == 0 || alive < 2 || s.masters[m].alive == 0) return false;
  return std::any_of(std::begin(s.txns), std::end(s.txns), [m](const Txn& txn) {
    return txn.master == m && (txn.IsActive() || txn.step == Txn::kAckPending);
  });
}

void World::Crash(size_t m) {
  --s.crashes;
  Master& master = s.masters[m];
  master.alive = master.recovered = 0;
  s.to_master[m] = {};
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
  FreePages(m, losers);
  size_t survivor = kMasters;
  for (size_t k = scenario_.masters; k-- > 0;) {
    if (s.masters[k].alive == 0) continue;
    survivor = k;
    for (size_t t = 0; t < kTxns; ++t) {
      if (s.txns[t].step == Txn::kDead && s.txns[t].master == m) s.masters[k].ended |= BitOf(t);
    }
    DropEnded(k);
  }
  for (size_t t = 0; t < kTxns; ++t) {
    if ((losers & BitOf(t)) != 0) TakeOver(t, survivor);
  }
  for (size_t page = 0; page < kPages; ++page) Grant(page);
  if (Has(Fault::kNoFence)) Flush(m);
}

// Transactions of the dead master without a durable END that have changed something. Those with one, and those that
// have changed nothing, have ended.
uint8_t World::LosersOf(size_t m) {
  uint8_t ended = 0, wrote = 0, losers = 0;
  for (size_t k = 0; k < scenario_.masters; ++k) {
    for (size_t i = 0; i < s.masters[k].durable; ++i) {
      const Record& record = s.masters[k].records[i];
      (record.IsEnd() ? ended : wrote) |= BitOf(record.txn);
      if (record.IsEnd()) s.ends[record.txn] = {static_cast<uint8_t>(k), record.time};
    }
  }
  for (size_t t = 0; t < scenario_.programs.size(); ++t) {
    Txn& txn = s.txns[t];
    if (txn.master != m) continue;
    if ((ended & BitOf(t)) != 0) {
      const bool aborts = txn.step == Txn::kUndoes || txn.step == Txn::kAbortPending || txn.step == Txn::kAborted;
      txn.step = aborts ? Txn::kAborted : Txn::kAcked;
    } else if ((wrote & BitOf(t)) != 0) {
      losers |= BitOf(t);
      continue;
    } else {
      txn.step = Txn::kDead;
      s.ends[t] = {static_cast<uint8_t>(m), 0};
    }
    s.ended |= BitOf(t);
  }
  return losers;
}

void World::FreePages(size_t m, uint8_t losers) {
  for (size_t p = 0; p < kPages; ++p) {
    Global& page = s.pages[p];
    if (page.modes[m] != 0) {
      page.modes[m] = page.generations[m] = page.asked[m] = 0;
      const Lsn newest = Newest(p).lsn;
      if (newest.time > page.lsn.time) page.lsn = newest;
      page.after[m] = std::max(page.after[m], s.masters[m].last_lfb);
    }
    Request* end = std::remove_if(page.queue, page.queue + page.count, [m](const Request& r) { return r.master == m; });
    std::fill(end, page.queue + page.count, Request());
    page.count = static_cast<uint8_t>(end - page.queue);
  }
  for (size_t t = 0; t < kTxns; ++t) {
    if ((losers & BitOf(t)) != 0 && !Has(Fault::kFreedWithoutLosers)) AddLoserLocks(t);
  }
}

void World::AddLoserLocks(size_t t) {
  for (const Master& master : s.masters) {
    for (size_t i = 0; i < master.durable; ++i) {
      const Record& record = master.records[i];
      if (record.txn == t && record.kind == Record::kWrite) s.pages[record.page].locks.Set(record.row, t, kExclusive);
    }
  }
}

// A survivor undoes what the logs have of the transaction, less what was undone already.
void World::TakeOver(size_t t, size_t survivor) {
  Txn& txn = s.txns[t];
  std::fill(std::begin(txn.writes), std::end(txn.writes), Txn::Write());
  txn.master = static_cast<uint8_t>(survivor);
  txn.step = Txn::kUndoes;
  txn.blockers = txn.write_count = 0;
  size_t undone = 0;
  for (size_t m = 0; m < scenario_.masters; ++m) {
    for (size_t i = 0; i < s.masters[m].durable; ++i) {
      const Record& record = s.masters[m].records[i];
      if (record.txn != t) continue;
      undone += record.kind == Record::kUndo;
      if (record.kind != Record::kWrite) continue;
      const uint8_t version = FindVersion(record.page, record.previous);
      if (version == kNone) return Fail(Failure::kChainHole);
      const PageCopy old = VersionAt(record.page, version);
      txn.writes[txn.write_count++] = {record.row, old.rows[record.row]};
    }
  }
  for (; undone > 0; --undone) txn.writes[--txn.write_count] = {};
}

}  // namespace dbx::models::multi_master
