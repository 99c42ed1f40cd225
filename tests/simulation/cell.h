// What is tried: a pair of concurrency control and log scheme, a workload, a number of logs. Everything that a pair
// registers is a cell, so a new scheme is covered by its line in the registry. And clusters of masters (cluster/), each
// with a workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "system/command_line/options.h"
#include "system/pairs/registry.h"
#include "tests/simulation/scheduler.h"

namespace dbx::sim {

struct Cell {
  PairName pair;
  WorkloadKind workload = WorkloadKind::kTest;
  uint32_t logs = 1;
  uint32_t masters = 0;  // of a cluster; 0: the cell is of one engine

  std::string Name() const;  // NO_WAIT/LOG_TAURUS/LOG_DATA/TEST/2, MM/TEST/3
};

// Every logging cell of this binary, ordered by name.
std::vector<Cell> AllCells();

// Limits that a shrunk reproduction sets below what the seed chose.
struct Limits {
  uint32_t workers = UINT32_MAX;
  uint64_t txns = UINT64_MAX;         // per worker
  uint64_t steps = Plan().steps_max;  // of a run or a recovery; more: stuck
};

// How many files a run's logs take.
uint32_t LogFilesOf(const Options& options);

// A small run of the cell, all of it chosen by the seed: sizes of buffers and flushes, contention, number of workers.
Options OptionsOf(const Cell& cell, uint64_t seed, const Limits& limits);

// How its fibres are scheduled.
Plan PlanOf(const Options& options, const Limits& limits, uint64_t seed);

}  // namespace dbx::sim
