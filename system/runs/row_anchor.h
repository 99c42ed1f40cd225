// The anchor of a run with row checkpoints (row_checkpoint.h): the file that names the newest complete one, and where
// replay begins in each log. It is there before the run's logs have their names, and names none then; recovery of a run
// whose logs say that it has one refuses without it, as the logs may be truncated. It is replaced as a whole
// (WriteFileAtomically), and only once the checkpoint's files are durable, and all transactions whose rows they hold;
// until then the older one holds, or the state in which the run began.
//
// Encode and Decode are pure. Decode trusts nothing: it checks size, magic, version, checksum and every field, and
// throws Error "FILE@OFFSET: why", kCorrupt, or kMismatch for another version. Threads: no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "logging/format.h"

namespace dbx {

inline constexpr char kRowAnchorFileName[] = "row-anchor";  // beside log 0

struct RowAnchor {
  static constexpr uint32_t kCopies = 2;

  uint64_t database_id = 0;
  uint64_t run_id = 0;
  uint32_t number = 0;  // of the checkpoint, from 1 on; 0: there is none yet
  uint32_t copy = 0;    // whose files they are, of two
  // The logs are truncated below where replay begins, once this anchor is durable: nothing below is ever read.
  bool truncates = false;
  std::vector<format::CheckpointPart> parts;
  // By log: where replay begins, and how far the log is durable, so that no row is of a transaction behind that.
  std::vector<Lsn> start, end;
  // By worker: all of its transactions with lower sequence numbers had ended before the checkpoint began.
  std::vector<uint64_t> sequences;

  bool names_checkpoint() const { return number > 0; }
};

std::vector<std::byte> EncodeRowAnchor(const RowAnchor& anchor);  // whole blocks
RowAnchor DecodeRowAnchor(std::span<const std::byte> bytes, const std::string& path);

}  // namespace dbx
