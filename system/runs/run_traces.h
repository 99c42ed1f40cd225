// Was a run ever served? What its files show, and what follows from that.
//
// A run that was never served is passed over, and may be deleted; so it must be proved that no transaction of it was
// acknowledged. A file is absent only if the file system says so, and zeros only if every byte of it was read. What is
// neither as a crash leaves it nor intact is damage.
//
// How a run comes to be; each step is durable before the next one starts (system/runs/log_files.cpp):
//
//   1. the directories
//   2. `frontier`, with its first block, where transactions become durable by epochs
//   3. every log under its temporary name, with its header; the checkpoint, if there is one; or the backup with which
//      the run begins, and then `anchor`
//   4. every log gets its name; until then one of them has its temporary name
//   5. of a run that continues another: `successor` beside the other's logs, and then `manifest`
//   6. `committed` in every directory
//   7. transactions write to the logs, and further blocks to `frontier`
//
// So a log with its own name and without an intact header is damaged, once one log has its name all of the run's logs
// are there, and a run with `committed` is damaged if they are not. (An older version wrote headers into logs that had
// their names. What its crash left in the middle of that looks like damage, and is refused with a line that says so.)
// Threads: main's only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "logging/device/file_system.h"

namespace dbx {

// The headers of a run's logs, all of them together; the first that applies.
enum class RunHeaders : uint8_t {
  kNone,        // no log has its name
  kDamaged,     // no copy is intact in one of the logs that have their names
  kIncomplete,  // intact ones name a number of logs that are not all there, under either name
  kUnfinished,  // an intact one continues no run, but a log still has its temporary name alone
  kFresh,       // an intact one continues no run
  kContinuing,  // all continue a run
};
inline constexpr size_t kRunHeadersCount = 6;

struct RunTraces {
  bool has_witness = false;  // `committed`, `manifest`, or `frozen` or `successor`, which a continued run has
  RunHeaders headers = RunHeaders::kNone;
  bool has_stream = false;  // a byte behind a header, or in `frontier` behind its first block, is not zero
  std::string written_at;   // FILE@OFFSET of the first byte that is not zero in a stream
  std::string damaged_log;  // the log without an intact header, if any
};

enum class RunState : uint8_t {
  kServed,       // or may have been; whatever it lacks, opening it says so
  kNeverServed,  // a crash came first, and nothing was ever written to its logs
  kDamaged,      // something was written, and nothing is left that says what
};

constexpr RunState StateOf(bool has_witness, RunHeaders headers, bool has_stream) {
  constexpr RunState kTable[kRunHeadersCount][2] = {
      // the streams are zeros    something stands in one
      {RunState::kNeverServed, RunState::kDamaged},  // kNone
      {RunState::kDamaged, RunState::kDamaged},      // kDamaged
      {RunState::kServed, RunState::kServed},        // kIncomplete
      {RunState::kNeverServed, RunState::kServed},   // kUnfinished
      {RunState::kServed, RunState::kServed},        // kFresh
      {RunState::kNeverServed, RunState::kServed},   // kContinuing: before its manifest
  };
  return has_witness ? RunState::kServed : kTable[static_cast<size_t>(headers)][has_stream];
}

// Reads no more than decides: the streams of suspects alone. Throws Error: kIo, and kMismatch for a header of another
// version and for what is no file.
RunTraces TracesOf(FileSystem& files, const std::vector<std::string>& run_directories);

// That nothing of the run was ever served. Throws as TracesOf does, and kCorrupt "FILE@OFFSET: why" for damage.
bool WasNeverServed(FileSystem& files, const std::vector<std::string>& run_directories);

}  // namespace dbx
