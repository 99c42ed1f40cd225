// The rows of a database as the oracle knows them.
#pragma once

#include <vector>

#include "storage/database.h"
#include "tests/simulation/oracle.h"

namespace dbx::sim {

// Those that are there; while no transaction runs.
std::vector<RowVersion> RowsOf(const Database& database);

// What the last recovery left.
inline std::vector<RowVersion> recovered_rows;

}  // namespace dbx::sim
