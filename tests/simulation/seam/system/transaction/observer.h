// What system/transaction/observer.h is in the simulation: every access is told to the oracle.
#pragma once

#include <span>
#include <vector>

#include "base/outcome.h"
#include "base/types.h"
#include "benchmarks/workload.h"
#include "storage/table.h"
#include "tests/simulation/allocation.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/rows.h"

namespace dbx::observer {

// A transaction's context that hands every call on, and its outcome to the oracle.
template <class Txn>
class ObservedContext {
 public:
  static constexpr bool kReadsAreOfOneMoment = Txn::kReadsAreOfOneMoment;

  ObservedContext(Txn& txn, TxnId id) : txn_(txn), id_(id) { sim::oracle.Begin(id); }

  Outcome Read(Table& table, Key key, auto&& visit) {
    return Observe(table, key, visit, [&](auto&& see) { return txn_.Read(table, key, see); });
  }
  Outcome Update(Table& table, Key key, auto&& change) {
    sim::Version seen = sim::kAbsent;
    sim::Version after = sim::kAbsent;
    const sim::Version before = sim::oracle.Current(table.id(), key);
    const Outcome outcome = txn_.Update(table, key, [&](auto& tuple) {
      seen = VersionOf(table, tuple);
      change(tuple);
      after = VersionOf(table, tuple);
    });
    Saw(outcome, table, key, seen, before);
    if (outcome == Outcome::kOk) sim::oracle.Write(id_, table.id(), key, after);
    return outcome;
  }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    const sim::Version before = sim::oracle.Current(table.id(), key);
    const Outcome outcome = txn_.Insert(table, key, tuple);
    if (outcome != Outcome::kOk) return outcome;
    Miss(table, key, before);
    sim::oracle.Write(id_, table.id(), key, sim::HashOf(tuple));
    return outcome;
  }
  Outcome Delete(Table& table, Key key) {
    const sim::Version before = sim::oracle.Current(table.id(), key);
    const Outcome outcome = txn_.Delete(table, key);
    if (outcome == Outcome::kOk) sim::oracle.Delete(id_, table.id(), key);
    if (outcome == Outcome::kNotFound) Miss(table, key, before);
    return outcome;
  }
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    // Of a range that is not too wide, what is missed as well, as Read does.
    const Key keys = high - low < kKeysMissedMax ? high - low + 1 : 0;
    std::vector<sim::Version> before = AbsentVersions(keys), seen = AbsentVersions(keys);
    for (Key i = 0; i < keys; ++i) before[i] = sim::oracle.Current(table.id(), low + i);
    Key first = low, last = high;  // that the scan came to
    const Outcome outcome = txn_.Scan(table, low, high, order, [&](Key key, const auto& tuple) {
      const sim::Version version = VersionOf(table, tuple);
      if (keys > 0) seen[key - low] = version;
      sim::oracle.Read(id_, table.id(), key, version);
      const bool goes_on = visit(key, tuple);
      if (!goes_on) (order == ScanOrder::kAscending ? last : first) = key;
      return goes_on;
    });
    if (outcome == Outcome::kConflict) return outcome;
    for (Key i = 0; i < keys; ++i) {
      const bool missed = seen[i] == sim::kAbsent && first <= low + i && low + i <= last;
      if (missed) Miss(table, low + i, before[i]);
    }
    return outcome;
  }

 protected:
  // Of a wider range it is not looked at what a scan misses.
  static constexpr Key kKeysMissedMax = 64;

  // Calls read(see), which calls see(tuple) if the row is there.
  Outcome Observe(Table& table, Key key, auto&& visit, auto&& read) {
    sim::Version seen = sim::kAbsent;
    const sim::Version before = sim::oracle.Current(table.id(), key);
    const Outcome outcome = read([&](const auto& tuple) {
      visit(tuple);
      seen = VersionOf(table, tuple);
    });
    Saw(outcome, table, key, seen, before);
    return outcome;
  }
  static sim::Version VersionOf(const Table& table, const auto& tuple) {
    std::vector<std::byte> image = sim::Exempted([&] { return std::vector<std::byte>(table.tuple_bytes()); });
    tuple.CopyAt(0, image);
    return sim::HashOf(image);
  }
  Txn& txn() { return txn_; }
  TxnId id() const { return id_; }

 private:
  void Saw(Outcome outcome, const Table& table, Key key, sim::Version seen, sim::Version before) {
    if (outcome == Outcome::kConflict) return;
    // What was handed out may have been looked at in vain, and gone when it was looked for again.
    if (outcome != Outcome::kOk) return Miss(table, key, before);
    sim::oracle.Read(id_, table.id(), key, seen);
  }
  void Miss(const Table& table, Key key, sim::Version before) {
    sim::oracle.Miss(id_, table.id(), key, before, kReadsAreOfOneMoment);
  }
  static std::vector<sim::Version> AbsentVersions(size_t count) {
    return sim::Exempted([count] { return std::vector<sim::Version>(count, sim::kAbsent); });
  }

  Txn& txn_;
  const TxnId id_;
};

template <class Txn>
ObservedContext<Txn> ContextOf(Txn& txn, const Call& call) {
  return {txn, call.txn_id()};
}

inline void PreCommitted(TxnId id) { sim::oracle.PreCommit(id); }

inline void Acknowledged(TxnId id) { sim::oracle.Acknowledge(id); }

inline void Recovered(const Database& database) { sim::recovered_rows = sim::RowsOf(database); }

}  // namespace dbx::observer
