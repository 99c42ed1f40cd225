// A simulated run with its crashes, and each crash's recovery.
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
  uint64_t refused = 0;                    // damaged logs
  std::map<std::string, uint64_t> faults;  // by kind
};

class Violation : public std::runtime_error {
 public:
  Violation(const std::string& what, uint32_t crash) : runtime_error(what), crash(crash) {}
  const uint32_t crash;  // which of the run's crashes
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

// Throws Violation.
void Try(const Trial& trial, Tally& tally);

// The smallest trial near this one, which violates something, that still does; `violation` is brought up to date.
Trial Shrink(Trial trial, std::string& violation);

}  // namespace dbx::sim
