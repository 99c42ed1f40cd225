// The reference's side of runs that continue others, or whose rows are checkpointed while they run: its own parsers for
// `frozen`, `manifest`, `row-anchor` and checkpoints, written from logging/README.md.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "system/reference/reference_replay.h"

namespace dbx::reference {

// The files of one run.
struct RunImage {
  std::vector<FileImage> logs;
  std::vector<FileImage> committed;  // one of each directory that has it
  std::optional<FileImage> frozen;
  std::optional<FileImage> manifest;
  std::optional<FileImage> frontier;
  std::optional<FileImage> row_anchor;
  std::vector<FileImage> checkpoint;    // by part; those that `row_anchor` names, if it names any
  std::optional<FileImage> heap, gaps;  // of a run with a persistent heap (reference_heap.h)
  std::optional<FileImage> anchor;      // of a run that began with a backup (reference_pages.h)
  std::vector<FileImage> backups;       // the parts of the copy that it names, in any order
};

// The logs of a run, from where its anchor begins them, if it has one, up to where it was frozen, if it was. Throws
// Error as ReadLogs does, and for files that do not belong together.
ReferenceLogs ReadRun(const RunImage& run);

// Puts the rows of the run's checkpoint into a database without rows: those of the row checkpoint, if there is one, and
// else those that the manifest names, if there is one. Returns the digest of the state that it was made from, if the
// manifest has one; a row checkpoint is of no state that ever was. Throws Error (kCorrupt, kMismatch).
std::optional<std::pair<uint64_t, uint64_t>> LoadCheckpoint(const RunImage& run, Database& database);

}  // namespace dbx::reference
