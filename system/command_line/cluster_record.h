// The results of a run of several masters: one JSON record, and the text that is printed from it. Main's thread only.
#pragma once

#include <string>

#include "system/cluster/cluster_result.h"
#include "system/command_line/environment.h"
#include "system/command_line/options.h"

namespace dbx {

// A line of JSON.
std::string ClusterRecord(const Options& options, const ClusterResult& result, const Environment& environment);
std::string ClusterText(const std::string& record);

}  // namespace dbx
