// What finding deadlocks took, for the result of a run, its warm-up included.
#pragma once

#include <cstdint>

namespace dbx {

struct DeadlockCounters {
  uint64_t searches = 0;  // for a cycle, by somebody who begins to wait, or has come to wait for more
  uint64_t cycles = 0;    // found; each has a victim. Two who find the same one at once both count it
  double search_seconds = 0;
  double wait_seconds = 0;  // for locks, searches included
};

}  // namespace dbx
