// The parts of a record, and of the lines printed from it, that are about the places of threads and tables
// (system/run_placement.h). Parts of output.cpp. Threads: main's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "system/result.h"

namespace dbx {

// Null: everything is where the system puts it.
nlohmann::ordered_json PlacementJson(const std::optional<PlacementResult>& placement);
// One line; "" where everything is where the system puts it. Of a run, or of a recovery.
std::string PlacementLine(const nlohmann::ordered_json& metrics);
// Why --numa is not in force, for a warning; "": it is.
std::string PlacementWarning(const std::optional<PlacementResult>& placement);

}  // namespace dbx
