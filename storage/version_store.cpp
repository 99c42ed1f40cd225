#include "storage/version_store.h"

#include <bit>

namespace dbx {

// The rest of a chunk that is too small for a version stays unused.
RowVersion* VersionStore::TakeNew(size_t size_class) {
  if (size_class >= free_.size()) free_.resize(size_class + 1);
  const size_t bytes = size_class * kClassBytes;
  if (left_bytes_ < bytes) {
    size_t chunk_bytes = kLastChunkBytes;
    if (chunks_.size() < std::bit_width(kLastChunkBytes / kFirstChunkBytes)) {
      chunk_bytes = kFirstChunkBytes << chunks_.size();
    }
    chunks_.emplace_back(std::max(chunk_bytes, bytes));
    next_ = chunks_.back().data();
    left_bytes_ = chunks_.back().bytes();
  }
  auto* const version = reinterpret_cast<RowVersion*>(next_);
  version->size_class = static_cast<uint32_t>(size_class);
  next_ += bytes;
  left_bytes_ -= bytes;
  return version;
}

size_t VersionStore::memory_bytes() const {
  size_t total = 0;
  for (const MappedMemory& chunk : chunks_) total += chunk.bytes();
  if (!chunks_.empty()) total -= left_bytes_ / chunks_.back().page_bytes() * chunks_.back().page_bytes();
  return total;
}

}  // namespace dbx
