// The CPUs on which the calling thread may run, by the system's calls. Called by base/thread_place.h, which decides
// which CPUs these are, and when a run begins.
//
// The simulation of the tests puts a header of the same name before this one (tests/simulation/seam/base/affinity.h):
// its threads are fibres of one thread, which no call moves.
#pragma once

#include <sched.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <vector>

#include "base/topology.h"

namespace dbx::host {

using CpuMask = std::array<cpu_set_t, kCpusMax / CPU_SETSIZE>;

// Of the calling thread: what its affinity mask has, within its cpuset. Empty if the system does not tell.
inline std::vector<uint32_t> AllowedCpus() {
  CpuMask mask{};
  std::vector<uint32_t> cpus;
  if (sched_getaffinity(0, sizeof mask, mask.data()) != 0) return cpus;
  for (uint32_t cpu = 0; cpu < kCpusMax; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof mask, mask.data())) cpus.push_back(cpu);
  }
  return cpus;
}

// Confines the calling thread, and the threads that it will create, to `cpus`, each below kCpusMax. 0, or errno.
inline int AllowCpus(std::span<const uint32_t> cpus) {
  CpuMask mask{};
  for (const uint32_t cpu : cpus) CPU_SET_S(cpu, sizeof mask, mask.data());
  return sched_setaffinity(0, sizeof mask, mask.data()) == 0 ? 0 : errno;
}

}  // namespace dbx::host
