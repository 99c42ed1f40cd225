// The parts of a record, and of the lines printed from it, that are about backups: the checkpoints of a run, and where
// the time of a restart went (Lee, Kim, Cha: Differential Logging, ICDE 2001, sections 3.2 and 4.2). Parts of
// output.cpp, for schemes with pages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "logging/backup/checkpoint_counters.h"
#include "system/result.h"

namespace dbx {

// Null: the scheme takes no checkpoints.
nlohmann::ordered_json CheckpointsJson(const std::optional<CheckpointCounters>& checkpoints);
// One line, or none where no checkpoint was taken beside the transactions.
std::string CheckpointsLine(const nlohmann::ordered_json& run_metrics);

// Null: the scheme does not restart from a backup.
nlohmann::ordered_json RestartJson(const RecoveryResult& result);
// One line, or none.
std::string RestartLine(const nlohmann::ordered_json& recovery_metrics);

}  // namespace dbx
