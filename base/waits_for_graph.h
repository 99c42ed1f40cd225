// The waits-for graph of the workers, and the search for deadlocks in it, without a lock: each worker publishes the
// edges of its own wait in a slot that it alone writes, but for `doomed`.
//
// An edge leads from a worker that waits to one attempt of a transaction, a holder or a request ahead of it in the
// queue of the lock. Why edges are exact: locks are held until the attempt ends, and a request ahead holds the lock
// before the one behind, so an edge that was true when it was published stays true as long as the wait and that attempt
// both last. An attempt that is over is known by its number: edges to it lead nowhere. Where a wait later depends on
// another worker too (an upgrade), its edges are added to, published and searched again
// (concurrency_control/queued_locks.h).
//
// Every deadlock is found: the publications of its edges are sequentially consistent stores, so there is a last one,
// and the search of that worker comes after it and loads, sequentially consistent too, all the others'. A deadlock does
// not go away by itself, so whatever the search reads of it is true. Of several cycles through the searcher each is
// broken before the search ends.
//
// One victim per cycle: its youngest transaction, whichever worker finds it. `doomed` tells it to abort, which it does
// as soon as it looks; two workers that find the same cycle doom the same one.
//
// A false alarm costs an abort, and the transaction is retried. There is one only where a member of the cycle aborts or
// is granted its lock while the search goes on: a cycle is a deadlock as long as no member aborts, so this takes two
// cycles that share workers, or a run that stops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/types.h"

namespace dbx {

class WaitsForGraph {
 public:
  explicit WaitsForGraph(uint32_t workers) : slots_(workers) {
    CHECK(workers <= kWorkersMax);
    for (auto& slot : slots_) slot.edges = std::make_unique<Atomic<uint64_t>[]>(workers);
  }

  // ---- by the worker itself ----

  // Edges to the worker's earlier attempts lead nowhere. It holds no lock and waits for none.
  void BeginTry(WorkerId worker) {
    Atomic<uint64_t>& state = slot(worker).state;
    // Release: pairs with the acquire of a search, which then does not take the next wait's edges for an older one's.
    state.store((state.load(std::memory_order_relaxed) | kWaits) + 1, std::memory_order_release);
  }
  void ClearEdges(WorkerId worker) { slot(worker).count.store(0, std::memory_order_relaxed); }
  // Under the latch of a queue in which `to` stands with its current attempt; an edge to an older one leads nowhere.
  void AddEdge(WorkerId worker, WorkerId to) {
    Slot& own = slot(worker);
    const uint32_t count = own.count.load(std::memory_order_relaxed);
    uint32_t i = 0;
    while (i < count && own.edges[i].load(std::memory_order_relaxed) % kWorkersMax != to.value()) ++i;
    // Release: a search that reads this edge of the new wait sees that the last one is over.
    own.edges[i].store(EdgeTo(to, slot(to).state.load(std::memory_order_relaxed) / 2), std::memory_order_release);
    if (i == count) own.count.store(count + 1, std::memory_order_release);
  }
  // The worker, in a transaction that started at `start`, waits from now on, or waits for more. A search must follow:
  // earlier searches by others do not count.
  void Publish(WorkerId worker, uint64_t start) {
    Slot& own = slot(worker);
    own.start.store(start, std::memory_order_relaxed);
    // Acquire: the search that follows sees all that was seen by the worker that doomed this attempt before.
    own.doomed.exchange(0, std::memory_order_acq_rel);
    own.state.store(own.state.load(std::memory_order_relaxed) | kWaits, std::memory_order_seq_cst);
  }
  void Retract(WorkerId worker) {
    Atomic<uint64_t>& state = slot(worker).state;
    state.store(state.load(std::memory_order_relaxed) & ~kWaits, std::memory_order_release);
  }
  // Has a search chosen this attempt as the victim since it was published?
  bool IsDoomed(WorkerId worker) const {
    const Slot& own = slots_[worker.value()];
    // Relaxed: it publishes nothing else.
    return own.doomed.load(std::memory_order_relaxed) == own.state.load(std::memory_order_relaxed) / 2;
  }

  // A worker's searches; it keeps their memory.
  class Search {
   public:
    Search(WaitsForGraph& graph, WorkerId worker)
        : graph_(graph), self_(worker.value()), members_(graph.slots_.size()) {}

    // After the worker's wait was published: dooms the youngest of every cycle through it. False if that is the
    // worker itself.
    bool BreakCycles() {
      for (Member& member : members_) member.doomed = false;
      while (const uint32_t last = FindCycle()) {
        ++cycles_;
        const uint32_t victim = YoungestOf(last - 1);
        if (victim == self_) return false;
        graph_.slots_[victim].doomed.store(members_[victim].attempt, std::memory_order_release);
        members_[victim].doomed = true;
      }
      return true;
    }

    // Found so far.
    uint64_t cycles() const { return cycles_; }

   private:
    struct Member {
      uint64_t attempt = 0;  // the attempt that was found waiting
      uint64_t start = 0;
      uint32_t parent = 0;  // a worker that waits for it
      bool reached = false;
      bool doomed = false;
    };

