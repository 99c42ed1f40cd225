// What really happened in a simulated run: which version each transaction read and wrote, and which were
// acknowledged.
//
// It lives outside the engine and its devices, so a crash takes nothing from it. A version is the hash of the tuple's
// bytes; the workloads' writes do not commute, so a version has one writer as a rule. Where it has several (TPC-C:
// the same stock level twice) it says nothing about that read. A row that is absent has a version too, that of the
// transaction which deleted it: one that misses it, or inserts it anew, depends on that transaction.
// Used by one simulation at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/types.h"

namespace dbx::sim {

using Version = uint64_t;
inline constexpr Version kAbsent = 0;
Version HashOf(std::span<const std::byte> tuple);

// A row that is there.
struct RowVersion {
  TableId table;
  Key key;
  Version version;
};

class Oracle {
 public:
  void Reset();
  // A new run continues what was recovered. It must not name a transaction like one of these, or like one that was
  // dropped and is on disk still; other names are free. Of what was acknowledged, writers are among these; readers,
  // which leave no record, are remembered until their names are used again.
  void NewGeneration(const std::vector<uint64_t>& recovered, const std::vector<uint64_t>& on_disk,
                     const std::vector<TxnId>& acknowledged);

  // --- events ---
  void Begin(TxnId id);
  void Read(TxnId id, TableId table, Key key, Version version);
  // The row was absent, and its last version Current() when the transaction began to look. If that has changed since,
  // it is not known which absence was seen: in a logical order a reader of the older one may commit all the same. One
  // that reads a snapshot is known to have seen an absence only if it began after that had pre-committed.
  void Miss(TxnId id, TableId table, Key key, Version before, bool of_snapshot);
  void Write(TxnId id, TableId table, Key key, Version version);
  // The row that is there now, which the transaction therefore depends on.
  void Delete(TxnId id, TableId table, Key key);
  // Nothing can stop it any more, and no other transaction has seen a write of it yet.
  void PreCommit(TxnId id);
  void Acknowledge(TxnId id);

  // What every run and every recovery of it begins with.
  void Loaded(const std::vector<RowVersion>& rows);

  // Of these alone something is left, while the run goes on: a version that was taken for the current one because one
  // of the others had pre-committed it was not there to see.
  void Survived(const std::vector<uint64_t>& survivors);

  // Is told of each attempt to run a transaction.
  std::function<void()> on_begin;
  // Is told of each acknowledgement at the moment it is given.
  std::function<void(TxnId)> on_acknowledge;

  // --- questions ---
  // The version of the row that pre-committed last; kAbsent: none in this generation.
  Version Current(TableId table, Key key) const;
  const std::vector<TxnId>& acknowledged() const { return acknowledged_; }
  // Of this generation, in virtual time from the last begin of a transaction to its acknowledgement.
  uint64_t longest_wait_nanos() const { return longest_wait_nanos_; }
  // The writers that the last attempt of `id` read from, itself excepted.
  std::vector<TxnId> ReadFrom(TxnId id) const;
  bool HasWritten(TxnId id) const;
  // The writers that pre-committed with lower sequence numbers than their workers have here.
  std::vector<uint64_t> WritersBelow(const std::vector<uint64_t>& sequences) const;

  bool IsOfThisGeneration(TxnId id) const;
  // A transaction of this generation that pre-committed and was not acknowledged.
  std::optional<std::string> Unacknowledged() const;

  // I1, I2, I3 and I8 for a recovered set: every acknowledged writer is in it, all in it pre-committed, all that they
  // and acknowledged readers read was loaded or written by one in it, and no name was given twice. The first violation.
  std::optional<std::string> ViolationOf(const std::vector<uint64_t>& recovered,
                                         const std::vector<TxnId>& acknowledged) const;
  // I1 for the acknowledged readers of earlier generations: they read from transactions in the recovered set.
  std::optional<std::string> ViolationOfEarlierReaders(const std::vector<uint64_t>& recovered) const;

  // I4 for a recovered set and the rows that its recovery left: each is as the last of the set that wrote it left it,
  // or as it was loaded. The first that is not.
  std::optional<std::string> WrongRowOf(const std::vector<uint64_t>& recovered,
                                        const std::vector<RowVersion>& rows) const;

  // I10 for these transactions and the acknowledged readers of earlier generations: a cycle, or a version that no
  // transaction may see. `snapshots`: snapshot isolation suffices.
  std::optional<std::string> AnomalyAmong(const std::vector<uint64_t>& ids, bool snapshots) const;

 private:
  friend class OracleHistory;

  static constexpr uint64_t kManyWriters = UINT64_MAX;
  // The version of a row that this transaction deleted.
  static Version AbsenceBy(TxnId id);

  struct Place {
    uint64_t table;
    Key key;
    Version version;
    bool operator==(const Place&) const = default;
    // Of the same row, whatever its version.
    Place Row() const { return {table, key, kAbsent}; }
    std::string RowName() const { return "row " + std::to_string(key) + " of table " + std::to_string(table); }
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return (place.key * 0x9E3779B97F4A7C15u ^ place.version) + place.table;
    }
  };
  struct Txn {
    std::vector<Place> reads;
    std::vector<Place> guessed;  // of `reads`: those of a row that was absent, or deleted
    std::vector<Place> misses;   // rows, where it had not written them before
    std::vector<Place> writes;
    uint32_t generation = 0;
    uint64_t began = 0;  // the number of an event
    uint64_t pre_committed = 0;
    uint64_t began_at = 0;  // in virtual time
  };

  static Place RowOf(TableId table, Key key) { return {table.value(), key, kAbsent}; }
  bool WasLoaded(const Place& place) const;
  void DependOnCurrent(TxnId id, TableId table, Key key, Version before, bool of_snapshot);
  void Forget(TxnId id, const std::vector<Place>& versions);
  bool WasAbsentAtBegin(TxnId id, const Place& place) const;
  // Whether a transaction has written it, or it was loaded so.
  bool IsKnown(const Place& place) const;
  std::optional<std::string> WrongReadOf(TxnId reader, const std::unordered_set<uint64_t>& survivors) const;
  std::string DescriptionOf(const Place& row, Version version) const;  // of a version of the row
  // Of each row that one in `recovered` has written, what is there then; kAbsent: nothing.
  std::unordered_map<Place, Version, PlaceHash> LastWritesOf(const std::vector<uint64_t>& recovered) const;
  std::unordered_map<uint64_t, Txn> txns_;
  std::unordered_map<Place, uint64_t, PlaceHash> writers_;  // kManyWriters: several
  std::unordered_map<Place, Version, PlaceHash> current_;   // of the rows that this generation wrote, by RowOf
  std::unordered_map<Place, Version, PlaceHash> loaded_;    // by RowOf
  std::unordered_set<uint64_t> taken_;                      // names that this generation must not use
  std::unordered_set<uint64_t> old_readers_;                // acknowledged ones of earlier generations
  std::vector<TxnId> acknowledged_;
  uint64_t longest_wait_nanos_ = 0;
  uint32_t generation_ = 0;
  uint64_t events_ = 0;
  std::optional<TxnId> used_twice_;
};

extern Oracle oracle;

}  // namespace dbx::sim
