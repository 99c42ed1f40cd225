#include "system/log_files.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/host.h"
#include "logging/device/posix_file_system.h"
#include "logging/file_header.h"
#include "logging/log_directory.h"
#include "system/slow_progress.h"

namespace dbx {
namespace {

format::Scheme SchemeOf(const LogTraits& traits) {
  if (traits.name == "LOG_SERIAL") return format::Scheme::kSerial;
  if (traits.name == "LOG_TAURUS") return format::Scheme::kTaurus;
  return format::Scheme::kNone;
}

format::Payload PayloadOf(const LogTraits& traits) {
  switch (traits.payload) {
    case PayloadKind::kData:
      return format::Payload::kData;
    case PayloadKind::kCommand:
      return format::Payload::kCommand;
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
  const bool command = traits.payload == PayloadKind::kCommand;
  const double bytes_per_txn = command ? 256 : 4096;
  const double bytes_per_second = command ? 600e6 : 2.5e9;
  const double expected = options.seconds > 0 ? options.seconds * bytes_per_second
                                              : static_cast<double>(options.max_txns_per_thread + options.warmup) *
                                                    options.thread_cnt * bytes_per_txn;
  const auto limit = static_cast<double>(options.log_limit_bytes);
  const auto per_log = static_cast<uint64_t>(std::min(expected, limit) / logs);
  return (per_log / format::kBlockBytes + 256) * format::kBlockBytes + format::kStreamOffset;
}

std::vector<LogDirectoryInfo> DescribeAll(FileSystem& files, const std::vector<std::string>& directories,
                                          const DeviceOptions& device) {
  std::vector<LogDirectoryInfo> infos;
  for (const std::string& directory : directories) {
    const DirectoryKind kind = files.Describe(directory, device);
    infos.push_back({kind.path, kind.kind, kind.file_system, kind.io_engine});
  }
  return infos;
}

}  // namespace

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

namespace {

// The parts of a header that the options decide.
RunIdentity IdentityOf(const Options& options, const LogTraits& traits, uint64_t schema_hash) {
  RunIdentity identity;
  identity.database_id = RandomId();
  identity.run_id = RandomId();
  identity.scheme = SchemeOf(traits);
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

NewLogFiles CreateFiles(FileSystem& file_system, const Options& options, const LogTraits& traits,
                        uint64_t schema_hash) {
  const uint32_t logs = options.num_logger;
  NewRunOptions run_options;
  run_options.log_count = logs;
  run_options.create_missing = std::find(options.given.begin(), options.given.end(), "log_dir") == options.given.end();
  run_options.overwrite = options.log_overwrite;
  const RunFiles files = CreateRun(file_system, options.log_dirs, run_options);

  const RunIdentity identity = IdentityOf(options, traits, schema_hash);
  DeviceOptions device_options = DeviceOptionsOf(options);
  NewLogFiles result;
  result.run_number = files.number;
  result.run_id = identity.run_id;
  result.directories = DescribeAll(file_system, files.directories, device_options);
  device_options.preallocate_bytes = PreallocatedBytes(options, traits, logs);
  SlowProgress progress("preparing the logs", "--log_limit bounds their size", logs * device_options.preallocate_bytes,
                        host::MonotonicNanos());
  device_options.zeros_written = [&progress](uint64_t bytes) {
    const std::string line = progress.Advance(bytes, host::MonotonicNanos());
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
  try {
    for (uint32_t i = 0; i < logs; ++i) {
      auto device = file_system.Create(files.log_paths[i], device_options);
      WriteHeader(*device, MakeHeader(identity, i));
      result.targets.push_back({std::move(device), static_cast<uint32_t>(i % options.log_dirs.size())});
    }
  } catch (const Error&) {
    result.targets.clear();
    DeleteRun(file_system, options.log_dirs, files.number);
    throw;
  }
  return result;
}

OldLogFiles OpenFiles(FileSystem& file_system, const Options& options) {
  const RunFiles files = FindRun(file_system, options.log_dirs, options.run);
  OldLogFiles logs;
  logs.run_number = files.number;
  logs.paths = files.log_paths;
  logs.directories = DescribeAll(file_system, files.directories, DeviceOptionsOf(options));
  for (const std::string& path : files.log_paths) {
    logs.devices.push_back(file_system.Open(path));
    logs.headers.push_back(ReadHeader(*logs.devices.back()));
  }
  CheckSameRun(logs.headers, logs.paths);
  return logs;
}

}  // namespace

NewLogFiles LogStorage::Create(const Options& options, const LogTraits& traits, uint64_t schema_hash) {
  return CreateFiles(files_, options, traits, schema_hash);
}

OldLogFiles LogStorage::Open(const Options& options) { return OpenFiles(files_, options); }

LogStorage& FileLogStorage() {
  static PosixFileSystem files;
  static LogStorage storage(files);
  return storage;
}

void CheckLogsMatch(const OldLogFiles& logs, const LogTraits& traits, uint64_t schema_hash) {
  const format::FileHeader& header = logs.headers.front();
  const std::string& file = logs.paths.front();
  if (header.scheme != static_cast<uint8_t>(SchemeOf(traits)) ||
      header.payload != static_cast<uint8_t>(PayloadOf(traits))) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + file +
                                           "@0: written by another log scheme or payload; leave --log and --log_type "
                                           "out and they are taken from the log");
  }
  if (header.schema_hash != schema_hash) {
    throw Error(ExitStatus::kMismatch, "cannot recover " + file + "@0: written over tables of another shape");
  }
}

}  // namespace dbx
