// The parts of a record, and of the lines printed from it, that are about the replica of a run (logging/replication).
// Parts of output.cpp. Threads: main's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "system/result.h"

namespace dbx {

// Null without a replica.
nlohmann::ordered_json ReplicationJson(const std::optional<ReplicationResult>& replication);
// "" without a replica.
std::string ReplicationLine(const nlohmann::ordered_json& metrics);

}  // namespace dbx
