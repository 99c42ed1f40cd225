// What is tried under one seed, what trying it counts, and how it fails.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/simulation/cell.h"

namespace dbx::sim {

// What has been tried, added up.
struct Tally {
  uint64_t runs = 0;
  uint64_t cycles = 0;  // a crash and its recovery
  uint64_t steps = 0;
  uint64_t acknowledged = 0;  // by the crashes, added up
  uint64_t recovered = 0;
  uint64_t dropped = 0;
  uint64_t refused = 0;      // damaged files
  uint64_t in_recovery = 0;  // crashes of a run that recovered, froze or wrote a checkpoint, and served no client yet
  uint64_t third = 0;        // crashes of a run that continued one which had continued another
  std::map<std::string, uint64_t> faults;  // by kind
  std::map<std::string, uint64_t> cells;   // trials, by the cell's name
};

// Of one of the invariants that it names, or of an engine that failed by itself.
class Violation : public std::runtime_error {
  using runtime_error::runtime_error;
};

// Engines that must lose what they acknowledged, or the oracle sees nothing.
enum class Control { kNone, kSyncsLie, kNoLog };

struct Trial {
  Cell cell;
  uint64_t seed = 1;
  Limits limits;
  uint32_t crashes = 8;
  Control control = Control::kNone;
};

}  // namespace dbx::sim
