// A small run to change, and what tests of restarts expect of its crashes: that every level of restart recovers what
// the run says.
#pragma once

#include <gtest/gtest.h>

#include "tests/logging/differential/paged_run.h"

namespace dbx {

inline constexpr PagedRun::Place kA{0, 0, 0}, kB{0, 0, 3}, kC{0, 1, 2}, kD{1, 0, 1}, kFree{0, 0, 1}, kNew{0, 9, 2};

// Rows 10, 11 and 12 of table 0 and row 20 of table 1, with the values 100, 110, 120 and 200.
inline PagedRun RunOf(const PagedRun::Shape& shape) {
  PagedRun run(shape);
  run.Load(kA, 10, 100);
  run.Load(kB, 11, 110);
  run.Load(kC, 12, 120);
  run.Load(kD, 20, 200);
  run.Start();
  return run;
}

// Announces, changes, and leaves the end to the caller.
inline void Change(PagedRun& run, uint64_t id, uint32_t log, const PagedRun::Place& at, Key key, uint64_t value) {
  if (!run.IsAnnounced(id)) run.Announce(id, log);
  run.Put(id, at, key, value);
}

// Recovery gives what the run says, at every level.
inline void ExpectRecovered(const PagedRun::Crashed& crashed) {
  for (const uint32_t level : LevelsOf(crashed.anchor.method)) {
    for (const uint32_t workers : {1, 3}) {
      const Restarted restarted = Restart(crashed, {.level = level, .workers = workers});
      EXPECT_EQ(restarted.state, crashed.state) << "level " << level << ", " << workers << " workers";
      EXPECT_EQ(restarted.winners, crashed.winners) << "level " << level;
      EXPECT_EQ(restarted.summary.recovered, crashed.winners.size());
    }
  }
}

// After each record of a run with one log, from what is durable on.
inline void ExpectRecoveredFromEveryCut(const PagedRun& run, LogBuilder& log) {
  for (const uint64_t start : log.Starts()) {
    if (start >= run.durable(0)) ExpectRecovered(run.Crash({start}));
  }
  ExpectRecovered(run.Crash());
}

}  // namespace dbx
