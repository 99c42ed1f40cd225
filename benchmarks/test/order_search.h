// Searches for an order of the events of a history in which all known dependencies hold, no two lives of an object
// overlap, and no transaction that missed it falls within one. Used by history.cpp.
//
// Of two lives one ends before the other begins; a miss comes before a life begins or after it ends. Such a pair
// of edges of which one must hold is a choice. A first order is made greedily, as a serial run that executes whatever
// can be executed. Then every choice that the order breaks is decided: one of its edges is added, which changes the
// order. Where both edges are possible, one is assumed. When neither is, some of the assumptions that rule them out are
// wrong: the search goes back to the last of these and takes its other edge (conflict-directed backjumping). If no
// assumption is involved there is no order. The work is bounded: beyond the bound the verdict is kUndecided.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "benchmarks/test/dependency.h"
#include "benchmarks/test/event_order.h"

namespace dbx::history {

class OrderSearch {
 public:
  enum class Verdict { kOrdered, kImpossible, kUndecided };

  // REQUIRES: the events of `known` have no cycle; a life with no begin or no end is ordered by known edges against all
  // others of its object and its misses. `ranks`: by transaction, a guess at the order; those of one worker are likely
  // to follow each other. `work_max`: events and lives that may be visited.
  OrderSearch(Events events, std::span<const uint64_t> ranks, std::span<const uint32_t> workers,
              const std::vector<Edge>& known, const std::vector<Presence>& presences, uint64_t work_max);

  Verdict Run();

  // kOrdered: the events.
  const std::vector<uint32_t>& order() const { return order_.order(); }
  // kImpossible: edges that follow from the known ones, and a last one that closes a cycle with them.
  const std::vector<Edge>& implied() const { return implied_; }
  // Whether assumptions had to be taken back.
  bool has_gone_back() const { return has_gone_back_; }

 private:
  using Levels = std::vector<uint32_t>;  // numbers of assumptions, ascending
  // An edge that was added, and the assumptions that it follows from.
  struct Step {
    Edge edge;
    Levels reasons;
  };
  struct Assumption {
    size_t step;  // its index among the steps
    Edge other;
  };

  bool Holds(const Edge& edge) const;
  uint32_t BeginOf(const Life& life) const { return order_.position(events_.Start(life.begin)); }
  bool RepairLives(const Presence& presence, std::vector<Life>& in_order, bool& changed);
  bool RepairMisses(const Presence& presence, const std::vector<Life>& in_order, bool& changed);
  bool Repair(const Presence& presence, bool& changed);
  // Each is false if there is no order at all.
  bool Decide(const Edge& first, const Edge& second);
  bool GoBack(Levels reasons, const Edge& closing);
  void Add(const Edge& edge, Levels reasons);
  Levels ReasonsOf(const std::vector<uint32_t>& path) const;
  bool Exhausted() const { return order_.visits() + work_ > work_max_; }

  const Events events_;
  const std::vector<Presence>& presences_;
  const uint64_t work_max_;
  uint64_t work_ = 0;
  EventOrder order_;
  size_t known_arcs_;
  std::vector<Step> steps_;
  std::vector<Assumption> assumptions_;
  std::vector<Edge> implied_;
  bool has_gone_back_ = false;
};

}  // namespace dbx::history
