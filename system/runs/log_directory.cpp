#include "system/runs/log_directory.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/format.h"
#include "system/runs/row_anchor.h"

namespace dbx {
namespace {

using Entry = FileSystem::Entry;

// The number in PREFIX<digits>SUFFIX, with exactly the digits that `name_of` would print; none for any
// other name.
template <class NameOf>
std::optional<uint32_t> ParseName(std::string_view name, std::string_view prefix, std::string_view suffix,
                                  NameOf name_of) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return {};
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || name != name_of(number)) return {};
  return number;
}

std::optional<uint32_t> ParseRun(std::string_view name) { return ParseName(name, "run-", "", RunDirectoryName); }
std::optional<uint32_t> ParseCheckpoint(std::string_view name) {
  return ParseName(name, "checkpoint-", ".ckp", CheckpointFileName);
}
bool IsRowFileName(std::string_view name) {
  for (uint32_t copy = 0; copy < RowAnchor::kCopies; ++copy) {
    const auto name_of = [copy](uint32_t part) { return RowFileName(copy, part); };
    if (ParseName(name, copy == 0 ? "rows-a-" : "rows-b-", ".ckp", name_of)) return true;
  }
  return false;
}
std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

void CheckDirectories(FileSystem& files, const std::vector<std::string>& directories) {
  CHECK(!directories.empty());
  std::set<std::string> seen;
  for (const std::string& directory : directories) {
    if (!seen.insert(files.IdentityOf(directory)).second) {
      throw Error(ExitStatus::kUsage, "log directory " + directory + " is named twice");
    }
  }
}

uint32_t HighestRun(FileSystem& files, const std::vector<std::string>& directories) {
  uint32_t highest = 0;
  for (const std::string& directory : directories) {
    const std::vector<uint32_t> runs = ListRuns(files, directory);
    if (!runs.empty()) highest = std::max(highest, runs.back());
  }
  return highest;
}

// A name that a run gives to one of its files, temporary ones included.
bool IsOurs(std::string name) {
  if (name == kFrontierFileName || name == kHeapFileName || name == kGapsFileName || name == kIndexesFileName ||
      ParseCheckpoint(name) || ParseBackupFileName(name))
    return true;
  const std::string suffix = TemporaryName("");
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name == kFrozenFileName || name == kSuccessorFileName || name == kManifestFileName ||
         name == kCommittedFileName || name == kAnchorFileName || name == kRowAnchorFileName || IsRowFileName(name) ||
         LogIndexOf(name);
}

bool IsRunDirectory(FileSystem& files, const std::string& path) {
  const Entry kind = files.KindOf(path);
  if (kind == Entry::kNone || kind == Entry::kDirectory) return kind == Entry::kDirectory;
  throw Error(ExitStatus::kMismatch, "cannot use " + path + ": it has the name of a run, and is no directory");
}

// The files of a run's directory; refuses when there is anything that no run makes.
std::vector<std::string> DeletableFiles(FileSystem& files, const std::string& run_directory) {
  std::vector<std::string> paths;
  for (const std::string& name : files.List(run_directory)) {
    const std::string path = run_directory + "/" + name;
    if (!IsOurs(name) || files.KindOf(path) != Entry::kFile) {
      throw Error(ExitStatus::kIo, "cannot delete " + run_directory + ": " + name + " is not a log file");
    }
    paths.push_back(path);
  }
  return paths;
}

