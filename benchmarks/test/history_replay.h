// The proof that an order of a history's events is one: all accesses are replayed in that order. Used by history.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "benchmarks/test/dependency.h"
#include "benchmarks/test/history.h"

namespace dbx::history {

// The first access that does not find there what it found in the history; empty if all do. `accesses`: by transaction,
// in its program order.
std::optional<History::Entry> FirstMisfit(Events events, const std::vector<uint32_t>& order,
                                          const std::vector<std::span<const History::Entry>>& accesses,
                                          const std::unordered_set<uint64_t>& initial);

}  // namespace dbx::history
