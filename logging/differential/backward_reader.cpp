#include "logging/differential/backward_reader.h"

#include <cstring>
#include <optional>
#include <utility>

namespace dbx {

using format::RecordHeader;

BackwardReader::BackwardReader(const LogSource& source, std::span<const Lsn> starts, const LogRange& range,
                               bool read_ahead, KeptLog* kept)
    : low_(range.low),
      kept_(kept),
      chunks_(source, starts, range, kept == nullptr ? range.high : kept->begin().value_or(range.high), read_ahead),
      chunks_left_(chunks_.count()) {}

bool BackwardReader::Previous(RecordHeader& header, std::span<const std::byte>& body) {
  while (records_.empty()) {
    if (!LoadKept() && !Load()) return false;
  }
  const Lsn at = records_.back();
  if (at < low_) return false;
  records_.pop_back();
  RecordIn(bytes_, bytes_from_, at, header, body);
  return true;
}

bool BackwardReader::Ahead(size_t more, RecordHeader& header, std::span<const std::byte>& body) const {
  if (more >= records_.size()) return false;
  RecordIn(bytes_, bytes_from_, records_[records_.size() - 1 - more], header, body);
  return true;
}

// The last chunk that is kept, which was checked there. The first time the chunk before all of them is read meanwhile.
bool BackwardReader::LoadKept() {
  if (kept_ == nullptr) return false;
  auto chunk = kept_->TakeLast();
  if (!chunk) return false;
  if (chunks_left_ > 0) chunks_.ReadAhead(chunks_left_ - 1);
  kept_chunk_ = *std::move(chunk);
  bytes_ = kept_chunk_.bytes.get();
  bytes_from_ = kept_chunk_.begin;
  for (Lsn at = kept_chunk_.begin; at < kept_chunk_.end;) {
    RecordHeader header;
    std::memcpy(&header, bytes_ + (at - bytes_from_), sizeof header);
    records_.push_back(at);
    at += header.length;
  }
  return true;
}

// Takes the last chunk that is left, and starts to read the one before.
bool BackwardReader::Load() {
  if (chunks_left_ == 0) return false;
  --chunks_left_;
  chunks_.Load(chunks_left_, chunks_left_ > 0 ? std::optional(chunks_left_ - 1) : std::nullopt, records_);
  bytes_ = chunks_.bytes();
  bytes_from_ = chunks_.bytes_from();
  return true;
}

}  // namespace dbx
