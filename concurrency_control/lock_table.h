// Locks and log metadata in a table that holds active rows only (Taurus, section 4.1): rows stay small.
//
// An entry is created when a row is first locked, with the log's FreshMeta, and is evicted once it is unlocked and its
// metadata is forgettable; every walk of a bucket's chain evicts what it can. Both happen under the bucket's latch, so
// a re-created entry's metadata is taken from a durable frontier no older than the one that allowed the eviction.
//
// Locks are taken under the latch and released without it. A holder keeps its entry alive: only an entry whose
// lock word is 0 is dropped. The presence bits of the row itself (Row::kAbsent, kGone, kQueued) stay in its control
// word and change only under the row's exclusive lock, but for kQueued, which any holder may set.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/spin.h"
#include "concurrency_control/log_observer.h"
#include "concurrency_control/row_locks.h"

namespace dbx {

template <LogObserver Log>
class LockTableLocks {
 public:
  static constexpr bool kLockTable = true;

  struct Entry {
    Row* row;
    Entry* next;
    Atomic<uint64_t> word;  // kExclusive, or the number of shares; with waiting, as in queued_locks.h; 0: free

    Meta meta() { return reinterpret_cast<Meta>(this + 1); }
  };
  using Handle = Entry*;
  using Flags = PlainFlags;

  class Shared {
   public:
    Shared(Log& log, uint64_t buckets)
        : log_(log),
          entry_bytes_(RoundedUpToWords(sizeof(Entry) + log.meta_bytes())),
          buckets_(std::bit_ceil(std::max<uint64_t>(buckets, 64))) {}

    size_t memory_bytes() const {
      std::lock_guard lock(pool_mutex_);
      return buckets_.size() * sizeof(Bucket) + chunks_.size() * kChunkBytes;
    }

   private:
    friend class LockTableLocks;
    static constexpr size_t kChunkBytes = 256 << 10;

    struct alignas(32) Bucket {
      Atomic<bool> latch{false};
      Entry* head = nullptr;
      Entry* free = nullptr;
    };

    Bucket& BucketOf(const Row* row) {
      const uint64_t hash = (reinterpret_cast<uintptr_t>(row) >> 4) * 0x9E3779B97F4A7C15u;
      return buckets_[(hash >> 32) & (buckets_.size() - 1)];
    }

    // Under the bucket's latch.
    Entry* FindOrAdd(Bucket& bucket, Row* row) {
      for (Entry** link = &bucket.head; *link != nullptr;) {
        Entry* entry = *link;
        if (entry->row == row) return entry;
        // Acquire: pairs with the release of the last holder, whose metadata is read next.
        if (entry->word.load(std::memory_order_acquire) == 0 && log_.Forgettable(entry->meta())) {
          *link = entry->next;
          entry->next = bucket.free;
          bucket.free = entry;
        } else {
          link = &entry->next;
        }
      }
      Entry* entry = TakeEntry(bucket);
      entry->row = row;
      entry->word.store(0, std::memory_order_relaxed);
      log_.FreshMeta(entry->meta());
      entry->next = bucket.head;
      bucket.head = entry;
      return entry;
    }

    Entry* TakeEntry(Bucket& bucket) {
      if (Entry* entry = bucket.free) {
        bucket.free = entry->next;
        return entry;
      }
      std::lock_guard lock(pool_mutex_);
      if (chunks_.empty() || chunk_used_ + entry_bytes_ > kChunkBytes) {
        chunks_.push_back(std::make_unique<std::byte[]>(kChunkBytes));
        chunk_used_ = 0;
      }
      auto* entry = new (chunks_.back().get() + chunk_used_) Entry{};
      chunk_used_ += entry_bytes_;
      return entry;
    }

    Log& log_;
    const size_t entry_bytes_;
    std::vector<Bucket> buckets_;
    mutable Mutex pool_mutex_;  // taken only while the table grows
    std::vector<std::unique_ptr<std::byte[]>> chunks_;
    size_t chunk_used_ = 0;
  };

  explicit LockTableLocks(Shared& shared) : shared_(shared) {}

