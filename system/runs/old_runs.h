// The runs that a recovery reads: the newest, or the chosen one, and those that it continues, found and checked before
// any of them is replayed. Main's thread only. Errors are one line that names the file; nothing is written. All of them
// are locked before they are looked at, so that no other process writes, continues or deletes them meanwhile.
//
// A run that was provably never served, since a crash came while it was made (system/runs/run_traces.h), is passed over
// with a notice. The run that is chosen then must not have been continued by one that is lost: `successor` names it.
// --run=N of a recovery looks at no newer run, and at no `successor`: which state is wanted is then the user's choice.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/device/file_system.h"
#include "logging/frontier_file.h"
#include "system/command_line/options.h"
#include "system/result.h"
#include "system/runs/continuation.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "system/runs/row_anchor.h"

namespace dbx {

struct OldRun {
  uint32_t number = 0;
  RunLocks locks;                                     // kShared; kExclusive where it is the one to be continued
  std::vector<std::unique_ptr<BlockDevice>> devices;  // by log; all stripes of one log are one
  std::vector<format::FileHeader> headers;            // by file
  std::vector<std::string> paths;
  std::vector<std::string> directories;  // DIR/run-NNNN
  std::string frozen_path;
  std::string successor_path;
  std::string manifest_path;
  std::string frontier_path;
  std::string anchor_path;
  std::string row_anchor_path;
  std::string heap_path;  // of a run whose scheme has a heap (SchemeInfo::version_heap): both are there
  std::string gaps_path;
  std::string indexes_path;  // of its frozen secondary indexes, if it has any
  std::vector<std::string> committed_paths;
  std::optional<FrozenRun> frozen;          // the run was continued before
  std::optional<RunSuccessor> successor;    // by this one; older versions wrote none
  std::optional<RunManifest> manifest;      // the run continues another
  std::optional<DurableFrontier> frontier;  // its transactions became durable by stamps
  // Of the checkpoint that recovery starts from, by part: the newest of rows, if there is one, or that from which the
  // run started. None: it starts from the run's ancestors, or a fresh load.
  std::vector<std::string> checkpoint_paths;
  std::vector<format::CheckpointPart> checkpoint_parts;
  std::optional<RowAnchor> row_anchor;  // of a run with row checkpoints
  // Of a run whose scheme has a backup (SchemeInfo::needs_pages): recovery starts from it, and reads no run before.
  std::optional<BackupAnchor> anchor;
  std::vector<std::string> backup_directories;  // by part
  std::vector<std::string> backup_paths;        // of the copy that the anchor names: by table, then by part

  const format::FileHeader& header() const { return headers.front(); }
  // What names the newest row checkpoint, or nullptr: none is complete.
  const RowAnchor* rows() const { return row_anchor && row_anchor->names_checkpoint() ? &*row_anchor : nullptr; }
};

// The backup that the anchor of such a run names.
BackupReader OpenBackup(FileSystem& files, const OldRun& run);

// The devices of a run's logs, of those of its files: the same, or all as stripes of one.
std::vector<std::unique_ptr<BlockDevice>> LogDevices(std::vector<std::unique_ptr<BlockDevice>> files,
                                                     uint32_t stripe_bytes);

struct OldRuns {
  // Oldest first. What the first one starts from is a checkpoint, its own backup, or a fresh load.
  std::vector<OldRun> chain;
  std::vector<uint32_t> never_served;  // newer than the last of the chain
  std::vector<std::string> notices;    // a line for each of them

  const OldRun& newest() const { return chain.back(); }
  bool FromCheckpoint() const { return !chain.front().checkpoint_paths.empty(); }
};

// Throws Error: kIo (another process is using one of them, too), kCorrupt, kMismatch (a run of the chain, or one of its
// files, is missing or another one's).
OldRuns OpenOldRuns(FileSystem& files, const Options& options);

// Deletes a run of `never_served`, once another look at it, when it is locked, says the same. Throws Error.
void DeleteNeverServed(FileSystem& files, const Options& options, uint32_t run);

// The runs older than the chain's first that are still there, or half deleted, as far as they name each other by number
// and id; oldest first.
std::vector<uint32_t> OlderRuns(FileSystem& files, const Options& options, const OldRuns& runs);

}  // namespace dbx
