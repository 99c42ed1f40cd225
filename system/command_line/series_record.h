// A run's series (system/series.h) as a file of comma-separated values, and what the record says about it. Parts of
// output.cpp. Threads: main's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "system/command_line/options.h"
#include "system/series.h"

namespace dbx {

// A heading and a line per step; docs/running.md has the columns. A value that there is not, as a percentile of
// nothing, is empty.
std::string SeriesCsv(const std::vector<SeriesStep>& steps);
// Null without a series.
nlohmann::ordered_json SeriesJson(const Options& options, const std::vector<SeriesStep>& steps);
// "" without a series.
std::string SeriesLine(const nlohmann::ordered_json& metrics);

}  // namespace dbx
