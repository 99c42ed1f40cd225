// The switches of a series (--series, --series_interval): their defaults, and combinations that are refused. Part of
// parse_options.cpp. Threads: any.
#pragma once

#include <string>

#include "system/command_line/options.h"

namespace dbx {

// Completes the interval of a series; `interval_given`: the command line has one. Returns the mistake, or "".
std::string CompleteSeries(bool interval_given, Options& options);

}  // namespace dbx
