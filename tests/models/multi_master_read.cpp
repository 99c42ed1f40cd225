// Versioned reads of the model of Taurus MM: a statement scans rows a, b and c, or looks some of them up, without
// locks, as of TV = (applied, own now). Other steps come between its pages.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

bool World::EndedAt(uint8_t writer, const uint8_t (&tv)[kMasters]) const {
  if (writer == 0) return true;
  for (size_t m = 0; m < scenario_.masters; ++m) {
    for (size_t i = 0; i < s.masters[m].count; ++i) {
      const Record& record = s.masters[m].records[i];
      const bool ends = record.kind == Record::kCommit || record.kind == Record::kAbort;
      if (ends && record.txn + 1 == writer) return record.time <= tv[m];
    }
  }
  return false;
}

// This master's own time alone has no causes: TV must cover the splits of other masters that made the pages which it
// has changed. Otherwise the statement would take an older version of the page on the left, which still has the row.
void World::StartRead(size_t m) {
  --s.reads;
  for (size_t k = 0; k < kMasters && !Has(Fault::kPrintedSplit); ++k) {
    if (s.masters[m].splits[k] <= s.masters[m].applied[k]) continue;
    ++statistics().invalid;
    return;
  }
  s.reader = {1, static_cast<uint8_t>(m), 0, {}, {}};
  std::copy(std::begin(s.masters[m].applied), std::end(s.masters[m].applied), s.reader.tv);
  s.reader.tv[m] = s.masters[m].clock[m];
}

// A scan reads the rows of a page in one step. If one cannot be read, the statement runs again, with locks.
void World::ReadPage() {
  Reader& reader = s.reader;
  const std::string_view points = scenario_.points;
  PageCopy copy;
  bool is_valid = FindRow(reader.master, points.empty() ? reader.row : points[reader.row] - 'a', copy);
  if (is_valid && !points.empty()) ReadRow(copy, points[reader.row++] - 'a');
  while (is_valid && points.empty() && reader.row < kRows) {
    ReadRow(copy, reader.row++);
    if (!copy.Has(reader.row)) break;
  }
  const bool is_through = reader.row == (points.empty() ? kRows : points.size());
  if (is_valid && !is_through) return;
  ++(is_valid ? statistics().reads : statistics().invalid);
  if (is_valid && points.empty() && IsNoSnapshot(reader.out)) {
    ++statistics().not_snapshots;
    if (Has(Fault::kPrintedSnapshot)) Fail(Failure::kNotSnapshot);
  }
  reader = {};
}

// A version that this master changed last is valid if TV covers its own changes, and the ENDs of transactions whose row
// locks were dropped. Versions of other masters below it need not be covered, as each row has its writer and the image
// before.
bool World::IsValid(size_t m, size_t page, Lsn own) const {
  if (Has(Fault::kNoValidityCheck)) return true;
  if (own.time > s.reader.tv[m] && !Has(Fault::kLocalAfterTv)) return false;
  for (size_t i = 1; i <= s.chains[page].count && Has(Fault::kPrintedValidity); ++i) {
    const Lsn lsn = VersionAt(page, i).lsn;
    if (lsn.time < own.time && !Sees(lsn, s.reader.tv)) return false;
  }
  for (size_t k = 0; k < kMasters && !Has(Fault::kPrintedValidity); ++k) {
    if (k != m && s.masters[m].pages[page].after[k] > s.reader.tv[k]) return false;
  }
  return true;
}

// The version of a page that a statement reads: the buffer's if this master changed it last, else the newest within TV.
bool World::FindCopy(size_t m, size_t page, PageCopy& copy) {
  copy = s.masters[m].pages[page].copy;
  if (copy.there != 0 && copy.lsn.master == m) return IsValid(m, page, copy.lsn);
  bool all = true, prefix = true;
  copy = VersionAt(page, 0);
  for (size_t i = 1; i <= s.chains[page].count; ++i) {
    const PageCopy version = VersionAt(page, i);
    const bool is_seen = Sees(version.lsn, s.reader.tv);
    if (is_seen) copy = version, prefix = all;
    all &= is_seen;
  }
  // Its own version was evicted, or a newer one of another master has replaced it in the buffer.
  if (copy.lsn.master == m) return IsValid(m, page, copy.lsn);
  if (!prefix) Fail(Failure::kReadNoPrefix);
  return page != kRight || copy.lsn.master != kNone || Has(Fault::kNoVersionRead);
}

