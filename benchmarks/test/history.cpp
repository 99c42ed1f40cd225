#include "benchmarks/test/history.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "benchmarks/test/dependency.h"
#include "benchmarks/test/history_replay.h"
#include "benchmarks/test/order_search.h"

namespace dbx {
namespace {

using namespace history;

constexpr const char* kEdgeNames[] = {"ww", "wr", "rw"};
constexpr size_t kCycleStartsMax = 2'000;

// The successors of each node, over a fixed list of edges.
class Successors {
 public:
  Successors(size_t nodes, const std::vector<Edge>& edges) : starts_(nodes + 1), edges_(edges.size()) {
    for (const Edge& edge : edges) ++starts_[edge.from + 1];
    for (size_t i = 0; i < nodes; ++i) starts_[i + 1] += starts_[i];
    std::vector<uint32_t> next(starts_.begin(), starts_.end() - 1);
    for (uint32_t e = 0; e < edges.size(); ++e) edges_[next[edges[e].from]++] = e;
  }
  // Indexes of the edges that leave `node`.
  std::span<const uint32_t> of(uint32_t node) const {
    return std::span(edges_).subspan(starts_[node], starts_[node + 1] - starts_[node]);
  }

 private:
  std::vector<uint32_t> starts_;
  std::vector<uint32_t> edges_;
};

}  // namespace

class HistoryChecker {
 public:
  explicit HistoryChecker(const History& history) : history_(history), ids_(history.transactions_) {}

  std::optional<std::string> Run() {
    FindMalformed();
    if (failure_) return failure_;
    CollectObjects();
    for (const Object& object : objects_) {
      AddKnownEdges(object);
      if (failure_) return failure_;
    }
    if (auto cycle = FindCycle()) return cycle;
    for (const Object& object : objects_) {
      history_.read_committed_ ? (void)CollectLives(object) : AddLives(object);
      if (failure_) return failure_;
    }
    if (history_.read_committed_) return std::nullopt;
    if (auto cycle = FindCycle()) return cycle;
    return Search();
  }

 private:
  using Entry = History::Entry;
  struct Object {
    uint64_t id;
    std::span<const Entry> entries;  // ordered by transaction
  };

  static std::string Name(TxnId id) {
    if (id == kInitialVersion) return "the load";
    return "T" + std::to_string(id.worker().value()) + "." + std::to_string(id.sequence());
  }
  std::string NameNode(uint32_t node) const { return Name(ids_[node % ids_.size()]); }
  std::string NameObject(uint64_t object) const { return history_.name_object_(object); }
  uint32_t NodeOf(TxnId id) const {
    return static_cast<uint32_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
  }
  static bool Creates(AccessKind kind) { return kind == AccessKind::kWrite || kind == AccessKind::kInsert; }
  static bool Overwrites(AccessKind kind) { return kind == AccessKind::kWrite || kind == AccessKind::kDelete; }
  static bool Sees(AccessKind kind) { return kind == AccessKind::kRead || Overwrites(kind); }

  void AddEdge(uint32_t from, uint32_t to, EdgeKind kind, uint64_t object) {
    if (from != to) edges_.push_back({from, to, kind, object});
  }

  void FindMalformed();
  void CollectObjects();
  static std::span<const Entry> AccessesBy(const Object& object, TxnId id);
  static const Entry* Creator(const Object& object, TxnId version);
  static const Entry* ReplacesItsOwn(const Object& object, TxnId id);
  bool Committed(TxnId id) const { return std::binary_search(ids_.begin(), ids_.end(), id); }
  void AddKnownEdges(const Object& object);
  void AddReadEdge(const Object& object, const Entry& reader);
  void CheckOwnAccesses(const Object& object, std::span<const Entry> accesses);
  std::vector<Life> CollectLives(const Object& object);
  void CheckFinal(const Object& object, TxnId last_version);
  void AddLives(const Object& object);
  void AddLifeOrder(const Object& object, const std::vector<Life>& lives);
  void AddMissOrder(const Object& object, uint32_t misser, const Life& life);
  std::optional<std::string> Search();
  bool SortTopologically();
  std::vector<uint32_t> ShortestCycle() const;
  std::vector<uint32_t> CycleThrough(const Successors& successors, uint32_t start, size_t length_max) const;
  std::optional<std::string> FindCycle();
  std::string DescribeCycle(const std::vector<uint32_t>& cycle) const;

