// What the command line says of several masters (--masters) and their workload. Part of parse_options.cpp.
// Threads: any.
#pragma once

#include <string>

#include "system/command_line/options.h"

namespace dbx {

// What is wrong with these options, for a usage error; "": nothing.
std::string ClusterMistake(const Options& options);

}  // namespace dbx
