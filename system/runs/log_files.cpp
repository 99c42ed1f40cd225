#include "system/runs/log_files.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/host.h"
#include "logging/backup/fuzzy_checkpoint.h"
#include "logging/device/striped_device.h"
#include "logging/log_tail.h"
#include "storage/digest.h"
#include "system/command_line/parse_device.h"
#include "system/command_line/parse_options.h"
#include "system/runs/checkpoint.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "system/runs/slow_progress.h"

namespace dbx {
namespace {

format::Payload PayloadOf(const LogTraits& traits) {
  switch (traits.payload) {
    case PayloadKind::kData:
      return format::Payload::kData;
    case PayloadKind::kCommand:
      return traits.needs_multi_version ? format::Payload::kVersionedCommand : format::Payload::kCommand;
    case PayloadKind::kNone:
      break;
  }
  return format::Payload::kNone;
}

DeviceOptions DeviceOptionsOf(const Options& options) {
  DeviceOptions device;
  device.engine = options.io_engine == "uring"    ? IoEngine::kUring
                  : options.io_engine == "pwrite" ? IoEngine::kPwrite
                                                  : IoEngine::kAuto;
  device.sync = !options.log_no_flush;
  return device;
}

// Bytes to preallocate per log: what the run can write at most, by its limit, its time or its number of transactions,
// each taken generously. A run that writes more makes its files grow.
uint64_t PreallocatedBytes(const Options& options, const LogTraits& traits, uint32_t logs) {
  if (traits.version_heap) return format::kStreamOffset;  // a header alone
  const bool command = traits.payload == PayloadKind::kCommand;
  const double bytes_per_txn = command ? 256 : 4096;
  const double bytes_per_second = command ? 600e6 : 2.5e9;
  const double timed = (options.seconds + options.warmup_seconds) * bytes_per_second;
  const double counted =
      static_cast<double>(options.max_txns_per_thread + options.warmup) * options.thread_cnt * bytes_per_txn;
  const double expected = options.seconds > 0 ? timed : timed + counted;
  const auto limit = static_cast<double>(options.log_limit_bytes);
  const auto per_log = static_cast<uint64_t>(std::min(expected, limit) / logs);
  return (per_log / format::kBlockBytes + 256) * format::kBlockBytes + format::kStreamOffset;
}

// A scheme with one log has a stripe of it in each directory.
uint32_t StripesOf(const Options& options, const LogTraits& traits) {
  if (traits.version_heap && options.log_dirs.size() > 1) {
    throw Error(ExitStatus::kUsage,
                std::string(traits.name) + " keeps its heap in one directory: name one in --log_dir");
  }
  if (!traits.single_stream) return 1;
  if (options.log_dirs.size() > format::kMaxLogs) {
    throw Error(ExitStatus::kUsage, std::string(traits.name) + " stripes its log over at most " +
                                        std::to_string(format::kMaxLogs) + " directories; name fewer in --log_dir");
  }
  return static_cast<uint32_t>(options.log_dirs.size());
}

std::vector<LogDirectoryInfo> DescribeAll(FileSystem& files, const std::vector<std::string>& directories,
                                          const DeviceOptions& device) {
  std::vector<LogDirectoryInfo> infos;
  for (const std::string& directory : directories) {
    const DirectoryKind kind = files.Describe(directory, device);
    infos.push_back({kind.path, kind.kind, kind.file_system, kind.io_engine, kind.emulation});
  }
  return infos;
}

// The parts of a header that the options decide.
RunIdentity IdentityOf(const Options& options, const LogTraits& traits, uint64_t schema_hash) {
  RunIdentity identity;
  identity.database_id = RandomId();
  identity.run_id = RandomId();
  identity.scheme = traits.scheme;
  identity.payload = PayloadOf(traits);
  identity.log_count = options.num_logger;
  identity.ring_bytes = LogStream::RingBytes(options.log_buffer_size);
  identity.schema_hash = schema_hash;
  identity.config = IdentityText(options);
  return identity;
}

// Both copies, durable when it returns.
void WriteHeader(BlockDevice& device, const format::FileHeader& header) {
  alignas(format::kBlockBytes) std::byte bytes[format::kStreamOffset];
  EncodeHeader(header, bytes);
  device.StartWrite(0, bytes);
  device.Complete(true);
}

// Every log with its header, durable, under a temporary name; a line on stderr says how far it is when that takes long.
void CreateLogs(FileSystem& files, const RunFiles& run, const RunIdentity& identity, DeviceOptions device_options,
                size_t directories, NewLogFiles& result) {
  SlowProgress progress("preparing the logs", "--log_limit bounds their size",
                        identity.log_count * device_options.preallocate_bytes, host::MonotonicNanos());
  device_options.zeros_written = [&progress](uint64_t bytes) {
    const std::string line = progress.Advance(bytes, host::MonotonicNanos());
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
  std::vector<std::unique_ptr<BlockDevice>> devices;
  for (uint32_t i = 0; i < identity.log_count; ++i) {
    device_options.named = run.log_paths[i];
    devices.push_back(files.Create(TemporaryName(run.log_paths[i]), device_options));
    WriteHeader(*devices.back(), MakeHeader(identity, i));
  }
  devices = LogDevices(std::move(devices), identity.stripe_bytes);
  for (uint32_t i = 0; i < devices.size(); ++i) {
    result.targets.push_back({std::move(devices[i]), static_cast<uint32_t>(i % directories)});
  }
}

// A log has its name only with its header in it, and none has it before all are there and all else that the run needs:
// what a crash leaves is told from damage that way. The names commit a run that continues no other.
void NameLogs(FileSystem& files, const RunFiles& run) {
  for (const std::string& path : run.log_paths) files.Rename(TemporaryName(path), path);
  for (const std::string& directory : run.directories) files.SyncDirectory(directory);
}

// From here on the run may be served. Its logs may be lost later, all of them, and it is missed then.
void MarkCommitted(FileSystem& files, const std::vector<std::string>& run_directories, uint64_t run_id) {
  const std::string text = CommittedText(run_id);
  for (const std::string& directory : run_directories) {
    WriteFileAtomically(files, directory + "/" + kCommittedFileName, std::as_bytes(std::span(text)));
  }
}

// The file of the durable frontier, with what was durable before the run's first transaction.
std::shared_ptr<FrontierFile> CreateFrontier(FileSystem& files, const RunFiles& run, const RunIdentity& identity,
                                             DeviceOptions device_options, const Continuation* continuation) {
  device_options.preallocate_bytes = 256 * format::kBlockBytes;
  auto frontier = std::make_shared<FrontierFile>(files.Create(run.frontier_path, device_options), identity.run_id);
  const std::vector<Lsn> starts(identity.log_count, identity.start_lsn);
  frontier->Append(continuation == nullptr ? Stamp() : continuation->first_stamp(), starts);
  return frontier;
}

// The backup with which the run begins, and then the anchor that names it.
void WriteFirstBackup(FileSystem& files, const RunFiles& run, const RunIdentity& identity, const Options& options,
                      uint64_t first_sequence, Database& database, NewLogFiles& result) {
  const bool durable = !options.log_no_flush;
  // All directories, or the last ones, which have no logs then.
  std::vector<std::string> directories = run.directories;
  if (options.backup_dirs > 0) directories.erase(directories.begin(), directories.end() - options.backup_dirs);
  result.backup =
      std::make_shared<BackupWriter>(files, ShapeOf(database, identity.run_id, std::move(directories)), durable);
  BackupAnchor anchor;
  anchor.database_id = identity.database_id;
  anchor.run_id = identity.run_id;
  anchor.method = DiffMethodNamed(options.diff_method).value();
  anchor.begin.assign(result.targets.size(), identity.start_lsn);
  anchor.end = anchor.needed = anchor.begin;
  anchor.sequences.assign(options.thread_cnt, first_sequence);
  result.anchor = WriteInitialBackup(database, *result.backup, std::move(anchor));
  result.anchor_path = run.anchor_path;
  result.log_paths = run.log_paths;
  result.checkpoint_bytes = result.backup->written_bytes();
  WriteFileAtomically(files, run.anchor_path, EncodeAnchor(*result.anchor));
}

RowCheckpointFiles RowFilesOf(const Options& options, const RunFiles& run, const RunIdentity& identity, size_t logs) {
  RowCheckpointFiles rows;
  rows.database_id = identity.database_id;
  rows.run_id = identity.run_id;
  rows.schema_hash = identity.schema_hash;
  rows.device = {.engine = IoEngine::kPwrite, .sync = !options.log_no_flush};
  rows.directories = run.directories;
  rows.anchor_path = run.row_anchor_path;
  if (options.log_truncation) {
    rows.truncated = {run.log_paths, std::vector(logs, identity.start_lsn), identity.stripe_bytes};
  }
  return rows;
}

// It names no checkpoint yet.
void WriteFirstRowAnchor(FileSystem& files, const Options& options, const RowCheckpointFiles& rows,
                         std::vector<Lsn> starts, uint64_t first_sequence) {
  RowAnchor anchor;
  anchor.database_id = rows.database_id;
  anchor.run_id = rows.run_id;
  anchor.truncates = options.log_truncation;
  anchor.start = anchor.end = std::move(starts);
  anchor.sequences.assign(options.thread_cnt, first_sequence);
  WriteFileAtomically(files, rows.anchor_path, EncodeRowAnchor(anchor));
}

std::vector<format::CheckpointPart> WriteCheckpoint(FileSystem& files, const RunFiles& run, const RunIdentity& identity,
                                                    const Database& database) {
  const auto parts = static_cast<uint32_t>(run.directories.size());
  std::vector<format::CheckpointPart> written;
  for (uint32_t i = 0; i < parts; ++i) {
    written.push_back(
        WriteCheckpointPart(files, run.directories[i] + "/" + CheckpointFileName(i), {.engine = IoEngine::kPwrite},
                            {identity.database_id, identity.run_id, identity.schema_hash, i, parts}, database));
  }
  return written;
}

// Of a run that nothing names yet. Something else has failed already, and such a run does no harm.
void DeleteQuietly(FileSystem& files, const Options& options, uint32_t run) {
  try {
    DeleteRun(files, options.log_dirs, run);
  } catch (const Error&) {
    return;
  }
}

RunIdentity ContinuingIdentity(RunIdentity identity, const Continuation& continuation) {
  const format::FileHeader& parent = continuation.parent.header();
  identity.database_id = parent.database_id;
  identity.parent_run_id = parent.run_id;
  identity.parent_run = continuation.parent.number;
  identity.start_lsn = continuation.start_lsn();
  return identity;
}

RunManifest ManifestOf(const RunIdentity& identity, const Continuation& continuation) {
  RunManifest manifest;
  manifest.database_id = identity.database_id;
  manifest.run_id = identity.run_id;
  manifest.parent_run_id = identity.parent_run_id;
  manifest.parent_run = identity.parent_run;
  manifest.start_lsn = identity.start_lsn;
  manifest.first_sequence = continuation.first_sequence();
  manifest.first_stamp = continuation.first_stamp();
  return manifest;
}

RunSuccessor SuccessorOf(const RunManifest& child, uint32_t child_run) {
  return {child.database_id, child.parent_run_id, child.run_id, child_run};
}

// Of each file what lies between the two, in whole blocks; and its headers, where nothing behind them is durable.
void RewriteLogs(FileSystem& files, const OldRun& run, const std::vector<Lsn>& from, const std::vector<Lsn>& to) {
  const format::FileHeader& header = run.header();
  const size_t count = run.paths.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t log = header.stripe_bytes == 0 ? i : 0;
    const auto offset_of = [&](Lsn at) {
      const uint64_t bytes = at - Lsn(header.start_lsn);
      return format::kStreamOffset +
             (header.stripe_bytes == 0 ? bytes : BytesInStripe(bytes, i, count, header.stripe_bytes));
    };
    const uint64_t begin = from[log] == Lsn(header.start_lsn) ? 0 : offset_of(from[log]);
    const uint64_t end = offset_of(to[log]) + format::kBlockBytes - 1;
    files.Rewrite(run.paths[i], begin / format::kBlockBytes * format::kBlockBytes,
                  end / format::kBlockBytes * format::kBlockBytes);
    ReadHeader(*files.Open(run.paths[i]));
  }
}

// The page cache may have given up, between the recovery and the rewrite, what the disk does not have.
void CheckStillThere(const LogSource& source, Lsn from, Lsn to) {
  if (RecordsLead(source, from, to)) return;
  throw Error(ExitStatus::kIo, "cannot continue " + PlaceOf(source, from) +
                                   ": what the page cache held of it is not on the disk, as a sync had failed; recover "
                                   "it again");
}

// A row's control word has so many bits for them, of which no engine uses half.
void CheckRoomForTimestamps(const Continuation& continuation) {
  if (TimestampOf(continuation.first_stamp()) <= Timestamp(format::kTimestampMax / 2)) return;
  throw Error(ExitStatus::kCorrupt, "cannot continue " + continuation.parent.paths.front() +
                                        "@0: a timestamp in its log leaves no room for those to come");
}

// Takes the first line out of the text. No stream: one without memory takes a line for none.
std::string_view TakeLine(std::string_view& text) {
  if (text.empty()) return "nothing";
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

bool TakesRowCheckpoints(const Options& options, const LogTraits& traits) {
  return traits.row_checkpoints && (options.checkpoint_interval_ms != 0 || options.checkpoint_bytes != 0);
}

uint64_t SchemaHash(const Database& database) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto mix = [&hash](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xFF) * 0x100000001b3u;
  };
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    const Schema& schema = database.table(TableId(i)).schema();
    mix(schema.name);
    mix(std::to_string(schema.tuple_bytes));
    for (const Column& column : schema.columns) {
      mix(column.name);
      mix(std::to_string(column.offset_bytes) + "+" + std::to_string(column.size_bytes));
    }
  }
  for (const auto& index : database.secondary_indexes()) mix(index->name());
  return hash;
}

