// What statements that read without locks must see (read committed, by statement).
//
// Of each row a statement sees a version that was committed when it ended, and its own transaction's writes. Of a
// transaction that it sees it sees all (no fractured read): of each row that it looked at, that transaction's version
// or a later one. And it sees all that such a transaction builds upon: the writers below it in the row; if it is of
// another master also what it read, and what it wrote over in other rows, and so on, as flushes are applied behind
// their causes. (A transaction of the own master is seen at once; one that it had read from may not be.) Strict ones
// see what was acknowledged when their transaction began.
//
// Which absence of a row was seen is not known: any that was committed by then will do.
#include <algorithm>
#include <map>

#include "tests/simulation/oracle.h"

namespace dbx::sim {

class StatementJudge {
 public:
  StatementJudge(const Oracle& oracle, const std::vector<uint64_t>& committed, const Oracle::StatementRules& rules)
      : oracle_(oracle), rules_(rules) {
    std::vector<std::pair<uint64_t, const Txn*>> in_order;
    for (const uint64_t id : committed) {
      if (const auto txn = oracle.txns_.find(id); txn != oracle.txns_.end()) in_order.emplace_back(id, &txn->second);
    }
    std::sort(in_order.begin(), in_order.end(),
              [](const auto& a, const auto& b) { return a.second->pre_committed < b.second->pre_committed; });
    for (const auto& [row, version] : oracle.loaded_) chains_[row] = {{version, 0, nullptr}};
    for (const auto& [id, txn] : in_order) {
      for (const Place& write : txn->writes) {
        const bool is_absence = write.version == Oracle::AbsenceBy(TxnId{id});
        ChainOf(write.Row()).push_back({is_absence ? kAbsent : write.version, id, txn});
      }
    }
  }

  std::optional<std::string> WrongOf(const std::vector<uint64_t>& ids) {
    for (const uint64_t id : ids) {
      const auto txn = oracle_.txns_.find(id);
      if (txn == oracle_.txns_.end()) continue;
      for (const Oracle::SeenTogether& statement : txn->second.statements) {
        if (const auto wrong = WrongWith({id, txn->second, statement})) return Name(id) + wrong.value();
      }
    }
    return std::nullopt;
  }

 private:
  using Txn = Oracle::Txn;
  using Place = Oracle::Place;
  struct Version {  // of a row
    sim::Version version = kAbsent;
    uint64_t writer = 0;
    const Txn* txn = nullptr;  // null: as it was loaded
  };
  using Chain = std::vector<Version>;
  struct Judged {
    uint64_t id;
    const Txn& txn;
    const Oracle::SeenTogether& statement;
  };
  // Where in the row's chain the version may be that was seen.
  struct Range {
    size_t first = SIZE_MAX;
    size_t last = 0;
  };
  // Transactions of which the statement must see all; true: and what they build upon.
  using Seen = std::map<uint64_t, bool>;

  static std::string Name(uint64_t id) {
    return "transaction " + std::to_string(TxnId{id}.sequence()) + " of worker " +
           std::to_string(TxnId{id}.worker().value());
  }

  // A row that was not loaded was absent.
  Chain& ChainOf(const Place& row) {
    Chain& chain = chains_[row];
    if (chain.empty()) chain.push_back({});
    return chain;
  }

  std::optional<std::string> WrongWith(const Judged& judged) {
    std::map<std::pair<uint64_t, Key>, Range> ranges;
    Seen seen;
    for (const Place& row : judged.statement.rows) {
      const Range range = RangeOf(row, judged.statement.until);
      if (range.first == SIZE_MAX) return " saw a version of " + row.RowName() + " that was not committed then";
      ranges[{row.table, row.key}] = range;
      if (const auto wrong = NotStrict(judged, row, range)) return wrong;
      for (size_t i = 1; i <= range.first; ++i) See(ChainOf(row.Row())[i].writer, judged, false, seen);
    }
    for (const auto& [writer, builds] : seen) {
      for (const Place& write : oracle_.txns_.at(writer).writes) {
        const auto range = ranges.find({write.table, write.key});
        if (range == ranges.end() || range->second.last >= PlaceIn(ChainOf(write.Row()), writer)) continue;
        return " saw " + Name(writer) + (builds ? ", or what builds upon it," : "") + " but not its " +
               write.RowName() + ", in one statement";
      }
    }
    return std::nullopt;
  }

  Range RangeOf(const Place& row, uint64_t until) {
    const Chain& chain = ChainOf(row.Row());
    Range range;
    for (size_t i = 0; i < chain.size(); ++i) {
      const bool is_committed = chain[i].txn == nullptr || chain[i].txn->pre_committed <= until;
      if (chain[i].version != row.version || !is_committed) continue;
      range.first = std::min(range.first, i);
      range.last = i;
    }
    return range;
  }

  std::optional<std::string> NotStrict(const Judged& judged, const Place& row, const Range& range) {
    if (!rules_.are_strict) return std::nullopt;
    const Chain& chain = ChainOf(row.Row());
    for (size_t i = range.last + 1; i < chain.size(); ++i) {
      const uint64_t acknowledged = chain[i].txn->acknowledged;
      if (acknowledged == 0 || acknowledged > judged.txn.began) continue;
      return " did not see " + row.RowName() + " of " + Name(chain[i].writer) +
             ", which was acknowledged before it began";
    }
    return std::nullopt;
  }

  static size_t PlaceIn(const Chain& chain, uint64_t writer) {
    for (size_t i = 1; i < chain.size(); ++i) {
      if (chain[i].writer == writer) return i;
    }
    return 0;  // it is not left
  }

  void See(uint64_t writer, const Judged& judged, bool builds, Seen& seen) {
    const auto txn = oracle_.txns_.find(writer);
    if (txn == oracle_.txns_.end() || writer == judged.id) return;
    builds = builds || rules_.master_of(TxnId{writer}) != rules_.master_of(TxnId{judged.id});
    const auto [at, is_new] = seen.try_emplace(writer, builds);
    if (!is_new && (at->second || !builds)) return;
    at->second = builds;
    if (!builds) return;
    for (const TxnId from : oracle_.ReadFrom(TxnId{writer})) See(from.value, judged, true, seen);
    for (const Place& write : txn->second.writes) {
      const Chain& chain = ChainOf(write.Row());
      for (size_t i = PlaceIn(chain, writer); i > 1; --i) See(chain[i - 1].writer, judged, true, seen);
    }
  }

  const Oracle& oracle_;
  const Oracle::StatementRules& rules_;
  std::unordered_map<Place, Chain, Oracle::PlaceHash> chains_;  // by row, in the order of commits
};

std::optional<std::string> Oracle::WrongStatementOf(const std::vector<uint64_t>& ids,
                                                    const std::vector<uint64_t>& committed,
                                                    const StatementRules& rules) const {
  return StatementJudge(*this, committed, rules).WrongOf(ids);
}

}  // namespace dbx::sim
