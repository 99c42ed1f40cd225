// Where the histories that the oracle judges are written, in Elle's format, for tests/scripts/second_opinion.py.
#pragma once

#include <string>

namespace dbx::sim {

inline std::string history_directory;  // none if empty

}  // namespace dbx::sim
