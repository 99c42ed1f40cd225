#include "benchmarks/test/history.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace dbx {
namespace {

enum class EdgeKind : uint8_t { kWw, kWr, kRw };
constexpr const char* kEdgeNames[] = {"ww", "wr", "rw"};

constexpr uint32_t kNone = UINT32_MAX;

// Limits of the search for what follows from what. Beyond them choices stay open.
constexpr size_t kChoicesMax = 1'000'000;
constexpr size_t kVisitsPerSearchMax = 200;
constexpr size_t kCycleStartsMax = 2'000;

struct Edge {
  uint32_t from;
  uint32_t to;
  EdgeKind kind;
  uint64_t object;
};

// At least one of the two holds.
struct Choice {
  Edge first;
  Edge second;
};

// From an insert (or the start) to a delete (or the end), as transactions; kNone: the start, the end.
struct Life {
  uint32_t begin;
  uint32_t end;
};

// A chain is one object's writers, which are totally ordered: what reaches one of them reaches all that follow.
// Most long paths run along the chains of the hottest objects, so a few chains answer most questions.
constexpr size_t kChains = 8;
using ChainPlaces = std::array<uint32_t, kChains>;

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

  std::optional<std::string> RunForSnapshots() {
    for (const Object& object : objects_) {
      AddChoices(object);
      if (failure_) return failure_;
    }
    SplitNodesByLastEdge();
    return SortTopologically() ? std::nullopt : std::optional(DescribeCycle());
  }

  std::optional<std::string> Run() {
    std::sort(ids_.begin(), ids_.end());
    const auto twice = std::adjacent_find(ids_.begin(), ids_.end());
    if (twice != ids_.end()) return "transaction " + Name(*twice) + " appears twice";
    CollectObjects();
    for (const Object& object : objects_) {
      AddKnownEdges(object);
      if (failure_) return failure_;
    }
    if (history_.allows_write_skew_) return RunForSnapshots();
    if (!SortTopologically()) return DescribeCycle();
    for (const Object& object : objects_) {
      AddChoices(object);
      if (failure_) return failure_;
    }
    FindChains();
    for (bool more = true; more;) {
      if (!SortTopologically()) return DescribeCycle();
      more = Propagate();
    }
    return SortTopologically() ? std::nullopt : std::optional(DescribeCycle());
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

  void CollectObjects();
  static std::span<const Entry> AccessesBy(const Object& object, TxnId id);
  static const Entry* Creator(const Object& object, TxnId version);
  static bool DeletesItsOwn(const Object& object, TxnId id);
  bool Committed(TxnId id) const { return std::binary_search(ids_.begin(), ids_.end(), id); }
  void AddKnownEdges(const Object& object);
  void SplitNodesByLastEdge();
  void AddReadEdge(const Object& object, const Entry& reader);
  std::vector<Life> CollectLives(const Object& object);
  void CheckFinal(const Object& object, TxnId last_version);
  void AddChoices(const Object& object);
  void AddChoice(const Edge& first, const Edge& second);
  void AddLifeOrder(const Object& object, const Life& a, const Life& b);
  void AddMissOrder(const Object& object, uint32_t misser, const Life& life);
  bool SortTopologically();
  void FindChains();
  void PlaceOnChains(const Successors& successors);
  bool Propagate();
  bool Reaches(const Successors& successors, uint32_t from, uint32_t to);
  std::vector<uint32_t> ShortestCycle() const;
  std::vector<uint32_t> CycleThrough(const Successors& successors, uint32_t start, size_t length_max) const;
  std::string DescribeCycle();

  const History& history_;
  std::vector<TxnId> ids_;  // node -> transaction
  std::vector<Entry> entries_;
  std::vector<Object> objects_;
  std::vector<Edge> edges_;
  std::vector<Choice> choices_;
  std::vector<uint32_t> position_;  // node -> place in a topological order
  std::vector<uint32_t> order_;     // the topological order
  std::vector<const Object*> chains_;
  std::vector<ChainPlaces> reaches_chain_;     // node -> the first place on each chain that it reaches
  std::vector<ChainPlaces> reached_by_chain_;  // node -> the last place on each chain that reaches it, plus 1
  std::vector<uint32_t> visited_;              // node -> the last search that came here
  uint32_t search_ = 0;
  std::optional<std::string> failure_;
};

void HistoryChecker::CollectObjects() {
  entries_ = history_.entries_;
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.access.object, a.id, a.access.version) < std::tie(b.access.object, b.id, b.access.version);
  });
  for (size_t begin = 0, end; begin < entries_.size(); begin = end) {
    const uint64_t id = entries_[begin].access.object;
    for (end = begin + 1; end < entries_.size() && entries_[end].access.object == id;) ++end;
    objects_.push_back({id, std::span(entries_).subspan(begin, end - begin)});
  }
  // What nobody accessed still has a first and a last version.
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

