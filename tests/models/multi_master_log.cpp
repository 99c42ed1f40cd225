// Logs, clocks and page stores of the model of Taurus MM.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {
namespace {

void Raise(uint8_t& time, uint8_t to) { time = std::max(time, to); }

}  // namespace

void World::Fail(Failure failure, size_t at) {
  if (s.failure != Failure::kNothing) return;
  s.failure = failure;
  s.failure_at = static_cast<uint8_t>(at);
}

// ---- Records ----

// VS3. The record's time and its place are taken in one step.
uint8_t World::Append(size_t m, uint8_t kind, size_t txn, size_t page, size_t row, Row image) {
  Master& my = s.masters[m];
  CHECK(my.count < kRecordsMax && my.clock[m] < 250);
  const uint8_t time = ++my.clock[m];
  Record& record = my.records[my.count];
  record = {time, kind, static_cast<uint8_t>(txn), 0, 0, 0, {}, {}, {}};
  if (record.IsOfPage()) {
    record.page = static_cast<uint8_t>(page), record.row = static_cast<uint8_t>(row), record.image = image;
    PageCopy& copy = my.pages[record.page].copy;
    record.previous = copy.lsn;
    if (copy.lsn.time >= time && !Has(Fault::kNoVs4)) Fail(Failure::kPageLsn);
    if (kind != Record::kMoveIn && !copy.Has(row)) Fail(Failure::kRowNotThere, row);
    ApplyTo(copy, m, record);
    const Lsn made = s.chains[record.page].count == 0 ? Lsn{} : VersionAt(record.page, 1).lsn;
    if (record.page == kRight && made.master != m) Raise(my.splits[made.master], made.time);
  }
  my.past[m] |= 1u << my.count++;
  std::copy(std::begin(my.past), std::end(my.past), record.past);
  return time;
}

void World::ApplyTo(PageCopy& copy, size_t m, const Record& record) const {
  copy.lsn = {static_cast<uint8_t>(m), record.time};
  copy.rows[record.row] = record.image;
  const bool moves_out = record.kind == Record::kMoveOut;
  copy.row_bits = static_cast<uint8_t>((copy.row_bits & ~BitOf(record.row)) | (moves_out ? 0 : BitOf(record.row)));
}

const Record* World::FindRecord(size_t m, uint8_t time) const {
  for (size_t i = 0; i < s.masters[m].count; ++i) {
    if (s.masters[m].records[i].time == time) return &s.masters[m].records[i];
  }
  return nullptr;
}

// The record of this time, if there is one, and if so wished what it builds upon.
void World::AddPast(uint32_t (&past)[kMasters], size_t m, uint8_t time, bool with_causes) const {
  const Record* record = FindRecord(m, time);
  if (record == nullptr) return;
  past[m] |= 1u << (record - s.masters[m].records);
  for (size_t k = 0; with_causes && k < kMasters; ++k) past[k] |= record->past[k];
}

// ---- LFBs ----

// VS1.
void World::Flush(size_t m) {
  Master& my = s.masters[m];
  if (my.durable == my.count) return;
  if (my.fenced != 0) return Fail(Failure::kAppendAfterFence);
  ++my.clock[m];
  Lfb& lfb = my.lfbs[my.lfb_count++];
  for (size_t k = 0; k < kMasters; ++k) lfb.stamp[k] = std::max(my.clock[k], my.after[k]);
  lfb.stamp[m] = my.clock[m];
  lfb.predecessor = my.last_lfb, lfb.until = my.count;
  std::copy(std::begin(my.past), std::end(my.past), lfb.past);
  my.last_lfb = lfb.stamp[m];
  const uint8_t first = std::exchange(my.durable, my.count);
  Store();
  for (size_t i = first; i < my.count; ++i) Acknowledge(my.records[i]);
}

void World::Acknowledge(const Record& record) {
  if (!record.IsEnd()) return;
  Txn& txn = s.txns[record.txn];
  if (txn.step == Txn::kAckPending) txn.step = Txn::kAcked;
  if (txn.step == Txn::kAbortPending) txn.step = Txn::kAborted;
}

bool World::MayApply(size_t m, size_t k) const {
  const Master& my = s.masters[m];
  if (my.next[k] >= s.masters[k].lfb_count) return false;
  const Lfb& lfb = s.masters[k].lfbs[my.next[k]];
  if (FirstOf(k, my.next[k]) < s.masters[k].cut || my.applied[k] != lfb.predecessor) return false;
  if (Has(Fault::kPredecessorOnly)) return true;
  for (size_t j = 0; j < scenario_.masters; ++j) {
    const uint8_t until = j == m && Has(Fault::kPrintedOwnClock) ? my.clock[m] : my.applied[j];
    if (j != k && lfb.stamp[j] > until) return false;
  }
  return true;
}

