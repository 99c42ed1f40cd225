// The places of a run's or a recovery's threads and tables, as its options ask for them (--pin, --numa), from before
// its first thread to behind its last.
//
// Main's thread.
#pragma once

#include <optional>

#include "base/numa_memory.h"
#include "base/thread_place.h"
#include "base/topology.h"
#include "system/command_line/options.h"
#include "system/result.h"

namespace dbx {

class RunPlacement {
 public:
  // Of this host, read where something is pinned. Throws Error(kUsage) as PlanPlacement does, before anything is done.
  // Of the workers alone: how many log writers there will be may depend on logs that have not been read yet, and they
  // are no reason to refuse.
  static Topology CheckedTopology(const Options& options);

  // `topology`: of this host, or one that is made up; `system` as of TableMemory. Throws the same error.
  RunPlacement(const Options& options, Topology topology, NumaSystem& system = LinuxNuma());

  // None: everything is where the system puts it.
  std::optional<PlacementResult> result() const;

 private:
  PlacementResult::Place PlaceOf(std::optional<uint32_t> cpu) const;

  const Options& options_;
  Topology topology_;
  PlacedThreads threads_;
  TableMemory memory_;
};

}  // namespace dbx
