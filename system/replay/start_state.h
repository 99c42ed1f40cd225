// The state that a recovery starts from: a fresh load of the workload, or the checkpoint of the oldest run that it
// reads, or that run's backup. The records of the logs are replayed on top of it.
#pragma once

#include <cstdint>

#include "logging/device/file_system.h"
#include "storage/database.h"
#include "system/runs/old_runs.h"
#include "system/workloads.h"

namespace dbx {

struct StartState {
  // kBackup: pages, which the run's recovery restores together with its logs.
  // kRows: a checkpoint whose rows are of different moments, so that the workload adopts them after the replay.
  enum class Kind : uint8_t { kFreshLoad, kCheckpoint, kRows, kBackup };

  Kind kind = Kind::kFreshLoad;
  const OldRun* run = nullptr;  // kCheckpoint, kRows: the run that starts from it
};

// Of the oldest run of the chain.
StartState StartStateOf(const OldRuns& runs);

// Makes the empty tables of `database` hold the state, on `threads` threads at most; `seed` is that of the load.
// Returns the rows of a checkpoint. Throws Error: kCorrupt, kMismatch, kIo of a checkpoint.
uint64_t LoadStart(const StartState& start, FileSystem& files, uint64_t seed, uint32_t threads, WorkloadRef workload,
                   Database& database);

}  // namespace dbx
