// What system/observer.h is in the simulation: every access is told to the oracle.
#pragma once

#include <span>
#include <vector>

#include "base/outcome.h"
#include "base/types.h"
#include "benchmarks/workload.h"
#include "storage/table.h"
#include "tests/simulation/oracle.h"

namespace dbx::observer {

// A transaction's context that hands every call on, and its outcome to the oracle.
template <class Txn>
class ObservedContext {
 public:
  ObservedContext(Txn& txn, TxnId id) : txn_(txn), id_(id) { sim::oracle.Begin(id); }

  Outcome Read(Table& table, Key key, auto&& visit) {
    sim::Version seen = sim::kAbsent;
    const Outcome outcome = txn_.Read(table, key, [&](const auto& tuple) {
      visit(tuple);
      seen = VersionOf(table, tuple);
    });
    if (outcome != Outcome::kConflict) sim::oracle.Read(id_, table.id(), key, seen);
    return outcome;
  }
  Outcome Update(Table& table, Key key, auto&& change) {
    sim::Version before = sim::kAbsent;
    sim::Version after = sim::kAbsent;
    const Outcome outcome = txn_.Update(table, key, [&](auto& tuple) {
      before = VersionOf(table, tuple);
      change(tuple);
      after = VersionOf(table, tuple);
    });
    if (outcome != Outcome::kConflict) sim::oracle.Read(id_, table.id(), key, before);
    if (outcome == Outcome::kOk) sim::oracle.Write(id_, table.id(), key, after);
    return outcome;
  }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    const Outcome outcome = txn_.Insert(table, key, tuple);
    if (outcome != Outcome::kOk) return outcome;
    sim::oracle.Read(id_, table.id(), key, sim::kAbsent);
    sim::oracle.Write(id_, table.id(), key, sim::HashOf(tuple));
    return outcome;
  }
  Outcome Delete(Table& table, Key key) {
    const Outcome outcome = txn_.Delete(table, key);
    if (outcome == Outcome::kOk) sim::oracle.Delete(id_, table.id(), key);
    if (outcome == Outcome::kNotFound) sim::oracle.Read(id_, table.id(), key, sim::kAbsent);
    return outcome;
  }

 private:
  static sim::Version VersionOf(const Table& table, const auto& tuple) {
    std::vector<std::byte> image(table.tuple_bytes());
    tuple.CopyAt(0, image);
    return sim::HashOf(image);
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

}  // namespace dbx::observer
