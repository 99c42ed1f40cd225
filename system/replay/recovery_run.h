// A recovery of a scheme's logs over one workload: open, load, replay, verify, measure. A run that continues others is
// recovered with them, in their order, each up to the end of its frozen prefix.
//
// It involves no concurrency control, so it is compiled once per scheme's recovery (recovery_run.cpp), not per pair; a
// pair selects it by its scheme.
#pragma once

#include <functional>
#include <vector>

#include "system/command_line/options.h"
#include "system/replay/row_chains.h"
#include "system/replay/start_state.h"
#include "system/replay/verify.h"
#include "system/result.h"
#include "system/runs/log_files.h"
#include "system/workloads.h"

namespace dbx {

// The logs of a run, as its recovery reads them.
std::vector<LogSource> SourcesOf(const OldRun& run);

// Of the scheme of these traits. Throws Error.
RecoveryResult RunRecovery(const Options& options, LogStorage& storage, const LogTraits& traits);

// Replays the chain, oldest run first, into a database in the starting state of the oldest. `replayed` is called when
// the newest run's records are replayed.
std::vector<RecoveredRun> ReplayRuns(format::Scheme scheme, const Options& options, FileSystem& files,
                                     const OldRuns& runs, WorkloadRef workload, Database& database,
                                     const std::function<void()>* replayed = nullptr);

// Of a scheme with chains of rows (LogTraits::row_chains): one pass over the logs of the chain, which finds the chains
// of the rows instead of replaying them.
std::vector<RecoveredRun> AnalyseRuns(format::Scheme scheme, const Options& options, const OldRuns& runs,
                                      RowChains& chains);

// By table, of a run that starts from a backup: how many rows a page has in it. Empty for all others.
std::vector<uint32_t> RowsPerPage(const OldRuns& runs);

}  // namespace dbx