  const History& history_;
  std::vector<TxnId> ids_;  // node -> transaction
  std::vector<Entry> entries_;
  std::vector<Object> objects_;
  std::vector<Edge> edges_;
  std::vector<Presence> presences_;
  std::vector<Edge> split_;  // the edges, between two nodes for each transaction
  size_t nodes_ = 0;
  std::vector<uint32_t> position_;  // node -> place in a topological order, kNone: on a cycle or behind one
  std::optional<std::string> failure_;
};

// Histories that no run records.
void HistoryChecker::FindMalformed() {
  std::sort(ids_.begin(), ids_.end());
  const auto twice = std::adjacent_find(ids_.begin(), ids_.end());
  if (twice != ids_.end()) failure_ = "transaction " + Name(*twice) + " appears twice";
  if (Committed(kInitialVersion) || Committed(kNoVersion)) failure_ = "malformed: a transaction bears a reserved name";
  for (const Entry& entry : history_.entries_) {
    if (entry.access.kind < AccessKind::kRead || entry.access.kind > AccessKind::kDelete) {
      failure_ = "malformed: " + Name(entry.id) + " made an access of no known kind";
    } else if (!Sees(entry.access.kind) && entry.access.version != kNoVersion) {
      failure_ = "malformed: " + Name(entry.id) + " names a version where there was none";
    }
  }
}

void HistoryChecker::CollectObjects() {
  entries_ = history_.entries_;
  // One transaction's accesses to an object stay in program order.
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.access.object, a.id) < std::tie(b.access.object, b.id);
  });
  for (size_t begin = 0, end; begin < entries_.size(); begin = end) {
    const uint64_t id = entries_[begin].access.object;
    for (end = begin + 1; end < entries_.size() && entries_[end].access.object == id;) ++end;
    objects_.push_back({id, std::span(entries_).subspan(begin, end - begin)});
  }
  // An object without accesses still has a first and a last version.
  std::unordered_set<uint64_t> accessed;
  for (const Object& object : objects_) accessed.insert(object.id);
  const auto add_untouched = [&](uint64_t id) {
    if (accessed.insert(id).second) objects_.push_back({id, {}});
  };
  for (uint64_t id : history_.initial_) add_untouched(id);
  for (const auto& [id, version] : history_.final_) add_untouched(id);
}

