// The checkpoints of a run, as counted by their writer (checkpointer.h); not the backup with which a run begins.
#pragma once

#include <cstdint>

#include "base/histogram.h"

namespace dbx {

// How many have begun and ended so far, complete or not; of a run that goes on.
struct CheckpointMarks {
  uint64_t begun = 0;
  uint64_t ended = 0;
};

struct CheckpointCounters {
  uint64_t checkpoints = 0;    // complete
  uint64_t failed = 0;         // for lack of space
  uint64_t abandoned = 0;      // as the run ended
  bool of_rows = false;        // and not of pages
  uint64_t pages = 0;          // written, by all of these; or
  uint64_t rows = 0;           // where rows are copied, in whole copies
  uint64_t bytes = 0;          // of these in the backup's files
  double seconds = 0;          // of all of them
  LatencyHistogram latches{};  // how long each dirty page was latched: a transaction could have waited for it so long
  LatencyHistogram pauses{};   // where rows are copied: how long the workers were kept between two transactions
};

}  // namespace dbx
