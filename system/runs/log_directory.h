// The directories of runs: where a new run's logs go, and which files make up the run to recover.
//
// Under each directory of --log_dir lies one `run-NNNN` per run, and log i of a run is `log-II.log` in directory i mod
// (number of directories); what continues runs (continuation.h, checkpoint.h), a run's backup and anchor
// (logging/backup/), and its row checkpoints and their anchor (row_anchor.h) lie there too. A run's number is one more
// than the highest in any directory, so numbers are never used again, not even after their run was overwritten in the
// same call. Nothing here opens a log. All errors are one line that names the path. Threads: main's only, before and
// after a run.
//
// What cannot be looked at is not absent: every call throws Error(kIo) then. What has the name of a run and is no
// directory, or that of a run's file and is no regular file (a symbolic link, say), is refused with Error(kMismatch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "logging/device/file_system.h"

namespace dbx {

using RunLocks = std::vector<DirectoryLock>;

struct RunFiles {
  uint32_t number = 0;
  std::vector<std::string> directories;  // DIR/run-NNNN, one per log directory that has it
  std::vector<std::string> log_paths;    // by log index
  // Beside log 0; whether they are there is another question.
  std::string frozen_path;
  std::string successor_path;
  std::string manifest_path;
  std::string frontier_path;
  std::string anchor_path;
  std::string row_anchor_path;
  std::string heap_path;
  std::string gaps_path;
  std::string indexes_path;
  RunLocks locks;  // of a new run: kExclusive
};

std::string RunDirectoryName(uint32_t run);   // run-0007
std::string LogFileName(uint32_t log_index);  // log-03.log

std::string CheckpointFileName(uint32_t part);          // checkpoint-03.ckp
std::string RowFileName(uint32_t copy, uint32_t part);  // rows-b-03.ckp, of copy 1
inline constexpr char kFrozenFileName[] = "frozen";
inline constexpr char kSuccessorFileName[] = "successor";
inline constexpr char kManifestFileName[] = "manifest";
inline constexpr char kFrontierFileName[] = "frontier";
inline constexpr char kHeapFileName[] = "heap.pm";         // a persistent heap of versions
inline constexpr char kGapsFileName[] = "gaps.log";        // and the log of the stamps that count in it
inline constexpr char kIndexesFileName[] = "indexes.pm";   // and its frozen secondary indexes
inline constexpr char kCommittedFileName[] = "committed";  // in every directory of the run

// `committed` says "run ID", and zeros follow; the ID that these bytes of it have, or none if they are damaged.
std::string CommittedText(uint64_t run_id);
std::optional<uint64_t> RunIdOfCommitted(std::span<const std::byte> bytes);

// The numbers of the runs in all directories, ascending, each once.
std::vector<uint32_t> AllRuns(FileSystem& files, const std::vector<std::string>& log_directories);
// DIR/run-NNNN of this run, where it is there.
std::vector<std::string> DirectoriesOfRun(FileSystem& files, const std::vector<std::string>& log_directories,
                                          uint32_t run);
// Whether a run's file is there.
bool IsFileOfRun(FileSystem& files, const std::string& path);
// The paths of the run's files in these directories, temporary ones included; not those with names that no run gives.
std::vector<std::string> FilesOfRun(FileSystem& files, const std::vector<std::string>& run_directories);
// The part of a path behind the last slash.
std::string BaseNameOf(const std::string& path);
// The I of log-II.log; none for any other name.
std::optional<uint32_t> LogIndexOf(const std::string& name);

// The numbers of the runs in one directory, ascending. Throws Error(kIo) when it is missing or no directory.
std::vector<uint32_t> ListRuns(FileSystem& files, const std::string& directory);

struct NewRunOptions {
  uint32_t log_count = 1;
  uint32_t without_logs = 0;    // so many of the last directories
  bool create_missing = false;  // make the log directories themselves, as for the default ./logs
  bool overwrite = false;       // delete all older runs in them first
};

// Locks directories of runs (DIR/run-NNNN), all or none. A process that writes a run, continues or deletes it holds it
// alone; processes that read it share it. Throws Error(kIo) "cannot VERB run-NNNN: ..." when another process is in the
// way.
RunLocks LockRuns(FileSystem& files, const std::vector<std::string>& run_directories, FileSystem::LockKind kind,
                  const std::string& verb);

// Makes and locks the directories of a new run, durably, and names its files; creating these is the device's work.
// Throws Error: kUsage (a directory named twice), kIo, kNoSpace; then no directory of the run is left.
RunFiles CreateRun(FileSystem& files, const std::vector<std::string>& log_directories, const NewRunOptions& options);

// Deletes a run: its files and its directories. Before anything is deleted all of it is locked and looked through;
// another process, or anything that no run makes, lets it refuse with Error(kIo). `last_look` is called once it is
// locked; if it throws, nothing is deleted.
void DeleteRun(FileSystem& files, const std::vector<std::string>& log_directories, uint32_t run,
               const std::function<void()>& last_look = {});

// Finds the files of run `run`, or of the newest run. Throws Error: kIo when a directory cannot be read or no
// run is there at all; kMismatch when the chosen run is not there, has no log, lacks one or has one twice.
// (That the last logs are missing only the headers can tell.)
RunFiles FindRun(FileSystem& files, const std::vector<std::string>& log_directories, std::optional<uint32_t> run);

}  // namespace dbx
