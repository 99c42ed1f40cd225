#include "storage/btree_pool.h"

#include <algorithm>

#include "base/epoch.h"

namespace dbx {
namespace {

constexpr size_t kFirstChunkBytes = size_t{64} << 10;
constexpr size_t kLastChunkBytes = size_t{32} << 20;

}  // namespace

void* BTreePool::Allocate() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    void* const node = free_.back();
    free_.pop_back();
    return node;
  }
  if (chunks_.empty() || used_in_last_ + node_bytes_ > chunks_.back().bytes()) {
    const size_t bytes = chunks_.empty() ? kFirstChunkBytes : std::min(2 * chunks_.back().bytes(), kLastChunkBytes);
    chunks_.emplace_back(std::max(bytes, node_bytes_));
    used_in_last_ = 0;
  }
  void* const node = chunks_.back().data() + used_in_last_;
  used_in_last_ += node_bytes_;
  return node;
}

void BTreePool::Free(void* node) {
  const std::lock_guard lock(mutex_);
  free_.push_back(node);
}

void BTreePool::Retire(void* node, EpochClock& clock, WorkerId worker) {
  const std::lock_guard lock(mutex_);
  // Stamped under the mutex: the clock does not go back, so the stamps ascend.
  retired_.push_back({node, clock.RetireEpoch(worker)});
  const Epoch safe = clock.SafeEpoch();
  for (; !retired_.empty() && retired_.front().stamp < safe; retired_.pop_front()) {
    free_.push_back(retired_.front().node);
  }
}

size_t BTreePool::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t total = 0;
  for (const MappedMemory& chunk : chunks_) total += chunk.bytes();
  if (chunks_.empty()) return 0;
  // Of the last chunk, the pages that are in use.
  const size_t page = chunks_.back().page_bytes();
  const size_t used = std::min((used_in_last_ + page - 1) / page * page, chunks_.back().bytes());
  return total - chunks_.back().bytes() + used;
}

}  // namespace dbx