NewLogFiles LogStorage::Create(const Options& options, const LogTraits& traits, uint64_t schema_hash,
                               const std::function<void(const RunNames&)>& prepare, Database& database,
                               const Continuation* continuation) {
  if (continuation != nullptr && traits.needs_multi_version) CheckRoomForTimestamps(*continuation);
  if (options.backup_dirs > 0 && !traits.needs_pages) {
    throw Error(ExitStatus::kUsage,
                "BACKUP_DIRS is for log schemes with a backup, and " + std::string(traits.name) + " has none");
  }
  NewRunOptions run_options;
  const uint32_t stripes = StripesOf(options, traits);
  run_options.log_count = options.num_logger * stripes;
  run_options.without_logs = options.backup_dirs;
  run_options.create_missing = std::find(options.given.begin(), options.given.end(), "log_dir") == options.given.end();
  run_options.overwrite = options.log_overwrite;
  RunFiles run = CreateRun(files_, options.log_dirs, run_options);

  RunIdentity identity = IdentityOf(options, traits, schema_hash);
  identity.log_count = run_options.log_count;
  if (stripes > 1) identity.stripe_bytes = static_cast<uint32_t>(options.stripe_unit_bytes);
  identity.row_checkpoints = TakesRowCheckpoints(options, traits);
  if (continuation != nullptr) identity = ContinuingIdentity(identity, *continuation);
  const DeviceOptions described = DeviceOptionsOf(options);
  DeviceOptions device_options = described;
  device_options.preallocate_bytes = PreallocatedBytes(options, traits, identity.log_count);
  if (stripes > 1) device_options.preallocate_bytes += options.stripe_unit_bytes;
  NewLogFiles result;
  result.run_number = run.number;
  result.run_id = identity.run_id;
  std::optional<RunManifest> manifest;
  try {
    result.directories = DescribeAll(files_, run.directories, described);
    if (traits.needs_epochs) {
      result.frontier = CreateFrontier(files_, run, identity, device_options, continuation);
    }
    CreateLogs(files_, run, identity, device_options, options.log_dirs.size() - options.backup_dirs, result);
    if (continuation != nullptr) manifest = ManifestOf(identity, *continuation);
    if (traits.needs_pages) {
      const uint64_t first_sequence = continuation == nullptr ? 0 : continuation->first_sequence();
      WriteFirstBackup(files_, run, identity, options, first_sequence, database, result);
    } else if (continuation != nullptr && continuation->checkpoint) {
      manifest->parts = WriteCheckpoint(files_, run, identity, continuation->database);
      for (const format::CheckpointPart& part : manifest->parts) result.checkpoint_bytes += part.bytes;
      const Digest128 digest = DigestOf(continuation->database, options.thread_cnt);
      manifest->digest.emplace(digest.low, digest.high);
    }
    if (identity.row_checkpoints) {
      result.rows = RowFilesOf(options, run, identity, result.targets.size());
      const uint64_t first_sequence = continuation == nullptr ? 0 : continuation->first_sequence();
      WriteFirstRowAnchor(files_, options, result.rows, std::vector(result.targets.size(), identity.start_lsn),
                          first_sequence);
    }
    prepare({identity.run_id, identity.database_id, schema_hash, run.heap_path, run.gaps_path, run.indexes_path});
    NameLogs(files_, run);
    if (!manifest) MarkCommitted(files_, run.directories, identity.run_id);
  } catch (const Error&) {
    result.targets.clear();
    result.frontier.reset();
    result.backup.reset();
    run.locks.clear();
    DeleteQuietly(files_, options, run.number);
    throw;
  }
  // From here on it cannot be told whether `successor` or the manifest is durable: what they name must stay.
  if (manifest) {
    WriteFileAtomically(files_, continuation->parent.successor_path,
                        EncodeSuccessor(SuccessorOf(*manifest, run.number)));
    WriteFileAtomically(files_, run.manifest_path, EncodeManifest(*manifest));
    MarkCommitted(files_, run.directories, identity.run_id);
  }
  result.locks = std::move(run.locks);
  return result;
}

