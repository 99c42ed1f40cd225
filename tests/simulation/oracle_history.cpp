// The oracle's transactions as a history that benchmarks/test/history.h can judge.
#include <algorithm>
#include <map>
#include <utility>

#include "benchmarks/test/history.h"
#include "tests/simulation/oracle.h"

namespace dbx::sim {

// Of rows that were loaded and not deleted since, and whose versions all have one writer.
class OracleHistory {
 public:
  OracleHistory(const Oracle& oracle, const std::vector<uint64_t>& ids, bool snapshots)
      : oracle_(oracle), history_([this](uint64_t object) { return rows_[object].RowName(); }) {
    if (snapshots) history_.AllowWriteSkew();
    for (const uint64_t id : ids) {
      if (const auto txn = oracle.txns_.find(id); txn != oracle.txns_.end()) txns_.emplace_back(id, &txn->second);
    }
    // In the order of their commits, so that the last writer of a row is the last one here.
    std::sort(txns_.begin(), txns_.end(),
              [](const auto& a, const auto& b) { return a.second->pre_committed < b.second->pre_committed; });
  }

  std::optional<std::string> FindAnomaly() {
    for (const auto& [id, txn] : txns_) LeaveOutUnclearRows(TxnId{id}, *txn);
    for (const auto& [id, txn] : txns_) Add(TxnId{id}, *txn);
    for (uint64_t object = 0; object < rows_.size(); ++object) {
      const auto last = last_.try_emplace(object, History::FinalVersion{kInitialVersion, kNoVersion}).first;
      history_.AddInitial(object);
      history_.AddFinal(object, last->second.version, last->second.predecessor);
    }
    return history_.FindAnomaly();
  }

 private:
  using Place = Oracle::Place;
  // What one transaction did to one row.
  struct Access {
    std::vector<TxnId> seen;  // the versions of others; more than one contradict each other
    bool wrote = false;
  };

  // Nobody for a version that does not say who wrote it.
  std::optional<TxnId> WriterOf(const Place& place) const {
    const bool is_loaded = oracle_.WasLoaded(place);
    const auto writer = oracle_.writers_.find(place);
    if (writer == oracle_.writers_.end()) return is_loaded ? std::optional(kInitialVersion) : std::nullopt;
    if (is_loaded || writer->second == Oracle::kManyWriters) return std::nullopt;
    return TxnId{writer->second};
  }

  void LeaveOutUnclearRows(TxnId id, const Oracle::Txn& txn) {
    const auto look_at = [this](const Place& place) {
      if (!oracle_.loaded_.contains(place.Row()) || !WriterOf(place)) left_out_.insert(place.Row());
    };
    for (const Place& read : txn.reads) look_at(read);
    for (const Place& write : txn.writes) {
      look_at(write);
      if (write.version == Oracle::AbsenceBy(id)) left_out_.insert(write.Row());
    }
  }

  // Nothing for a row that is left out.
  Access* AccessOf(std::map<uint64_t, Access>& accesses, const Place& place) {
    const Place row = place.Row();
    if (left_out_.contains(row)) return nullptr;
    const auto [object, is_new] = objects_.try_emplace(row, rows_.size());
    if (is_new) rows_.push_back(row);
    return &accesses[object->second];
  }

  void Add(TxnId id, const Oracle::Txn& txn) {
    std::map<uint64_t, Access> accesses;
    for (const Place& read : txn.reads) {
      Access* const access = AccessOf(accesses, read);
      if (access == nullptr) continue;
      const TxnId writer = *WriterOf(read);
      const bool is_new = std::find(access->seen.begin(), access->seen.end(), writer) == access->seen.end();
      if (writer != id && is_new) access->seen.push_back(writer);
    }
    for (const Place& write : txn.writes) {
      if (Access* const access = AccessOf(accesses, write)) access->wrote = true;
    }
    std::vector<HistoryAccess> listed;
    for (const auto& [object, access] : accesses) {
      const AccessKind kind = access.wrote ? AccessKind::kWrite : AccessKind::kRead;
      for (const TxnId version : access.seen) listed.push_back({object, kind, version});
      if (access.wrote && !access.seen.empty()) last_[object] = {id, access.seen.front()};
    }
    history_.AddTransaction(id, listed);
  }

  const Oracle& oracle_;
  std::vector<std::pair<uint64_t, const Oracle::Txn*>> txns_;
  std::unordered_set<Place, Oracle::PlaceHash> left_out_;
  std::vector<Place> rows_;  // by their numbers as objects
  std::unordered_map<Place, uint64_t, Oracle::PlaceHash> objects_;
  std::unordered_map<uint64_t, History::FinalVersion> last_;
  History history_;
};

std::optional<std::string> Oracle::AnomalyAmong(const std::vector<uint64_t>& ids, bool snapshots) const {
  return OracleHistory(*this, ids, snapshots).FindAnomaly();
}

}  // namespace dbx::sim
