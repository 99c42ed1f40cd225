// The files in a run's directory besides logs by which another run can continue it: `frozen` and `successor` in the old
// run's directory, `manifest` in the new one's (format.h, logging/README.md).
//
// Encode and Decode are pure. Decode trusts nothing: it checks size, magic, version, checksum and every field, and
// throws Error "FILE@OFFSET: why", kCorrupt, or kMismatch for another version.
// Threads: no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "logging/format.h"

namespace dbx {

// The frozen prefix: the recovery horizon of a run's first continuation, and of every later recovery of it, whatever
// happens to the files. A dropped record stays dropped, even if the records that it depends on turn up.
struct FrozenRun {
  uint64_t database_id = 0;
  uint64_t run_id = 0;
  std::vector<Lsn> frontier;                            // by log
  std::optional<std::pair<uint64_t, uint64_t>> digest;  // of the recovered state
  uint64_t next_sequence = 0;
  Lsn highest_lsn{};
  Stamp highest_stamp{};
  Stamp stamp_end = Stamp(UINT64_MAX);
};

// Which run continues this one. It may name an attempt that was never committed; a later attempt replaces it.
struct RunSuccessor {
  uint64_t database_id = 0;
  uint64_t run_id = 0;
  uint64_t child_run_id = 0;
  uint32_t child_run = 0;
};

// The manifest commits a run that continues another: without it no transaction of the run was acknowledged.
struct RunManifest {
  uint64_t database_id = 0;
  uint64_t run_id = 0;
  uint64_t parent_run_id = 0;
  uint32_t parent_run = 0;
  Lsn start_lsn{};
  uint64_t first_sequence = 0;
  Stamp first_stamp{};
  std::vector<format::CheckpointPart> parts;            // none: the ancestors are replayed instead
  std::optional<std::pair<uint64_t, uint64_t>> digest;  // of the state from which the checkpoint was written
};

std::vector<std::byte> EncodeFrozen(const FrozenRun& frozen);
FrozenRun DecodeFrozen(std::span<const std::byte> bytes, const std::string& file);

std::vector<std::byte> EncodeSuccessor(const RunSuccessor& successor);
RunSuccessor DecodeSuccessor(std::span<const std::byte> bytes, const std::string& file);

std::vector<std::byte> EncodeManifest(const RunManifest& manifest);
RunManifest DecodeManifest(std::span<const std::byte> bytes, const std::string& file);

}  // namespace dbx
