// A topological order of a graph to which arcs are added, and from which the last ones are taken away again. An arc
// against the order moves only events between its ends (D. Pearce and P. Kelly, "A dynamic topological sort algorithm
// for directed acyclic graphs", JEA 11, 2006); removing one moves nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "benchmarks/test/dependency.h"

namespace dbx::history {

class EventOrder {
 public:
  // Arcs are known by their numbers, in the order in which they were added.
  struct Arc {
    uint32_t from;
    uint32_t to;
    uint32_t next_out;
    uint32_t next_in;
  };

  explicit EventOrder(size_t events)
      : first_out_(events, kNone), first_in_(events, kNone), mark_(events, 0), reached_by_(events, kNone) {}

  // Before there is an order.
  void Link(uint32_t from, uint32_t to);
  // `order` lists all events; no arc leads back in it.
  void SetOrder(std::vector<uint32_t> order);

  uint32_t position(uint32_t event) const { return position_[event]; }
  const std::vector<uint32_t>& order() const { return order_; }
  const Arc& arc(size_t number) const { return arcs_[number]; }
  size_t arcs() const { return arcs_.size(); }
  uint32_t first_out(uint32_t event) const { return first_out_[event]; }

  // The arcs of a path that leads from `to` to `from`, which an arc from `from` to `to` would close to a cycle.
  std::optional<std::vector<uint32_t>> PathBack(uint32_t from, uint32_t to);
  // REQUIRES: there is no such path.
  void Add(uint32_t from, uint32_t to);
  // Removes the arcs from number `count` on.
  void Truncate(size_t count);

  // Events visited so far.
  uint64_t visits() const { return visits_; }

 private:
  // Events that `event` reaches at or before `last`, by `reached_by_`; stops at `wanted`.
  void SearchForward(uint32_t event, uint32_t last, uint32_t wanted);
  void SearchBackward(uint32_t event, uint32_t first);

  std::vector<Arc> arcs_;
  std::vector<uint32_t> first_out_, first_in_;  // event -> arc
  std::vector<uint32_t> position_, order_;
  std::vector<uint32_t> mark_;        // event -> the last search that reached it
  std::vector<uint32_t> reached_by_;  // event -> the arc by which that search reached it
  std::vector<uint32_t> found_;       // by the last search
  uint32_t search_ = 0;
  uint64_t visits_ = 0;
};

}  // namespace dbx::history