// What was recovered may be in the page cache alone: its writer was killed before a sync, or a sync failed, after which
// Linux shows what the disk lacks and lets every later sync succeed. So whatever no record proves to be durable is made
// dirty again, in place and with the same bytes, which no crash can tear on a device that writes sectors whole; or,
// where a file is short, it is made anew. A proof may itself be in the cache alone, but what it says is true: it was
// written after the syncs that it speaks of.
//
// The newest run of a chain is enough. Its ancestors were frozen this way, each before the manifest of the next, and
// every step of that ended by a sync that succeeded. A checkpoint was synced before the manifest that names it, and so
// were the headers of a run before any record of it.
void LogStorage::Freeze(OldRun& run, const std::vector<LogSource>& sources, const std::vector<Lsn>& durable,
                        const FrozenRun& frozen) {
  RewriteLogs(files_, run, durable, frozen.frontier);
  for (size_t i = 0; i < sources.size(); ++i) CheckStillThere(sources[i], durable[i], frozen.frontier[i]);
  if (run.frontier) {
    const uint64_t end = run.frontier->blocks * sizeof(format::FrontierBlock);
    files_.Rewrite(run.frontier_path, end - sizeof(format::FrontierBlock), end);
  }
  if (run.manifest) WriteFileAtomically(files_, run.manifest_path, EncodeManifest(*run.manifest));
  for (const std::string& directory : run.directories) files_.SyncDirectory(directory);
  WriteFileAtomically(files_, run.frozen_path, EncodeFrozen(frozen));
  run.frozen = frozen;
}

