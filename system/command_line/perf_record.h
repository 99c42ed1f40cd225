// The parts of a record, and of the lines printed from it, that are about the host's counters (system/perf_counters.h).
// Parts of output.cpp. Threads: main's.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "system/perf_counters.h"

namespace dbx {

// Null if they were not asked for. Counters that could not be read are in `missing` alone, with the reason; per
// transaction means per acknowledged one, null if there was none.
nlohmann::ordered_json PerfJson(const std::optional<PerfResult>& perf, uint64_t acknowledged);
// "" if they were not asked for.
std::string PerfLine(const nlohmann::ordered_json& metrics);

}  // namespace dbx
