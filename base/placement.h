// Which CPU each worker and each log writer of a run is pinned to: a function of the host's topology alone, so that
// tests can make up hosts. base/thread_place.h carries it out.
//
//   none     nothing is pinned
//   compact  workers fill one node after the other, from the node with the most allowed CPUs on; within a node first
//            one CPU of each core, then their SMT siblings
//   scatter  workers take the nodes in turn, within each node in the same order
//   a list   workers take its CPUs in its order
//
// Log writers never displace a worker. Writer d flushes the logs of workers d, d + writers, d + 2 * writers ...
// (LogSet::NextLog), so it takes a CPU that is left over, if possible on the node of most of these; there a core
// without any other thread of the run before the sibling of one. With a list, writers take the CPUs behind those of the
// workers. A writer for which no CPU is left is not pinned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/topology.h"

namespace dbx {

enum class PinPolicy : uint8_t { kNone, kCompact, kScatter, kList };

struct PinChoice {
  PinPolicy policy = PinPolicy::kNone;
  std::vector<uint32_t> cpus{};  // kList
};

// none, compact, scatter, or a list of CPUs (base/topology.h); nothing if `text` is none of these.
std::optional<PinChoice> ParsePin(std::string_view text);
std::string PinText(const PinChoice& pin);

struct Placement {
  std::vector<uint32_t> workers{};                 // CPU of each; none are pinned if it is empty
  std::vector<std::optional<uint32_t>> writers{};  // CPU of each, where it is pinned
  // CPU on whose node the log buffers of each writer lie: its own, or that of its first worker.
  std::vector<uint32_t> buffers{};
};

// Throws Error(kUsage), naming the CPU where it is about one, if there are fewer CPUs than workers, or a list names a
// CPU twice, or one that the host does not have or this process may not use.
Placement PlanPlacement(const Topology& topology, const PinChoice& pin, uint32_t workers, uint32_t writers);

}  // namespace dbx
