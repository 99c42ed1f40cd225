// The unique hash index of a table: key -> Row*, one cache line for the bucket and one for the row.
//
// A bucket is one line: a header (lock bit and link to overflow buckets) and seven slots. A slot is one word, a 16-bit
// tag of the key's hash above a 48-bit row address; 0 is empty. The number of first buckets is fixed. Below one that is
// full grows a tree: first a single overflow bucket, which is all that a table of the expected size needs, and below
// each that is full in turn, eight, of which the key's hash chooses one. So the path to a row grows with the logarithm
// of the rows, however many more there are than expected; how many rows a recovery will insert is not known beforehand.
//
// Threads: Find and the prefetches take no lock. FindOrInsert and Erase lock the first bucket, which guards the whole
// tree.
//
// Why Find needs no version to re-check on a miss: a row never moves from slot to slot and a link is never removed, so
// a key that stays in the index while Find runs is in one slot all the while, and Find passes it. If Find misses a key
// that is there at the end, it was absent at some moment in between (erased from a slot not yet visited, inserted again
// into one already visited), and the miss is true of that moment. Uniqueness is decided again under the lock.
#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/types.h"
#include "storage/heap/arena.h"
#include "storage/row.h"

namespace dbx {

struct alignas(kCacheLineBytes) IndexBucket {
  static constexpr int kSlots = 7;
  static constexpr uint64_t kLocked = 1;  // in a first bucket only

  // The address of the first of the buckets below or 0, and kLocked.
  Atomic<uint64_t> header;
  Atomic<uint64_t> slots[kSlots];

  // Acquire: pairs with the release that linked the buckets, whose slots were zero before.
  IndexBucket* below() const {
    return reinterpret_cast<IndexBucket*>(header.load(std::memory_order_acquire) & ~kLocked);
  }
  void Lock();
  void Unlock() {
    // Only the holder of the lock writes the header. Release: the next holder sees our slots.
    header.store(header.load(std::memory_order_relaxed) & ~kLocked, std::memory_order_release);
  }
};
static_assert(sizeof(IndexBucket) == kCacheLineBytes);

class HashIndex {
 public:
  // `clustered_key_bits`: see Schema.
  HashIndex(uint64_t expected_rows, uint32_t clustered_key_bits);

  Row* Find(Key key) const {
    const Place place = PlaceOf(key);
    IndexBucket& first = buckets_[place.bucket];
    if (Row* const row = FindIn(first, key, place.tag)) return row;
    return __builtin_expect(first.below() == nullptr, 1) ? nullptr : FindBelow(first, key, place.tag);
  }

  // Returns the row with `key` or, if there is none, inserts the row with that key that `make()` returns. `make` runs
  // with the bucket locked, so it must not call the index; it may throw.
  template <class Make>
  Row* FindOrInsert(Key key, Make&& make) {
    const Place place = PlaceOf(key);
    IndexBucket& first = buckets_[place.bucket];
    const TreeLock lock(first);
    const Position position = Locate(first, key, place.tag);
    if (position.row != nullptr) return position.row;
    Row* const row = make();
    ASSERT(row->key == key);
    // Release: a thread that finds the row in the slot sees it as `make` left it.
    position.slot->store(SlotWord(row, place.tag), std::memory_order_release);
    return row;
  }

  // Erases a row that is in the index. Other threads may still use it.
  void Erase(const Row* row);

  void PrefetchBucket(Key key) const { Prefetch(&buckets_[PlaceOf(key).bucket]); }

  // A row that may well be the one with `key`, judged by its tag alone; for prefetches, reads no row.
  const Row* Guess(Key key) const {
    const Place place = PlaceOf(key);
    const IndexBucket& bucket = buckets_[place.bucket];
    const uint32_t match = Matches(bucket, place.tag);
    return match == 0 ? nullptr : RowAt(bucket, match);
  }

