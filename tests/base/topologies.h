// Hosts that tests make up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/topology.h"

namespace dbx {

// `nodes` x `cores` x `siblings`, numbered as Linux does on most servers: the first CPU of every core, node by node,
// then the second ones.
inline Topology Host(uint32_t nodes, uint32_t cores, uint32_t siblings) {
  Topology host;
  for (uint32_t id = 0; id < nodes * cores * siblings; ++id) {
    const uint32_t core = id % (nodes * cores);
    host.cpus.push_back({.id = id, .core = core, .node = core / cores});
  }
  return host;
}

// One node of so many cores, numbered with the two siblings of a core one behind the other, as on some virtual
// machines.
inline Topology HostOfPairs(uint32_t cores) {
  Topology host;
  for (uint32_t id = 0; id < 2 * cores; ++id) host.cpus.push_back({.id = id, .core = id / 2 * 2, .node = 0});
  return host;
}

// The same host for a process that may use these CPUs alone.
inline Topology Restricted(Topology host, const std::vector<uint32_t>& allowed) {
  for (Cpu& cpu : host.cpus) cpu.allowed = std::ranges::find(allowed, cpu.id) != allowed.end();
  return host;
}

// The same host without these CPUs, which are offline.
inline Topology WithOffline(Topology host, const std::vector<uint32_t>& offline) {
  std::erase_if(host.cpus, [&](const Cpu& cpu) { return std::ranges::find(offline, cpu.id) != offline.end(); });
  host.offline = offline;
  return host;
}

}  // namespace dbx
