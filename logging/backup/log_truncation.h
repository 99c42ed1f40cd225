// Truncation of a run's logs below what its newest checkpoint needs: each file's whole blocks below that position,
// behind its headers, are freed (FileSystem::Discard). What is below the position may then be old records, or zeros,
// block by block. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/types.h"
#include "logging/device/file_system.h"

namespace dbx {

// The files of a run's logs: one for each log, or, where `stripe_bytes` is not 0, one for each stripe of the only log.
struct TruncatedLogs {
  std::vector<std::string> paths;  // none: the logs stay whole
  std::vector<Lsn> starts;         // of each log's stream
  uint64_t stripe_bytes = 0;
};

class LogTruncation {
 public:
  // `count` is told how many bytes were freed. `files` outlives this.
  LogTruncation(FileSystem& files, TruncatedLogs logs, std::function<void(uint64_t)> count);

  bool wanted() const { return !logs_.paths.empty(); }
  // The file system cannot do it; nothing more is tried.
  bool cannot_discard() const { return cannot_discard_; }

  // `needed`, by log, never decreases. Without space for it, which a file system may need, the next call tries again.
  // Throws Error (kIo).
  void Truncate(const std::vector<Lsn>& needed);

 private:
  uint64_t OffsetOf(size_t file, const std::vector<Lsn>& needed) const;

  FileSystem& files_;
  const TruncatedLogs logs_;
  const std::function<void(uint64_t)> count_;
  std::vector<uint64_t> discarded_until_;  // by file: the offset
  bool cannot_discard_ = false;
};

}  // namespace dbx
