// A transaction of a simulated cluster as a procedure sees it: its client thinks between the calls, and every access is
// told to the oracle, what is read without locks statement by statement.
//
// Threads: the worker's fibre.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "multi_master/master/mm_transaction.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/seam/system/transaction/observer.h"

namespace dbx::sim {

struct ClusterTransaction : mm::MmTransaction {
  // Reads under locks are each of the moment when it happens, not of one moment for all.
  static constexpr bool kReadsAreOfOneMoment = false;

  ClusterTransaction(mm::MmTransaction txn, uint64_t think_nanos_max)
      : MmTransaction(std::move(txn)), think_nanos_max_(think_nanos_max) {}

  Outcome Read(Table& table, Key key, auto&& visit) { return Think(), MmTransaction::Read(table, key, visit); }
  Outcome ReadForUpdate(Table& table, Key key, auto&& visit) {
    return Think(), MmTransaction::ReadForUpdate(table, key, visit);
  }
  Outcome Update(Table& table, Key key, auto&& change) { return Think(), MmTransaction::Update(table, key, change); }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    return Think(), MmTransaction::Insert(table, key, tuple);
  }
  Outcome Delete(Table& table, Key key) { return Think(), MmTransaction::Delete(table, key); }
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    return Think(), MmTransaction::Scan(table, low, high, order, visit);
  }

 private:
  void Think() const {
    if (think_nanos_max_ > 0) SleepFor(Random() % think_nanos_max_);
  }
  const uint64_t think_nanos_max_;
};

class ClusterContext : public observer::ObservedContext<ClusterTransaction> {
  using Base = observer::ObservedContext<ClusterTransaction>;

 public:
  ClusterContext(ClusterTransaction& txn, TxnId id, mm::Isolation isolation)
      : Base(txn, id), reads_versions_(isolation == mm::Isolation::kReadCommitted) {}

  Outcome Read(Table& table, Key key, auto&& visit) {
    if (!reads_versions_) return Base::Read(table, key, visit);
    Version seen = kAbsent;
    const Outcome outcome = txn().Read(table, key, [&](const auto& tuple) {
      visit(tuple);
      seen = VersionOf(table, tuple);
    });
    if (outcome != Outcome::kConflict) oracle.Statement(id(), {{table.id(), key, seen}});
    return outcome;
  }

  // Serializable transactions upgrade a shared lock instead.
  Outcome ReadForUpdate(Table& table, Key key, auto&& visit) {
    if (!reads_versions_) return Base::Read(table, key, visit);
    return Observe(table, key, visit, [&](auto&& see) { return txn().ReadForUpdate(table, key, see); });
  }

  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    if (!reads_versions_) return Base::Scan(table, low, high, order, visit);
    Rows rows = AbsentRows(table, low, high);
    const bool is_wide = rows.empty();
    Key first = low, last = high;  // that the scan came to
    const Outcome outcome = txn().Scan(table, low, high, order, [&](Key key, const auto& tuple) {
      const RowVersion row{table.id(), key, VersionOf(table, tuple)};
      is_wide ? rows.push_back(row) : (void)(rows[key - low] = row);
      const bool goes_on = visit(key, tuple);
      if (!goes_on) (order == ScanOrder::kAscending ? last : first) = key;
      return goes_on;
    });
    if (outcome == Outcome::kConflict) return outcome;
    std::erase_if(rows, [&](const RowVersion& row) { return row.key < first || row.key > last; });
    oracle.Statement(id(), rows);
    return outcome;
  }

 private:
  using Rows = std::vector<RowVersion>;

  // Nothing of a wide range.
  static Rows AbsentRows(const Table& table, Key low, Key high) {
    Rows rows;
    for (Key i = 0; high - low < kKeysMissedMax && i <= high - low; ++i) rows.push_back({table.id(), low + i, kAbsent});
    return rows;
  }

  const bool reads_versions_;
};

}  // namespace dbx::sim
