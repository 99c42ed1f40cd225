// The results of a recovery of several masters: one JSON record, and the text that is printed from it. Main's thread
// only.
#pragma once

#include <string>

#include "system/command_line/environment.h"
#include "system/command_line/options.h"
#include "system/replay/cluster_recovery.h"

namespace dbx {

// A line of JSON.
std::string ClusterRecoveryRecord(const Options& options, const ClusterRecoveryResult& result,
                                  const Environment& environment);
std::string ClusterRecoveryText(const std::string& record);

}  // namespace dbx