// VS2. Of its own log a master takes the progress alone.
void World::Apply(size_t m, size_t k) {
  Master& my = s.masters[m];
  const Master& other = s.masters[k];
  const Lfb& lfb = other.lfbs[my.next[k]];
  const size_t first = FirstOf(k, my.next[k]);
  ++my.next[k];
  my.applied[k] = lfb.stamp[k];
  if (m == k) return;
  for (size_t j = 0; j < kMasters; ++j) {
    const uint32_t durable = (1u << s.masters[j].durable) - 1;
    if (j != m && j != k && (lfb.past[j] & durable & ~my.seen[j]) != 0) Fail(Failure::kEffectFirst);
  }
  uint8_t largest = my.clock[m];
  for (size_t j = 0; j < kMasters; ++j) {
    Raise(largest, lfb.stamp[j]);
    my.past[j] |= lfb.past[j];
    if (j == m) continue;
    Raise(my.clock[j], lfb.stamp[j]);
    Raise(my.after[j], lfb.stamp[j]);
  }
  my.clock[m] = static_cast<uint8_t>(largest + 1);
  for (size_t i = first; i < lfb.until; ++i) {
    my.seen[k] |= 1u << i;
    ApplyRecord(m, k, other.records[i]);
  }
}

void World::ApplyRecord(size_t m, size_t k, const Record& record) {
  Master& my = s.masters[m];
  if (record.IsEnd()) {
    my.ended |= BitOf(record.txn);
    return DropEnded(m);
  }
  Local& local = my.pages[record.page];
  if (local.copy.there == 0 || local.copy.lsn.time >= record.time || local.mode != 0) return;
  if (local.copy.lsn != record.previous) return Fail(Failure::kBufferGap);
  ApplyTo(local.copy, k, record);
}

void World::ReadOwnLogs() {
  for (size_t m = 0; m < scenario_.masters; ++m) {
    while (s.masters[m].alive != 0 && MayApply(m, m)) Apply(m, m);
  }
}

// A log is cut below what the page stores have (here: what is durable) and all masters have applied; below the first
// record of a transaction without an END there; and below a split of page P, until P is released.
size_t World::CutUntil(size_t m) const {
  const Master& my = s.masters[m];
  size_t until = my.durable;
  if (Has(Fault::kCutByStores)) return until;
  for (size_t k = 0; k < scenario_.masters && !Has(Fault::kCutUnapplied); ++k) {
    if (s.masters[k].alive != 0) until = std::min(until, FirstOf(m, s.masters[k].next[m]));
  }
  uint8_t ended = 0;
  for (size_t i = 0; i < until; ++i) {
    if (my.records[i].IsEnd()) ended |= BitOf(my.records[i].txn);
  }
  const Local& local = my.pages[0];
  const Global& page = s.pages[0];
  const bool is_held = local.split != 0 && local.mode == kExclusive;
  const bool has_reported = (my.term == s.term && s.collecting == 0) || Has(Fault::kCutUnreported);
  const bool is_known = page.modes[m] != kExclusive && has_reported;
  for (size_t i = until; i-- > my.cut;) {
    const Record& record = my.records[i];
    const bool splits =
        record.IsSplit() && !Has(Fault::kCutPastSplit) && (Has(Fault::kCutAtSend) ? is_held : !is_known);
    const bool is_open = !record.IsSplit() && !Has(Fault::kCutPastOpen) && (ended & BitOf(record.txn)) == 0;
    if (splits || is_open) until = i;
  }
  return until;
}

// ---- Page stores ----

// Adds to the chains all durable records whose predecessor is there.
void World::Store() {
  for (bool more = true; more;) {
    more = false;
    for (uint8_t m = 0; m < kMasters; ++m) {
      Master& master = s.masters[m];
      for (uint8_t i = 0; i < master.durable; ++i) {
        if (master.records[i].IsOfPage() && master.records[i].stored == 0) more |= StoreOne(master.records[i], m, i);
      }
    }
    more &= s.failure == Failure::kNothing;
  }
}

bool World::StoreOne(Record& record, uint8_t m, uint8_t at) {
  Chain& chain = s.chains[record.page];
  const uint8_t found = FindVersion(record.page, record.previous);
  if (found == kNone) return false;
  if (found != chain.count) {
    Fail(Failure::kLostUpdate);
    return false;
  }
  if (record.time <= VersionAt(record.page, found).lsn.time) Fail(Failure::kChainOrder);
  CHECK(chain.count < kRecordsMax);
  chain.masters[chain.count] = m, chain.records[chain.count++] = at;
  record.stored = 1;
  return true;
}

PageCopy World::VersionAt(size_t page, size_t count) const {
  constexpr uint8_t kRowsAsLoaded[kPages] = {0b011, 0b100, 0};
  PageCopy copy = {{kNone, 0}, 1, kRowsAsLoaded[page], {}};
  const Chain& chain = s.chains[page];
  for (size_t i = 0; i < count; ++i) {
    ApplyTo(copy, chain.masters[i], s.masters[chain.masters[i]].records[chain.records[i]]);
  }
  return copy;
}

uint8_t World::FindVersion(size_t page, Lsn lsn) const {
  if (lsn.master == kNone) return 0;
  const Chain& chain = s.chains[page];
  for (uint8_t i = 0; i < chain.count; ++i) {
    if (chain.masters[i] == lsn.master && s.masters[lsn.master].records[chain.records[i]].time == lsn.time) {
      return static_cast<uint8_t>(i + 1);
    }
  }
  return kNone;
}

}  // namespace dbx::models::multi_master