// The logs of a run without `committed` or `successor` get their temporary names first: without a log of its own name
// it is one that was never served, however many of its logs are left.
void UnnameLogs(FileSystem& files, const std::vector<std::string>& run_directories, std::vector<std::string>& paths) {
  for (std::string& path : paths) {
    if (!LogIndexOf(BaseNameOf(path))) continue;
    files.Rename(path, TemporaryName(path));
    path = TemporaryName(path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (const std::string& directory : run_directories) files.SyncDirectory(directory);
}

// `successor` and `committed` last, once all else is durably deleted: a run that still can be recovered names the run
// that continues it, and one that has lost its logs is never taken for one that was not served. With them `row-anchor`:
// without it, logs that are there still would be replayed over what the run began with, as if they were whole.
void RemoveFiles(FileSystem& files, const std::vector<std::string>& run_directories, std::vector<std::string> paths) {
  const auto is_witness = [](const std::string& path) {
    return BaseNameOf(path) == kSuccessorFileName || BaseNameOf(path) == kCommittedFileName;
  };
  const auto is_last = [&](const std::string& path) {
    return is_witness(path) || BaseNameOf(path) == kRowAnchorFileName;
  };
  if (std::none_of(paths.begin(), paths.end(), is_witness)) UnnameLogs(files, run_directories, paths);
  for (const std::string& path : paths) {
    if (!is_last(path)) files.Remove(path);
  }
  if (std::none_of(paths.begin(), paths.end(), is_last)) return;
  for (const std::string& directory : run_directories) files.SyncDirectory(directory);
  for (const std::string& path : paths) {
    if (is_last(path)) files.Remove(path);
  }
}

// Deletes run directories (DIR/run-NNNN). Locks and looks through all of them before it touches the first.
void DeleteRunDirectories(FileSystem& files, const std::vector<std::string>& run_directories,
                          const std::function<void()>& last_look = {}) {
  const RunLocks locks = LockRuns(files, run_directories, FileSystem::LockKind::kExclusive, "delete");
  if (last_look) last_look();
  std::vector<std::string> paths;
  for (const std::string& directory : run_directories) {
    for (std::string& path : DeletableFiles(files, directory)) paths.push_back(std::move(path));
  }
  RemoveFiles(files, run_directories, paths);
  for (const std::string& directory : run_directories) {
    files.RemoveDirectory(directory);
    files.SyncDirectory(ParentDirectory(directory));
  }
}

std::vector<std::string> AllRunDirectories(FileSystem& files, const std::vector<std::string>& log_directories) {
  std::vector<std::string> all;
  for (const std::string& directory : log_directories) {
    for (uint32_t run : ListRuns(files, directory)) all.push_back(directory + "/" + RunDirectoryName(run));
  }
  return all;
}

// As far as it goes: something else has failed already.
void RemoveDirectories(FileSystem& files, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    try {
      files.RemoveDirectory(directory);
    } catch (const Error&) {
      continue;
    }
  }
}

// Makes DIR/run-NNNN in every directory. False if one was there already; then none is left.
bool TryMakeRunDirectories(FileSystem& files, const std::vector<std::string>& log_directories, RunFiles& run) {
  run.directories.clear();
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + RunDirectoryName(run.number);
    bool made = false;
    try {
      made = files.MakeDirectory(path);
    } catch (const Error&) {
      RemoveDirectories(files, run.directories);
      throw;
    }
    if (!made) {
      RemoveDirectories(files, run.directories);
      return false;
    }
    run.directories.push_back(path);
  }
  return true;
}

// Takes the logs of one run directory into `paths`, by index; empty means not found yet.
void CollectLogs(FileSystem& files, const std::string& run_directory, std::vector<std::string>& paths) {
  for (const std::string& path : FilesOfRun(files, {run_directory})) {
    const std::optional<uint32_t> index = LogIndexOf(BaseNameOf(path));
    if (!index) continue;
    if (*index >= format::kMaxLogs) {
      throw Error(ExitStatus::kMismatch,
                  "unexpected log " + path + ": a run has at most " + std::to_string(format::kMaxLogs) + " logs");
    }
    if (paths.size() <= *index) paths.resize(*index + 1);
    if (!paths[*index].empty()) {
      throw Error(ExitStatus::kMismatch,
                  "log " + std::to_string(*index) + " is there twice: " + paths[*index] + " and " + path);
    }
    paths[*index] = path;
  }
}