bool HistoryChecker::DeletesItsOwn(const Object& object, TxnId id) {
  const std::span<const Entry> accesses = AccessesBy(object, id);
  return std::any_of(accesses.begin(), accesses.end(), [&](const Entry& entry) {
    return entry.access.kind == AccessKind::kDelete && entry.access.version == id;
  });
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
  if (reader.id != version && DeletesItsOwn(object, version)) return fail("G1b: ", "deleted it again");
  const EdgeKind kind = reader.access.kind == AccessKind::kRead ? EdgeKind::kWr : EdgeKind::kWw;
  AddEdge(NodeOf(version), NodeOf(reader.id), kind, object.id);
}

// A node for who is reached by rw, behind all the others; no rw edge leaves it. So no cycle has two in a row.
void HistoryChecker::SplitNodesByLastEdge() {
  const auto nodes = static_cast<uint32_t>(ids_.size());
  const std::vector<TxnId> names = ids_;
  ids_.insert(ids_.end(), names.begin(), names.end());
  std::vector<Edge> split;
  for (const Edge& edge : edges_) {
    const bool is_rw = edge.kind == EdgeKind::kRw;
    split.push_back({edge.from, is_rw ? edge.to + nodes : edge.to, edge.kind, edge.object});
    if (!is_rw) split.push_back({edge.from + nodes, edge.to, edge.kind, edge.object});
  }
  edges_ = std::move(split);
}

// ww and wr from the writer of a version to who sees it, rw from who sees it to who overwrites it. Two who overwrite
// one version are a fault at once: lives could not be followed.
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
    if (next != overwriter.end()) AddEdge(NodeOf(entry.id), NodeOf(next->second), EdgeKind::kRw, object.id);
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

void HistoryChecker::AddChoices(const Object& object) {
  const std::vector<Life> lives = CollectLives(object);
  for (size_t a = 0; a < lives.size() && !failure_; ++a) {
    for (size_t b = a + 1; b < lives.size(); ++b) AddLifeOrder(object, lives[a], lives[b]);
  }
  for (const Entry& entry : object.entries) {
    if (entry.access.kind != AccessKind::kMiss) continue;
    for (const Life& life : lives) {
      AddMissOrder(object, NodeOf(entry.id), life);
      if (failure_) return;
    }
  }
}

void HistoryChecker::AddChoice(const Edge& first, const Edge& second) {
  if (first.from == first.to || second.from == second.to || choices_.size() >= kChoicesMax) return;
  choices_.push_back({first, second});
}

// One life ends before the other begins. At most one of two lives has no end, and at most one no begin.
void HistoryChecker::AddLifeOrder(const Object& object, const Life& a, const Life& b) {
  const bool a_first = a.end != kNone && b.begin != kNone;
  const bool b_first = b.end != kNone && a.begin != kNone;
  if (a_first && b_first) {
    AddChoice({a.end, b.begin, EdgeKind::kWw, object.id}, {b.end, a.begin, EdgeKind::kWw, object.id});
  } else if (a_first) {
    AddEdge(a.end, b.begin, EdgeKind::kWw, object.id);
  } else if (b_first) {
    AddEdge(b.end, a.begin, EdgeKind::kWw, object.id);
  } else {
    failure_ = Name(ids_[a.begin == kNone ? b.begin : a.begin]) + " inserted " + NameObject(object.id) +
               ", which had been there from the start and never was deleted";
  }
}