  LockResult TryShared(Row* row, Handle& handle) {
    Latched bucket(shared_.BucketOf(row));
    Entry* entry = shared_.FindOrAdd(*bucket, row);
    // Acquire: pairs with the release of the last writer.
    if (entry->word.load(std::memory_order_acquire) == kExclusive) return LockResult::kConflict;
    if (row->control.load(std::memory_order_acquire) & Row::kGone) return LockResult::kGone;
    entry->word.fetch_add(1, std::memory_order_acquire);
    handle = entry;
    return LockResult::kOk;
  }

  LockResult TryExclusive(Row* row, Handle& handle) { return TryExclusive(row, 0, handle); }
  // The caller's shared lock, its only one of this row, becomes exclusive, or stays as it was.
  LockResult Upgrade(Row* row, Handle& handle) { return TryExclusive(row, 1, handle); }

  // Release: what the holder read or wrote happens before the next conflicting lock, and before an eviction.
  void ReleaseShared(Handle entry) { entry->word.fetch_sub(1, std::memory_order_release); }
  void ReleaseExclusive(Handle entry, Row*) { entry->word.store(0, std::memory_order_release); }

  Meta meta(Handle entry) const { return entry->meta(); }
  // The row's memory may have been another row's, whose entry is still here: it is unlocked, as rows are recycled only
  // after all workers that could have seen them have left their epochs, but its metadata is the other row's.
  void InitFreshMeta(Log& log, Row& row) {
    Latched bucket(shared_.BucketOf(&row));
    for (Entry* entry = (*bucket).head; entry != nullptr; entry = entry->next) {
      if (entry->row == &row) log.FreshMeta(entry->meta());
    }
  }
  // Of a row that is created in a gap with metadata `gap`. Forgettable metadata is below what any entry begins with, or
  // is durable.
  void InitFreshMeta(Log& log, Row& row, Meta gap) {
    if (log.Forgettable(gap)) return InitFreshMeta(log, row);
    Latched bucket(shared_.BucketOf(&row));
    Entry* const entry = shared_.FindOrAdd(*bucket, &row);
    log.FreshMeta(entry->meta());
    log.Absorb(entry->meta(), gap);
  }
  bool MayForget(Log& log, Handle entry) { return log.Forgettable(entry->meta()); }
  void ReleaseGone(Handle entry, Row* row) { ReleaseExclusive(entry, row); }

  // The place of a lock that may be waited for: calls use(Handle) under the bucket's latch; a handle leads to the word.
  // The entry stays as long as the word is not 0.
  auto At(Row* row, auto&& use) {
    Latched bucket(shared_.BucketOf(row));
    return use(shared_.FindOrAdd(*bucket, row));
  }
  static Atomic<uint64_t>& word(Handle entry) { return entry->word; }
  static bool IsGone(const Row* row, uint64_t) {
    return (row->control.load(std::memory_order_acquire) & Row::kGone) != 0;
  }

 private:
  static constexpr uint64_t kExclusive = UINT64_MAX;
  using Bucket = typename Shared::Bucket;

  // `own_shares` shared locks of this row are the caller's own and become the exclusive one.
  LockResult TryExclusive(Row* row, uint64_t own_shares, Handle& handle) {
    Latched bucket(shared_.BucketOf(row));
    Entry* entry = shared_.FindOrAdd(*bucket, row);
    // Acquire: pairs with the releases of the last writer and of the readers.
    if (entry->word.load(std::memory_order_acquire) != own_shares) return LockResult::kConflict;
    if (row->control.load(std::memory_order_acquire) & Row::kGone) return LockResult::kGone;
    entry->word.store(kExclusive, std::memory_order_relaxed);
    handle = entry;
    return LockResult::kOk;
  }

  // A bucket with its latch held. Nothing under a latch waits.
  class Latched {
   public:
    explicit Latched(Bucket& bucket) : bucket_(bucket) {
      SpinWait wait;
      while (bucket_.latch.exchange(true, std::memory_order_acquire)) wait.Wait();
    }
    ~Latched() { bucket_.latch.store(false, std::memory_order_release); }
    Latched(const Latched&) = delete;
    Latched& operator=(const Latched&) = delete;
    Bucket& operator*() const { return bucket_; }

   private:
    Bucket& bucket_;
  };

  Shared& shared_;
};

}  // namespace dbx