    // The worker, plus 1, whose edge leads back to the searcher, or 0; from it `parent` leads along the cycle.
    uint32_t FindCycle() {
      for (Member& member : members_) member.reached = false;
      to_visit_.assign(1, self_);
      members_[self_].reached = true;
      const uint64_t own_state = graph_.slots_[self_].state.load(std::memory_order_relaxed);
      members_[self_].attempt = own_state / 2;
      members_[self_].start = graph_.slots_[self_].start.load(std::memory_order_relaxed);
      while (!to_visit_.empty()) {
        const uint32_t at = to_visit_.back();
        to_visit_.pop_back();
        if (!LoadEdges(at)) continue;
        for (const uint64_t edge : edges_) {
          if (edge == EdgeTo(WorkerId(self_), members_[self_].attempt)) return at + 1;
          Reach(edge, at);
        }
      }
      return 0;
    }

    // The edges of a wait that still lasts after they were read. Those of another wait of the same attempt among them
    // lead to attempts that are over or aborting.
    bool LoadEdges(uint32_t at) {
      const Slot& slot = graph_.slots_[at];
      edges_.clear();
      const uint32_t count = slot.count.load(std::memory_order_acquire);
      for (uint32_t i = 0; i < count; ++i) edges_.push_back(slot.edges[i].load(std::memory_order_acquire));
      return slot.state.load(std::memory_order_seq_cst) == (members_[at].attempt * 2 | kWaits);
    }

    void Reach(uint64_t edge, uint32_t from) {
      const uint32_t to = static_cast<uint32_t>(edge % kWorkersMax);
      const uint64_t attempt = edge / kWorkersMax;
      Member& member = members_[to];
      if (member.reached || member.doomed) return;
      if (graph_.slots_[to].state.load(std::memory_order_seq_cst) != (attempt * 2 | kWaits)) return;
      member = {attempt, graph_.slots_[to].start.load(std::memory_order_relaxed), from, true, false};
      to_visit_.push_back(to);
    }

    uint32_t YoungestOf(uint32_t last) const {
      uint32_t youngest = self_;
      for (uint32_t at = last; at != self_; at = members_[at].parent) {
        if (std::pair(members_[at].start, at) > std::pair(members_[youngest].start, youngest)) youngest = at;
      }
      return youngest;
    }

    WaitsForGraph& graph_;
    const uint32_t self_;
    std::vector<Member> members_;
    std::vector<uint32_t> to_visit_;
    std::vector<uint64_t> edges_;
    uint64_t cycles_ = 0;
  };

 private:
  static constexpr uint64_t kWaits = 1;
  static constexpr uint64_t kWorkersMax = 1 << 16;

  struct alignas(kNoSharingBytes) Slot {
    Atomic<uint64_t> state{0};   // twice the number of the attempt, and kWaits
    Atomic<uint64_t> start{0};   // of its transaction
    Atomic<uint64_t> doomed{0};  // the attempt that a search has chosen to abort
    Atomic<uint32_t> count{0};   // of edges
    std::unique_ptr<Atomic<uint64_t>[]> edges;
  };

  static uint64_t EdgeTo(WorkerId worker, uint64_t attempt) { return attempt * kWorkersMax + worker.value(); }
  Slot& slot(WorkerId worker) { return slots_[worker.value()]; }

  std::vector<Slot> slots_;
};

// The same among transactions of several processes, which have names instead of workers; any of them may be a node,
// also one of another process, whose own waits are unknown here: edges to it lead nowhere.
//
// The youngest is the one with the largest (age, name). Not thread-safe: its owner's latch protects it.
template <class Name, class Age>
class NamedWaitsForGraph {
 public:
  // `waiter` waits for all of `blockers` from now on, and for no others.
  void Publish(const Name& waiter, Age age, std::span<const Name> blockers) {
    waits_[waiter] = {age, {blockers.begin(), blockers.end()}};
  }
  // It waits no longer. No effect if it did not.
  void Retract(const Name& waiter) { waits_.erase(waiter); }
  bool IsWaiting(const Name& waiter) const { return waits_.contains(waiter); }
  size_t size() const { return waits_.size(); }

  // The youngest of a cycle through `searcher`, or nothing if there is none. The cycle lasts until it is retracted.
  std::optional<Name> FindVictim(const Name& searcher) const {
    std::unordered_map<Name, Name> parents;  // a transaction that waits for it
    std::vector<Name> to_visit{searcher};
    while (!to_visit.empty()) {
      const Name at = to_visit.back();
      to_visit.pop_back();
      const auto wait = waits_.find(at);
      if (wait == waits_.end()) continue;
      for (const Name& blocker : wait->second.blockers) {
        if (blocker == searcher) return YoungestOf(searcher, at, parents);
        if (parents.emplace(blocker, at).second) to_visit.push_back(blocker);
      }
    }
    return std::nullopt;
  }

 private:
  struct Wait {
    Age age;
    std::vector<Name> blockers;
  };

  Name YoungestOf(const Name& searcher, const Name& last, const std::unordered_map<Name, Name>& parents) const {
    Name youngest = searcher;
    for (Name at = last; at != searcher; at = parents.at(at)) {
      if (std::pair(waits_.at(at).age, at) > std::pair(waits_.at(youngest).age, youngest)) youngest = at;
    }
    return youngest;
  }

  std::unordered_map<Name, Wait> waits_;
};

}  // namespace dbx
