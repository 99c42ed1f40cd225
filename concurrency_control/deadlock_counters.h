// The cost of deadlock detection, for the result of a run, its warm-up included.
#pragma once

#include <cstdint>

namespace dbx {

struct DeadlockCounters {
  uint64_t searches = 0;  // for a cycle, by a worker that begins to wait, or waits for more than before
  uint64_t cycles = 0;    // found; each has a victim. Two workers that find one at once both count it
  double search_seconds = 0;
  double wait_seconds = 0;  // for locks, searches included
};

}  // namespace dbx
