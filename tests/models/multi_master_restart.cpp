// A restart of the GLM in the model of Taurus MM: its table is gone, and a new one is made from the masters' reports.
//
// The new GLM has a new term. It grants nothing until each master has reported, or is dead and has been recovered.
// Messages of another term than the receiver's do nothing; a master takes the new term with its report. The report is
// one step: what the master sends afterwards lies behind it in its link, and no grant precedes the last report. Leases
// are not modelled: a master goes on with what it holds until it reports.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

bool World::CanRestart() const {
  return s.restarts > 0 && std::any_of(std::begin(s.txns), std::end(s.txns),
                                       [](const Txn& txn) { return txn.IsActive() || txn.step == Txn::kAckPending; });
}

void World::Restart() {
  --s.restarts;
  ++s.term;
  s.collecting = 1, s.ended = 0;
  for (Global& page : s.pages) {
    page = {};
    page.lsn = {kNone, 0};
  }
  EndCollecting();
}

bool World::CanReport(size_t m) const { return s.masters[m].term != s.term; }

// As for a release, the lists are complete before the flush: what they say of ENDs must be durable when they are sent.
void World::Report(size_t m) {
  Master& my = s.masters[m];
  my.term = s.term;
  DropEnded(m);
  if (!Has(Fault::kReportBeforeFlush)) Flush(m);
  my.told = 0;
  uint8_t own = 0;
  for (size_t t = 0; t < kTxns; ++t) {
    if (s.txns[t].master == m) own |= BitOf(t);
  }
  const uint8_t ends = EndsToTell(m);
  my.told = ends;
  s.ended |= (my.ended & static_cast<uint8_t>(~own)) | ends;
  for (size_t p = 0; p < kPages; ++p) {
    const Local& local = my.pages[p];
    Global& page = s.pages[p];
    page.modes[m] = local.mode, page.generations[m] = local.generation;
    if (local.mode != 0 && local.copy.lsn.time > page.lsn.time) page.lsn = local.copy.lsn;
    for (size_t k = 0; k < kMasters && !Has(Fault::kReportNoAfters); ++k) {
      page.after[k] = std::max(page.after[k], local.after[k]);
    }
  }
  ReportRowLocks(m);
  for (uint8_t p = 0; p < kPages && !Has(Fault::kRequestsNotAnew); ++p) {
    const Local& local = my.pages[p];
    if (local.want_mode == 0) continue;
    Message message = {};
    message.kind = Message::kRequest, message.page = p;
    message.mode = local.want_mode, message.generation = local.want_generation;
    Send(s.to_glm[m], message);
  }
  if (scenario_.tells) {
    Message message = {};
    message.kind = Message::kEnds, message.ends = s.ended;
    Send(s.to_master[m], message);
  }
  EndCollecting();
}

// Those of the master's own transactions, which it keeps when the page leaves, and of the losers that it undoes.
void World::ReportRowLocks(size_t m) {
  for (size_t t = 0; t < kTxns; ++t) {
    const Txn& txn = s.txns[t];
    if (txn.master != m || (s.masters[m].ended & BitOf(t)) != 0) continue;
    for (size_t p = 0; p < kPages && !Has(Fault::kReportNoRowLocks); ++p) {
      for (size_t lock = 0; lock < kLocks; ++lock) {
        const bool moved = Has(Fault::kPlacedOnArrival) && p == 0 && lock == kMovedRow && !Newest(0).Has(kMovedRow);
        RowLocks& locks = s.pages[moved ? kRight : p].locks;
        locks.Set(lock, t, std::max(locks.ModeOf(lock, t), s.masters[m].pages[p].locks.ModeOf(lock, t)));
      }
    }
    for (size_t i = 0; i < txn.write_count && txn.taken != 0 && !Has(Fault::kReportNoLosers); ++i) {
      const uint8_t row = txn.writes[i].row;
      s.pages[PageOf(row)].locks.Set(row, t, kExclusive);
    }
  }
}

// By key, on the pages as they are at the durable ends of the logs.
void World::PlaceRowLocks() {
  if (!Newest(0).Has(kMovedRow)) ReplaySplit();
}

// Once all masters have reported or are recovered. Pages have the Page Stores' newest version, or a newer one that a
// master holds. What a dead master dropped from lists, its log's end covers.
void World::EndCollecting() {
  if (s.collecting == 0) return;
  for (size_t k = 0; k < scenario_.masters; ++k) {
    const Master& master = s.masters[k];
    if (master.alive != 0 ? master.term != s.term : master.recovered == 0) return;
  }
  s.collecting = 0;
  if (!Has(Fault::kReportOnOldPage) && !Has(Fault::kPlacedOnArrival)) PlaceRowLocks();
  for (size_t p = 0; p < kPages; ++p) {
    Global& page = s.pages[p];
    const Lsn newest = Newest(p).lsn;
    if (newest.time > page.lsn.time && !Has(Fault::kReportLsnLost)) page.lsn = newest;
    for (size_t k = 0; k < scenario_.masters; ++k) {
      if (s.masters[k].alive == 0) page.after[k] = std::max(page.after[k], s.masters[k].last_lfb);
    }
    Grant(p);
  }
}

}  // namespace dbx::models::multi_master
