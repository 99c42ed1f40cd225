#include "logging/log_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "logging/device/posix_file.h"
#include "logging/format.h"

namespace dbx {
namespace {

namespace fs = std::filesystem;

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
std::optional<uint32_t> ParseLog(std::string_view name) { return ParseName(name, "log-", ".log", LogFileName); }

// The names in a directory, in order.
std::vector<std::string> Entries(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator at(directory, error);
  std::vector<std::string> names;
  for (; !error && at != fs::directory_iterator(); at.increment(error)) names.push_back(at->path().filename().string());
  if (error) ThrowErrno("read directory", directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool IsKind(const std::string& path, mode_t kind) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == kind;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

struct DeviceAndInode {
  dev_t device;
  ino_t inode;
  auto operator<=>(const DeviceAndInode&) const = default;
};

void CheckDirectories(const std::vector<std::string>& directories) {
  CHECK(!directories.empty());
  std::set<DeviceAndInode> seen;
  for (const std::string& directory : directories) {
    struct stat status {};
    if (::stat(directory.c_str(), &status) != 0) ThrowErrno("use log directory", directory, errno);
    if (!S_ISDIR(status.st_mode)) ThrowErrno("use log directory", directory, ENOTDIR);
    if (!seen.insert({status.st_dev, status.st_ino}).second) {
      throw Error(ExitStatus::kUsage, "log directory " + directory + " is named twice");
    }
  }
}

void CreateDirectories(const std::string& directory) {
  if (directory.empty() || IsKind(directory, S_IFDIR)) return;
  const std::string parent = ParentDirectory(directory);
  if (parent != directory) CreateDirectories(parent);
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) ThrowErrno("create directory", directory, errno);
  SyncDirectory(parent);
}

uint32_t HighestRun(const std::vector<std::string>& directories) {
  uint32_t highest = 0;
  for (const std::string& directory : directories) {
    const std::vector<uint32_t> runs = ListRuns(directory);
    if (!runs.empty()) highest = std::max(highest, runs.back());
  }
  return highest;
}

// The files of a run's directory; refuses when there is anything but log files.
std::vector<std::string> DeletableFiles(const std::string& run_directory) {
  std::vector<std::string> files;
  for (const std::string& name : Entries(run_directory)) {
    const std::string path = run_directory + "/" + name;
    if (!ParseLog(name) || !IsKind(path, S_IFREG)) {
      throw Error(ExitStatus::kIo, "cannot delete " + run_directory + ": " + name + " is not a log file");
    }
    files.push_back(path);
  }
  return files;
}

// Deletes run directories (DIR/run-NNNN). Looks through all of them before it touches the first.
void DeleteRunDirectories(const std::vector<std::string>& run_directories) {
  std::vector<std::string> files;
  for (const std::string& directory : run_directories) {
    for (std::string& file : DeletableFiles(directory)) files.push_back(std::move(file));
  }
  for (const std::string& file : files) {
    if (::unlink(file.c_str()) != 0) ThrowErrno("delete", file, errno);
  }
  for (const std::string& directory : run_directories) {
    if (::rmdir(directory.c_str()) != 0) ThrowErrno("delete", directory, errno);
    SyncDirectory(ParentDirectory(directory));
  }
}

std::vector<std::string> AllRunDirectories(const std::vector<std::string>& log_directories) {
  std::vector<std::string> all;
  for (const std::string& directory : log_directories) {
    for (uint32_t run : ListRuns(directory)) all.push_back(directory + "/" + RunDirectoryName(run));
  }
  return all;
}

// Makes DIR/run-NNNN in every directory. False if one was there already; then none is left.
bool TryMakeRunDirectories(const std::vector<std::string>& log_directories, RunFiles& run) {
  run.directories.clear();
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + RunDirectoryName(run.number);
    if (::mkdir(path.c_str(), 0755) == 0) {
      run.directories.push_back(path);
      continue;
    }
    const int error = errno;
    for (const std::string& made : run.directories) ::rmdir(made.c_str());
    if (error != EEXIST) ThrowErrno("create directory", path, error);
    return false;
  }
  return true;
}

// Takes the logs of one run directory into `paths`, by index; empty means not found yet.
void CollectLogs(const std::string& run_directory, std::vector<std::string>& paths) {
  for (const std::string& name : Entries(run_directory)) {
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

uint32_t ChooseRun(const std::vector<std::string>& log_directories, std::optional<uint32_t> run) {
  const uint32_t newest = HighestRun(log_directories);
  if (newest == 0) throw Error(ExitStatus::kIo, "cannot recover: no run in " + Join(log_directories));
  if (!run) return newest;
  for (const std::string& directory : log_directories) {
    const std::vector<uint32_t> runs = ListRuns(directory);
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

std::vector<uint32_t> ListRuns(const std::string& directory) {
  std::vector<uint32_t> runs;
  for (const std::string& name : Entries(directory)) {
    // Numbers start at 1, so 0 can mean none. A link is not one of ours.
    const std::optional<uint32_t> run = ParseRun(name);
    if (run && *run > 0 && IsKind(directory + "/" + name, S_IFDIR)) runs.push_back(*run);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

RunFiles CreateRun(const std::vector<std::string>& log_directories, const NewRunOptions& options) {
  CHECK(options.log_count >= 1 && options.log_count <= format::kMaxLogs);
  if (options.create_missing) {
    for (const std::string& directory : log_directories) CreateDirectories(directory);
  }
  CheckDirectories(log_directories);
  RunFiles run;
  run.number = HighestRun(log_directories) + 1;
  if (options.overwrite) DeleteRunDirectories(AllRunDirectories(log_directories));
  // Another process may be taking the same number at this moment.
  while (!TryMakeRunDirectories(log_directories, run)) ++run.number;
  for (const std::string& directory : run.directories) SyncDirectory(directory);
  for (const std::string& directory : log_directories) SyncDirectory(directory);
  for (uint32_t i = 0; i < options.log_count; ++i) {
    run.log_paths.push_back(run.directories[i % run.directories.size()] + "/" + LogFileName(i));
  }
  return run;
}

void DeleteRun(const std::vector<std::string>& log_directories, uint32_t run) {
  std::vector<std::string> run_directories;
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + RunDirectoryName(run);
    if (IsKind(path, S_IFDIR)) run_directories.push_back(path);
  }
  DeleteRunDirectories(run_directories);
}

RunFiles FindRun(const std::vector<std::string>& log_directories, std::optional<uint32_t> run) {
  CheckDirectories(log_directories);
  RunFiles found;
  found.number = ChooseRun(log_directories, run);
  const std::string name = RunDirectoryName(found.number);
  for (const std::string& directory : log_directories) {
    const std::string path = directory + "/" + name;
    if (!IsKind(path, S_IFDIR)) continue;
    found.directories.push_back(path);
    CollectLogs(path, found.log_paths);
  }
  if (found.log_paths.empty()) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + name + ": no log in " + Join(found.directories));
  }
  for (uint32_t i = 0; i < found.log_paths.size(); ++i) {
    if (!found.log_paths[i].empty()) continue;
    throw Error(ExitStatus::kMismatch,
                "cannot recover " + name + ": " + LogFileName(i) + " is missing from " + Join(found.directories));
  }
  return found;
}

}  // namespace dbx
