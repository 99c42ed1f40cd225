// The CPUs of a host: which of them share a core (SMT siblings) and which a NUMA node, as the kernel describes it under
// /sys/devices/system (cpu/online, cpu/cpuN/topology, node/nodeN/cpulist).
//
// Read by main before a run, and made up by tests. Threads: any; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dbx {

// No CPU has a higher number than this less one.
inline constexpr uint32_t kCpusMax = 8192;

// One online CPU.
struct Cpu {
  uint32_t id = 0;
  uint32_t core = 0;  // the lowest id among those that share its core
  uint32_t node = 0;
  bool allowed = true;  // by the affinity mask and the cpuset of this process
};

struct Topology {
  std::vector<Cpu> cpus;          // online, in the order of their ids
  std::vector<uint32_t> offline;  // present, and not online

  // nullptr: no online CPU has this id.
  const Cpu* Find(uint32_t id) const;
};

// The list of CPUs "0,2,4-7", as the kernel writes it; its order stays. Empty: it is no such list, or it has a number
// from kCpusMax on. "" is the empty list.
std::optional<std::vector<uint32_t>> ParseCpuList(std::string_view text);
// The same list as text, with ranges where numbers follow each other.
std::string CpuListText(std::span<const uint32_t> cpus);

// `root` is /sys/devices/system, or a copy of it. What it does not tell is taken as on the plainest host: the online
// CPUs are `allowed`, each is a core of its own, all are on node 0.
Topology ReadTopology(const std::string& root, std::span<const uint32_t> allowed);
// Of this host, for the calling thread.
Topology ReadTopology();

}  // namespace dbx
