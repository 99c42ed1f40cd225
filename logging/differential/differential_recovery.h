// Restart from a fuzzy backup and differential logs (Lee, Kim, Cha: Differential Logging, ICDE 2001, sections 3.4
// and 4.2):
//
//     ends       each log   from where it is proved to have been durable to its last record       (log_end.h)
//                once       torn tail or damage? do the logs reach the anchor's checkpoint?
//     backup     each part  images are put into the pages                                         (backup_files.h)
//     backward   each log   its records are checked, and changes are redone and undone            (backward_pass.h)
//     adopt      all pages  present rows enter the indexes, free slots the heaps
//
// Workers share the tasks of a stage. The stages overlap by the restart level (the paper's table 1; its LR and LP are
// the pass backward and redo, as the paper takes the ends of logs for granted):
//
//     1  one stage after the other, reading and playing in turn
//     2  the same, each loader reading ahead
//     3  the backup is read beside the ends and the last records of the logs, which wait in memory
//     4  the backup is read beside all passes: pages begin as zeros, and its images are combined with them by XOR
//
// The baselines go over the logs twice. What the pass backward has undone, of losers, a second pass redoes with all
// else: DL2P each log (two_pass_redo.h), PL2P all logs as one (physical_redo.h); PL2P has no level 4, as its images do
// not commute.
//
// All levels leave the same state. Nothing on disk is changed, so a recovery that was cut short is repeated.
//
// Exactly-once is checked at last: a slot without its presence bit is all zeros, whatever was applied to it. That a key
// is in one slot only is checked by the index.
//
// Threads: Restart belongs to one thread, and runs workers of its own.
#pragma once

#include <functional>
#include <vector>

#include "base/types.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/lane_recovery.h"
#include "logging/log_ends.h"
#include "logging/log_reader.h"
#include "storage/database.h"

namespace dbx {

struct RestartInput {
  std::vector<LogSource> logs;  // all of the run, by index
  BackupAnchor anchor;
  const BackupReader* backup = nullptr;  // that of the anchor
  Database* database = nullptr;          // paged, with the tables of the run and no rows
};

class DifferentialRecovery {
 public:
  explicit DifferentialRecovery(const ReplaySettings& settings);

  // Restores the pages and makes the rows of all tables. Throws Error; then the database must be thrown away. `names`,
  // if not null, gets the ids of all winners in the logs, one list per log; `replayed`, if not null, is called when all
  // rows are there.
  ReplaySummary Restart(const RestartInput& input, std::vector<std::vector<TxnId>>* names = nullptr,
                        const std::function<void()>* replayed = nullptr);

 private:
  const ReplaySettings settings_;
};

}  // namespace dbx
