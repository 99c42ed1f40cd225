// A position in each log of a run, as a plain value, unlike the words of an LSN vector that vector instructions work on
// (lsn_vector.h).
//
// Used by readers of logs, and by callers that ask a scheme where a transaction's records end. Threads: plain data.
#pragma once

#include <array>

#include "base/types.h"
#include "logging/format.h"

namespace dbx {

// One element per log; those behind the last log of the run stay 0.
using LsnPerLog = std::array<Lsn, format::kMaxLogs>;

}  // namespace dbx