void LogStorage::KeepFrozen(const OldRun& run) {
  WriteFileAtomically(files_, run.frozen_path, EncodeFrozen(*run.frozen));
}

void LogStorage::KeepServed(const OldRun& run) {
  for (const std::string& directory : run.directories) files_.SyncDirectory(directory);
  MarkCommitted(files_, run.directories, run.header().run_id);
  for (const std::string& directory : run.directories) files_.SyncDirectory(ParentDirectory(directory));
}

std::string LogStorage::DeleteOldRuns(const Options& options, OldRuns& runs) {
  std::vector<uint32_t> left;
  for (OldRun& run : runs.chain) {
    left.push_back(run.number);
    run.locks.clear();
  }
  try {
    const std::vector<uint32_t> older = OlderRuns(files_, options, runs);
    left.insert(left.begin(), older.begin(), older.end());
    for (const uint32_t run : runs.never_served) DeleteNeverServed(files_, options, run);
    for (; !left.empty(); left.erase(left.begin())) DeleteRun(files_, options.log_dirs, left.front());
  } catch (const Error& error) {
    std::string names;
    for (const uint32_t number : left) names += " " + RunDirectoryName(number);
    return std::string(error.what()) + "; no recovery needs these any more, delete them by hand:" + names;
  }
  return "";
}

