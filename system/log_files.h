// The log files of a run: created with their headers before the first transaction, found and checked before a
// recovery. Main's thread only. Errors are one line that names the file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "logging/contract.h"
#include "logging/device/block_device.h"
#include "logging/file_header.h"
#include "logging/format.h"
#include "logging/log_set.h"
#include "storage/database.h"
#include "system/options.h"
#include "system/result.h"

namespace dbx {

// Of every table's name, columns and sizes, and of the secondary indexes' names.
uint64_t SchemaHash(const Database& database);

struct NewLogFiles {
  uint32_t run_number = 0;
  uint64_t run_id = 0;
  std::vector<LogSet::Target> targets;
  std::vector<LogDirectoryInfo> directories;
};

struct OldLogFiles {
  uint32_t run_number = 0;
  std::vector<std::unique_ptr<BlockDevice>> devices;  // by log index
  std::vector<format::FileHeader> headers;
  std::vector<std::string> paths;
  // The logs' bytes, where there are no files to read them from again; else empty.
  std::vector<std::vector<std::byte>> images;
  std::vector<LogDirectoryInfo> directories;
};

// Where runs keep their logs: files (the product), or memory that forgets what was not synced (tests).
class LogStorage {
 public:
  virtual ~LogStorage() = default;

  // A new run's logs, with durable headers. `traits` says what they will hold.
  virtual NewLogFiles Create(const Options& options, const LogTraits& traits, uint64_t schema_hash) = 0;

  // The logs of the run that the options choose; they belong together.
  virtual OldLogFiles Open(const Options& options) = 0;
};

// Under the directories of the options, as logging/log_directory.h says.
LogStorage& FileLogStorage();

// The parts of a header that the options decide.
RunIdentity IdentityOf(const Options& options, const LogTraits& traits, uint64_t schema_hash);

// That these logs were written by a scheme with `traits`, over a database with this schema.
void CheckLogsMatch(const OldLogFiles& logs, const LogTraits& traits, uint64_t schema_hash);

// Both copies, durable when it returns.
void WriteHeader(BlockDevice& device, const format::FileHeader& header);

}  // namespace dbx
