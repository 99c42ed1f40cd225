#include "storage/hash_index.h"

#include <algorithm>

#include "base/error.h"
#include "base/host.h"
#include "base/spin.h"

namespace dbx {
namespace {

// Four rows to a bucket of seven slots: 16 bytes of index per row, and one bucket in twenty overflows.
constexpr uint64_t kRowsPerBucket = 4;
constexpr uint64_t kBucketsMin = 64;
constexpr uint32_t kClusteredBitsMax = 12;

constexpr size_t kFirstOverflowBuckets = 64;
constexpr size_t kLastOverflowBuckets = (size_t{8} << 20) / sizeof(IndexBucket);

uint64_t BucketCount(uint64_t expected_rows, uint32_t clustered_key_bits) {
  CHECK(clustered_key_bits <= kClusteredBitsMax);
  // No cluster may be wider than the array, or PlaceOf would have to wrap around twice.
  const uint64_t buckets_min = std::max(kBucketsMin, uint64_t{1} << clustered_key_bits);
  return std::max(buckets_min, expected_rows / kRowsPerBucket + 1);
}

}  // namespace

void IndexBucket::Lock() {
  SpinWait spin;
  for (;;) {
    uint64_t seen = header.load(std::memory_order_relaxed);
    // Acquire: pairs with the release in Unlock.
    if ((seen & kLocked) == 0 && header.compare_exchange_weak(seen, seen | kLocked, std::memory_order_acquire)) return;
    spin.Wait();
  }
}

HashIndex::HashIndex(uint64_t expected_rows, uint32_t clustered_key_bits)
    : bucket_count_(BucketCount(expected_rows, clustered_key_bits)),
      clustered_bits_(clustered_key_bits),
      clustered_mask_((uint64_t{1} << clustered_key_bits) - 1),
      memory_(bucket_count_ * sizeof(IndexBucket)) {
  buckets_ = reinterpret_cast<IndexBucket*>(memory_.data());
}

Row* HashIndex::FindBelow(IndexBucket& first, Key key, uint32_t tag) {
  for (Path path(first, key); path.Descend();) {
    if (Row* const row = FindIn(path.bucket(), key, tag)) return row;
  }
  return nullptr;
}

HashIndex::Position HashIndex::Locate(IndexBucket& first, Key key, uint32_t tag) {
  Atomic<uint64_t>* empty = nullptr;
  Path path(first, key);
  do {
    for (auto& slot : path.bucket().slots) {
      // Relaxed: the lock orders us after every earlier change of the tree.
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (word == 0) {
        if (empty == nullptr) empty = &slot;
      } else if (word >> kAddressBits == tag && RowOf(word)->key == key) {
        return Position{RowOf(word), nullptr};
      }
    }
  } while (path.Descend());
  if (empty == nullptr) {
    Grow(path.bucket(), path.depth());
    path.Descend();
    empty = &path.bucket().slots[0];
  }
  return Position{nullptr, empty};
}

void HashIndex::Grow(IndexBucket& last, uint32_t depth) {
  const IndexBucket* const below = AllocateOverflow(BucketsBelow(depth));
  // Keeps the lock bit of a first bucket. Release: pairs with below(); the new buckets are all zero.
  const uint64_t locked = last.header.load(std::memory_order_relaxed) & IndexBucket::kLocked;
  last.header.store(reinterpret_cast<uint64_t>(below) | locked, std::memory_order_release);
}

IndexBucket* HashIndex::AllocateOverflow(size_t buckets) {
  const std::lock_guard lock(overflow_.mutex);
  auto& chunks = overflow_.chunks;
  if (chunks.empty() || (overflow_.used_in_last + buckets) * sizeof(IndexBucket) > chunks.back().bytes()) {
    const size_t more = std::clamp(overflow_.used, kFirstOverflowBuckets, kLastOverflowBuckets);
    chunks.emplace_back(more * sizeof(IndexBucket));
    overflow_.used_in_last = 0;
  }
  auto* first = reinterpret_cast<IndexBucket*>(chunks.back().data()) + overflow_.used_in_last;
  overflow_.used_in_last += buckets;
  overflow_.used += buckets;
  return first;
}

void HashIndex::Erase(const Row* row) {
  const Place place = PlaceOf(row->key);
  IndexBucket& first = buckets_[place.bucket];
  const TreeLock lock(first);
  const uint64_t word = SlotWord(row, place.tag);
  Path path(first, row->key);
  do {
    for (auto& slot : path.bucket().slots) {
      if (slot.load(std::memory_order_relaxed) != word) continue;  // ordered by the lock
      // Release: a thread that sees the slot empty sees the eraser's earlier stores, such as the row's mark.
      slot.store(0, std::memory_order_release);
      return;
    }
  } while (path.Descend());
  CHECK(!"the row is in the index");
}

uint32_t HashIndex::depth() const {
  uint32_t deepest = 0;
  const auto note = [&deepest](const IndexBucket&, uint32_t depth) { deepest = std::max(deepest, depth); };
  for (uint64_t i = 0; i < bucket_count_; ++i) ForEachBucket(buckets_[i], 1, note);
  return deepest;
}

size_t HashIndex::memory_bytes() const {
  size_t total = memory_.bytes();
  for (const MappedMemory& chunk : overflow_.chunks) total += chunk.bytes();
  return total;
}

}  // namespace dbx
