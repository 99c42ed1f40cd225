// A TxnContext over ordinary maps: the simplest model of what a stored procedure may expect, for tests and
// for comparing engines with it. Single-threaded. It copies the present rows of a Database, runs calls one at
// a time (one that does not end in kOk leaves nothing behind), and can be copied back or compared.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "benchmarks/workload.h"
#include "storage/database.h"
#include "storage/tuple.h"

namespace dbx {

class MapContext {
 public:
  using Tuple = std::vector<std::byte>;
  using TableMap = std::map<Key, Tuple>;

  explicit MapContext(const Database& db) : tables_(db.table_count()) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      const Table& table = db.table(TableId(static_cast<uint16_t>(t)));
      table.ForEachRow([&](const Row& row) {
        if (row.control.load() & Row::kAbsent) return;
        tables_[t].emplace(row.key, Tuple(table.tuple(&row), table.tuple(&row) + table.tuple_bytes()));
      });
    }
  }

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    const auto row = map(table).find(key);
    if (row == map(table).end()) return Outcome::kNotFound;
    visit(TupleReader(row->second.data()));
    return Outcome::kOk;
  }
  template <class Change>
  Outcome Update(Table& table, Key key, Change&& change) {
    const auto row = map(table).find(key);
    if (row == map(table).end()) return Outcome::kNotFound;
    Remember(table, key);
    NoSink sink;
    TupleWriter<NoSink> writer(row->second.data(), sink);
    change(writer);
    return Outcome::kOk;
  }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    CHECK(tuple.size() == table.tuple_bytes());
    if (map(table).contains(key)) return Outcome::kExists;
    Remember(table, key);
    map(table).emplace(key, Tuple(tuple.begin(), tuple.end()));
    return Outcome::kOk;
  }
  Outcome Delete(Table& table, Key key) {
    if (!map(table).contains(key)) return Outcome::kNotFound;
    Remember(table, key);
    map(table).erase(key);
    return Outcome::kOk;
  }

  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    CHECK(table.ordered());
    if (low > high) return Outcome::kOk;
    const TableMap& rows = map(table);
    const auto first = rows.lower_bound(low), last = rows.upper_bound(high);
    const auto see = [&](const auto& row) { return visit(row.first, TupleReader(row.second.data())); };
    if (order == ScanOrder::kAscending) {
      (void)std::all_of(first, last, see);
    } else {
      (void)std::all_of(std::make_reverse_iterator(last), std::make_reverse_iterator(first), see);
    }
    return Outcome::kOk;
  }

  // Runs one call as a transaction.
  template <class W>
  Outcome Execute(W& workload, const Call& call) {
    undo_.clear();
    const Outcome outcome = workload.Run(*this, call.procedure, call.args);
    if (outcome == Outcome::kOk) return outcome;
    for (auto entry = undo_.rbegin(); entry != undo_.rend(); ++entry) {
      if (entry->before) {
        tables_[entry->table][entry->key] = std::move(*entry->before);
      } else {
        tables_[entry->table].erase(entry->key);
      }
    }
    undo_.clear();
    return outcome;
  }

  TableMap& map(const Table& table) { return tables_[table.id().value()]; }

  // The rows that the last transaction changed, if it ended in kOk.
  using RowName = std::pair<uint16_t, Key>;
  std::vector<RowName> LastChanges() const {
    std::vector<RowName> rows;
    for (const Undo& undo : undo_) rows.emplace_back(static_cast<uint16_t>(undo.table), undo.key);
    return rows;
  }
  // Makes one row equal to that of another context, where it may be missing.
  void CopyRow(const MapContext& from, RowName row) {
    const auto found = from.tables_[row.first].find(row.second);
    if (found == from.tables_[row.first].end()) {
      tables_[row.first].erase(row.second);
    } else {
      tables_[row.first][row.second] = found->second;
    }
  }

  // Makes the present rows of `db` equal to this.
  void CopyTo(Database& db) const {
    for (size_t t = 0; t < tables_.size(); ++t) {
      Table& table = db.table(TableId(static_cast<uint16_t>(t)));
      table.ForEachRow([&](const Row& row) {
        if (!tables_[t].contains(row.key)) const_cast<Row&>(row).control.fetch_or(Row::kAbsent);
      });
      for (const auto& [key, tuple] : tables_[t]) {
        Row* row = table.FindOrCreate(WorkerId(0), key, [](Row& created) { created.control = Row::kAbsent; });
        row->control.fetch_and(~Row::kAbsent);
        std::memcpy(table.tuple(row), tuple.data(), tuple.size());
      }
    }
  }

  // A digest of the present rows, independent of their order.
  uint64_t Digest() const {
    uint64_t digest = 0;
    for (size_t t = 0; t < tables_.size(); ++t) {
      for (const auto& [key, tuple] : tables_[t]) {
        uint64_t hash = HashPair(t, key);
        for (std::byte byte : tuple) hash = HashPair(hash, static_cast<uint64_t>(byte));
        digest += hash;
      }
    }
    return digest;
  }

 private:
  struct NoSink {
    void BeforeChange(std::byte*, size_t) {}
  };
  struct Undo {
    size_t table;
    Key key;
    std::optional<Tuple> before;
  };

  void Remember(const Table& table, Key key) {
    const auto row = map(table).find(key);
    undo_.push_back({table.id().value(), key, row == map(table).end() ? std::nullopt : std::optional(row->second)});
  }

  std::vector<TableMap> tables_;
  std::vector<Undo> undo_;
};

static_assert(TxnContext<MapContext>);

}  // namespace dbx
