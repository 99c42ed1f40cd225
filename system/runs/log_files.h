// The log files of a run: created with their headers before the first transaction, found and checked before a
// recovery. Main's thread only. Errors are one line that names the file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/contract.h"
#include "logging/device/emulated_file_system.h"
#include "logging/device/file_system.h"
#include "logging/device/posix_file_system.h"
#include "logging/format.h"
#include "logging/frontier_file.h"
#include "logging/log_reader.h"
#include "logging/log_set.h"
#include "storage/database.h"
#include "system/command_line/options.h"
#include "system/result.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "system/runs/old_runs.h"
#include "system/runs/replication.h"
#include "system/runs/row_checkpoint_files.h"

namespace dbx {

// Of every table's name, columns and sizes, and of the secondary indexes' names.
uint64_t SchemaHash(const Database& database);

// Whether a run takes checkpoints of rows beside its transactions.
bool TakesRowCheckpoints(const Options& options, const LogTraits& traits);

// What identifies a new run, and where its files lie.
struct RunNames {
  uint64_t run_id = 0;
  uint64_t database_id = 0;
  uint64_t schema_hash = 0;
  std::string heap_path;
  std::string gaps_path;
  std::string indexes_path;
};

struct NewLogFiles {
  uint32_t run_number = 0;
  uint64_t run_id = 0;
  RunLocks locks;  // until the run has ended
  std::vector<LogSet::Target> targets;
  std::shared_ptr<FrontierFile> frontier;  // where transactions become durable by epochs
  // Of a scheme that needs pages: the files for further checkpoints, and what the anchor says of the first backup.
  std::shared_ptr<BackupWriter> backup;
  std::optional<BackupAnchor> anchor;
  std::string anchor_path;
  std::vector<std::string> log_paths;  // of its logs, which checkpoints may truncate
  RowCheckpointFiles rows;             // of a scheme with row checkpoints
  std::vector<LogDirectoryInfo> directories;
  uint64_t checkpoint_bytes = 0;  // of a checkpoint, or of that backup
};

// What a new run continues: the state of the database that it was given, which `parent` and its ancestors left.
struct Continuation {
  const OldRun& parent;  // frozen
  const Database& database;
  bool checkpoint = false;  // write the state, so that a recovery needs no ancestors

  // Above everything in the parent's logs, what recovery dropped included.
  Lsn start_lsn() const {
    const uint64_t highest = parent.frozen->highest_lsn.value();
    return Lsn(RoundUp(highest, format::kBlockBytes));
  }
  uint64_t first_sequence() const { return parent.frozen->next_sequence; }
  Stamp first_stamp() const { return parent.frozen->highest_stamp; }
};

// The runs under the log directories of the options, as system/runs/log_directory.h says.
class LogStorage {
 public:
  explicit LogStorage(FileSystem& files) : files_(files) {}

  // A new run's logs, with durable headers. `traits` says what they will hold; if they need pages, a backup of
  // `database`, the state in which the run begins, and its anchor follow. With `continuation` the checkpoint follows,
  // if there is no backup, then `successor` beside the logs of the run that is continued, and the manifest last: when
  // this returns the run is committed, and if it throws it served nothing. `prepare` makes what else the run with these
  // names needs, before that; it may throw.
  NewLogFiles Create(const Options& options, const LogTraits& traits, uint64_t schema_hash,
                     const std::function<void(const RunNames&)>& prepare, Database& database,
                     const Continuation* continuation = nullptr);

  // The run that the options choose, and those that it continues.
  OldRuns Open(const Options& options) { return OpenOldRuns(files_, options); }

  // Makes what was recovered of a run the only thing that anyone will ever recover of it; durable on return. `sources`
  // are its logs, each of which is proved to be durable below `durable`, where a record starts.
  void Freeze(OldRun& run, const std::vector<LogSource>& sources, const std::vector<Lsn>& durable,
              const FrozenRun& frozen);
  // Of a run that is frozen already: the process that froze it may have ended before the file's entry was durable.
  void KeepFrozen(const OldRun& run);

  // Of a run that goes on in its own files: the process that made them may have ended before their names were durable.
  void KeepServed(const OldRun& run);

  // Deletes those that were never served, then the runs of the chain and the older ones; the oldest first, so that what
  // is left still leads to them. Only once a run that starts from a checkpoint is committed. Gives up the locks of
  // those that it deletes. Returns a notice if some cannot be deleted, else an empty text: the new run does without.
  std::string DeleteOldRuns(const Options& options, OldRuns& runs);

  std::vector<LogDirectoryInfo> Describe(const Options& options, const OldRun& run);

  FileSystem& files() const { return files_; }

 private:
  FileSystem& files_;
};

// Over the operating system's files, behind the device that the options ask for.
class FileLogStorage {
 public:
  explicit FileLogStorage(const Options& options);
  FileLogStorage(const FileLogStorage&) = delete;
  FileLogStorage& operator=(const FileLogStorage&) = delete;

  LogStorage& storage() { return storage_; }
  // Of a run that has ended; none without a replica. Throws Error (kIo) where the replica does not have it all.
  std::optional<ReplicationResult> EndReplication();

 private:
  FileSystem& FilesFor(const Options& options);

  PosixFileSystem files_;
  std::optional<EmulatedFileSystem> emulated_;
  std::optional<RunReplication> replication_;
  LogStorage storage_;  // over the last of them that there is
};

// That a run with these options can continue `run`: all that decides what a log means must be as in its logs, or no
// recovery would take the two for a chain. Throws Error(kMismatch).
void CheckContinuable(const OldRun& run, const Options& options);

// That the backup of a run whose scheme has one is of tables as those of `database`, which is paged. Throws
// Error(kMismatch).
void CheckAnchorMatches(const OldRun& run, const Database& database);

// That these logs were written by a scheme with `traits`, over a database with this schema.
void CheckLogsMatch(const OldRun& run, const LogTraits& traits, uint64_t schema_hash);

}  // namespace dbx
