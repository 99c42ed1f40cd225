// Threads as fibres on the virtual cores of nodes: an execution-driven simulation of time, behind the functions of
// tests/simulation/scheduler.h, of which it is another implementation. A program links one of the two.
//
// A group of fibres that SetNode has named is a node with some cores; a fibre of it runs only while it has one. Each
// step (an access to an atomic) takes the node's time of a step, and Charge adds what the model knows of. The fibre
// whose clock is furthest behind runs, until it is kSlackNanos ahead of the next one, so what one fibre does is seen by
// another at most that much too early. Fibres of groups without SetNode take no time: they only look on.
//
//   waiting for its place or the clock -> woken -> [no core is free: queue] -> has a core -> waits, or ends
//
// A fibre that was woken runs before those that have used up a slice, and takes the core of one that has had it for
// kWakeSliceNanos, as a fair scheduler of a system lets it.
//
// Of the plan only the seed counts. AfterSteps and KillGroup are not available: nothing fails here. A seed decides
// everything. Everything belongs to the one thread that called Simulate.
#pragma once

#include <cstdint>

#include "tests/simulation/scheduler.h"

namespace dbx::sim {

constexpr uint64_t kSlackNanos = 1'000;
constexpr uint64_t kWakeSliceNanos = 20'000;
constexpr uint64_t kSliceNanos = 1'000'000;  // where others wait for a core, and none was just woken

struct NodeShape {
  uint32_t cores = 1;
  double nanos_per_step = 0;
  uint64_t nanos_per_log_kib = 0;  // that it follows
};

struct NodeUse {
  uint64_t busy_nanos = 0;     // of all its cores
  uint64_t charged_nanos = 0;  // of these, by Charge and FollowLog
  uint64_t steps = 0;
};

// Within a simulation, before the group's first fibre.
void SetNode(Group group, const NodeShape& shape);
NodeUse UseOf(Group group);
// The current fibre computes for so long, and may lose its turn at the end.
void Charge(uint64_t nanos);

}  // namespace dbx::sim