std::vector<LogDirectoryInfo> LogStorage::Describe(const Options& options, const OldRun& run) {
  return DescribeAll(files_, run.directories, DeviceOptionsOf(options));
}

FileLogStorage::FileLogStorage(const Options& options) : storage_(FilesFor(options)) {}

FileSystem& FileLogStorage::FilesFor(const Options& options) {
  FileSystem* files = &files_;
  const std::optional<DeviceProfile> profile = ParseDevice(options.log_device);
  if (profile) files = &emulated_.emplace(files_, *profile, options.log_dirs);
  if (options.replicate_to.empty()) return *files;
  return replication_.emplace(*files, options).files();
}

std::optional<ReplicationResult> FileLogStorage::EndReplication() {
  if (!replication_) return std::nullopt;
  return replication_->End();
}

void CheckContinuable(const OldRun& run, const Options& options) {
  const std::string ours = IdentityText(options);
  std::string_view their_text = ConfigText(run.header()), our_text = ours;
  while (!their_text.empty() || !our_text.empty()) {
    const std::string their_line(TakeLine(their_text)), our_line(TakeLine(our_text));
    if (their_line == our_line) continue;
    throw Error(ExitStatus::kMismatch, "cannot continue " + run.paths.front() + "@0: its log says " + their_line +
                                           ", and here it is " + our_line +
                                           "; leave that out and it is taken from the log");
  }
}

