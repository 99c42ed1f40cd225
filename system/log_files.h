// The log files of a run: created with their headers before the first transaction, found and checked before a
// recovery. Main's thread only. Errors are one line that names the file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "logging/contract.h"
#include "logging/device/file_system.h"
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
  std::vector<LogDirectoryInfo> directories;
};

// The runs under the log directories of the options, as logging/log_directory.h says.
class LogStorage {
 public:
  explicit LogStorage(FileSystem& files) : files_(files) {}

  // A new run's logs, with durable headers. `traits` says what they will hold.
  NewLogFiles Create(const Options& options, const LogTraits& traits, uint64_t schema_hash);

  // The logs of the run that the options choose; they belong together.
  OldLogFiles Open(const Options& options);

  FileSystem& files() const { return files_; }

 private:
  FileSystem& files_;
};

// Over the operating system's files.
LogStorage& FileLogStorage();

// That these logs were written by a scheme with `traits`, over a database with this schema.
void CheckLogsMatch(const OldLogFiles& logs, const LogTraits& traits, uint64_t schema_hash);

}  // namespace dbx