std::span<const HistoryChecker::Entry> HistoryChecker::AccessesBy(const Object& object, TxnId id) {
  const auto [begin, end] = std::equal_range(object.entries.begin(), object.entries.end(), Entry{id, {}},
                                             [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return {begin, end};
}

const HistoryChecker::Entry* HistoryChecker::Creator(const Object& object, TxnId version) {
  for (const Entry& entry : AccessesBy(object, version)) {
    if (Creates(entry.access.kind)) return &entry;
  }
  return nullptr;
}

const HistoryChecker::Entry* HistoryChecker::ReplacesItsOwn(const Object& object, TxnId id) {
  for (const Entry& entry : AccessesBy(object, id)) {
    if (Overwrites(entry.access.kind) && entry.access.version == id) return &entry;
  }
  return nullptr;
}

void HistoryChecker::AddReadEdge(const Object& object, const Entry& reader) {
  const TxnId version = reader.access.version;
  if (version == kInitialVersion && history_.initial_.contains(object.id)) return;
  const auto fail = [&](const char* anomaly, const char* why) {
    failure_ = anomaly + Name(reader.id) + " saw the version of " + NameObject(object.id) + " by " + Name(version) +
               ", which " + why;
  };
  if (version != kInitialVersion && !Committed(version)) return fail("G1a: ", "did not commit");
  if (Creator(object, version) == nullptr) return fail("", "did not write it");
  const Entry* const replaced = reader.id == version ? nullptr : ReplacesItsOwn(object, version);
  if (replaced != nullptr) {
    return fail("G1b: ", replaced->access.kind == AccessKind::kDelete ? "deleted it again" : "overwrote it again");
  }
  const EdgeKind kind = reader.access.kind == AccessKind::kRead ? EdgeKind::kWr : EdgeKind::kWw;
  AddEdge(NodeOf(version), NodeOf(reader.id), kind, object.id);
}

// ww from the writer of a version to its overwriter, wr to its readers, rw from those to the overwriter. Two
// overwriters of one version are reported at once: lives could not be followed.
void HistoryChecker::AddKnownEdges(const Object& object) {
  std::unordered_map<TxnId, TxnId> overwriter;
  for (const Entry& entry : object.entries) {
    if (!Overwrites(entry.access.kind)) continue;
    const auto [other, is_new] = overwriter.try_emplace(entry.access.version, entry.id);
    if (is_new || other->second == entry.id) continue;
    failure_ = "lost update: " + Name(other->second) + " and " + Name(entry.id) + " overwrote one version of " +
               NameObject(object.id);
    return;
  }
  for (const Entry& entry : object.entries) {
    if (!Sees(entry.access.kind)) continue;
    AddReadEdge(object, entry);
    if (failure_) return;
    const auto next = overwriter.find(entry.access.version);
    if (next != overwriter.end() && !history_.read_committed_)
      AddEdge(NodeOf(entry.id), NodeOf(next->second), EdgeKind::kRw, object.id);
  }
}

std::vector<Life> HistoryChecker::CollectLives(const Object& object) {
  std::unordered_map<TxnId, const Entry*> overwriter;
  std::vector<TxnId> begins;
  if (history_.initial_.contains(object.id)) begins.push_back(kInitialVersion);
  for (const Entry& entry : object.entries) {
    if (Overwrites(entry.access.kind)) overwriter[entry.access.version] = &entry;
    if (entry.access.kind == AccessKind::kInsert) begins.push_back(entry.id);
  }
  std::vector<Life> lives;
  TxnId last_version = kNoVersion;
  for (TxnId begin : begins) {
    Life life{begin == kInitialVersion ? kNone : NodeOf(begin), kNone};
    TxnId version = begin;
    for (auto next = overwriter.find(version); next != overwriter.end(); next = overwriter.find(version)) {
      version = next->second->id;
      if (next->second->access.kind == AccessKind::kDelete) {
        life.end = NodeOf(version);
        break;
      }
    }
    if (life.end == kNone && last_version != kNoVersion) {
      failure_ = NameObject(object.id) + " has two last versions, by " + Name(last_version) + " and " + Name(version);
      return {};
    }
    if (life.end == kNone) last_version = version;
    lives.push_back(life);
  }
  CheckFinal(object, last_version);
  return lives;
}

void HistoryChecker::CheckFinal(const Object& object, TxnId last_version) {
  const auto found = history_.final_.find(object.id);
  const TxnId version = found == history_.final_.end() ? kNoVersion : found->second.version;
  const auto text = [](TxnId id) { return id == kNoVersion ? std::string("absent") : "the version by " + Name(id); };
  if (version != last_version) {
    failure_ = NameObject(object.id) + " is " + text(version) + " in the end, but should be " + text(last_version);
  } else if (version != kNoVersion) {
    const Entry* creator = version == kInitialVersion ? nullptr : Creator(object, version);
    const TxnId predecessor = creator == nullptr ? kNoVersion : creator->access.version;
    if (found->second.predecessor != predecessor) {
      failure_ = NameObject(object.id) + " names as its predecessor " + text(found->second.predecessor) +
                 ", but should name " + text(predecessor);
    }
  }
}

// Each transaction must see its own changes to the object. A version is named by its transaction, so that it can write
// only one of an object.
void HistoryChecker::CheckOwnAccesses(const Object& object, std::span<const Entry> accesses) {
  const TxnId id = accesses.front().id;
  bool made_one = false, is_mine = false, is_gone = false, missed = false;
  for (const Entry& entry : accesses) {
    const AccessKind kind = entry.access.kind;
    const bool sees_own = Sees(kind) && entry.access.version == id;
    const bool is_right = is_mine ? sees_own : is_gone ? !Sees(kind) : !sees_own && !(missed && Sees(kind));
    if (Creates(kind) && made_one) {
      failure_ = "malformed: " + Name(id) + " made two versions of " + NameObject(object.id) + ", which have one name";
    } else if (!is_right) {
      failure_ = "internal: " + Name(id) + " did not see " + NameObject(object.id) + " as it had left it itself";
    }
    if (failure_) return;
    made_one |= Creates(kind);
    missed |= kind == AccessKind::kMiss;
    if (Creates(kind)) is_mine = true, is_gone = false;
    if (kind == AccessKind::kDelete) is_mine = false, is_gone = true;
  }
}

void HistoryChecker::AddLives(const Object& object) {
  for (size_t begin = 0, end; begin < object.entries.size() && !failure_; begin = end) {
    for (end = begin + 1; end < object.entries.size() && object.entries[end].id == object.entries[begin].id;) ++end;
    CheckOwnAccesses(object, object.entries.subspan(begin, end - begin));
  }
  if (failure_) return;
  Presence presence{object.id, CollectLives(object), {}};
  if (failure_ || presence.lives.empty()) return;
  AddLifeOrder(object, presence.lives);
  for (const Entry& entry : object.entries) {
    if (entry.access.kind != AccessKind::kMiss || failure_) continue;
    const uint32_t misser = NodeOf(entry.id);
    presence.missers.push_back(misser);
    for (const Life& life : presence.lives) {
      if (life.begin == kNone || life.end == kNone) AddMissOrder(object, misser, life);
    }
  }
  if (presence.lives.size() > 1 || !presence.missers.empty()) presences_.push_back(std::move(presence));
}

// An object's initial life precedes all others, its final life follows them.
void HistoryChecker::AddLifeOrder(const Object& object, const std::vector<Life>& lives) {
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].begin != kNone && lives[i].end != kNone) continue;
    for (size_t j = 0; j < lives.size(); ++j) {
      const Life &life = lives[i], &other = lives[j];
      if (j == i) continue;
      if (life.begin == kNone && life.end == kNone) {
        failure_ = Name(ids_[other.begin]) + " inserted " + NameObject(object.id) +
                   ", which had been there from the start and never was deleted";
        return;
      }
      if (life.begin == kNone) AddEdge(life.end, other.begin, EdgeKind::kWw, object.id);
      // That of two such lives has been added.
      if (life.begin != kNone && other.begin != kNone) AddEdge(other.end, life.begin, EdgeKind::kWw, object.id);
    }
  }
}

