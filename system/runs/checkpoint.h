// A checkpoint: the rows of a whole database, in one file per log directory (`checkpoint-II.ckp`). Written while no
// transaction runs, before the run that starts from it is created; read instead of that run's ancestors.
//
// A part is valid only as a whole: its size and checksum are in the run's manifest, and every block has a checksum of
// its own, verified before its rows are read. After an Error the database must be thrown away. Threads: one per part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logging/device/file_system.h"
#include "logging/format.h"
#include "storage/database.h"

namespace dbx {

struct CheckpointIdentity {
  uint64_t database_id = 0;
  uint64_t run_id = 0;  // of the run that starts from it
  uint64_t schema_hash = 0;
  uint32_t part = 0;
  uint32_t part_count = 1;
};

// Writes the part-th share of the rows to a new file; durable, with its directory entry, on return.
format::CheckpointPart WriteCheckpointPart(FileSystem& files, const std::string& path, const DeviceOptions& options,
                                           const CheckpointIdentity& identity, const Database& database);

// Adds the rows of a part to a database without rows. Throws Error that names the file: kCorrupt, kMismatch (another
// run, schema, or not as `expected`), kIo.
void LoadCheckpointPart(FileSystem& files, const std::string& path, const CheckpointIdentity& identity,
                        const format::CheckpointPart& expected, Database& database, WorkerId worker);

struct CheckpointSummary {
  CheckpointIdentity identity;
  format::CheckpointPart part;
  std::vector<uint64_t> rows;  // by table
};

// Checks a part as far as is possible without its manifest and its tables. Throws Error (kCorrupt, kMismatch, kIo).
CheckpointSummary InspectCheckpointPart(FileSystem& files, const std::string& path);

}  // namespace dbx
