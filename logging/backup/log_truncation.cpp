#include "logging/backup/log_truncation.h"

#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "logging/format.h"

namespace dbx {

LogTruncation::LogTruncation(FileSystem& files, TruncatedLogs logs, std::function<void(uint64_t)> count)
    : files_(files),
      logs_(std::move(logs)),
      count_(std::move(count)),
      discarded_until_(logs_.paths.size(), format::kStreamOffset) {
  CHECK(!wanted() || logs_.starts.size() == (logs_.stripe_bytes == 0 ? logs_.paths.size() : 1));
}

void LogTruncation::Truncate(const std::vector<Lsn>& needed) {
  for (size_t file = 0; file < logs_.paths.size() && !cannot_discard_; ++file) {
    const uint64_t from = discarded_until_[file], to = OffsetOf(file, needed);
    if (to <= from) continue;
    try {
      cannot_discard_ = !files_.Discard(logs_.paths[file], from, to);
    } catch (const Error& error) {
      if (error.status() != ExitStatus::kNoSpace) throw;
      continue;
    }
    if (cannot_discard_) continue;
    discarded_until_[file] = to;
    count_(to - from);
  }
}

// Below it the file holds nothing that is needed.
uint64_t LogTruncation::OffsetOf(size_t file, const std::vector<Lsn>& needed) const {
  if (logs_.stripe_bytes == 0) {
    return format::kStreamOffset + (format::BlockBelow(needed[file]) - logs_.starts[file]);
  }
  const uint64_t bytes = needed.front() - logs_.starts.front(),
                 rounds = bytes / (logs_.stripe_bytes * logs_.paths.size());
  return format::kStreamOffset + rounds * logs_.stripe_bytes;
}

}  // namespace dbx
