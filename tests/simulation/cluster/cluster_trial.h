// A trial of an MM cell: one simulated cluster, its faults, and what it leaves, in a process of its own.
//
// A cluster whose processes are killed leaves its memory behind, and a CHECK that fails ends a process: so each trial
// is run by a child, which tells what it has counted, or the violation. The child finds the same memory whatever was
// tried before, so that the trial alone is the same again.
#pragma once

#include "tests/simulation/trial.h"

namespace dbx::sim {

// Throws Violation.
void TryCluster(const Trial& trial, Tally& tally);
// The same in this process. What killed processes owned stays.
void RunClusterTrial(const Trial& trial, Tally& tally);

}  // namespace dbx::sim