// A miss falls before the begin of a life or behind its end.
void HistoryChecker::AddMissOrder(const Object& object, uint32_t misser, const Life& life) {
  if (life.begin != kNone && life.end != kNone) {
    AddChoice({misser, life.begin, EdgeKind::kRw, object.id}, {life.end, misser, EdgeKind::kWr, object.id});
  } else if (life.begin != kNone) {
    AddEdge(misser, life.begin, EdgeKind::kRw, object.id);
  } else if (life.end != kNone) {
    AddEdge(life.end, misser, EdgeKind::kWr, object.id);
  } else {
    failure_ = Name(ids_[misser]) + " missed " + NameObject(object.id) + ", which was there from start to end";
  }
}

// Fills position_; false if there is a cycle.
bool HistoryChecker::SortTopologically() {
  const Successors successors(ids_.size(), edges_);
  std::vector<uint32_t> in_degree(ids_.size());
  for (const Edge& edge : edges_) ++in_degree[edge.to];
  std::vector<uint32_t>& order = order_;
  order.clear();
  order.reserve(ids_.size());
  for (uint32_t node = 0; node < ids_.size(); ++node) {
    if (in_degree[node] == 0) order.push_back(node);
  }
  position_.assign(ids_.size(), kNone);
  for (uint32_t i = 0; i < order.size(); ++i) {
    position_[order[i]] = i;
    for (uint32_t edge : successors.of(order[i])) {
      if (--in_degree[edges_[edge].to] == 0) order.push_back(edges_[edge].to);
    }
  }
  return order.size() == ids_.size();
}

void HistoryChecker::FindChains() {
  std::vector<std::pair<size_t, const Object*>> candidates;
  for (const Object& object : objects_) {
    const auto is_write = [](const Entry& entry) { return entry.access.kind == AccessKind::kWrite; };
    const auto is_insert = [](const Entry& entry) { return entry.access.kind == AccessKind::kInsert; };
    // An object of one life; the lives of others are not ordered yet.
    if (std::any_of(object.entries.begin(), object.entries.end(), is_insert)) continue;
    candidates.emplace_back(std::count_if(object.entries.begin(), object.entries.end(), is_write), &object);
  }
  std::sort(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return a.first > b.first; });
  candidates.resize(std::min(candidates.size(), kChains));
  for (const auto& [writes, object] : candidates) chains_.push_back(object);
}

void HistoryChecker::PlaceOnChains(const Successors& successors) {
  ChainPlaces none_reached;
  none_reached.fill(kNone);
  reaches_chain_.assign(ids_.size(), none_reached);
  reached_by_chain_.assign(ids_.size(), ChainPlaces{});
  for (size_t c = 0; c < chains_.size(); ++c) {
    std::vector<uint32_t> chain;
    for (const Entry& entry : chains_[c]->entries) {
      if (entry.access.kind == AccessKind::kWrite) chain.push_back(NodeOf(entry.id));
    }
    std::sort(chain.begin(), chain.end(), [&](uint32_t a, uint32_t b) { return position_[a] < position_[b]; });
    for (uint32_t place = 0; place < chain.size(); ++place) {
      reaches_chain_[chain[place]][c] = place;
      reached_by_chain_[chain[place]][c] = place + 1;
    }
  }
  for (uint32_t node : order_) {
    for (uint32_t edge : successors.of(node)) {
      ChainPlaces& next = reached_by_chain_[edges_[edge].to];
      for (size_t c = 0; c < kChains; ++c) next[c] = std::max(next[c], reached_by_chain_[node][c]);
    }
  }
  for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
    ChainPlaces& places = reaches_chain_[*node];
    for (uint32_t edge : successors.of(*node)) {
      const ChainPlaces& next = reaches_chain_[edges_[edge].to];
      for (size_t c = 0; c < kChains; ++c) places[c] = std::min(places[c], next[c]);
    }
  }
}

// Decides the choices of which one side would close a cycle. What is decided in one call is taken into account by
// the next. False if hardly any was decided, so that another call is not worth its time; decisions that lead to a
// cycle are looked at in any case.
bool HistoryChecker::Propagate() {
  const Successors successors(ids_.size(), edges_);
  PlaceOnChains(successors);
  visited_.assign(ids_.size(), 0);
  search_ = 0;
  const size_t edges_before = edges_.size();
  std::erase_if(choices_, [&](const Choice& choice) {
    const bool first_closes = Reaches(successors, choice.first.to, choice.first.from);
    if (!first_closes && !Reaches(successors, choice.second.to, choice.second.from)) return false;
    edges_.push_back(first_closes ? choice.second : choice.first);
    return true;
  });
  return (edges_.size() - edges_before) * 100 > choices_.size();
}

