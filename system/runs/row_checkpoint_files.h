// What the row checkpoints of a run write, and where (row_checkpoint.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logging/backup/log_truncation.h"
#include "logging/device/block_device.h"

namespace dbx {

struct RowCheckpointFiles {
  uint64_t database_id = 0;
  uint64_t run_id = 0;
  uint64_t schema_hash = 0;
  DeviceOptions device;
  std::vector<std::string> directories;  // by part
  std::string anchor_path;
  TruncatedLogs truncated;
};

}  // namespace dbx
