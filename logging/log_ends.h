// The verdict on the ends of a run's logs, for the recoveries of all schemes: where the valid prefixes end, and whether
// each end is a torn tail or damage (logging/README.md, "What is valid").
//
// Called once per recovery, when all logs have been read to their ends, by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential_methods.h"
#include "logging/format.h"
#include "logging/log_reader.h"

namespace dbx {

// Where the time of a restart from a backup went (logging/differential/differential_recovery.h): of each stage from the
// begin of its first task to the end of its last one.
struct RestartTimes {
  // Also the analysis of the baselines of differential logging: what their pass backward reads to find the winners.
  double ends_seconds = 0;
  double backup_seconds = 0;
  double redo_seconds = 0;
  double backward_seconds = 0;
  double adopt_seconds = 0;
  // Of redo and backward passes: waiting for the log, the rest being replay; as long as one of those takes that run
  // side by side.
  double log_read_seconds = 0;
  DiffMethod method{};  // of the run's records, which its anchor names
  uint32_t level = 0;   // of the restart
};

// What a recovery found. The ends of the logs are JudgeEnds's, the rest is the scheme's.
struct ReplaySummary {
  uint64_t recovered = 0;
  uint64_t dropped = 0;  // whole, but a transaction that they depend on is not durable
  uint64_t voids = 0;
  uint64_t torn_logs = 0;
  uint64_t cut_bytes = 0;
  uint64_t log_bytes = 0;
  std::vector<Lsn> frontier;            // end of the valid prefix of each log (ELV): the recovery horizon
  std::vector<Lsn> durable;             // start of a record of each log below which all is proved to be durable
  uint64_t next_sequence = 0;           // above that of every transaction in the logs, dropped and cut ones included
  Lsn highest_lsn{};                    // of the ends of the files
  Stamp highest_stamp{};                // in the logs, behind their valid prefixes too
  Stamp durable_stamp{};                // up to here every log had been durable, according to marks
  Stamp stamp_end = Stamp(UINT64_MAX);  // no transaction with a larger stamp is recovered
  bool clean_end = false;               // RUN_END in every log
  bool went_serial = false;
  double parallelism = 0;                                   // mean number of workers that were replaying
  std::vector<std::optional<format::RunEndBody>> run_ends;  // of each log
  // Where logs are truncated below what a checkpoint needs, by worker: all committed transactions with lower sequence
  // numbers are recovered, too, and counted and named only where their COMMITs are there still.
  std::vector<uint64_t> ended_below;
  RestartTimes restart{};

  // What the records of a log, or of the end of one, state.
  void Add(const LogTotals& totals) {
    voids += totals.voids;
    next_sequence = std::max(next_sequence, totals.next_sequence);
    highest_stamp = std::max(highest_stamp, totals.stamp);
    durable_stamp = std::max(durable_stamp, totals.durable_stamp);
  }
  // By worker: all transactions with lower sequence numbers had ended when a checkpoint began, so that their names must
  // not be used again, though their records may be gone. One that was still to end has the sequence itself.
  void KeepNamesUpTo(std::span<const uint64_t> sequences) {
    for (const uint64_t sequence : sequences) next_sequence = std::max(next_sequence, sequence + 1);
  }
};

// `readers`, one per log of the run, have ended. Fills in what the ends show, and refuses (Error kCorrupt) logs that
// end before a position that was once durable. Tails are examined by up to `threads_max` threads.
void JudgeEnds(std::span<const LogReader* const> readers, uint32_t threads_max, ReplaySummary& summary);

}  // namespace dbx
