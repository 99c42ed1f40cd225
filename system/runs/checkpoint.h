// A checkpoint: the rows of a whole database, in one file per log directory (`checkpoint-II.ckp`). Written while no
// transaction runs, before the run that starts from it is created; read instead of that run's ancestors.
//
// A part is valid only as a whole: its size and checksum are in the run's manifest, and every block has a checksum of
// its own, verified before its rows are read. After an Error the database must be thrown away. Threads: one per part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "logging/device/block_device.h"
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

// Writes a part row by row to a new file. A part that is not finished is none. Throws Error (kIo, kNoSpace). One
// thread.
class CheckpointPartWriter {
 public:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Buffer = std::unique_ptr<std::byte, Free>;

  CheckpointPartWriter(FileSystem& files, const std::string& path, const DeviceOptions& options,
                       const CheckpointIdentity& identity);
  ~CheckpointPartWriter();

  void Add(TableId table, Key key, std::span<const std::byte> tuple);
  // Durable, with its directory entry, on return.
  format::CheckpointPart Finish();
  // Written so far.
  uint64_t bytes() const { return part_.bytes; }
  uint64_t rows() const { return part_.rows; }

 private:
  void Flush(uint32_t kind);
  void WriteOut(size_t bytes);

  std::unique_ptr<BlockDevice> device_;
  Buffer buffer_;
  size_t used_ = sizeof(format::CheckpointBlock);
  uint64_t block_rows_ = 0;
  uint32_t digest_ = 0;
  format::CheckpointPart part_{};
};

// Writes the part-th share of the rows to a new file; durable, with its directory entry, on return.
format::CheckpointPart WriteCheckpointPart(FileSystem& files, const std::string& path, const DeviceOptions& options,
                                           const CheckpointIdentity& identity, const Database& database);

// Of a key that a part has twice: an Error (kCorrupt), or the later image is put over the earlier one.
enum class Repeated : uint8_t { kRefused, kReplaced };

// Adds the rows of a part to a database without rows. Throws Error that names the file: kCorrupt, kMismatch (another
// run, schema, or not as `expected`), kIo.
void LoadCheckpointPart(FileSystem& files, const std::string& path, const CheckpointIdentity& identity,
                        const format::CheckpointPart& expected, Database& database, WorkerId worker,
                        Repeated repeated = Repeated::kRefused);

struct CheckpointSummary {
  CheckpointIdentity identity;
  format::CheckpointPart part;
  std::vector<uint64_t> rows;  // by table
};

// Checks a part as far as is possible without its manifest and its tables. Throws Error (kCorrupt, kMismatch, kIo).
CheckpointSummary InspectCheckpointPart(FileSystem& files, const std::string& path);

}  // namespace dbx
