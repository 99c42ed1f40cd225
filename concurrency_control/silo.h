// Silo (Tu et al., SOSP 2013): optimistic concurrency control with epochs.
//
// A transaction commits if its read set is still current once its write set is locked: that moment is its place in the
// serial order. Read and write set are in optimistic_accesses.h. The control word of a row:
//
//   bits 0-3   Row::kLocked, kAbsent, kGone, kQueued
//   bits 4-27  sequence within the epoch   \  the TID of the last writer; larger than every TID that it had
//   bits 28-63 epoch                       /  read or written, and in the epoch of its commit
//
// Differences from the paper: bounded waits, and ranges instead of whole tuples (optimistic_accesses.h).
//
// One object per worker.
#pragma once

#include <algorithm>

#include "base/epoch.h"
#include "concurrency_control/optimistic_accesses.h"

namespace dbx {

template <LogObserver Log>
class Silo : public OptimisticAccesses<Log, Silo<Log>> {
 public:
  static constexpr CcTraits kTraits = {.name = "SILO",
                                       .multi_version = false,
                                       .commit_order = CommitOrder::kPhysical,
                                       .commit_version = CommitVersion::kEpochTid,
                                       .reads_are_locked = false,
                                       .copies_writes = true,
                                       .lock_table = false};

  class Shared {
   public:
    Shared(Log& log, EpochClock& clock, uint64_t, const Atomic<bool>&) : log(log), clock(clock) {}
    size_t memory_bytes() const { return 0; }

    Log& log;
    EpochClock& clock;
  };

  Silo(Shared& shared, typename Log::TxnState& log_state, WorkerId worker)
      : Base(shared.log, log_state, shared.clock, worker), clock_(shared.clock) {}

  bool Recheck() {
    // Sequentially consistent, after locking the write set and before validation: the epoch of the commit.
    const Epoch epoch = clock_.Current();
    Tid largest = last_tid_;
    for (const auto& read : this->reads()) {
      const uint64_t now = read.row->control.load();
      if (Version(now) != Version(read.seen) &&
          (Version(now) != (Version(read.seen) | Row::kLocked) || this->FindOwn(read.row) == nullptr)) {
        return false;
      }
      largest = std::max(largest, WriterOf(read.seen));
    }
    if (!this->leaves().Unchanged()) return false;
    // Above the TID of every delete of a row that a scan did not find.
    for (const auto& leaf : this->leaves().leaves()) largest = std::max(largest, Tid(leaf.control));
    for (const auto& write : this->writes()) largest = std::max(largest, WriterOf(write.seen));
    commit_tid_ = std::max(Tid(largest.value() + 1), EpochTid::First(epoch));
    // An epoch that lasts too long runs out of numbers; a retry gets some in the next one.
    return commit_tid_ <= EpochTid::Last(epoch);
  }

  // The TID; after Recheck.
  Tid commit_version() const { return commit_tid_; }

  void Release() {
    if (!this->writes().empty()) last_tid_ = commit_tid_;
    this->ReleaseWrites(commit_tid_.value() << Row::kSharedBits);
  }

 private:
  using Base = OptimisticAccesses<Log, Silo<Log>>;
  friend Base;

  static uint64_t Version(uint64_t control) { return control & ~Row::kQueued; }
  static Tid WriterOf(uint64_t control) { return Tid(control >> Row::kSharedBits); }

  // Not below the TID of any row of this key that was unlinked (PrepareToForget): readers and writers of this one
  // commit above it.
  uint64_t FreshControl(const BTreeLeaf* leaf) const {
    const Tid epoch_ago = EpochTid::First(Epoch(clock_.Current().value() - 1));
    const Tid of_gap(leaf == nullptr ? 0 : leaf->control.load());
    return (std::max(epoch_ago, of_gap).value() << Row::kSharedBits) | Row::kAbsent;
  }

  static uint64_t GapControl(uint64_t control) { return WriterOf(control).value(); }

  // A row of this key that is created later starts with no smaller TID: the gap of an ordered table keeps it.
  bool PrepareToForget(const Table& table, uint64_t control) const {
    return table.ordered() || EpochTid::EpochOf(WriterOf(control)).value() + 2 <= clock_.Current().value();
  }

  EpochClock& clock_;
  Tid last_tid_;
  Tid commit_tid_;
};

}  // namespace dbx
