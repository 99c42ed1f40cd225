// The reference's replay of commands with timestamps: one after the other in the order in which they ended, each over
// the versions that were there at the timestamp at which it read.
//
// The newest version of a row is in the database; older ones are kept here until no transaction to come reads below
// their end. What was deleted stays in the index, absent, as long.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "system/reference/reference_replay.h"

namespace dbx::reference {

// A stored procedure's view of it.
class VersionedContext {
 public:
  void Begin(uint64_t read, uint64_t end) {
    read_ = read;
    end_ = end;
    own_.clear();
  }
  // The procedure has ended, without effect if `undo`. No other to come reads below `oldest_read`.
  void End(bool undo, uint64_t oldest_read);

  Outcome Read(Table& table, Key key, auto&& visit) {
    const std::byte* tuple = Seen(table, key);
    if (tuple == nullptr) return Outcome::kNotFound;
    visit(TupleReader(tuple));
    return Outcome::kOk;
  }
  Outcome Update(Table& table, Key key, auto&& change) {
    if (Seen(table, key) == nullptr) return Outcome::kNotFound;
    if (!SeesNewest({&table, key})) return Outcome::kConflict;
    TupleWriter<VersionedContext> writer(table.tuple(MakeOwn(table, key)), *this);
    change(writer);
    return Outcome::kOk;
  }
  Outcome Insert(Table& table, Key key, Bytes tuple);
  Outcome Delete(Table& table, Key key);
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    ScanEntries(table.tree(), low, high, order, [&](const BTreeEntry& entry) {
      const std::byte* tuple = Seen(table, entry.key);
      return tuple == nullptr || visit(entry.key, TupleReader(tuple));
    });
    return Outcome::kOk;
  }
  void BeforeChange(std::byte*, size_t) {}  // MakeOwn has kept the whole tuple

 private:
  using RowName = std::pair<Table*, Key>;
  struct Version {
    uint64_t begin;
    bool absent;
    std::vector<std::byte> tuple;
  };
  struct Overwritten {
    RowName row;
    uint64_t end;
  };

  // When the newest version was written; 0: no later transaction reads below that.
  uint64_t BeginOf(const RowName& row) const {
    const auto begin = begins_.find(row);
    return begin == begins_.end() ? 0 : begin->second;
  }
  bool SeesNewest(const RowName& row) const { return BeginOf(row) <= read_ || BeginOf(row) == end_; }
  // The tuple that the transaction sees, or nullptr.
  const std::byte* Seen(Table& table, Key key);
  // The row, there or absent, whose newest version the transaction may change now.
  Row* MakeOwn(Table& table, Key key);
  void Forget(const RowName& row);

  uint64_t read_ = 0;
  uint64_t end_ = 0;
  std::vector<RowName> own_;
  std::map<RowName, uint64_t> begins_;
  std::map<RowName, std::vector<Version>> older_;  // the newest of them last
  std::deque<Overwritten> overwritten_;            // in the order of ends
  EpochClock stopped_clock_{1};
};

// For each transaction of `order`, which are commands with timestamps, the least timestamp at which one behind it
// reads.
std::vector<uint64_t> OldestReadsBehind(const ReferenceLogs& logs, const std::vector<TxnRef>& order);

}  // namespace dbx::reference
