#include "system/runs/old_runs.h"

#include <algorithm>

#include "base/error.h"
#include "logging/device/striped_device.h"
#include "logging/schemes.h"
#include "system/runs/log_directory.h"
#include "system/runs/run_traces.h"

namespace dbx {
namespace {

[[noreturn]] void Mismatch(const std::string& what) { throw Error(ExitStatus::kMismatch, what); }

bool WasNeverServed(FileSystem& files, const Options& options, uint32_t run) {
  return dbx::WasNeverServed(files, DirectoriesOfRun(files, options.log_dirs, run));
}

// Of the run that `child` continues, which may be half deleted: its manifest, if it has one. Throws Error if anything
// that is left of it is another run's, or cannot be read.
std::optional<RunManifest> ManifestOfParent(FileSystem& files, const Options& options, const RunManifest& child) {
  const auto check = [&child](const auto& found, const std::string& path) {
    if (found.run_id == child.parent_run_id && found.database_id == child.database_id) return;
    Mismatch(path + "@0: of another run");
  };
  std::optional<RunManifest> manifest;
  for (const std::string& path : FilesOfRun(files, DirectoriesOfRun(files, options.log_dirs, child.parent_run))) {
    const std::string name = BaseNameOf(path);
    if (LogIndexOf(name)) check(ReadHeader(*files.Open(path)), path);
    if (name == kFrozenFileName) check(DecodeFrozen(files.Map(path).bytes, path), path);
    if (name == kSuccessorFileName) check(DecodeSuccessor(files.Map(path).bytes, path), path);
    if (name != kManifestFileName) continue;
    manifest = DecodeManifest(files.Map(path).bytes, path);
    check(*manifest, path);
  }
  return manifest;
}

// The files of a checkpoint, wherever in the run's directories they are.
void FindCheckpoint(FileSystem& files, OldRun& run, const std::string& named_by,
                    const std::vector<format::CheckpointPart>& parts, auto&& name_of) {
  run.checkpoint_parts = parts;
  run.checkpoint_paths.resize(parts.size());
  for (uint32_t i = 0; i < parts.size(); ++i) {
    for (const std::string& directory : run.directories) {
      const std::string path = directory + "/" + name_of(i);
      if (IsFileOfRun(files, path)) run.checkpoint_paths[i] = path;
    }
    if (!run.checkpoint_paths[i].empty()) continue;
    Mismatch(named_by + "@0: names " + name_of(i) + ", which is missing");
  }
}

// The anchor of row checkpoints: the newest one stands for whatever the run started from.
void ReadRowAnchor(FileSystem& files, OldRun& run) {
  const bool is_there = IsFileOfRun(files, run.row_anchor_path);
  if (is_there != HasRowCheckpoints(run.header())) {
    Mismatch("cannot recover " + RunDirectoryName(run.number) + ": " + run.row_anchor_path +
             (is_there ? " is there, and its logs are those of a run without" : " is missing"));
  }
  if (!is_there) return;
  run.row_anchor = DecodeRowAnchor(files.Map(run.row_anchor_path).bytes, run.row_anchor_path);
  const format::FileHeader& header = run.header();
  const RowAnchor& anchor = *run.row_anchor;
  if (anchor.database_id != header.database_id || anchor.run_id != header.run_id) {
    Mismatch(run.row_anchor_path + "@0: the anchor of another run than " + run.paths.front());
  }
  if (anchor.start.size() != run.devices.size()) {
    Mismatch(run.row_anchor_path + "@0: the anchor of another number of logs than " + run.paths.front());
  }
  for (const Lsn lsn : anchor.start) {
    if (lsn >= Lsn(header.start_lsn)) continue;
    throw Error(ExitStatus::kCorrupt, run.row_anchor_path + "@0: a position before the start of its log");
  }
  if (run.rows() == nullptr) return;
  FindCheckpoint(files, run, run.row_anchor_path, anchor.parts,
                 [&anchor](uint32_t part) { return RowFileName(anchor.copy, part); });
}

void ReadManifest(FileSystem& files, OldRun& run) {
  const bool has_manifest = IsFileOfRun(files, run.manifest_path);
  if (Continues(run.header()) && !has_manifest) {
    Mismatch("cannot recover " + RunDirectoryName(run.number) + ": " + run.manifest_path + " is missing");
  }
  if (!has_manifest) return;
  run.manifest = DecodeManifest(files.Map(run.manifest_path).bytes, run.manifest_path);
  const format::FileHeader& header = run.header();
  const RunManifest& manifest = *run.manifest;
  if (manifest.database_id != header.database_id || manifest.run_id != header.run_id ||
      manifest.parent_run_id != header.parent_run_id || manifest.parent_run != header.parent_run ||
      manifest.start_lsn.value() != header.start_lsn || manifest.parent_run >= run.number) {
    Mismatch(run.manifest_path + "@0: the manifest of another run than " + run.paths.front());
  }
  if (run.rows() == nullptr) FindCheckpoint(files, run, run.manifest_path, manifest.parts, CheckpointFileName);
}

void ReadFrozen(FileSystem& files, OldRun& run) {
  if (!IsFileOfRun(files, run.frozen_path)) return;
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

void ReadSuccessor(FileSystem& files, OldRun& run) {
  if (!IsFileOfRun(files, run.successor_path)) return;
  run.successor = DecodeSuccessor(files.Map(run.successor_path).bytes, run.successor_path);
  const format::FileHeader& header = run.header();
  if (run.successor->database_id != header.database_id || run.successor->run_id != header.run_id ||
      run.successor->child_run <= run.number) {
    Mismatch(run.successor_path + "@0: of another run than " + run.paths.front());
  }
}

// `committed` names its run, so that a lone log is not taken for the run of the directory in which it is found.
void CheckCommitted(FileSystem& files, OldRun& run) {
  for (const std::string& directory : run.directories) {
    const std::string path = directory + "/" + kCommittedFileName;
    if (!IsFileOfRun(files, path)) continue;
    const std::optional<uint64_t> run_id = RunIdOfCommitted(files.Map(path).bytes);
    if (!run_id) throw Error(ExitStatus::kCorrupt, "cannot read " + path + "@0: it names no run");
    if (run_id != run.header().run_id) {
      Mismatch("cannot recover " + path + "@0: it names another run than " + run.paths.front());
    }
    run.committed_paths.push_back(path);
  }
}

void ReadDurableFrontier(FileSystem& files, OldRun& run) {
  if (!IsFileOfRun(files, run.frontier_path)) return;
  run.frontier = ReadFrontier(files.Map(run.frontier_path).bytes, run.header().run_id, run.frontier_path);
  if (run.frontier->lsns.size() != run.devices.size()) {
    throw Error(ExitStatus::kCorrupt, run.frontier_path + "@0: a frontier of another number of logs");
  }
}

// The directory of the run in which part `part` of its backup lies, whatever the order of its directories is now.
std::string BackupDirectoryOf(FileSystem& files, const OldRun& run, uint32_t part) {
  const std::string name = BackupFileName(run.anchor->copy, 0, part);
  for (const std::string& directory : run.directories) {
    if (IsFileOfRun(files, directory + "/" + name)) return directory;
  }
  Mismatch(run.anchor_path + "@0: names " + name + ", which is missing");
}

void FindBackup(FileSystem& files, OldRun& run) {
  const BackupAnchor& anchor = *run.anchor;
  for (uint32_t part = 0; part < anchor.parts; ++part) {
    run.backup_directories.push_back(BackupDirectoryOf(files, run, part));
  }
  const BackupShape shape = ShapeOf(anchor, run.backup_directories);
  for (uint32_t table = 0; table < anchor.tables.size(); ++table) {
    for (uint32_t part = 0; part < anchor.parts; ++part) {
      const std::string path = shape.PathOf(anchor.copy, table, part);
      if (!IsFileOfRun(files, path)) Mismatch(run.anchor_path + "@0: names " + path + ", which is missing");
      run.backup_paths.push_back(path);
    }
  }
}

void ReadAnchor(FileSystem& files, OldRun& run) {
  const format::FileHeader& header = run.header();
  if (!InfoOf(static_cast<format::Scheme>(header.scheme)).needs_pages) return;
  if (!IsFileOfRun(files, run.anchor_path)) {
    Mismatch("cannot recover " + RunDirectoryName(run.number) + ": " + run.anchor_path + " is missing");
  }
  run.anchor = DecodeAnchor(files.Map(run.anchor_path).bytes, run.anchor_path);
  const BackupAnchor& anchor = *run.anchor;
  if (anchor.database_id != header.database_id || anchor.run_id != header.run_id) {
    Mismatch(run.anchor_path + "@0: the anchor of another run than " + run.paths.front());
  }
  if (anchor.begin.size() != run.devices.size()) {
    Mismatch(run.anchor_path + "@0: the anchor of another number of logs than " + run.paths.front());
  }
  // The backup may have directories of its own (BACKUP_DIRS).
  if (anchor.parts > run.directories.size() || anchor.tables.empty()) {
    Mismatch(run.anchor_path + "@0: names a backup of " + std::to_string(anchor.parts) + " parts of " +
             std::to_string(anchor.tables.size()) + " tables, and the run lies in " +
             std::to_string(run.directories.size()) + " directories");
  }
  for (const Lsn lsn : anchor.needed) {
    if (lsn >= Lsn(header.start_lsn)) continue;
    throw Error(ExitStatus::kCorrupt, run.anchor_path + "@0: a position before the start of its log");
  }
  FindBackup(files, run);
}

void FindHeap(FileSystem& files, const OldRun& run) {
  if (!InfoOf(static_cast<format::Scheme>(run.header().scheme)).version_heap) return;
  for (const std::string& path : {run.heap_path, run.gaps_path}) {
    if (!IsFileOfRun(files, path)) {
      Mismatch("cannot recover " + RunDirectoryName(run.number) + ": " + path + " is missing");
    }
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
  run.successor_path = found.successor_path;
  run.manifest_path = found.manifest_path;
  run.frontier_path = found.frontier_path;
  run.anchor_path = found.anchor_path;
  run.row_anchor_path = found.row_anchor_path;
  run.heap_path = found.heap_path;
  run.gaps_path = found.gaps_path;
  run.indexes_path = found.indexes_path;
  for (const std::string& path : found.log_paths) {
    run.devices.push_back(files.Open(path));
    run.headers.push_back(ReadHeader(*run.devices.back()));
  }
  CheckSameRun(run.headers, run.paths);
  run.devices = LogDevices(std::move(run.devices), run.header().stripe_bytes);
  CheckCommitted(files, run);
  ReadRowAnchor(files, run);
  ReadManifest(files, run);
  ReadFrozen(files, run);
  ReadSuccessor(files, run);
  ReadDurableFrontier(files, run);
  ReadAnchor(files, run);
  FindHeap(files, run);
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
  // One of a lower number was an attempt that a crash cut short.
  if (parent.successor && parent.successor->child_run >= child.number &&
      parent.successor->child_run_id != child.header().run_id) {
    Mismatch(what + ", but " + parent.successor_path + " names another run that does");
  }
  if (child.header().schema_hash != parent.header().schema_hash || child.header().scheme != parent.header().scheme ||
      child.header().payload != parent.header().payload || ConfigText(child.header()) != ConfigText(parent.header())) {
    Mismatch(what + ", but their logs are of different kinds");
  }
  if (Lsn(child.header().start_lsn) < parent.frozen->highest_lsn) {
    Mismatch(what + ", but starts at an LSN of its logs");
  }
  return parent;
}

// The same of a run that no other process makes at this moment.
bool IsPassedOver(FileSystem& files, const Options& options, uint32_t run) {
  if (!WasNeverServed(files, options, run)) return false;
  const RunLocks locks = LockRun(files, options, run, FileSystem::LockKind::kShared);
  return WasNeverServed(files, options, run);
}

uint32_t ChooseServedRun(FileSystem& files, const Options& options, OldRuns& runs) {
  runs = {};
  const std::vector<uint32_t> all = AllRuns(files, options.log_dirs);
  const auto exists = [&](uint32_t run) { return std::binary_search(all.begin(), all.end(), run); };
  if (options.run && exists(*options.run) && WasNeverServed(files, options, *options.run)) {
    Mismatch("cannot recover " + RunDirectoryName(*options.run) +
             ": a crash came while it was made, and nothing was served from it; leave --run out");
  }
  if (options.run && !exists(*options.run)) return FindRun(files, options.log_dirs, options.run).number;
  if (options.run && !options.continue_run) return *options.run;
  for (auto run = all.rbegin(); run != all.rend() && (!options.run || *run > *options.run); ++run) {
    if (!IsPassedOver(files, options, *run)) {
      if (!options.run) return *run;
      Mismatch("cannot continue " + RunDirectoryName(*options.run) + ": " + RunDirectoryName(*run) +
               " is newer and was served; leave --run out to continue that one");
    }
    runs.never_served.push_back(*run);
    runs.notices.push_back(RunDirectoryName(*run) + " was never served, a crash came while it was made: passed over");
  }
  if (options.run) return *options.run;
  if (all.empty()) return FindRun(files, options.log_dirs, std::nullopt).number;
  Mismatch("cannot recover " + RunDirectoryName(all.back()) +
           ": a crash came while it was made, and nothing was served from it or from any older run");
}

// That no run was served that continues the chosen one: such a run would have been chosen, so it would be lost.
void CheckSuccessor(FileSystem& files, const Options& options, const OldRuns& runs, const OldRun& run) {
  if (!run.successor) return;
  if (!run.frozen) Mismatch("cannot recover " + RunDirectoryName(run.number) + ": " + run.frozen_path + " is missing");
  if (options.run && !options.continue_run) return;
  const uint32_t child = run.successor->child_run;
  const std::vector<std::string> directories = DirectoriesOfRun(files, options.log_dirs, child);
  std::string lost = directories.empty() ? "is missing" : "has lost its logs";
  for (const std::string& path : FilesOfRun(files, directories)) {
    if (!LogIndexOf(BaseNameOf(path))) continue;
    const uint64_t id = ReadHeader(*files.Open(path)).run_id;
    if (id == run.successor->child_run_id && std::ranges::count(runs.never_served, child) == 1) return;
    lost = "is now another run";
  }
  const std::string verb = options.continue_run ? "continue " : "recover ";
  Mismatch("cannot " + verb + RunDirectoryName(run.number) + ": " + RunDirectoryName(child) + " continued it, and " +
           lost + "; put it back, or give it up by deleting " + run.successor_path);
}

// Another process may continue the chosen run until that is locked; then the choice is another.
void OpenChosen(FileSystem& files, const Options& options, OldRuns& runs) {
  const auto kind = options.continue_run ? FileSystem::LockKind::kExclusive : FileSystem::LockKind::kShared;
  while (runs.chain.empty()) {
    const uint32_t chosen = ChooseServedRun(files, options, runs);
    RunLocks locks = LockRun(files, options, chosen, kind);
    if (ChooseServedRun(files, options, runs) == chosen) {
      runs.chain.push_back(OpenRun(files, options, chosen, std::move(locks)));
      CheckSuccessor(files, options, runs, runs.chain.back());
    }
  }
}

}  // namespace

BackupReader OpenBackup(FileSystem& files, const OldRun& run) {
  const BackupAnchor& anchor = *run.anchor;
  return BackupReader(files, ShapeOf(anchor, run.backup_directories), anchor.copy, anchor.number, PagesOf(anchor));
}

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
  const auto needs_parent = [](const OldRun& run) {
    return run.manifest && run.checkpoint_paths.empty() && !run.anchor;
  };
  while (needs_parent(runs.chain.back())) runs.chain.push_back(OpenParent(files, options, runs.chain.back()));
  std::reverse(runs.chain.begin(), runs.chain.end());
  return runs;
}

void DeleteNeverServed(FileSystem& files, const Options& options, uint32_t run) {
  DeleteRun(files, options.log_dirs, run, [&] {
    if (WasNeverServed(files, options, run)) return;
    throw Error(ExitStatus::kIo, "cannot delete " + RunDirectoryName(run) + ": it was served meanwhile");
  });
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
