// A recovery of a scheme's logs over one workload: open, load, replay, verify, measure. A run that continues others is
// recovered with them, in their order, each up to the end of its frozen prefix.
//
// It involves no concurrency control, so it is compiled once per scheme's recovery (recovery_run.cpp), not per pair; a
// pair selects it by its scheme.
#pragma once

#include <functional>
#include <vector>

#include "system/log_files.h"
#include "system/options.h"
#include "system/result.h"
#include "system/verify.h"
#include "system/workloads.h"

namespace dbx {

// Loads the starting state of the oldest run of the chain: a fresh load, or its checkpoint, whose rows are counted.
uint64_t LoadStart(const Options& options, FileSystem& files, const OldRuns& runs, WorkloadRef workload,
                   Database& database);

// The logs of a run, as its recovery reads them.
std::vector<LogSource> SourcesOf(const OldRun& run);

// Of the scheme of these traits. Throws Error.
RecoveryResult RunRecovery(const Options& options, LogStorage& storage, const LogTraits& traits);

// Replays the chain, oldest run first, into a database in the starting state of the oldest. `replayed` is called when
// the newest run's records are replayed.
std::vector<RecoveredRun> ReplayRuns(format::Scheme scheme, const Options& options, const OldRuns& runs,
                                     WorkloadRef workload, Database& database,
                                     const std::function<void()>* replayed = nullptr);

}  // namespace dbx
