#include "storage/btree_pool.h"

#include <sys/mman.h>

#include "base/epoch.h"

// Every sanitizer's runtime has it; null where none is linked. No include and no #if for one address.
extern "C" [[gnu::weak]] void __sanitizer_print_stack_trace();  // NOLINT(bugprone-reserved-identifier)

namespace dbx {
namespace {

// Of the 65,530 mappings that a process may have by default, two each.
constexpr int kGuardsMax = 8192;
Atomic<int> guards_left{kGuardsMax};

constexpr size_t SlotBytes(size_t node_bytes, NodePlacement placement) {
  if (placement == NodePlacement::kPacked) return node_bytes;
  return (node_bytes + kPageBytes - 1) / kPageBytes * kPageBytes + kPageBytes;
}

}  // namespace

NodePlacement DefaultNodePlacement() {
  return &__sanitizer_print_stack_trace == nullptr ? NodePlacement::kPacked : NodePlacement::kBeforeGuardPages;
}

BTreePool::BTreePool(size_t node_bytes, NodePlacement placement)
    : node_bytes_(node_bytes),
      placement_(placement),
      slot_bytes_(SlotBytes(node_bytes, placement)),
      arena_(slot_bytes_, placement == NodePlacement::kPacked ? kCacheLineBytes : kPageBytes) {}

BTreePool::~BTreePool() { guards_left.fetch_add(guards_); }

// A slot ends with its guard page, and the node ends where that begins.
void* BTreePool::AllocateFresh() {
  auto* const slot = reinterpret_cast<std::byte*>(arena_.Allocate());
  if (placement_ == NodePlacement::kPacked) return slot;
  std::byte* const guard = slot + slot_bytes_ - kPageBytes;
  Guard(guard);
  return guard - node_bytes_;
}

void BTreePool::Guard(std::byte* page) {
  if (guards_left.fetch_sub(1) <= 0 || mprotect(page, kPageBytes, PROT_NONE) != 0) {
    guards_left.fetch_add(1);
  } else {
    ++guards_;
  }
}

void* BTreePool::Allocate() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    void* const fresh = AllocateFresh();
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
  // Stamped under the mutex: the clock never decreases, so the stamps ascend.
  retired_.push_back({node, clock.RetireEpoch(worker)});
  const Epoch safe = clock.SafeEpoch();
  for (; !retired_.empty() && retired_.front().stamp < safe; retired_.pop_front()) {
    free_.push_back(retired_.front().node);
  }
}

void BTreePool::Prefault(size_t nodes) {
  const std::lock_guard lock(mutex_);
  ahead_ += nodes;
  arena_.Prefault(ahead_ * slot_bytes_);
}

size_t BTreePool::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return arena_.memory_bytes();
}

}  // namespace dbx
