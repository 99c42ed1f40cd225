// Fuzzy checkpoints of a paged database (differential logging, Lee, Kim, Cha, ICDE 2001, sections 3.2 and 3.3,
// algorithm 2): transactions go on while the pages are copied to the backup's older copy. The steps of one:
//
//    1 ask the log where recovery would have to begin: at the reserved positions, or at the first changes of active
//      transactions
//    2 the flag is set: from here on aborts log what they undo
//    3 BEGIN into each log; then the next number and the pages' count, at one moment (checkpoint_clock.h)
//    4 wait until each place below BEGIN is filled: those changes are in the pages that are copied
//    5 each page, under its latch: the checkpoint has reached it; if it is dirty for the copy, its images go to a
//      buffer; outside of the latch the buffer goes to the file
//    6 the flag is taken back
//    7 sync all parts of the copy
//    8 END into each log, with the active transactions of that log, which are listed before any END has its place
//    9 wait until all ENDs are durable: each change that is in the copy is durable in its log then
//   10 the anchor, durably: now recovery begins with this copy, and the other one may be overwritten
//   11 the logs are truncated below what this copy needs, if that was asked for: each file's whole blocks below the one
//      with that position, behind its headers
//
// A checkpoint for which there is no space (ENOSPC) changes nothing that a recovery sees: the anchor keeps naming the
// older copy. The pages' numbers must stay true, so all of them count as reached; and as they may be half written in
// the copy, all are dirty for it. The next checkpoint has the next number and the same copy. Any other failure is
// final, and so is one of the anchor's new name, after which it cannot be told which of the two anchors a crash leaves.
// A log that has failed, or is being stopped, lets the checkpoint be given up; it reports its failure itself.
//
// What is needed never decreases: a transaction announces a position that it has read before, and may be seen only when
// a later one has been reserved. What it appends lies behind all positions that were reserved when it was not seen
// (active_transactions.h), so that the older anchor's position holds, and the announced one may have been truncated.
//
// Step 11 after step 10: until the new anchor is durable a crash leaves the older one, which needs more of the logs. It
// is not made durable itself; a crash leaves any of the blocks. So nothing below what an anchor needs may be read, be
// it there or not. Without space for it (a file system may need some) the next checkpoint tries again; where the file
// system cannot do it the logs stay as long as they are.
//
// Threads: one, which alone calls the log and the file system meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/backup/backup_options.h"
#include "logging/backup/checkpoint_pace.h"
#include "logging/backup/checkpoint_writer.h"
#include "logging/backup/log_truncation.h"
#include "logging/backup/page_scan.h"
#include "logging/device/file_system.h"
#include "storage/database.h"

namespace dbx {

// What a checkpoint asks of a log. The verbs that wait throw Error when the log has failed, or is being stopped.
class CheckpointedLog {
 public:
  virtual ~CheckpointedLog() = default;

  // Step 1. By log: the position reserved, or that of the first change of an active transaction if it is lower.
  virtual std::vector<Lsn> NeededFrom() = 0;
  // By worker: all of its transactions with lower sequence numbers have ended.
  virtual std::vector<uint64_t> EndedBelow() = 0;
  // Step 3. Where each BEGIN starts. Waits for ring space.
  virtual std::vector<Lsn> AppendBegin(uint32_t number) = 0;
  // Step 4. Waits until each place below these positions is filled.
  virtual void AwaitFilled(const std::vector<Lsn>& positions) = 0;
  // Step 8. Where each END starts. Waits for ring space.
  virtual std::vector<Lsn> AppendEnd(uint32_t number) = 0;
  // Step 9. Waits until the records at these positions are durable.
  virtual void AwaitDurable(const std::vector<Lsn>& positions) = 0;
  // In all logs, since their start.
  virtual uint64_t ReservedBytes() const = 0;
  // So many of them have been truncated.
  virtual void CountDiscarded(uint64_t bytes) = 0;
};

class FuzzyCheckpoint : public CheckpointWriter {
 public:
  // The log, the database and the files outlive this.
  FuzzyCheckpoint(CheckpointedLog& log, const BackupOptions& options);

  // The next checkpoint. It is given up, its flag taken back and its anchor not written, if `stopped` says that the run
  // ends, or if the log throws an Error. Throws Error of the files. No other may follow then, or after one given up.
  Outcome Write(const std::function<bool()>& stopped) override;

  // The durable one.
  const BackupAnchor& anchor() const { return anchor_; }
  // Why there was no space, the last time.
  const std::string& no_space_because() const override { return no_space_because_; }
  // The logs were to be truncated, and their file system cannot do it.
  bool cannot_discard() const override { return truncation_.cannot_discard(); }
  void CountInto(CheckpointCounters& counters) const override;
  // Since the run began, of failed checkpoints too.
  uint64_t pages() const { return scan_.pages(); }
  uint64_t bytes() const { return backup_->written_bytes() - bytes_before_; }
  const LatencyHistogram& latches() const { return scan_.latches(); }

 private:
  struct GivenUp {};

  // Steps 1 to 10 for `next`, which knows its copy. False: there was no space.
  bool TakeSteps(BackupAnchor& next, const std::function<bool()>& stopped);
  void CopyPages(const BackupAnchor& next, const std::function<bool()>& stopped);
  void TakeBack(const BackupAnchor& next);
  // False if `write` fails for lack of space.
  bool HasSpace(auto&& write);

  Database& database_;
  CheckpointedLog& log_;
  const std::shared_ptr<BackupWriter> backup_;
  FileSystem& files_;
  const std::string anchor_path_;
  LogTruncation truncation_;
  const uint64_t bytes_before_;
  BackupAnchor anchor_;
  PageScan scan_;
  CheckpointPace pace_;
  std::string no_space_because_;
};

// Writes the backup with which a run begins, number 0 in copy 0, of a database that no transaction uses yet; durable on
// return. `identity` has the ids, the logs' starts as begin, end and needed, and the workers' sequence numbers; the
// rest of it is filled in, and the result returned. Throws Error (kNoSpace, kIo).
BackupAnchor WriteInitialBackup(Database& database, BackupWriter& backup, BackupAnchor identity);

// Of a paged database.
BackupShape ShapeOf(const Database& database, uint64_t run_id, std::vector<std::string> directories);

}  // namespace dbx
