// The pass of recovery over one differential log that goes backward (Lee, Kim, Cha, ICDE 2001, section 3.4 and Alg. 3;
// transaction_table.h decides). With DL1P it is all: changes of winners that the backup lacks are redone, and changes
// of others that it has are undone, by the same operation. With DL2P it undoes what losers have left, whose changes a
// second pass redoes with all others; with PL2P it puts the images back that were there before losers' changes that the
// backup has. Every record is checked on the way (backward_checks.h), down to where the log begins or was truncated.
//
// Passes over different logs run side by side, in any order, and beside the load of the backup: XOR commutes, and each
// change is applied under its page's latch. Images do not commute: with PL2P the backup is there before. No two losers
// have changes of the same slot in the backup, as the end of the first one is durable if the change of the second is.
//
// Threads: a pass belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/backward_checks.h"
#include "logging/differential/backward_reader.h"
#include "logging/differential/change_player.h"
#include "logging/differential/log_end.h"
#include "logging/differential/restart_point.h"
#include "logging/differential/transaction_table.h"
#include "storage/database.h"

namespace dbx {

class BackwardPass {
 public:
  struct Options {
    size_t block_bytes = 1 << 20;
    bool with_names = false;  // of winners
    bool read_ahead = true;
  };

  // The log is read from its end down to end.source().First(). `ends` are those of all logs, which were judged; they
  // outlive this, and so does `end`, and what it has kept is used up.
  BackwardPass(LogEnd& end, const RestartPoint& point, std::span<const Lsn> ends, const Database& database,
               const Options& options);

  // Reads up to `bytes_max` bytes into memory before Run.
  void Fill(size_t bytes_max) { reader_.Fill(bytes_max); }
  // Throws Error.
  void Run();

  const LogSource& source() const { return source_; }
  const RestartPoint& point() const { return point_; }
  Lsn end() const { return end_.end(); }
  // Whether a COMMIT or ABORT of the log counts.
  bool Counts(const RecordView& record) const { return IsCovered(record, source_.log_index, ends_); }

  // After Run. What all records state.
  const LogTotals& totals() const { return totals_; }
  const BackwardChecks& checks() const { return checks_; }
  const ChangePlayer& player() const { return player_; }
  // Where records start, ascending: the first that was read, and one of each part of the log.
  std::vector<Lsn> Starts() const;
  // How long the pass took, and waited for its log, until the last change was met that it had to undo or redo. With
  // DL1P that is all.
  struct Ticks {
    uint64_t run = 0;
    uint64_t read = 0;
  };
  Ticks undo() const { return undo_; }
  // The rest, which finds out only which transactions count (analysis, ARIES).
  uint64_t analysis_ticks() const { return run_ticks_ - undo_.run; }

 private:
  bool IsInBackup(uint32_t number) const { return number < point_.number; }
  void Visit(const RecordView& record);
  void VisitEnd(const RecordView& record, Lsn at);
  void VisitCheckpointEnd(const RecordView& record, Lsn at);
  void VisitChange(const RecordView& record, Lsn at);
  void TakeTotals(const RecordView& record, Lsn at);
  void CheckAnchor(const LsnPerLog& durable, Lsn at) const;
  void PrefetchAhead() const;
  Ticks TicksSoFar() const;

  const LogEnd& end_;
  const LogSource source_;
  const RestartPoint point_;
  const std::span<const Lsn> ends_;
  BackwardReader reader_;
  BackwardChecks checks_;
  LogTotals totals_;
  Lsn run_end_at_;
  uint64_t begin_ticks_ = 0;
  uint64_t run_ticks_ = 0;
  Ticks undo_;
  TransactionTable transactions_;
  ChangePlayer player_;
};

}  // namespace dbx
