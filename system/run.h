// A measured run of one pair over one workload, from load to RUN_END.
//
// Outside the measured interval: load, generation of the calls, creation and faulting-in of the log files, warm-up,
// digest. Main's thread; it starts and joins the workers. Compiled once for all pairs: the parts that depend on the
// pair are the node's.
#pragma once

#include "system/command_line/options.h"
#include "system/node.h"
#include "system/result.h"
#include "system/runs/log_files.h"

namespace dbx {

// `node` is fresh, and its transactions are those of the workload that the options name. Throws Error.
RunResult MeasureRun(const Options& options, LogStorage& storage, Node& node);
// The same over a workload of the caller's, which outlives the node's workers.
RunResult MeasureRun(const Options& options, LogStorage& storage, Node& node, WorkloadRef workload);

}  // namespace dbx
