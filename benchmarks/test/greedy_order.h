// A first guess at the order of a history's events, for order_search.cpp: a run that executes the events one by one,
// each when all its predecessors are done. An insert or a miss waits while its object is there, if that can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "benchmarks/test/dependency.h"
#include "benchmarks/test/event_order.h"

namespace dbx::history {

// REQUIRES: the arcs of `graph` have no cycle. The order agrees with all of them.
std::vector<uint32_t> GreedyOrder(Events events, const EventOrder& graph, std::span<const uint64_t> ranks,
                                  std::span<const uint32_t> workers, const std::vector<Presence>& presences);

}  // namespace dbx::history
