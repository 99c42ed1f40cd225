// Versioned reads of the model of Taurus MM: one statement reads all rows, without locks, as of TV = (applied, own
// now).
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

void World::ReadVersions(size_t m) {
  --s.reads;
  uint8_t tv[kMasters], out[kRows] = {};
  std::copy(std::begin(s.masters[m].applied), std::end(s.masters[m].applied), tv);
  tv[m] = s.masters[m].clock[m];
  for (size_t page = 0; page < kPages; ++page) {
    if (!ReadPage(m, page, tv, out)) {
      ++statistics().invalid;
      return;
    }
  }
  ++statistics().reads;
  if (!IsNoSnapshot(out)) return;
  ++statistics().not_snapshots;
  if (Has(Fault::kPrintedSnapshot)) Fail(Failure::kNotSnapshot);
}

// A version that this master changed last is valid if all that it builds upon is within TV: the versions before it, and
// the ENDs of transactions whose row locks were dropped.
bool World::IsValid(size_t m, size_t page, Lsn own, const uint8_t (&tv)[kMasters]) const {
  if (Has(Fault::kNoValidityCheck)) return true;
  const Local& local = s.masters[m].pages[page];
  for (size_t i = 1; i <= s.chains[page].count; ++i) {
    const Lsn lsn = VersionAt(page, i).lsn;
    if (lsn.time < own.time && !Sees(lsn, tv)) return false;
  }
  if (Has(Fault::kPrintedValidity)) return true;
  for (size_t k = 0; k < kMasters; ++k) {
    if (k != m && local.after[k] > tv[k]) return false;
  }
  return true;
}

// False: the statement runs again, with locks.
bool World::ReadPage(size_t m, size_t page, const uint8_t (&tv)[kMasters], uint8_t (&out)[kRows]) {
  const Local& local = s.masters[m].pages[page];
  const bool is_local = local.copy.there != 0 && local.copy.lsn.master == m;
  PageCopy copy = local.copy;
  if (is_local) {
    if (!IsValid(m, page, copy.lsn, tv)) return false;
  } else {
    bool all = true, prefix = true;
    copy = VersionAt(page, 0);
    for (size_t i = 1; i <= s.chains[page].count; ++i) {
      const PageCopy version = VersionAt(page, i);
      if (Sees(version.lsn, tv)) copy = version, prefix = all;
      all &= Sees(version.lsn, tv);
    }
    // A newer version of another master may have replaced this master's own one in the buffer.
    if (copy.lsn.master == m && !IsValid(m, page, copy.lsn, tv)) return false;
    if (!prefix) Fail(Failure::kReadNoPrefix);
  }
  for (size_t row = 0; row < kRows; ++row) {
    if (PageOf(row) != page) continue;
    const Row& read = copy.rows[row];
    const bool ended = EndedAt(read.writer, tv);
    if (!ended && !EndedAt(read.before_writer, tv)) Fail(Failure::kReadUnended, row);
    out[row] = ended ? read.value : read.before;
  }
  if (!is_local) CheckMisses(page, tv, out);
  return true;
}

// The newest change that TV sees and commits must be the one that was read.
void World::CheckMisses(size_t page, const uint8_t (&tv)[kMasters], const uint8_t (&out)[kRows]) {
  uint8_t best[kRows] = {};
  for (size_t i = 0; i <= s.chains[page].count; ++i) {
    const PageCopy version = VersionAt(page, i);
    for (size_t row = 0; row < kRows && Sees(version.lsn, tv); ++row) {
      if (EndedAt(version.rows[row].writer, tv)) best[row] = version.rows[row].value;
    }
  }
  for (size_t row = 0; row < kRows; ++row) {
    if (PageOf(row) == page && best[row] != out[row]) Fail(Failure::kReadMisses, row);
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
