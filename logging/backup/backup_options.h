// A run's backup and its checkpoints, as its log scheme gets them (LogOptions::backup).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/device/file_system.h"
#include "storage/database.h"

namespace dbx {

// When a checkpoint begins; 0: not by that.
struct CheckpointOptions {
  uint32_t interval_ms = 0;     // since the last one ended
  uint64_t interval_bytes = 0;  // of log, since the last one began
};

struct BackupOptions {
  Database* database = nullptr;  // paged
  FileSystem* files = nullptr;
  std::shared_ptr<BackupWriter> writer;
  std::string anchor_path;
  BackupAnchor anchor;  // of the backup with which the run begins
  CheckpointOptions checkpoints;
  // By log: its file, which is truncated below what the newest backup needs. Empty: the logs stay whole.
  std::vector<std::string> truncated_logs;
  uint32_t cpu_percent = 100;  // of the time of their thread (checkpoint_pace.h)
};

}  // namespace dbx