void NameOthers(RunFiles& run) {
  const std::string directory = ParentDirectory(run.log_paths.front());
  run.frozen_path = directory + "/" + kFrozenFileName;
  run.successor_path = directory + "/" + kSuccessorFileName;
  run.manifest_path = directory + "/" + kManifestFileName;
  run.frontier_path = directory + "/" + kFrontierFileName;
  run.anchor_path = directory + "/" + kAnchorFileName;
  run.row_anchor_path = directory + "/" + kRowAnchorFileName;
  run.heap_path = directory + "/" + kHeapFileName;
  run.gaps_path = directory + "/" + kGapsFileName;
  run.indexes_path = directory + "/" + kIndexesFileName;
}

uint32_t ChooseRun(FileSystem& files, const std::vector<std::string>& log_directories, std::optional<uint32_t> run) {
  const uint32_t newest = HighestRun(files, log_directories);
  if (newest == 0)
    throw Error(ExitStatus::kIo,
                "cannot recover: no run in " + Join(log_directories) + " (of a cluster-NNNN: add --masters=N)");
  if (!run) return newest;
  for (const std::string& directory : log_directories) {
    const std::vector<uint32_t> runs = ListRuns(files, directory);
    if (std::binary_search(runs.begin(), runs.end(), *run)) return *run;
  }
  throw Error(ExitStatus::kMismatch, "cannot recover: no " + RunDirectoryName(*run) + " in " + Join(log_directories) +
                                         "; the newest is " + RunDirectoryName(newest));
}

}  // namespace

std::string RunDirectoryName(uint32_t run) {
  char name[24];
  std::snprintf(name, sizeof name, "run-%04u", run);
  return name;
}

std::string LogFileName(uint32_t log_index) {
  char name[24];
  std::snprintf(name, sizeof name, "log-%02u.log", log_index);
  return name;
}

std::string BaseNameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::optional<uint32_t> LogIndexOf(const std::string& name) { return ParseName(name, "log-", ".log", LogFileName); }

bool IsFileOfRun(FileSystem& files, const std::string& path) {
  const Entry kind = files.KindOf(path);
  if (kind == Entry::kNone || kind == Entry::kFile) return kind == Entry::kFile;
  throw Error(ExitStatus::kMismatch, "cannot use " + path + ": not a regular file");
}

std::vector<std::string> FilesOfRun(FileSystem& files, const std::vector<std::string>& run_directories) {
  std::vector<std::string> paths;
  for (const std::string& directory : run_directories) {
    for (const std::string& name : files.List(directory)) {
      const std::string path = directory + "/" + name;
      if (IsOurs(name) && IsFileOfRun(files, path)) paths.push_back(path);
    }
  }
  return paths;
}

