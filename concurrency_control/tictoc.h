// TicToc (Yu et al., SIGMOD 2016): optimistic concurrency control whose transactions compute their commit timestamps
// from their read and write sets (optimistic_accesses.h). The control word of a row:
//
//   bits 0-3    Row::kLocked, kAbsent, kGone, kQueued
//   bits 4-18   delta = rts - wts    the version holds at every timestamp from wts to rts; a reader may raise rts
//   bits 19-63  wts                  the commit timestamp of its writer
//
// The invariants, and why the timestamps are an order of serialization (ties: the writer before its readers):
//  1. A writer commits above the rts that the row has once it is locked; wts and rts of its version are its timestamp.
//     So the wts of a row ascend in the order of its locks, and no two versions share one.
//  2. rts rises while the row is unlocked only, or by the holder of the lock. A reader of an rts may rely on it for
//     good, whatever happens to the row: all later versions lie above it.
//  3. A transaction commits at or above the wts of all it read, and not above any rts of these, which it raises first
//     where they are lower. The rts of a version that was replaced meanwhile, or is locked by another, cannot be
//     raised: abort.
// A reader may thus commit below a writer that has replaced what it read, and has committed: order is logical.
//
// delta overflows in a row that is read for long and never written. Then wts moves up as well, by a multiple of delta's
// range, and the version's validity interval shrinks; a reader of the old interval that must raise rts aborts
// spuriously.
//
// A tombstone is a version like any other, whose wts and rts must not be forgotten: an insert of a later incarnation of
// the row must not commit below a reader of the absence. A row that is unlinked first raises Shared::forgotten_until to
// its rts; a row that is created begins there, with wts = rts. It finds the raised value, because both take the lock of
// the key's bucket in the index, one after the other. An unlinked row stays locked, so its rts is final.
//
// A gap between rows is absent as well, and the word of its leaf is an rts of all the leaf's gaps. A scan commits at or
// above the one that it found, and raises it to its own timestamp before it looks whether the leaf is unchanged. A row
// that is created in a gap begins there too, so its insert comes after; a row that leaves a gap raises it to its own
// rts, so that a transaction that finds the gap comes after the delete.
//
// Under data logging every scheme is correct, because none needs more than this:
//  - Writers of a row reserve while they hold its lock, so the order of their reservations (LSN, GSN, LV) is that of
//    its locks, which is that of its timestamps (1). Replay leaves the last image of each row, as the serial order
//    does.
//  - A version is readable only after its writer has reserved, and metadata are read with the version. So a reader's
//    LSN, LV, GSN or commit point covers the writers that it read from, and recovered sets are closed.
//  - A reader that has to come *before* a writer (an anti-dependency) leaves nothing that replay could get wrong: rows
//    that it read are not in its record. A recovered set may hold the writer without the reader, or both in either
//    order of reservation.
// Command logging does need the reader's reservation before the writer's, but the order here is logical: rules.h
// refuses it.
//
// Differences from the paper: every write is a read too, as it copies the tuple that it changes; bounded waits for
// locks, in the order of addresses, instead of none. One object per worker.
#pragma once

#include <algorithm>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/epoch.h"
#include "concurrency_control/optimistic_accesses.h"

namespace dbx {

// Timestamps in a control word. 2^45 transactions that conflict one after the other take longer than any run.
struct TicTocWord {
  static constexpr int kDeltaBits = 15;
  static constexpr uint64_t kDeltaMax = (uint64_t{1} << kDeltaBits) - 1;
  static constexpr int kWtsShift = Row::kSharedBits + kDeltaBits;
  static constexpr uint64_t kDeltaMask = kDeltaMax << Row::kSharedBits;

  static Timestamp Wts(uint64_t control) { return Timestamp(control >> kWtsShift); }
  static Timestamp Rts(uint64_t control) {
    return Timestamp(Wts(control).value() + ((control & kDeltaMask) >> Row::kSharedBits));
  }
  // A version that was written at `timestamp` and not read later.
  static uint64_t WrittenAt(Timestamp timestamp) {
    ASSERT(timestamp.value() >> (64 - kWtsShift) == 0);
    return timestamp.value() << kWtsShift;
  }
  // The word with an rts of `timestamp`, which lies above the one that it has.
  static uint64_t RaisedTo(Timestamp timestamp, uint64_t control) {
    const uint64_t delta = timestamp.value() - Wts(control).value();
    const uint64_t shift = delta & ~kDeltaMax;
    return (control & ~kDeltaMask) + (shift << kWtsShift) + ((delta - shift) << Row::kSharedBits);
  }
};

template <LogObserver Log>
class TicToc : public OptimisticAccesses<Log, TicToc<Log>> {
 public:
  static constexpr CcTraits kTraits = {.name = "TICTOC",
                                       .multi_version = false,
                                       .commit_order = CommitOrder::kLogical,
                                       .commit_version = CommitVersion::kNone,
                                       .reads_are_locked = false,
                                       .copies_writes = true,
                                       .lock_table = false};

