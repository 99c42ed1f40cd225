// The oracle's transactions as a history that benchmarks/test/history.h can judge.
#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "benchmarks/test/elle.h"
#include "benchmarks/test/history.h"
#include "tests/simulation/history_export.h"
#include "tests/simulation/oracle.h"

namespace dbx::sim {

// Of rows whose versions all have one writer.
class OracleHistory {
 public:
  OracleHistory(const Oracle& oracle, const std::vector<uint64_t>& ids, bool snapshots)
      : oracle_(oracle), snapshots_(snapshots), history_([this](uint64_t object) { return rows_[object].RowName(); }) {
    if (snapshots) history_.AllowWriteSkew();
    for (const uint64_t id : ids) {
      if (const auto txn = oracle.txns_.find(id); txn != oracle.txns_.end()) txns_.emplace_back(id, &txn->second);
    }
    // In the order of their commits, so that the last writer of a row is the last one here.
    std::sort(txns_.begin(), txns_.end(),
              [](const auto& a, const auto& b) { return a.second->pre_committed < b.second->pre_committed; });
  }

  std::optional<std::string> FindAnomaly() {
    for (const auto& [id, txn] : txns_) LeaveOutUnclearRows(*txn);
    for (const auto& [id, txn] : txns_) Add(TxnId{id}, *txn);
    for (const auto& [object, last] : last_) {
      if (last.version != kNoVersion) history_.AddFinal(object, last.version, last.predecessor);
    }
    std::optional<std::string> anomaly = history_.FindAnomaly();
    if (!history_directory.empty()) Export(!anomaly);
    return anomaly;
  }

 private:
  void Export(bool is_right) const {
    static int number = 0;
    std::ofstream file(history_directory + (snapshots_ ? "/snapshot-" : "/serializable-") +
                       (is_right ? "right-" : "wrong-") + std::to_string(++number) + ".json");
    WriteElle(history_, file);
  }

  using Place = Oracle::Place;
  // What one transaction did to one row.
  struct Access {
    std::vector<TxnId> seen;  // the versions of others; more than one contradict each other
    bool missed = false;
    bool wrote = false;
    bool deleted = false;  // in the end
  };

  // std::nullopt for a version that does not name its writer.
  std::optional<TxnId> WriterOf(const Place& place) const {
    const bool is_loaded = oracle_.WasLoaded(place);
    const auto writer = oracle_.writers_.find(place);
    if (writer == oracle_.writers_.end()) return is_loaded ? std::optional(kInitialVersion) : std::nullopt;
    if (is_loaded || writer->second == Oracle::kManyWriters) return std::nullopt;
    return TxnId{writer->second};
  }

  void LeaveOutUnclearRows(const Oracle::Txn& txn) {
    for (const std::vector<Place>* places : {&txn.reads, &txn.writes}) {
      for (const Place& place : *places) {
        if (!WriterOf(place)) left_out_.insert(place.Row());
      }
    }
    for (const Place& write : txn.writes) written_.insert(write.Row());
  }

  // Nothing for a row that is left out.
  Access* AccessOf(std::map<uint64_t, Access>& accesses, const Place& place) {
    const Place row = place.Row();
    if (left_out_.contains(row)) return nullptr;
    const auto [object, is_new] = objects_.try_emplace(row, rows_.size());
    if (is_new) {
      rows_.push_back(row);
      const bool is_loaded = oracle_.loaded_.contains(row);
      if (is_loaded) history_.AddInitial(object->second);
      last_[object->second] = {is_loaded ? kInitialVersion : kNoVersion, kNoVersion};
    }
    return &accesses[object->second];
  }

  void Add(TxnId id, const Oracle::Txn& txn) {
    std::map<uint64_t, Access> accesses;
    for (const Place& read : txn.reads) {
      const std::optional<TxnId> writer = WriterOf(read);
      // An absence is among the misses.
      const bool is_absence = writer && read.version == Oracle::AbsenceBy(*writer);
      Access* const access = is_absence ? nullptr : AccessOf(accesses, read);
      if (access == nullptr || *writer == id) continue;
      const bool is_new = std::find(access->seen.begin(), access->seen.end(), *writer) == access->seen.end();
      if (is_new) access->seen.push_back(*writer);
    }
    for (const Place& row : txn.misses) {
      // What is never there says nothing.
      if (!written_.contains(row) && !oracle_.loaded_.contains(row)) continue;
      if (Access* const access = AccessOf(accesses, row)) access->missed = true;
    }
    for (const Place& write : txn.writes) {
      Access* const access = AccessOf(accesses, write);
      if (access == nullptr) continue;
      access->wrote = true;
      access->deleted = write.version == Oracle::AbsenceBy(id);
    }
    std::vector<HistoryAccess> listed;
    for (auto& [object, access] : accesses) List(id, object, access, listed);
    history_.AddTransaction(id, listed);
  }

  // A delete need not look first: it is of the version that is there by the order of commits.
  void List(TxnId id, uint64_t object, Access& access, std::vector<HistoryAccess>& listed) {
    History::FinalVersion& last = last_[object];
    if (access.wrote && access.seen.empty() && !access.missed && last.version != kNoVersion) {
      access.seen.push_back(last.version);
    }
    const bool inserted = access.wrote && access.seen.empty();
    // It misses what it inserts, and all that a row which it deletes again leaves is that it was absent before.
    if (access.missed && (!inserted || access.deleted)) listed.push_back({object, AccessKind::kMiss, kNoVersion});
    if (inserted && !access.deleted) listed.push_back({object, AccessKind::kInsert, kNoVersion});
    const AccessKind kind = !access.wrote    ? AccessKind::kRead
                            : access.deleted ? AccessKind::kDelete
                                             : AccessKind::kWrite;
    for (const TxnId version : access.seen) listed.push_back({object, kind, version});
    if (!access.wrote || (inserted && access.deleted)) return;
    const TxnId predecessor = access.seen.empty() ? kNoVersion : access.seen.front();
    last = access.deleted ? History::FinalVersion{kNoVersion, kNoVersion} : History::FinalVersion{id, predecessor};
  }

  const Oracle& oracle_;
  const bool snapshots_;
  std::vector<std::pair<uint64_t, const Oracle::Txn*>> txns_;
  std::unordered_set<Place, Oracle::PlaceHash> left_out_, written_;
  std::vector<Place> rows_;  // by their numbers as objects
  std::unordered_map<Place, uint64_t, Oracle::PlaceHash> objects_;
  std::unordered_map<uint64_t, History::FinalVersion> last_;
  History history_;
};

std::optional<std::string> Oracle::AnomalyAmong(const std::vector<uint64_t>& ids, bool snapshots) const {
  std::vector<uint64_t> all = ids;
  all.insert(all.end(), old_readers_.begin(), old_readers_.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return OracleHistory(*this, all, snapshots).FindAnomaly();
}

}  // namespace dbx::sim
