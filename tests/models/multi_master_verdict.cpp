// What must hold when a run of the model of Taurus MM has ended.
#include <algorithm>

#include "tests/models/multi_master_model.h"

namespace dbx::models::multi_master {

const char* TextOf(Failure failure) {
  static constexpr std::array kTexts = {
      "",
      "a page's LSN does not increase",
      "page store: the order of LSNs is not the order of writes",
      "page store: two versions build on one",
      "an append after the fence",
      "a release of a lock that is not held",
      "page store: it cannot serve the version that was granted",
      "an LFB is applied before its cause",
      "a gap in a buffered page",
      "versioned read: the visible versions are no prefix",
      "versioned read: it shows a change whose END is not in its TV",
      "versioned read: it misses a commit in its TV",
      "stuck",
      "page store: a record whose predecessor never came",
      "an LFB can never be applied",
      "acknowledged and lost",
      "a row does not end with its last committed value",
      "a transaction read a value that was not committed",
      "not serializable",
      "versioned read: a transaction is seen, and not what it read",
      "a row is not on its page",
  };
  return kTexts.at(static_cast<size_t>(failure));
}

size_t World::Order::Find(uint8_t value) const {
  const auto end = values.begin() + static_cast<ptrdiff_t>(count);
  return static_cast<size_t>(std::find(values.begin(), end, value) - values.begin());
}

void World::Finish() {
  for (const Txn& txn : s.txns) {
    const bool ended = txn.step == Txn::kAcked || txn.step == Txn::kAborted || txn.step == Txn::kDead;
    if (txn.step != Txn::kAbsent && !ended) Fail(Failure::kStuck);
    statistics().acked += txn.step == Txn::kAcked;
    statistics().aborted += txn.step == Txn::kAborted;
  }
  for (size_t m = 0; m < scenario_.masters; ++m) {
    if (s.masters[m].alive != 0) Flush(m);
  }
  for (const Master& master : s.masters) {
    for (size_t i = 0; i < master.durable; ++i) {
      if (master.records[i].IsOfPage() && master.records[i].stored == 0) Fail(Failure::kChainHole);
    }
  }
  for (size_t m = 0; m < scenario_.masters && s.failure == Failure::kNothing; ++m) {
    for (bool more = s.masters[m].alive != 0; more;) {
      more = false;
      for (size_t k = 0; k < scenario_.masters; ++k) {
        while (MayApply(m, k)) Apply(m, k), more = true;
      }
    }
    for (size_t k = 0; k < scenario_.masters; ++k) {
      const bool behind = s.masters[m].next[k] < s.masters[k].lfb_count;
      if (s.masters[m].alive != 0 && k != m && behind) Fail(Failure::kNeverApplied);
    }
  }
  const uint8_t committed = Committed();
  for (size_t t = 0; t < kTxns; ++t) {
    const Txn& txn = s.txns[t];
    if (txn.step == Txn::kAcked && txn.writes_done > 0 && (committed & BitOf(t)) == 0) Fail(Failure::kAckLost, t);
  }
  JudgeRows(committed);
  JudgeOrder(committed);
}

// Durably.
uint8_t World::Committed() const {
  uint8_t committed = 0;
  for (const Master& master : s.masters) {
    for (size_t i = 0; i < master.durable; ++i) {
      if (master.records[i].kind == Record::kCommit) committed |= BitOf(master.records[i].txn);
    }
  }
  return committed;
}

// The values that committed transactions have written to the row, or with `every` all values it has had, by time; 0 is
// the first.
World::Order World::OrderOf(size_t row, uint8_t committed, bool every) const {
  Order order{{}, 1};
  std::array<std::pair<uint8_t, uint8_t>, kRecordsMax * kMasters> writes;
  size_t count = 0;
  for (const Master& master : s.masters) {
    for (size_t i = 0; i < master.durable; ++i) {
      const Record& record = master.records[i];
      const bool counts = every || (record.kind == Record::kWrite && (committed & BitOf(record.txn)) != 0);
      const bool changes = record.kind == Record::kWrite || record.kind == Record::kUndo;
      if (changes && record.row == row && counts) writes[count++] = {record.time, record.image.value};
    }
  }
  std::sort(writes.begin(), writes.begin() + static_cast<ptrdiff_t>(count));
  for (size_t i = 0; i < count; ++i) order.values[order.count++] = writes[i].second;
  return order;
}

void World::JudgeRows(uint8_t committed) {
  for (size_t row = 0; row < kRows; ++row) {
    const Order good = OrderOf(row, committed, false), all = OrderOf(row, committed, true);
    if (good.values[good.count - 1] != all.values[all.count - 1]) Fail(Failure::kRowLost, row);
  }
}

// Committed transactions, and readers that were acknowledged, have a serial order.
void World::JudgeOrder(uint8_t committed) {
  uint8_t after[kTxns] = {};
  for (size_t row = 0; row < kRows; ++row) {
    const Order order = OrderOf(row, committed, false);
    const auto writer = [&order](size_t i) { return static_cast<size_t>((order.values[i] - 1) / 8); };
    for (size_t i = 2; i < order.count; ++i) {
      if (writer(i - 1) != writer(i)) after[writer(i - 1)] |= BitOf(writer(i));
    }
    for (size_t t = 0; t < kTxns; ++t) {
      const Txn& txn = s.txns[t];
      if ((committed & BitOf(t)) == 0 && txn.step != Txn::kAcked) continue;
      for (size_t r = 0; r < txn.read_count; ++r) {
        const uint8_t value = txn.reads[r].value;
        if (txn.reads[r].row != row || (value != 0 && (value - 1u) / 8 == t)) continue;
        size_t at = order.Find(value);
        if (at == order.count) return Fail(Failure::kDirtyRead, row);
        if (value != 0) after[writer(at)] |= BitOf(t);
        while (++at < order.count && writer(at) == t) continue;
        if (at < order.count) after[t] |= BitOf(writer(at));
      }
    }
  }
  for (size_t via = 0; via < kTxns; ++via) {
    for (uint8_t& reached : after) {
      if ((reached & BitOf(via)) != 0) reached |= after[via];
    }
  }
  for (size_t t = 0; t < kTxns; ++t) {
    if ((after[t] & BitOf(t)) != 0) Fail(Failure::kNotSerializable);
  }
}

}  // namespace dbx::models::multi_master