// The page with the row; from P, a reader moves right.
bool World::FindRow(size_t m, size_t row, PageCopy& copy) {
  const size_t page = PageFor(m, row);
  if (!FindCopy(m, page, copy)) return false;
  return copy.Has(row) || page == kRight || Has(Fault::kReaderStaysLeft) || FindCopy(m, kRight, copy);
}

void World::ReadRow(const PageCopy& copy, size_t row) {
  const Row read = copy.Has(row) ? copy.rows[row] : Row();
  const bool is_own = read.writer != 0 && s.txns[read.writer - 1].master == s.reader.master;
  const bool ended_here = is_own && (s.masters[s.reader.master].ended & BitOf(read.writer - 1u)) != 0;
  const bool sees = EndedAt(read.writer, s.reader.tv) || (ended_here && Has(Fault::kEndedHere));
  s.reader.out[row] = sees ? read.value : read.before;
  CheckRead(row, s.reader.out[row]);
}

// A statement sees a transaction if TV has the END of its commit.
void World::CheckRead(size_t row, uint8_t value) {
  uint8_t seen = 0, newest = 0, time = 0;
  for (size_t m = 0; m < scenario_.masters; ++m) {
    for (size_t i = 0; i < s.masters[m].count; ++i) {
      const Record& record = s.masters[m].records[i];
      if (record.kind == Record::kCommit && record.time <= s.reader.tv[m]) seen |= BitOf(record.txn);
    }
  }
  if (value != 0 && (seen & BitOf((value - 1u) / 8)) == 0) Fail(Failure::kReadUnended, row);
  for (const Master& master : s.masters) {
    for (size_t i = 0; i < master.count; ++i) {
      const Record& record = master.records[i];
      if (record.kind != Record::kWrite || record.row != row || record.time <= time) continue;
      if ((seen & BitOf(record.txn)) != 0) newest = record.image.value, time = record.time;
    }
  }
  if (value != newest) Fail(Failure::kReadMisses, row);
}

// ---- Pruning ----

// No TV in use, now or later, is below it.
uint8_t World::LeastTv(size_t k) const {
  uint8_t least = kNone;
  for (size_t m = 0; m < scenario_.masters; ++m) {
    const Master& master = s.masters[m];
    if (master.alive == 0) continue;
    least = std::min(least, k == m ? master.clock[m] : master.applied[k]);
    const bool reads = s.reader.is_active != 0 && s.reader.master == m;
    if (reads && !Has(Fault::kPrunedEarly)) least = std::min(least, s.reader.tv[k]);
  }
  return least;
}

bool World::CanPrune(const uint8_t (&after)[kMasters]) const {
  for (size_t k = 0; k < kMasters; ++k) {
    if (after[k] != 0 && after[k] <= LeastTv(k)) return true;
  }
  return false;
}

void World::Prune(uint8_t (&after)[kMasters]) const {
  for (size_t k = 0; k < kMasters; ++k) {
    if (after[k] <= LeastTv(k)) after[k] = 0;
  }
}

// Whether a transaction is seen, and not what it had read.
bool World::IsNoSnapshot(const uint8_t (&out)[kRows]) const {
  for (const uint8_t value : out) {
    if (value == 0) continue;
    const Txn& txn = s.txns[(value - 1) / 8];
    for (size_t i = 0; i < txn.read_count; ++i) {
      const uint8_t row = txn.reads[i].row;
      const Order order = OrderOf(row, 0, true);
      const size_t read = order.Find(out[row]), seen = order.Find(txn.reads[i].value);
      if (read < seen && seen < order.count) return true;
    }
  }
  return false;
}

}  // namespace dbx::models::multi_master
