// Workers on masters that may die under them, and what was acknowledged before.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/multi_master/cluster_workers.h"

namespace dbx::mm {

// Transactions of one worker that wait for their log.
class Acks {
 public:
  explicit Acks(Master& master) : master_(master) {}
  void Add(VsTime end, uint64_t txn) { pending_.emplace_back(end, txn); }
  void Poll() {
    const VsTime durable = master_.log().durable_until();
    for (; !pending_.empty() && pending_.front().first.value() <= durable.value(); pending_.pop_front()) {
      acknowledged_.push_back(pending_.front().second);
    }
  }
  void AwaitAll() {
    if (!pending_.empty()) master_.log().AwaitDurable(pending_.back().first);
    Poll();
  }
  const std::vector<uint64_t>& acknowledged() const { return acknowledged_; }

 private:
  Master& master_;
  std::deque<std::pair<VsTime, uint64_t>> pending_;
  std::vector<uint64_t> acknowledged_;
};

struct MortalTally {
  std::vector<uint64_t> acknowledged;
  bool died = false;
};

// Until its master dies, or `run(txn, n)` has been committed `count` times.
template <class Run>
MortalTally RunMortalWorker(Master& master, uint64_t count, Run&& run) {
  MortalTally tally;
  Acks acks(master);
  try {
    MmTransaction txn = master.NewTransaction();
    for (uint64_t n = 0; n < count; ++n) {
      const BeginTime begun(host::MonotonicNanos());
      Outcome outcome = Outcome::kConflict;
      while (outcome == Outcome::kConflict) {
        txn.Begin(begun);
        outcome = run(txn, n);
        if (outcome != Outcome::kOk) txn.Abort();
      }
      if (outcome == Outcome::kOk) acks.Add(txn.Commit(), n);
      acks.Poll();
    }
    acks.AwaitAll();
  } catch (const Error&) {
    tally.died = true;
    acks.Poll();
  }
  tally.acknowledged = acks.acknowledged();
  return tally;
}

// Transactions that show in the rows which of them are there: each adds 1 to the counters of a few rows, and inserts a
// row of its own, whose first bytes name the counters. It is judged by the rows alone.
class Counts {
 public:
  static constexpr Key kOwnRows = 1'000'000, kOwnRowsOfWorker = 100'000;
  static constexpr size_t kCountersOfTxn = 3;

  Counts(Table& table, uint64_t counters) : table_(table), counters_(counters), tuple_(table.tuple_bytes()) {}

  Outcome Run(MmTransaction& txn, uint32_t worker, uint64_t n, uint64_t seed) const {
    const std::vector<Key> keys = KeysOf(worker, n, seed);
    for (const Key key : keys) {
      const Outcome outcome = Add(txn, key);
      if (outcome != Outcome::kOk) return outcome;
    }
    std::vector<std::byte> tuple = tuple_;
    std::memcpy(tuple.data(), keys.data(), keys.size() * sizeof(Key));
    return txn.Insert(table_, OwnRow(worker, n), tuple);
  }
  Outcome Add(MmTransaction& txn, Key key) const {
    return txn.Update(table_, key,
                      [](auto& row) { row.template SetAt<uint64_t>(0, row.template GetAt<uint64_t>(0) + 1); });
  }
  static Key OwnRow(uint32_t worker, uint64_t n) { return kOwnRows + worker * kOwnRowsOfWorker + n; }

  // What is there, as a transaction sees it. Nothing: a conflict.
  struct Seen {
    std::map<Key, uint64_t> counters;
    std::map<Key, std::vector<Key>> own_rows;
  };
  std::optional<Seen> Look(MmTransaction& txn) const {
    Seen seen;
    const Outcome outcome =
        txn.Scan(table_, 0, UINT64_MAX, ScanOrder::kAscending, [&](Key key, const TupleReader& row) {
          if (key < kOwnRows) {
            seen.counters[key] = row.GetAt<uint64_t>(0);
          } else {
            for (size_t i = 0; i < kCountersOfTxn; ++i)
              seen.own_rows[key].push_back(row.GetAt<uint64_t>(i * sizeof(Key)));
          }
          return true;
        });
    if (outcome != Outcome::kOk) return std::nullopt;
    return seen;
  }
  static Seen LookUntilSeen(const Counts& counts, Master& by) {
    MmTransaction txn = by.NewTransaction(Isolation::kSerializable);
    for (;;) {
      txn.Begin(BeginTime(1));
      std::optional<Seen> seen = counts.Look(txn);
      seen ? (void)txn.Commit() : txn.Abort();
      if (seen) return *seen;
    }
  }
  // Why the rows are not those of the transactions that are there, and all that were acknowledged. Empty: they are.
  static std::string Fault(const Seen& before, const Seen& after, const std::vector<MortalTally>& workers) {
    std::map<Key, uint64_t> expected = before.counters;
    for (const auto& [row, keys] : after.own_rows) {
      for (const Key key : keys) ++expected[key];
    }
    for (const auto& [key, value] : after.counters) {
      if (expected[key] == value) continue;
      return "counter " + std::to_string(key) + " is " + std::to_string(value - before.counters.at(key)) + ", not " +
             std::to_string(expected[key] - before.counters.at(key));
    }
    for (uint32_t worker = 0; worker < workers.size(); ++worker) {
      for (const uint64_t n : workers[worker].acknowledged) {
        if (!after.own_rows.contains(OwnRow(worker, n))) {
          return "transaction " + std::to_string(n) + " of worker " + std::to_string(worker) + " is lost";
        }
      }
    }
    return "";
  }

 private:
  std::vector<Key> KeysOf(uint32_t worker, uint64_t n, uint64_t seed) const {
    Random random(seed * 1'000'003 + OwnRow(worker, n));
    std::set<Key> keys;
    while (keys.size() < kCountersOfTxn) keys.insert(random.Below(counters_));
    return {keys.begin(), keys.end()};
  }

  Table& table_;
  const uint64_t counters_;
  std::vector<std::byte> tuple_;
};

}  // namespace dbx::mm
