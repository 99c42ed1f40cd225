// The header of a log file: written once, in two copies, before the first record; read and checked before the rest of
// the file is used.
//
// Invariant: of a header that DecodeHeader returns every field is in range, the magic, version and checksum
// hold, and no feature is required that this reader does not know.
// Threads: no shared state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/types.h"
#include "logging/device/block_device.h"
#include "logging/format.h"

namespace dbx {

// The part that all logs of one run have in common.
struct RunIdentity {
  uint64_t database_id = 0;
  uint64_t run_id = 0;
  format::Scheme scheme = format::Scheme::kNone;
  format::Payload payload = format::Payload::kNone;
  uint32_t log_count = 1;        // files: logs, or the stripes of one log
  uint32_t stripe_bytes = 0;     // 0: each file is a log
  bool row_checkpoints = false;  // it has a `row-anchor`
  uint64_t ring_bytes = 0;
  uint64_t schema_hash = 0;
  std::string config;  // "NAME=value\n" lines
  // Of a run that continues another.
  Lsn start_lsn{};
  uint64_t parent_run_id = 0;
  uint32_t parent_run = 0;
};

// By the number in a log's header.
inline constexpr std::array<const char*, static_cast<size_t>(format::Payload::kLast) + 1> kPayloadNames = {
    "none", "data", "command", "versioned_command"};

// A number that no other database or run has: random, from the kernel, never 0.
uint64_t RandomId();

format::FileHeader MakeHeader(const RunIdentity& identity, uint32_t log_index);

// Both copies with their checksum, as they stand at the start of the file.
void EncodeHeader(const format::FileHeader& header, std::span<std::byte, format::kStreamOffset> to);

// The header from the start of file `file`, of which `bytes` may hold less than both copies. The second copy is used if
// the first is damaged. Throws Error "FILE@OFFSET: why": kCorrupt, or kMismatch for another version and for features or
// schemes that this reader does not know.
format::FileHeader DecodeHeader(std::span<const std::byte> bytes, const std::string& file);

// The same from a device.
format::FileHeader ReadHeader(BlockDevice& device);

// Does the run continue the state of another?
inline bool Continues(const format::FileHeader& header) {
  return (header.required_features & format::kFeatureContinues) != 0;
}

// Is the file a stripe of the run's one log?
inline bool IsStripe(const format::FileHeader& header) {
  return (header.required_features & format::kFeatureStriped) != 0;
}

// Does the run have a `row-anchor`?
inline bool HasRowCheckpoints(const format::FileHeader& header) {
  return (header.required_features & format::kFeatureRowCheckpoints) != 0;
}

std::string_view ConfigText(const format::FileHeader& header);

// That headers[i] is log i of one and the same run and none is missing; files[i] is its path. Throws
// Error(kMismatch) that names the files that do not belong together.
void CheckSameRun(std::span<const format::FileHeader> headers, std::span<const std::string> files);

}  // namespace dbx
