// What base/affinity.h is in the simulation: fibres share one thread, so nothing is confined, and nothing fails.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dbx::host {

inline std::vector<uint32_t> AllowedCpus() { return {}; }
inline int AllowCpus(std::span<const uint32_t>) { return 0; }

}  // namespace dbx::host