std::vector<uint32_t> ListRuns(FileSystem& files, const std::string& directory) {
  std::vector<uint32_t> runs;
  for (const std::string& name : files.List(directory)) {
    // Numbers start at 1, so 0 can mean none.
    const std::optional<uint32_t> run = ParseRun(name);
    if (run && *run > 0 && IsRunDirectory(files, directory + "/" + name)) runs.push_back(*run);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

RunLocks LockRuns(FileSystem& files, const std::vector<std::string>& run_directories, FileSystem::LockKind kind,
                  const std::string& verb) {
  RunLocks locks;
  for (const std::string& directory : run_directories) {
    locks.push_back(files.LockDirectory(directory, kind));
    if (locks.back() != nullptr) continue;
    throw Error(ExitStatus::kIo, "cannot " + verb + " " + BaseNameOf(directory) + ": another process is using " +
                                     directory + "; wait until it has ended");
  }
  return locks;
}

RunFiles CreateRun(FileSystem& files, const std::vector<std::string>& log_directories, const NewRunOptions& options) {
  CHECK(options.log_count >= 1 && options.log_count <= format::kMaxLogs);
  if (options.create_missing) {
    for (const std::string& directory : log_directories) CreateDirectories(files, directory);
  }
  CheckDirectories(files, log_directories);
  RunFiles run;
  run.number = HighestRun(files, log_directories) + 1;
  if (options.overwrite) DeleteRunDirectories(files, AllRunDirectories(files, log_directories));
  // Another process may be taking the same number at this moment.
  while (!TryMakeRunDirectories(files, log_directories, run)) ++run.number;
  try {
    run.locks = LockRuns(files, run.directories, FileSystem::LockKind::kExclusive, "create");
    for (const std::string& directory : run.directories) files.SyncDirectory(directory);
    for (const std::string& directory : log_directories) files.SyncDirectory(directory);
  } catch (const Error&) {
    RemoveDirectories(files, run.directories);
    throw;
  }
  CHECK(options.without_logs < run.directories.size());
  const size_t with_logs = run.directories.size() - options.without_logs;
  for (uint32_t i = 0; i < options.log_count; ++i) {
    run.log_paths.push_back(run.directories[i % with_logs] + "/" + LogFileName(i));
  }
  NameOthers(run);
  return run;
}

std::string CheckpointFileName(uint32_t part) {
  char name[32];
  std::snprintf(name, sizeof name, "checkpoint-%02u.ckp", part);
  return name;
}

std::string RowFileName(uint32_t copy, uint32_t part) {
  CHECK(copy < RowAnchor::kCopies);
  char name[32];
  std::snprintf(name, sizeof name, "rows-%c-%02u.ckp", copy == 0 ? 'a' : 'b', part);
  return name;
}

std::string CommittedText(uint64_t run_id) { return "run " + std::to_string(run_id) + "\n"; }

std::optional<uint64_t> RunIdOfCommitted(std::span<const std::byte> bytes) {
  constexpr size_t kNumberAt = 4;
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.erase(text.find_last_not_of('\0') + 1);
  uint64_t run_id = 0;
  if (text.size() > kNumberAt) std::from_chars(text.data() + kNumberAt, text.data() + text.size(), run_id);
  return text == CommittedText(run_id) ? std::optional(run_id) : std::nullopt;
}

std::vector<uint32_t> AllRuns(FileSystem& files, const std::vector<std::string>& log_directories) {
  CheckDirectories(files, log_directories);
  std::set<uint32_t> runs;
  for (const std::string& directory : log_directories) {
    for (const uint32_t run : ListRuns(files, directory)) runs.insert(run);
  }
  return {runs.begin(), runs.end()};
}

std::vector<std::string> DirectoriesOfRun(FileSystem& files, const std::vector<std::string>& log_directories,
                                          uint32_t run) {
  std::vector<std::string> found;
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + RunDirectoryName(run);
    if (IsRunDirectory(files, path)) found.push_back(path);
  }
  return found;
}

void DeleteRun(FileSystem& files, const std::vector<std::string>& log_directories, uint32_t run,
               const std::function<void()>& last_look) {
  DeleteRunDirectories(files, DirectoriesOfRun(files, log_directories, run), last_look);
}

RunFiles FindRun(FileSystem& files, const std::vector<std::string>& log_directories, std::optional<uint32_t> run) {
  CheckDirectories(files, log_directories);
  RunFiles found;
  found.number = ChooseRun(files, log_directories, run);
  const std::string name = RunDirectoryName(found.number);
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + name;
    if (!IsRunDirectory(files, path)) continue;
    found.directories.push_back(path);
    CollectLogs(files, path, found.log_paths);
  }
  if (found.log_paths.empty()) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + name + ": no log in " + Join(found.directories));
  }
  for (uint32_t i = 0; i < found.log_paths.size(); ++i) {
    if (!found.log_paths[i].empty()) continue;
    throw Error(ExitStatus::kMismatch,
                "cannot recover " + name + ": " + LogFileName(i) + " is missing from " + Join(found.directories));
  }
  NameOthers(found);
  return found;
}

}  // namespace dbx
