// Locks and log metadata in the row itself: the fastest place, at the cost of space in every row.
//
// The control word of a row without waiting: Row::kLocked is the exclusive lock; the bits from Row::kSharedBits up
// count the shared locks. A lock is taken by compare-and-swap only where it is free, so a holder of the exclusive lock
// may change the word by a plain store, but for Row::kQueued, which is set by fetch_or under any lock.
//
// Locks that can be waited for use the word, and the one beside it, in their own way (queued_locks.h).
#pragma once

#include <atomic>

#include "concurrency_control/log_observer.h"
#include "storage/table.h"

namespace dbx {

enum class LockResult : uint8_t { kOk, kConflict, kGone };

// The flags of a row whose control word changes only with its lock, or holds no lock.
struct PlainFlags {
  // With the exclusive lock held; Row::kQueued may be set beside it only by its holder.
  static void Change(Row* row, uint64_t on, uint64_t off) {
    const uint64_t control = row->control.load(std::memory_order_relaxed);
    // Release: a worker that finds the row later and sees kGone looks the key up again.
    row->control.store((control & ~off) | on, std::memory_order_release);
  }
  // With any lock held. False if it was set before.
  static bool MarkQueued(Row* row) {
    return (row->control.fetch_or(Row::kQueued, std::memory_order_relaxed) & Row::kQueued) == 0;
  }
};

template <LogObserver Log>
class RowLocks {
 public:
  static constexpr bool kLockTable = false;
  using Handle = Row*;
  using Flags = PlainFlags;

  class Shared {
   public:
    Shared(Log&, uint64_t) {}
    size_t memory_bytes() const { return 0; }
  };

  explicit RowLocks(Shared&) {}

  LockResult TryShared(Row* row, Handle& handle) {
    uint64_t seen = row->control.load(std::memory_order_relaxed);
    do {
      if (seen & Row::kGone) return LockResult::kGone;
      if (seen & Row::kLocked) return LockResult::kConflict;
      // Acquire: pairs with the release of the last writer's lock.
    } while (!row->control.compare_exchange_weak(seen, seen + kOneShare, std::memory_order_acquire,
                                                 std::memory_order_relaxed));
    handle = row;
    return LockResult::kOk;
  }

  LockResult TryExclusive(Row* row, Handle& handle) { return TryExclusive(row, 0, handle); }
  // The caller's shared lock, its only one of this row, becomes exclusive, or stays as it was.
  LockResult Upgrade(Row* row, Handle& handle) { return TryExclusive(row, 1, handle); }

  // Release: what the holder read or wrote happens before the next conflicting lock.
  void ReleaseShared(Handle row) { row->control.fetch_sub(kOneShare, std::memory_order_release); }
  void ReleaseExclusive(Handle, Row* row) {
    const uint64_t flags = row->control.load(std::memory_order_relaxed);
    row->control.store(flags & ~Row::kLocked, std::memory_order_release);
  }

  Meta meta(Handle row) const { return row->meta(); }
  void InitFreshMeta(Log& log, Row& row) { log.FreshMeta(row.meta()); }
  // Of a row that is created in a gap with metadata `gap`.
  void InitFreshMeta(Log& log, Row& row, Meta gap) { CopyLeafMeta(row.meta(), gap, log.meta_bytes()); }
  // With the exclusive lock held, on a row that is about to be unlinked: may its metadata be forgotten?
  bool MayForget(Log& log, Handle row) { return log.Forgettable(row->meta()); }
  // Releases a row that was marked kGone and unlinked.
  void ReleaseGone(Handle, Row*) {}

  // The place of a lock that may be waited for: calls use(Handle); a handle leads to the word.
  auto At(Row* row, auto&& use) { return use(row); }
  static Atomic<uint64_t>& word(Handle row) { return row->control; }
  static bool IsGone(const Row*, uint64_t word) { return (word & Row::kGone) != 0; }

 private:
  static constexpr uint64_t kOneShare = uint64_t{1} << Row::kSharedBits;

  // `own_shares` shared locks of this row are the caller's own and become the exclusive one.
  LockResult TryExclusive(Row* row, uint64_t own_shares, Handle& handle) {
    uint64_t seen = row->control.load(std::memory_order_relaxed);
    do {
      if (seen & Row::kGone) return LockResult::kGone;
      if ((seen & Row::kLocked) || seen / kOneShare != own_shares) return LockResult::kConflict;
      // Acquire: pairs with the releases of the last writer's and of the readers' locks.
    } while (!row->control.compare_exchange_weak(seen, (seen % kOneShare) | Row::kLocked, std::memory_order_acquire,
                                                 std::memory_order_relaxed));
    handle = row;
    return LockResult::kOk;
  }
};

}  // namespace dbx