  uint64_t bucket_count() const { return bucket_count_; }  // of first buckets
  size_t memory_bytes() const;
  // How many buckets a look-up may read. Walks the index.
  uint32_t depth() const;

  // Calls visit(const Row&) for the rows of the first buckets [begin, end) and below. Rows inserted or erased meanwhile
  // may be seen or not.
  template <class Visit>
  void ForEachRow(uint64_t begin, uint64_t end, Visit&& visit) const {
    const auto visit_rows = [&visit](const IndexBucket& bucket, uint32_t) {
      for (const auto& slot : bucket.slots) {
        const Row* row = RowOf(slot.load(std::memory_order_acquire));  // pairs with FindOrInsert
        if (row != nullptr) visit(*row);
      }
    };
    for (uint64_t i = begin; i < end; ++i) ForEachBucket(buckets_[i], 1, visit_rows);
  }

 private:
  static constexpr int kAddressBits = 48;
  static constexpr int kKeysPerBucketBits = 2;  // how many neighbouring keys share a bucket

  struct Place {
    uint64_t bucket;
    uint32_t tag;  // 16 bits, never 0
  };
  struct Position {
    Row* row;                // not null: found
    Atomic<uint64_t>* slot;  // null row: an empty slot
  };
  class TreeLock {
   public:
    explicit TreeLock(IndexBucket& first) : first_(first) { first_.Lock(); }
    ~TreeLock() { first_.Unlock(); }
    TreeLock(const TreeLock&) = delete;
    TreeLock& operator=(const TreeLock&) = delete;

   private:
    IndexBucket& first_;
  };

  // The buckets that may hold the row of a key, from the first one down.
  class Path {
   public:
    Path(IndexBucket& first, Key key) : bucket_(&first), key_(key) {}

    IndexBucket& bucket() const { return *bucket_; }
    uint32_t depth() const { return depth_; }
    // False: there is none below.
    bool Descend() {
      IndexBucket* const below = bucket_->below();
      if (below == nullptr) return false;
      bucket_ = below + (BucketsBelow(depth_) == 1 ? 0 : Turn());
      ++depth_;
      return true;
    }

   private:
    // Keys of a cluster differ in Mix(key), though they share what PlaceOf mixes.
    uint64_t Turn() const { return Mix(key_) >> (depth_ * kFanOutBits) % 64 & (kFanOut - 1); }

    IndexBucket* bucket_;
    Key key_;
    uint32_t depth_ = 1;
  };

  static constexpr uint32_t kFanOutBits = 3;
  static constexpr uint32_t kFanOut = 1 << kFanOutBits;
  static uint32_t BucketsBelow(uint32_t depth) { return depth == 1 ? 1 : kFanOut; }

  // Calls visit(bucket, its depth) for a bucket and those below.
  template <class Visit>
  static void ForEachBucket(const IndexBucket& bucket, uint32_t depth, Visit& visit) {
    visit(bucket, depth);
    const IndexBucket* const below = bucket.below();
    if (below == nullptr) return;
    for (uint32_t i = 0; i < BucketsBelow(depth); ++i) ForEachBucket(below[i], depth + 1, visit);
  }

  // Multiplies to 128 bits and folds: every bit of the key reaches the high bits, which choose the bucket,
  // and the low ones, which make the tag.
  static uint64_t Mix(uint64_t key) {
    const auto product = static_cast<unsigned __int128>(key ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  }

  Place PlaceOf(Key key) const {
    const uint64_t hash = Mix(key >> clustered_bits_);
    const uint64_t within = key & clustered_mask_;
    // hash * count / 2^64 spreads over any count of buckets, not just powers of two.
    uint64_t bucket = static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * bucket_count_) >> 64);
    bucket += within >> kKeysPerBucketBits;
    bucket -= bucket >= bucket_count_ ? bucket_count_ : 0;
    // Bit 0 is set in every tag, so that an empty slot matches none.
    return Place{bucket, static_cast<uint32_t>((hash ^ (within << 1)) & 0xffff) | 1};
  }