void CheckLogsMatch(const OldRun& run, const LogTraits& traits, uint64_t schema_hash) {
  const format::FileHeader& header = run.header();
  const std::string& file = run.paths.front();
  if (header.scheme != static_cast<uint8_t>(traits.scheme) ||
      header.payload != static_cast<uint8_t>(PayloadOf(traits))) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + file +
                                           "@0: written by another log scheme or payload (a command of HEKATON has "
                                           "timestamps, others have none); leave --log, --log_type and --cc out and "
                                           "they are taken from the log");
  }
  if (HasRowCheckpoints(run.header()) && !traits.row_checkpoints) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + file + "@0: it is replayed over no checkpoint of rows, as " +
                                           run.row_anchor_path + " names one");
  }
  if (traits.needs_epochs && !run.frontier) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + file + "@0: " + run.frontier_path + " is missing");
  }
  if (header.schema_hash != schema_hash) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + file + "@0: written over tables of another shape");
  }
}

void CheckAnchorMatches(const OldRun& run, const Database& database) {
  const auto matches = [](const BackupAnchor::OfTable& of_table, const Table& table) {
    return of_table.tuple_bytes == table.tuple_bytes() && table.pages() != nullptr &&
           of_table.rows_per_page == table.pages()->rows_per_page();
  };
  const std::vector<BackupAnchor::OfTable>& tables = run.anchor->tables;
  bool all_match = tables.size() == database.table_count();
  for (uint16_t i = 0; all_match && i < tables.size(); ++i) all_match = matches(tables[i], database.table(TableId(i)));
  if (all_match) return;
  throw Error(ExitStatus::kMismatch,
              "cannot recover " + run.anchor_path + "@0: it names a backup of tables of another shape");
}

}  // namespace dbx
