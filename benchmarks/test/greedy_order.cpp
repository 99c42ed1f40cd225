#include "benchmarks/test/greedy_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace dbx::history {
namespace {

using Entry = std::pair<uint64_t, uint32_t>;  // the rank of an event, and the event
using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

// A transaction's inserts, deletes and misses of one object.
struct Role {
  uint32_t object = 0;  // its place among the presences
  bool misses = false;
  int begins = 0;
  int ends = 0;
};

class Run {
 public:
  Run(Events events, const EventOrder& graph, std::span<const uint64_t> ranks, std::span<const uint32_t> workers,
      const std::vector<Presence>& presences)
      : events_(events),
        graph_(graph),
        ranks_(ranks),
        in_degree_(events.Count(ranks.size())),
        session_successor_(ranks.size(), kNone),
        roles_(ranks.size()),
        is_there_(presences.size()),
        missers_(presences.size()),
        inserters_(presences.size()) {
    for (uint32_t object = 0; object < presences.size(); ++object) AddRoles(object, presences[object]);
    FindSessions(workers);
  }

  // Empty if the events of each worker do not follow each other.
  std::vector<uint32_t> Try(bool by_session) {
    CountArcs(by_session);
    for (uint32_t event = 0; event < in_degree_.size(); ++event) {
      if (in_degree_[event] == 0) Push(event);
    }
    while (!ready_.empty() || Unblock()) {
      const uint32_t event = ready_.top().second;
      ready_.pop();
      if (!IsBlocked(event)) Execute(event, by_session);
    }
    return order_.size() == in_degree_.size() ? std::move(order_) : std::vector<uint32_t>();
  }

 private:
  void AddRoles(uint32_t object, const Presence& presence) {
    std::unordered_map<uint32_t, Role> roles;
    for (const uint32_t misser : presence.missers) roles[misser].misses = true;
    for (const Life& life : presence.lives) {
      if (life.begin == kNone) is_there_[object] = true;
      if (life.begin != kNone) ++roles[life.begin].begins;
      if (life.end != kNone) ++roles[life.end].ends;
    }
    for (auto& [transaction, role] : roles) {
      role.object = object;
      roles_[transaction].push_back(role);
    }
  }

  void FindSessions(std::span<const uint32_t> workers) {
    std::vector<uint32_t> order(ranks_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(workers[a], ranks_[a], a) < std::tie(workers[b], ranks_[b], b);
    });
    for (size_t i = 1; i < order.size(); ++i) {
      if (workers[order[i - 1]] == workers[order[i]]) session_successor_[order[i - 1]] = order[i];
    }
  }

  void CountArcs(bool by_session) {
    for (size_t a = 0; a < graph_.arcs(); ++a) ++in_degree_[graph_.arc(a).to];
    for (const uint32_t next : session_successor_) {
      if (by_session && next != kNone) ++in_degree_[events_.Start(next)];
    }
  }

  void Push(uint32_t event) { ready_.emplace(ranks_[events_.TransactionOf(event)], event); }

  // If it needs the absence of an object that is there, it waits for that.
  bool IsBlocked(uint32_t event) {
    if (!events_.IsStart(event) || event == unblocked_) return false;
    for (const Role& role : roles_[events_.TransactionOf(event)]) {
      const bool needs_absence = role.misses || role.begins > 0;
      // An object that it deletes itself need not be absent before.
      if (!needs_absence || role.ends > 0 || !is_there_[role.object]) continue;
      (role.begins > 0 ? inserters_ : missers_)[role.object].emplace(ranks_[events_.TransactionOf(event)], event);
      ++blocked_;
      return true;
    }
    return false;
  }

  // When all remaining events wait: unblocks those whose object is absent by now, or else lets one of them proceed.
  bool Unblock() {
    Queue* waiting = nullptr;
    for (uint32_t object = 0; object < is_there_.size() && blocked_ > 0; ++object) {
      Queue& queue = missers_[object].empty() ? inserters_[object] : missers_[object];
      if (queue.empty()) continue;
      waiting = &queue;
      if (is_there_[object]) continue;
      WakeWaiters(object);
      return true;
    }
    if (waiting == nullptr) return false;
    unblocked_ = waiting->top().second;
    Wake(*waiting);
    return true;
  }

  void Wake(Queue& queue) {
    ready_.push(queue.top());
    queue.pop();
    --blocked_;
  }

  void Execute(uint32_t event, bool by_session) {
    order_.push_back(event);
    const uint32_t transaction = events_.TransactionOf(event);
    for (const Role& role : roles_[transaction]) {
      if (events_.IsStart(event) && role.begins > role.ends) is_there_[role.object] = true;
      if (events_.IsCommit(event) && role.ends > role.begins) is_there_[role.object] = false;
      if (!is_there_[role.object]) WakeWaiters(role.object);
    }
    for (uint32_t a = graph_.first_out(event); a != kNone; a = graph_.arc(a).next_out) Release(graph_.arc(a).to);
    const uint32_t next = session_successor_[transaction];
    if (by_session && events_.IsCommit(event) && next != kNone) Release(events_.Start(next));
  }

  void Release(uint32_t event) {
    if (--in_degree_[event] == 0) Push(event);
  }

  void WakeWaiters(uint32_t object) {
    while (!missers_[object].empty()) Wake(missers_[object]);
    if (!inserters_[object].empty()) Wake(inserters_[object]);
  }

  const Events events_;
  const EventOrder& graph_;
  const std::span<const uint64_t> ranks_;
  std::vector<uint32_t> in_degree_;
  std::vector<uint32_t> session_successor_;
  std::vector<std::vector<Role>> roles_;  // by transaction
  std::vector<bool> is_there_;
  std::vector<Queue> missers_, inserters_;  // by object
  size_t blocked_ = 0;
  uint32_t unblocked_ = kNone;
  Queue ready_;
  std::vector<uint32_t> order_;
};

}  // namespace

std::vector<uint32_t> GreedyOrder(Events events, const EventOrder& graph, std::span<const uint64_t> ranks,
                                  std::span<const uint32_t> workers, const std::vector<Presence>& presences) {
  std::vector<uint32_t> order = Run(events, graph, ranks, workers, presences).Try(/*by_session=*/true);
  if (order.empty()) order = Run(events, graph, ranks, workers, presences).Try(/*by_session=*/false);
  return order;
}

}  // namespace dbx::history
