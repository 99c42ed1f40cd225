// The parts of a record, and of the lines printed from it, that are about a persistent heap of versions (storage/heap)
// or about rows that are rebuilt on demand (system/replay/row_chains.h). Parts of output.cpp, for schemes with either.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "system/result.h"

namespace dbx {

// Null: the run has none.
nlohmann::ordered_json HeapJson(const std::optional<HeapResult>& heap);
// One line, or none. Of a run, or of a recovery.
std::string HeapLine(const nlohmann::ordered_json& metrics);
// Null: the run has rebuilt no rows on demand.
nlohmann::ordered_json RedoJson(const std::optional<RedoResult>& redo);
// One line about them, or none.
std::string RedoLine(const nlohmann::ordered_json& metrics);
// How a recovery of a heap ended, in place of what is said of logs; none of any other.
std::optional<std::string> RecoveredHeapLine(const nlohmann::ordered_json& metrics);

}  // namespace dbx
