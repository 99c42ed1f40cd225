#include "logging/differential/backward_reader.h"

#include <cstring>
#include <utility>

namespace dbx {

using format::RecordHeader;

BackwardReader::BackwardReader(const LogSource& source, const LogRange& range, size_t block_bytes, bool read_ahead,
                               KeptLog* kept)
    : kept_(kept),
      chunks_(source, {range.low, kept == nullptr ? range.high : kept->begin().value_or(range.high)}, block_bytes,
              read_ahead) {}

void BackwardReader::Fill(size_t bytes_max) {
  for (size_t bytes = 0; bytes < bytes_max; bytes += filled_.back().room) {
    BackwardChunks::Chunk chunk;
    if (!chunks_.Load(chunk)) return;
    filled_.push_back(std::move(chunk));
  }
}

bool BackwardReader::Previous(RecordHeader& header, std::span<const std::byte>& body) {
  while (records_.empty()) {
    if (!LoadKept() && !Load()) return false;
  }
  const Lsn at = records_.back();
  records_.pop_back();
  RecordIn(bytes_, bytes_from_, at, header, body);
  return true;
}

bool BackwardReader::Ahead(size_t more, RecordHeader& header, std::span<const std::byte>& body) const {
  if (more >= records_.size()) return false;
  RecordIn(bytes_, bytes_from_, records_[records_.size() - 1 - more], header, body);
  return true;
}

// The last chunk that is kept, which was checked there. The chunk before all of them is read meanwhile.
bool BackwardReader::LoadKept() {
  if (kept_ == nullptr) return false;
  auto chunk = kept_->TakeLast();
  if (!chunk) return false;
  chunks_.ReadAhead();
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

// The chunk below.
bool BackwardReader::Load() {
  if (!filled_.empty()) {
    chunk_ = std::move(filled_.front());
    filled_.pop_front();
  } else if (!chunks_.Load(chunk_)) {
    return false;
  }
  std::swap(records_, chunk_.records);
  bytes_ = chunk_.bytes();
  bytes_from_ = chunk_.from;
  return true;
}

}  // namespace dbx