  class Shared {
   public:
    Shared(Log& log, EpochClock& clock, uint64_t, const Atomic<bool>&) : log(log), clock(clock) {}
    size_t memory_bytes() const { return 0; }

    Log& log;
    EpochClock& clock;
    // No row that was ever unlinked had a larger rts.
    alignas(kNoSharingBytes) Atomic<uint64_t> forgotten_until{0};
  };

  TicToc(Shared& shared, typename Log::TxnState& log_state, WorkerId worker)
      : Base(shared.log, log_state, shared.clock, worker), forgotten_until_(shared.forgotten_until) {}

  bool Recheck() {
    commit_timestamp_ = LeastTimestamp();
    for (const auto& read : this->reads()) {
      // A version that was seen to be valid up to there needs no second look.
      if (TicTocWord::Rts(read.seen) < commit_timestamp_ && !RaiseRts(read)) return false;
    }
    for (const auto& leaf : this->leaves().leaves()) RaiseControl(*leaf.ref.leaf, commit_timestamp_.value());
    if (!this->leaves().Unchanged()) return false;
    // Locked, read and not written. Unlocking restores its word, in an abort as well.
    for (auto& write : this->writes()) {
      if (!write.written && TicTocWord::Rts(write.seen) < commit_timestamp_) {
        write.seen = TicTocWord::RaisedTo(commit_timestamp_, write.seen);
      }
    }
    return true;
  }

  void Release() { this->ReleaseWrites(TicTocWord::WrittenAt(commit_timestamp_)); }

 private:
  using Base = OptimisticAccesses<Log, TicToc<Log>>;
  friend Base;

  static uint64_t Version(uint64_t control) { return control & ~(TicTocWord::kDeltaMask | Row::kQueued); }

  // With the write set locked.
  Timestamp LeastTimestamp() {
    Timestamp least;
    for (const auto& read : this->reads()) least = std::max(least, TicTocWord::Wts(read.seen));
    for (const auto& leaf : this->leaves().leaves()) least = std::max(least, Timestamp(leaf.control));
    for (const auto& write : this->writes()) {
      least = std::max(
          least, write.written ? Timestamp(TicTocWord::Rts(write.seen).value() + 1) : TicTocWord::Wts(write.seen));
    }
    return least;
  }

  // Extends the read's validity to the commit timestamp; false: that is not possible.
  bool RaiseRts(const typename Base::ReadEntry& read) {
    uint64_t now = read.row->control.load();
    for (;;) {
      if (TicTocWord::Wts(now) != TicTocWord::Wts(read.seen)) return false;
      // A row that is locked by another too: its holder commits above this rts.
      if (TicTocWord::Rts(now) >= commit_timestamp_) return true;
      if (now & Row::kLocked) return this->FindOwn(read.row) != nullptr;
      // Sequentially consistent against writers that lock the row and then look at its rts.
      if (read.row->control.compare_exchange_weak(now, TicTocWord::RaisedTo(commit_timestamp_, now))) return true;
    }
  }

  // Relaxed: the lock of the key's bucket in the index orders this after an unlinking of the same key. Sequentially
  // consistent: the leaf's word, which a scan raises before it validates the leaf.
  uint64_t FreshControl(const BTreeLeaf* leaf) const {
    const uint64_t of_gap = leaf == nullptr ? 0 : leaf->control.load();
    const uint64_t forgotten = forgotten_until_.load(std::memory_order_relaxed);
    return TicTocWord::WrittenAt(Timestamp(std::max(forgotten, of_gap))) | Row::kAbsent;
  }
  static uint64_t GapControl(uint64_t control) { return TicTocWord::Rts(control).value(); }

  // Counts if the row is locked with this very word.
  bool PrepareToForget(const Table&, uint64_t control) {
    const uint64_t rts = TicTocWord::Rts(control).value();
    uint64_t until = forgotten_until_.load(std::memory_order_relaxed);
    while (until < rts && !forgotten_until_.compare_exchange_weak(until, rts)) continue;
    return true;
  }

  Atomic<uint64_t>& forgotten_until_;
  Timestamp commit_timestamp_;
};

}  // namespace dbx
