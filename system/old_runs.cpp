#include "system/old_runs.h"

#include <algorithm>

#include "base/error.h"
#include "logging/device/striped_device.h"
#include "logging/log_directory.h"

namespace dbx {
namespace {

bool IsFile(FileSystem& files, const std::string& path) { return files.KindOf(path) == FileSystem::Entry::kFile; }

[[noreturn]] void Mismatch(const std::string& what) { throw Error(ExitStatus::kMismatch, what); }

// The files of this name in the run's directories.
std::vector<std::string> FilesNamed(FileSystem& files, const Options& options, uint32_t run, const std::string& name) {
  std::vector<std::string> paths;
  for (const std::string& directory : DirectoriesOfRun(files, options.log_dirs, run)) {
    if (IsFile(files, directory + "/" + name)) paths.push_back(directory + "/" + name);
  }
  return paths;
}

// Those of the run's logs that are there.
std::vector<std::string> LogsOf(FileSystem& files, const Options& options, uint32_t run) {
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < format::kMaxLogs; ++i) {
    for (std::string& path : FilesNamed(files, options, run, LogFileName(i))) paths.push_back(std::move(path));
  }
  return paths;
}

// A header of the run that is intact, if there is any.
std::optional<format::FileHeader> AnyHeader(FileSystem& files, const Options& options, uint32_t run) {
  for (const std::string& path : LogsOf(files, options, run)) {
    try {
      return ReadHeader(*files.Open(path));
    } catch (const Error& error) {
      if (error.status() != ExitStatus::kCorrupt) throw;
    }
  }
  return std::nullopt;
}

// Whether anything was ever flushed to one of the run's logs.
bool HasRecords(FileSystem& files, const Options& options, uint32_t run) {
  std::vector<std::byte> block(format::kBlockBytes);
  const auto logs = LogsOf(files, options, run);
  return std::any_of(logs.begin(), logs.end(), [&](const std::string& path) {
    const auto end = block.begin() + static_cast<ptrdiff_t>(files.Open(path)->Read(format::kStreamOffset, block));
    return std::any_of(block.begin(), end, [](std::byte byte) { return byte != std::byte{0}; });
  });
}

// See the head of old_runs.h. `runs` are all runs, ascending.
bool WasNeverServed(FileSystem& files, const Options& options, const std::vector<uint32_t>& runs, uint32_t run) {
  if (!FilesNamed(files, options, run, kManifestFileName).empty()) return false;
  // A run is born before its first transaction: one with records has lost its manifest or its headers.
  if (HasRecords(files, options, run)) return false;
  if (const auto header = AnyHeader(files, options, run)) return Continues(*header);
  return std::any_of(runs.begin(), runs.end(), [&](uint32_t other) {
    return other < run && !FilesNamed(files, options, other, kFrozenFileName).empty();
  });
}

// Of the run that `child` continues, which may be half deleted: its manifest, if it has one. Throws Error if anything
// that is left of it is another run's, or if nobody can tell.
std::optional<RunManifest> ManifestOfParent(FileSystem& files, const Options& options, const RunManifest& child) {
  const auto check = [&child](const auto& found, const std::string& path) {
    if (found.run_id == child.parent_run_id && found.database_id == child.database_id) return;
    Mismatch(path + "@0: of another run");
  };
  for (const std::string& path : LogsOf(files, options, child.parent_run)) check(ReadHeader(*files.Open(path)), path);
  std::optional<RunManifest> manifest;
  for (const std::string& path : FilesNamed(files, options, child.parent_run, kManifestFileName)) {
    manifest = DecodeManifest(files.Map(path).bytes, path);
    check(*manifest, path);
  }
  return manifest;
}

void ReadManifest(FileSystem& files, OldRun& run) {
  if (Continues(run.header()) && !IsFile(files, run.manifest_path)) {
    Mismatch("cannot recover " + RunDirectoryName(run.number) + ": " + run.manifest_path + " is missing");
  }
  if (!IsFile(files, run.manifest_path)) return;
  run.manifest = DecodeManifest(files.Map(run.manifest_path).bytes, run.manifest_path);
  const format::FileHeader& header = run.header();
  const RunManifest& manifest = *run.manifest;
  if (manifest.database_id != header.database_id || manifest.run_id != header.run_id ||
      manifest.parent_run_id != header.parent_run_id || manifest.parent_run != header.parent_run ||
      manifest.start_lsn.value() != header.start_lsn || manifest.parent_run >= run.number) {
    Mismatch(run.manifest_path + "@0: the manifest of another run than " + run.paths.front());
  }
  run.checkpoint_paths.resize(manifest.parts.size());
  for (uint32_t i = 0; i < manifest.parts.size(); ++i) {
    for (const std::string& directory : run.directories) {
      const std::string path = directory + "/" + CheckpointFileName(i);
      if (IsFile(files, path)) run.checkpoint_paths[i] = path;
    }
    if (!run.checkpoint_paths[i].empty()) continue;
    Mismatch(run.manifest_path + "@0: names " + CheckpointFileName(i) + ", which is missing");
  }
}

void ReadFrozen(FileSystem& files, OldRun& run) {
  if (!IsFile(files, run.frozen_path)) return;
  run.frozen = DecodeFrozen(files.Map(run.frozen_path).bytes, run.frozen_path);
  const format::FileHeader& header = run.header();
  if (run.frozen->database_id != header.database_id || run.frozen->run_id != header.run_id ||
      run.frozen->frontier.size() != run.devices.size()) {
    Mismatch(run.frozen_path + "@0: of another run than " + run.paths.front());
  }
  for (const Lsn lsn : run.frozen->frontier) {
    if (lsn >= Lsn(header.start_lsn)) continue;
    throw Error(ExitStatus::kCorrupt, run.frozen_path + "@0: a frontier before the start of its log");
  }
}

void ReadDurableFrontier(FileSystem& files, OldRun& run) {
  if (!IsFile(files, run.frontier_path)) return;
  run.frontier = ReadFrontier(files.Map(run.frontier_path).bytes, run.header().run_id, run.frontier_path);
  if (run.frontier->lsns.size() != run.devices.size()) {
    throw Error(ExitStatus::kCorrupt, run.frontier_path + "@0: a frontier of another number of logs");
  }
}

RunLocks LockRun(FileSystem& files, const Options& options, uint32_t run, FileSystem::LockKind kind) {
  return LockRuns(files, DirectoriesOfRun(files, options.log_dirs, run), kind,
                  options.continue_run ? "continue" : "recover");
}

OldRun OpenRun(FileSystem& files, const Options& options, uint32_t number, RunLocks locks) {
  const RunFiles found = FindRun(files, options.log_dirs, number);
  OldRun run;
  run.number = number;
  run.locks = std::move(locks);
  run.paths = found.log_paths;
  run.directories = found.directories;
  run.frozen_path = found.frozen_path;
  run.manifest_path = found.manifest_path;
  run.frontier_path = found.frontier_path;
  for (const std::string& path : found.log_paths) {
    run.devices.push_back(files.Open(path));
    run.headers.push_back(ReadHeader(*run.devices.back()));
  }
  CheckSameRun(run.headers, run.paths);
  run.devices = LogDevices(std::move(run.devices), run.header().stripe_bytes);
  ReadManifest(files, run);
  ReadFrozen(files, run);
  ReadDurableFrontier(files, run);
  return run;
}

// The run that `child` continues.
OldRun OpenParent(FileSystem& files, const Options& options, const OldRun& child) {
  const uint32_t number = child.manifest->parent_run;
  const std::string what = RunDirectoryName(child.number) + " continues " + RunDirectoryName(number);
  if (DirectoriesOfRun(files, options.log_dirs, number).empty()) Mismatch(what + ", which is missing");
  OldRun parent = OpenRun(files, options, number, LockRun(files, options, number, FileSystem::LockKind::kShared));
  if (parent.header().run_id != child.manifest->parent_run_id ||
      parent.header().database_id != child.manifest->database_id) {
    Mismatch(what + ", but " + parent.paths.front() + " is of another run");
  }
  if (!parent.frozen) Mismatch(what + ", but " + parent.frozen_path + " is missing");
  if (child.header().schema_hash != parent.header().schema_hash || child.header().scheme != parent.header().scheme ||
      child.header().payload != parent.header().payload || ConfigText(child.header()) != ConfigText(parent.header())) {
    Mismatch(what + ", but their logs are of different kinds");
  }
  if (Lsn(child.header().start_lsn) < parent.frozen->highest_lsn) {
    Mismatch(what + ", but starts at an LSN of its logs");
  }
  return parent;
}

uint32_t ChooseServedRun(FileSystem& files, const Options& options, OldRuns& runs) {
  runs = {};
  const std::vector<uint32_t> all = AllRuns(files, options.log_dirs);
  const auto exists = [&](uint32_t run) { return std::binary_search(all.begin(), all.end(), run); };
  if (options.run && exists(*options.run) && WasNeverServed(files, options, all, *options.run)) {
    Mismatch("cannot recover " + RunDirectoryName(*options.run) +
             ": a crash came before it was born, and nothing was served from it; leave --run out");
  }
  if (options.run && !exists(*options.run)) return FindRun(files, options.log_dirs, options.run).number;
  for (auto run = all.rbegin(); run != all.rend() && (!options.run || *run > *options.run); ++run) {
    if (!WasNeverServed(files, options, all, *run)) {
      if (!options.run) return *run;
      if (!options.continue_run) continue;
      Mismatch("cannot continue " + RunDirectoryName(*options.run) + ": " + RunDirectoryName(*run) +
               " is newer and was served; leave --run out to continue that one");
    }
    runs.never_served.push_back(*run);
    runs.notices.push_back(RunDirectoryName(*run) + " was never served, a crash came before it was born: passed over");
  }
  if (options.run) return *options.run;
  return FindRun(files, options.log_dirs, std::nullopt).number;
}

// Another process may bear a run upon the chosen one until that is locked; then the choice is another.
void OpenChosen(FileSystem& files, const Options& options, OldRuns& runs) {
  const auto kind = options.continue_run ? FileSystem::LockKind::kExclusive : FileSystem::LockKind::kShared;
  while (runs.chain.empty()) {
    const uint32_t chosen = ChooseServedRun(files, options, runs);
    RunLocks locks = LockRun(files, options, chosen, kind);
    if (ChooseServedRun(files, options, runs) == chosen) {
      runs.chain.push_back(OpenRun(files, options, chosen, std::move(locks)));
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<BlockDevice>> LogDevices(std::vector<std::unique_ptr<BlockDevice>> files,
                                                     uint32_t stripe_bytes) {
  if (stripe_bytes == 0) return files;
  std::vector<std::unique_ptr<BlockDevice>> log;
  log.push_back(std::make_unique<StripedDevice>(std::move(files), format::kStreamOffset, stripe_bytes));
  return log;
}

OldRuns OpenOldRuns(FileSystem& files, const Options& options) {
  OldRuns runs;
  OpenChosen(files, options, runs);
  while (runs.chain.back().manifest && runs.chain.back().checkpoint_paths.empty()) {
    runs.chain.push_back(OpenParent(files, options, runs.chain.back()));
  }
  std::reverse(runs.chain.begin(), runs.chain.end());
  return runs;
}

std::vector<uint32_t> OlderRuns(FileSystem& files, const Options& options, const OldRuns& runs) {
  std::vector<uint32_t> older;
  std::optional<RunManifest> manifest = runs.chain.front().manifest;
  while (manifest) {
    const uint32_t number = manifest->parent_run;
    if (DirectoriesOfRun(files, options.log_dirs, number).empty()) break;
    try {
      manifest = ManifestOfParent(files, options, *manifest);
    } catch (const Error& error) {
      if (error.status() == ExitStatus::kIo) throw;
      break;  // it stays, and nothing tells which runs are older
    }
    older.push_back(number);
    if (manifest && manifest->parent_run >= number) break;
  }
  std::reverse(older.begin(), older.end());
  return older;
}

}  // namespace dbx