// A miss is after the end of the first life and before the begin of the last.
void HistoryChecker::AddMissOrder(const Object& object, uint32_t misser, const Life& life) {
  if (life.begin != kNone) {
    AddEdge(misser, life.begin, EdgeKind::kRw, object.id);
  } else if (life.end != kNone) {
    AddEdge(life.end, misser, EdgeKind::kWr, object.id);
  } else {
    failure_ = Name(ids_[misser]) + " missed " + NameObject(object.id) + ", which was there from start to end";
  }
}

// Any order that is found is verified by replay, however it was found.
std::optional<std::string> HistoryChecker::Search() {
  std::vector<uint64_t> ranks;
  std::vector<uint32_t> workers;
  for (const TxnId id : ids_) ranks.push_back(id.sequence()), workers.push_back(id.worker().value());
  const Events events{history_.allows_write_skew_};
  OrderSearch search(events, ranks, workers, edges_, presences_, history_.work_max_);
  const OrderSearch::Verdict verdict = search.Run();
  if (verdict == OrderSearch::Verdict::kUndecided) {
    return "undecided: in the time given no order of " + std::to_string(ids_.size()) +
           " transactions was found, nor that there is none";
  }
  if (verdict == OrderSearch::Verdict::kImpossible) {
    edges_.insert(edges_.end(), search.implied().begin(), search.implied().end());
    const std::string cycle = FindCycle().value_or("no order is possible");
    return cycle + (search.has_gone_back() ? "; in every other order of lives and misses there is another" : "");
  }
  std::vector<std::span<const Entry>> accesses(ids_.size());
  const std::vector<Entry>& all = history_.entries_;
  for (size_t begin = 0, end; begin < all.size(); begin = end) {
    for (end = begin + 1; end < all.size() && all[end].id == all[begin].id;) ++end;
    accesses[NodeOf(all[begin].id)] = std::span(all).subspan(begin, end - begin);
  }
  const auto misfit = FirstMisfit(events, search.order(), accesses, history_.initial_);
  if (!misfit) return std::nullopt;
  return "malformed: no order explains what " + Name(misfit->id) + " saw of " + NameObject(misfit->access.object);
}

// Behind SortTopologically: nodes on cycles, or behind one, have no position.
std::optional<std::string> HistoryChecker::FindCycle() {
  // Under snapshot isolation each transaction has a second node, which rw edges lead to and no rw edge leaves: no cycle
  // has two in a row.
  const auto transactions = static_cast<uint32_t>(ids_.size());
  nodes_ = history_.allows_write_skew_ ? 2 * transactions : transactions;
  split_.clear();
  for (const Edge& edge : edges_) {
    const bool is_rw = edge.kind == EdgeKind::kRw && history_.allows_write_skew_;
    split_.push_back({edge.from, is_rw ? edge.to + transactions : edge.to, edge.kind, edge.object});
    if (!is_rw && history_.allows_write_skew_) {
      split_.push_back({edge.from + transactions, edge.to, edge.kind, edge.object});
    }
  }
  if (SortTopologically()) return std::nullopt;
  // Of several edges between two transactions the search takes the first: let it be the most informative one.
  std::stable_sort(split_.begin(), split_.end(), [](const Edge& a, const Edge& b) { return a.kind < b.kind; });
  return DescribeCycle(ShortestCycle());
}

