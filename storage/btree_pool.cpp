#include "storage/btree_pool.h"

#include "base/epoch.h"

namespace dbx {

void* BTreePool::Allocate() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    void* const fresh = arena_.Allocate();
    if (ahead_ > 0) --ahead_;
    return fresh;
  }
  void* const node = free_.back();
  free_.pop_back();
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

void BTreePool::Prefault(size_t nodes) {
  const std::lock_guard lock(mutex_);
  ahead_ += nodes;
  arena_.Prefault(ahead_ * node_bytes_);
}

size_t BTreePool::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return arena_.memory_bytes();
}

}  // namespace dbx
