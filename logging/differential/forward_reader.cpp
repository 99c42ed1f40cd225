#include "logging/differential/forward_reader.h"

#include <algorithm>
#include <optional>

namespace dbx {

using format::RecordHeader;

ForwardReader::ForwardReader(const LogSource& source, std::span<const Lsn> starts, const LogRange& range,
                             bool read_ahead)
    : low_(range.low), chunks_(source, starts, range, range.high, read_ahead) {}

bool ForwardReader::Next(RecordHeader& header, std::span<const std::byte>& body) {
  while (visited_ == records_.size()) {
    if (!Load()) return false;
  }
  RecordIn(chunks_.bytes(), chunks_.bytes_from(), records_[visited_++], header, body);
  return true;
}

bool ForwardReader::Ahead(size_t more, RecordHeader& header, std::span<const std::byte>& body) const {
  if (more >= records_.size() - visited_) return false;
  RecordIn(chunks_.bytes(), chunks_.bytes_from(), records_[visited_ + more], header, body);
  return true;
}

// The next chunk, whose records below the range are passed over.
bool ForwardReader::Load() {
  if (loaded_ == chunks_.count()) return false;
  records_.clear();
  const size_t chunk = loaded_++;
  chunks_.Load(chunk, loaded_ < chunks_.count() ? std::optional(loaded_) : std::nullopt, records_);
  visited_ = static_cast<size_t>(std::lower_bound(records_.begin(), records_.end(), low_) - records_.begin());
  return true;
}

}  // namespace dbx