bool HistoryChecker::SortTopologically() {
  const Successors successors(nodes_, split_);
  std::vector<uint32_t> in_degree(nodes_), order;
  for (const Edge& edge : split_) ++in_degree[edge.to];
  for (uint32_t node = 0; node < nodes_; ++node) {
    if (in_degree[node] == 0) order.push_back(node);
  }
  position_.assign(nodes_, kNone);
  for (uint32_t i = 0; i < order.size(); ++i) {
    position_[order[i]] = i;
    for (const uint32_t edge : successors.of(order[i])) {
      if (--in_degree[split_[edge].to] == 0) order.push_back(split_[edge].to);
    }
  }
  return order.size() == nodes_;
}

// The edges of a shortest cycle through `start` among the nodes without a position, or none up to `length_max`.
std::vector<uint32_t> HistoryChecker::CycleThrough(const Successors& successors, uint32_t start,
                                                   size_t length_max) const {
  std::unordered_map<uint32_t, uint32_t> reached_by;  // node -> edge
  std::vector<uint32_t> frontier{start};
  for (size_t length = 1; length <= length_max && !frontier.empty(); ++length) {
    std::vector<uint32_t> next_frontier;
    for (uint32_t node : frontier) {
      for (uint32_t edge : successors.of(node)) {
        const uint32_t next = split_[edge].to;
        if (position_[next] != kNone || !reached_by.try_emplace(next, edge).second) continue;
        if (next != start) {
          next_frontier.push_back(next);
          continue;
        }
        std::vector<uint32_t> cycle{edge};
        while (split_[cycle.back()].from != start) cycle.push_back(reached_by.at(split_[cycle.back()].from));
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
    }
    frontier = std::move(next_frontier);
  }
  return {};
}

std::vector<uint32_t> HistoryChecker::ShortestCycle() const {
  const Successors successors(nodes_, split_);
  std::vector<uint32_t> shortest;
  size_t starts = 0;
  for (uint32_t node = 0; node < nodes_; ++node) {
    // After SortTopologically nodes without a position are on a cycle or behind one.
    if (position_[node] != kNone) continue;
    if (++starts > kCycleStartsMax && !shortest.empty()) break;
    const size_t length_max = shortest.empty() ? nodes_ : shortest.size() - 1;
    std::vector<uint32_t> cycle = CycleThrough(successors, node, length_max);
    if (!cycle.empty()) shortest = std::move(cycle);
    if (shortest.size() == 2) break;
  }
  return shortest;
}

std::string HistoryChecker::DescribeCycle(const std::vector<uint32_t>& cycle) const {
  std::array<size_t, 3> kinds{};
  bool one_object = true;
  for (uint32_t edge : cycle) {
    ++kinds[static_cast<size_t>(split_[edge].kind)];
    one_object &= split_[edge].object == split_[cycle.front()].object;
  }
  const size_t rw = kinds[static_cast<size_t>(EdgeKind::kRw)];
  const size_t wr = kinds[static_cast<size_t>(EdgeKind::kWr)];
  // With a wr edge, the transaction that closes the cycle only read the object twice.
  std::string text = rw > 0 && wr == 0 && one_object ? "lost update"
                     : rw > 1                        ? "G2"
                     : rw == 1                       ? "G-single"
                     : wr > 0                        ? "G1c"
                                                     : "G0";
  text += ": " + NameNode(split_[cycle.front()].from);
  for (uint32_t e : cycle) {
    const Edge& edge = split_[e];
    text += std::string(" -") + kEdgeNames[static_cast<size_t>(edge.kind)] + " " + NameObject(edge.object) + "-> " +
            NameNode(edge.to);
  }
  return text;
}

void History::AddTransaction(TxnId id, std::span<const HistoryAccess> accesses) {
  transactions_.push_back(id);
  for (const HistoryAccess& access : accesses) entries_.push_back({id, access});
}

std::optional<std::string> History::FindAnomaly() const { return HistoryChecker(*this).Run(); }

}  // namespace dbx
