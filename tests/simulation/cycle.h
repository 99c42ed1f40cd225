// A simulated run with its crashes, and each crash's recovery.
#pragma once

#include "tests/simulation/trial.h"

namespace dbx::sim {

// Throws Violation.
void Try(const Trial& trial, Tally& tally);

}  // namespace dbx::sim