// True only if there is a path; false if none was found, by the chains or by a short search.
bool HistoryChecker::Reaches(const Successors& successors, uint32_t from, uint32_t to) {
  if (position_[from] >= position_[to]) return from == to;
  for (size_t c = 0; c < kChains; ++c) {
    if (reaches_chain_[from][c] < reached_by_chain_[to][c]) return true;
  }
  ++search_;
  std::vector<uint32_t> stack{from};
  visited_[from] = search_;
  for (size_t visits = 0; !stack.empty() && visits < kVisitsPerSearchMax; ++visits) {
    const uint32_t node = stack.back();
    stack.pop_back();
    if (node == to) return true;
    for (uint32_t edge : successors.of(node)) {
      const uint32_t next = edges_[edge].to;
      // Edges lead forward in the topological order.
      if (visited_[next] == search_ || position_[next] > position_[to]) continue;
      visited_[next] = search_;
      stack.push_back(next);
    }
  }
  return false;
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
        const uint32_t next = edges_[edge].to;
        if (position_[next] != kNone || !reached_by.try_emplace(next, edge).second) continue;
        if (next != start) {
          next_frontier.push_back(next);
          continue;
        }
        std::vector<uint32_t> cycle{edge};
        while (edges_[cycle.back()].from != start) cycle.push_back(reached_by.at(edges_[cycle.back()].from));
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
    }
    frontier = std::move(next_frontier);
  }
  return {};
}

std::vector<uint32_t> HistoryChecker::ShortestCycle() const {
  const Successors successors(ids_.size(), edges_);
  std::vector<uint32_t> shortest;
  size_t starts = 0;
  for (uint32_t node = 0; node < ids_.size(); ++node) {
    // After SortTopologically what has no position lies on a cycle or behind one.
    if (position_[node] != kNone) continue;
    if (++starts > kCycleStartsMax && !shortest.empty()) break;
    const size_t length_max = shortest.empty() ? ids_.size() : shortest.size() - 1;
    std::vector<uint32_t> cycle = CycleThrough(successors, node, length_max);
    if (!cycle.empty()) shortest = std::move(cycle);
    if (shortest.size() == 2) break;
  }
  return shortest;
}

std::string HistoryChecker::DescribeCycle() {
  // Of several edges between two transactions the search takes the first: let it be the one that tells most.
  std::stable_sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.kind < b.kind; });
  const std::vector<uint32_t> cycle = ShortestCycle();
  std::array<size_t, 3> kinds{};
  bool one_object = true;
  for (uint32_t edge : cycle) {
    ++kinds[static_cast<size_t>(edges_[edge].kind)];
    one_object &= edges_[edge].object == edges_[cycle.front()].object;
  }
  const size_t rw = kinds[static_cast<size_t>(EdgeKind::kRw)];
  const size_t wr = kinds[static_cast<size_t>(EdgeKind::kWr)];
  // With a wr edge, who closes the cycle only read the object twice.
  std::string text = rw > 0 && wr == 0 && one_object ? "lost update"
                     : rw > 1                        ? "G2"
                     : rw == 1                       ? "G-single"
                     : wr > 0                        ? "G1c"
                                                     : "G0";
  text += ": " + Name(ids_[edges_[cycle.front()].from]);
  for (uint32_t e : cycle) {
    const Edge& edge = edges_[e];
    text += std::string(" -") + kEdgeNames[static_cast<size_t>(edge.kind)] + " " + NameObject(edge.object) + "-> " +
            Name(ids_[edge.to]);
  }
  return text;
}

void History::AddTransaction(TxnId id, std::span<const HistoryAccess> accesses) {
  transactions_.push_back(id);
  for (const HistoryAccess& access : accesses) entries_.push_back({id, access});
}

std::optional<std::string> History::FindAnomaly() const { return HistoryChecker(*this).Run(); }

}  // namespace dbx
