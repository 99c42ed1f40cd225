#include "benchmarks/test/history_replay.h"

#include <unordered_map>

namespace dbx::history {
namespace {

// The version of each object, kNoVersion where it is absent, and the event that caused it.
class State {
 public:
  explicit State(const std::unordered_set<uint64_t>& initial) {
    for (const uint64_t object : initial) versions_[object] = {kInitialVersion, 0};
  }
  TxnId Of(uint64_t object) const {
    const auto found = versions_.find(object);
    return found == versions_.end() ? kNoVersion : found->second.first;
  }
  // `at`: the number of the event, from 1 on.
  void Set(uint64_t object, TxnId version, size_t at) { versions_[object] = {version, at}; }
  bool HasChangedBetween(uint64_t object, size_t after, size_t before) const {
    const auto found = versions_.find(object);
    return found != versions_.end() && found->second.second > after && found->second.second < before;
  }

 private:
  std::unordered_map<uint64_t, std::pair<TxnId, size_t>> versions_;
};

bool IsOfAbsence(AccessKind kind) { return kind == AccessKind::kMiss || kind == AccessKind::kInsert; }
bool Changes(AccessKind kind) { return kind != AccessKind::kRead && kind != AccessKind::kMiss; }

bool Fits(const History::Entry& entry, TxnId there) {
  return there == (IsOfAbsence(entry.access.kind) ? kNoVersion : entry.access.version);
}

TxnId After(const History::Entry& entry) {
  if (!Changes(entry.access.kind)) return entry.access.version;
  return entry.access.kind == AccessKind::kDelete ? kNoVersion : entry.id;
}

// What it read: the state when it started, with its own changes by then.
std::optional<History::Entry> MisfitAtStart(const State& state, std::span<const History::Entry> accesses) {
  std::unordered_map<uint64_t, TxnId> own;
  for (const History::Entry& entry : accesses) {
    const auto changed = own.find(entry.access.object);
    if (!Fits(entry, changed != own.end() ? changed->second : state.Of(entry.access.object))) return entry;
    if (Changes(entry.access.kind)) own[entry.access.object] = After(entry);
  }
  return std::nullopt;
}

// No other transaction has changed its write set since its start: first committer wins.
std::optional<History::Entry> MisfitAtCommit(State& state, std::span<const History::Entry> accesses, size_t start,
                                             size_t commit) {
  for (const History::Entry& entry : accesses) {
    if (!Changes(entry.access.kind)) continue;
    if (state.HasChangedBetween(entry.access.object, start, commit) || !Fits(entry, state.Of(entry.access.object))) {
      return entry;
    }
    state.Set(entry.access.object, After(entry), commit);
  }
  return std::nullopt;
}

}  // namespace

std::optional<History::Entry> FirstMisfit(Events events, const std::vector<uint32_t>& order,
                                          const std::vector<std::span<const History::Entry>>& accesses,
                                          const std::unordered_set<uint64_t>& initial) {
  State state(initial);
  std::vector<size_t> starts(accesses.size());
  for (size_t at = 1; at <= order.size(); ++at) {
    const uint32_t event = order[at - 1];
    const uint32_t transaction = events.TransactionOf(event);
    const std::span<const History::Entry> of_this = accesses[transaction];
    if (events.IsStart(event)) {
      starts[transaction] = at;
      if (const auto misfit = MisfitAtStart(state, of_this)) return misfit;
    }
    if (events.IsCommit(event)) {
      if (const auto misfit = MisfitAtCommit(state, of_this, starts[transaction], at)) return misfit;
    }
  }
  return std::nullopt;
}

}  // namespace dbx::history
