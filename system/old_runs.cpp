#include "system/old_runs.h"

#include <algorithm>

#include "base/error.h"
#include "logging/log_directory.h"

namespace dbx {
namespace {

bool IsFile(FileSystem& files, const std::string& path) { return files.KindOf(path) == FileSystem::Entry::kFile; }

[[noreturn]] void Mismatch(const std::string& what) { throw Error(ExitStatus::kMismatch, what); }

// Whether any of the run's directories holds a file of this name.
bool HasFile(FileSystem& files, const Options& options, uint32_t run, const std::string& name) {
  const auto directories = DirectoriesOfRun(files, options.log_dirs, run);
  return std::any_of(directories.begin(), directories.end(),
                     [&](const std::string& directory) { return IsFile(files, directory + "/" + name); });
}

// A header of the run that is intact, if there is any.
std::optional<format::FileHeader> AnyHeader(FileSystem& files, const Options& options, uint32_t run) {
  for (const std::string& directory : DirectoriesOfRun(files, options.log_dirs, run)) {
    for (uint32_t i = 0; i < format::kMaxLogs; ++i) {
      const std::string path = directory + "/" + LogFileName(i);
      if (!IsFile(files, path)) continue;
      try {
        return ReadHeader(*files.Open(path));
      } catch (const Error& error) {
        if (error.status() == ExitStatus::kCorrupt) continue;
        throw;
      }
    }
  }
  return std::nullopt;
}

// Whether anything was ever flushed to one of the run's logs.
bool HasRecords(FileSystem& files, const Options& options, uint32_t run) {
  std::vector<std::byte> block(format::kBlockBytes);
  for (const std::string& directory : DirectoriesOfRun(files, options.log_dirs, run)) {
    for (uint32_t i = 0; i < format::kMaxLogs; ++i) {
      const std::string path = directory + "/" + LogFileName(i);
      if (!IsFile(files, path)) continue;
      const size_t bytes = files.Open(path)->Read(format::kStreamOffset, block);
      if (std::any_of(block.begin(), block.begin() + static_cast<ptrdiff_t>(bytes),
                      [](std::byte byte) { return byte != std::byte{0}; })) {
        return true;
      }
    }
  }
  return false;
}

// See the head of old_runs.h. `runs` are all runs, ascending.
bool WasNeverServed(FileSystem& files, const Options& options, const std::vector<uint32_t>& runs, uint32_t run) {
  if (HasFile(files, options, run, kManifestFileName)) return false;
  // A run is born before its first transaction: one with records has lost its manifest or its headers.
  if (HasRecords(files, options, run)) return false;
  if (const auto header = AnyHeader(files, options, run)) return Continues(*header);
  return std::any_of(runs.begin(), runs.end(),
                     [&](uint32_t other) { return other < run && HasFile(files, options, other, kFrozenFileName); });
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
      manifest.start_lsn != header.start_lsn || manifest.parent_run >= run.number) {
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
      run.frozen->frontier.size() != run.headers.size()) {
    Mismatch(run.frozen_path + "@0: of another run than " + run.paths.front());
  }
  for (const uint64_t lsn : run.frozen->frontier) {
    if (lsn >= header.start_lsn) continue;
    throw Error(ExitStatus::kCorrupt, run.frozen_path + "@0: a frontier before the start of its log");
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
  for (const std::string& path : found.log_paths) {
    run.devices.push_back(files.Open(path));
    run.headers.push_back(ReadHeader(*run.devices.back()));
  }
  CheckSameRun(run.headers, run.paths);
  ReadManifest(files, run);
  ReadFrozen(files, run);
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
      child.header().payload != parent.header().payload) {
    Mismatch(what + ", but their logs are of different kinds");
  }
  if (child.header().start_lsn < parent.frozen->highest_lsn) Mismatch(what + ", but starts at an LSN of its logs");
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
    const auto directories = DirectoriesOfRun(files, options.log_dirs, number);
    if (directories.empty()) break;
    older.push_back(number);
    manifest.reset();
    for (const std::string& directory : directories) {
      const std::string path = directory + "/" + kManifestFileName;
      if (!IsFile(files, path)) continue;
      try {
        manifest = DecodeManifest(files.Map(path).bytes, path);
      } catch (const Error&) {
        break;  // nothing tells which runs are older
      }
      if (manifest->parent_run >= number) manifest.reset();
    }
  }
  std::reverse(older.begin(), older.end());
  return older;
}

}  // namespace dbx
