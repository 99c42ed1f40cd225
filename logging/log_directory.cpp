#include "logging/log_directory.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "logging/format.h"

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
std::optional<uint32_t> ParseLog(std::string_view name) { return ParseName(name, "log-", ".log", LogFileName); }

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

bool IsOurs(const std::string& name) {
  for (const std::string& other : {std::string(kFrozenFileName), std::string(kManifestFileName)}) {
    if (name == other || name == TemporaryName(other)) return true;
  }
  return ParseLog(name) || ParseCheckpoint(name) || name == kFrontierFileName;
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

// Deletes run directories (DIR/run-NNNN). Locks and looks through all of them before it touches the first.
void DeleteRunDirectories(FileSystem& files, const std::vector<std::string>& run_directories) {
  const RunLocks locks = LockRuns(files, run_directories, FileSystem::LockKind::kExclusive, "delete");
  std::vector<std::string> paths;
  for (const std::string& directory : run_directories) {
    for (std::string& path : DeletableFiles(files, directory)) paths.push_back(std::move(path));
  }
  for (const std::string& path : paths) files.Remove(path);
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
  for (const std::string& name : files.List(run_directory)) {
    const std::optional<uint32_t> index = ParseLog(name);
    if (!index) continue;
    const std::string path = run_directory + "/" + name;
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
  run.manifest_path = directory + "/" + kManifestFileName;
  run.frontier_path = directory + "/" + kFrontierFileName;
}

uint32_t ChooseRun(FileSystem& files, const std::vector<std::string>& log_directories, std::optional<uint32_t> run) {
  const uint32_t newest = HighestRun(files, log_directories);
  if (newest == 0) throw Error(ExitStatus::kIo, "cannot recover: no run in " + Join(log_directories));
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

std::vector<uint32_t> ListRuns(FileSystem& files, const std::string& directory) {
  std::vector<uint32_t> runs;
  for (const std::string& name : files.List(directory)) {
    // Numbers start at 1, so 0 can mean none. A link is not one of ours.
    const std::optional<uint32_t> run = ParseRun(name);
    if (run && *run > 0 && files.KindOf(directory + "/" + name) == Entry::kDirectory) runs.push_back(*run);
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
    const std::string run = directory.substr(directory.find_last_of('/') + 1);
    throw Error(ExitStatus::kIo,
                "cannot " + verb + " " + run + ": another process is using " + directory + "; wait until it has ended");
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
  run.locks = LockRuns(files, run.directories, FileSystem::LockKind::kExclusive, "create");
  for (const std::string& directory : run.directories) files.SyncDirectory(directory);
  for (const std::string& directory : log_directories) files.SyncDirectory(directory);
  for (uint32_t i = 0; i < options.log_count; ++i) {
    run.log_paths.push_back(run.directories[i % run.directories.size()] + "/" + LogFileName(i));
  }
  NameOthers(run);
  return run;
}

std::string CheckpointFileName(uint32_t part) {
  char name[32];
  std::snprintf(name, sizeof name, "checkpoint-%02u.ckp", part);
  return name;
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
    if (files.KindOf(path) == Entry::kDirectory) found.push_back(path);
  }
  return found;
}

void DeleteRun(FileSystem& files, const std::vector<std::string>& log_directories, uint32_t run) {
  DeleteRunDirectories(files, DirectoriesOfRun(files, log_directories, run));
}

RunFiles FindRun(FileSystem& files, const std::vector<std::string>& log_directories, std::optional<uint32_t> run) {
  CheckDirectories(files, log_directories);
  RunFiles found;
  found.number = ChooseRun(files, log_directories, run);
  const std::string name = RunDirectoryName(found.number);
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + name;
    if (files.KindOf(path) != Entry::kDirectory) continue;
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
