// A violation made again, each time in a process of its own: there the trial finds memory as its printed line will.
#pragma once

#include <optional>
#include <string>

#include "tests/simulation/trial.h"

namespace dbx::sim {

// The options of build/simulation/torture that make this trial again, and no other.
std::string OptionsFor(const Trial& trial, const std::string& mutant);

// What the trial violates in a fresh process, or nothing.
std::optional<std::string> ViolationInFreshProcess(const Trial& trial, const std::string& mutant);

// The smallest trial near this one, which violates something in a fresh process, that still does; `violation` is
// brought up to date.
Trial Shrink(Trial trial, const std::string& mutant, std::string& violation);

}  // namespace dbx::sim