  // The words of the bucket whose upper 16 bits are `tag`: bit 4 * i + 3 for word i, where word 0 is the header,
  // which never matches. Only a hint: the slots must be loaded again before the rows are used.
  static uint32_t Matches(const IndexBucket& bucket, uint32_t tag);

  // The row in the slot of the lowest bit of `match`. Acquire: pairs with the release in FindOrInsert.
  static Row* RowAt(const IndexBucket& bucket, uint32_t match) {
    const int word = std::countr_zero(match) / 4;
    return RowOf(bucket.slots[word - 1].load(std::memory_order_acquire));
  }
  static Row* RowOf(uint64_t slot) { return reinterpret_cast<Row*>(slot & ((uint64_t{1} << kAddressBits) - 1)); }
  static uint64_t SlotWord(const Row* row, uint32_t tag) {
    const auto address = reinterpret_cast<uint64_t>(row);
    ASSERT(address >> kAddressBits == 0);
    return uint64_t{tag} << kAddressBits | address;
  }

  static Row* FindIn(const IndexBucket& bucket, Key key, uint32_t tag) {
    for (uint32_t match = Matches(bucket, tag); match != 0; match &= match - 1) {
      Row* const row = RowAt(bucket, match);
      // The slot may have changed since its tag was seen; a key that is in no slot any more is a miss.
      if (row != nullptr && row->key == key) return row;
    }
    return nullptr;
  }
  static Row* FindBelow(IndexBucket& first, Key key, uint32_t tag);

  // With the tree locked.
  Position Locate(IndexBucket& first, Key key, uint32_t tag);
  void Grow(IndexBucket& last, uint32_t depth);
  IndexBucket* AllocateOverflow(size_t buckets);

  IndexBucket* buckets_;
  uint64_t bucket_count_;
  uint32_t clustered_bits_;
  uint64_t clustered_mask_;
  MappedMemory memory_;

  // Overflow buckets come from chunks that grow with their number. A bucket overflows only once, so a mutex will do; it
  // is taken with a tree locked.
  struct OverflowPool {
    Mutex mutex;
    std::vector<MappedMemory> chunks;
    size_t used_in_last = 0;  // buckets
    size_t used = 0;
  };
  OverflowPool overflow_;
};

// Inline assembly because the sixteen-byte loads may race with a store to one of their words: no word is torn
// on x86-64, and each match is confirmed by an atomic load. The compiler cannot say that, nor can ThreadSanitizer.
inline uint32_t HashIndex::Matches(const IndexBucket& bucket, uint32_t tag) {
  const auto* words = reinterpret_cast<const __m128i*>(&bucket);
  __m128i w0, w1, w2, w3;
  asm volatile("movdqa %1, %0" : "=x"(w0) : "m"(words[0]));
  asm volatile("movdqa %1, %0" : "=x"(w1) : "m"(words[1]));
  asm volatile("movdqa %1, %0" : "=x"(w2) : "m"(words[2]));
  asm volatile("movdqa %1, %0" : "=x"(w3) : "m"(words[3]));
  const __m128i wanted = _mm_set1_epi16(static_cast<short>(tag));
  const __m128i low = _mm_packs_epi16(_mm_cmpeq_epi16(w0, wanted), _mm_cmpeq_epi16(w1, wanted));
  const __m128i high = _mm_packs_epi16(_mm_cmpeq_epi16(w2, wanted), _mm_cmpeq_epi16(w3, wanted));
  // One bit per 16-bit lane; only the upper lane of each word is its tag.
  constexpr uint32_t kTagLanes = 0x88888888;
  return (static_cast<uint32_t>(_mm_movemask_epi8(low)) | static_cast<uint32_t>(_mm_movemask_epi8(high)) << 16) &
         kTagLanes;
}

}  // namespace dbx
