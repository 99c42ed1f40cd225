// Multi-version optimistic concurrency control in the manner of Hekaton (Larson et al., PVLDB 5(4), 2011): readers see
// a snapshot, and never wait for a transaction that has not yet drawn its end timestamp.
//
// A row holds its newest version, the older ones form a version chain beside it (storage/version_store.h). A
// transaction reads what was committed at or below its begin timestamp B, and writes over newest versions only. Its
// write set and the locks are in optimistic_accesses.h; timestamps are in snapshot_clock.h, the control word of a row
// in hekaton_word.h. What a reader with B does, by the word of the row:
//   begin > B                       it follows the chain
//   begin <= B, unlocked            it reads the row: a transaction that locks it later ends above B
//   begin <= B, locked by W, and W's end timestamp is
//     not chosen, or above B        the same; from the chain, if W is installing
//     chosen at or below B, or      the version is being prepared. Hekaton reads it and depends on W's commit; here the
//     being chosen                  reader waits a little, then aborts: the version's log metadata is unknown before W
//                                   publishes it, and a reader of it without could be acknowledged, or
//                                   replayed, before the writer (Taurus, section 4.4)
// A read of the row is repeated if the word has changed other than by the lock.
//
// SERIALIZABLE: a transaction that has written draws its end timestamp with its write set locked, and then validates
// its read set: every version read is still the newest and not locked by another. Of two transactions of which one
// depends on the other, by write or by read, the other's draw comes first; so the order of end timestamps is an order
// of serialization, in which a read-only transaction is at its B without validation. A transaction that meets a newer
// version before it has read an old one raises its B, if all its accesses are still valid; one that has read an old
// version cannot write any more.
//
// SNAPSHOT (snapshot isolation): reads are not validated. Of two overlapping transactions that write the same row, the
// second aborts (first committer wins).
//
// Commands are replayed in many versions (Taurus, section 4.4; system/replay/versioned_replay.h), at the timestamps of
// their records: a transaction's end, and the largest timestamp at which its reads hold, which is B under SNAPSHOT.
// Under SERIALIZABLE it is the one before its end, B or not: a transaction that ended in between and wrote what it had
// read had locked that before the validation. So the log need not know which transaction overwrote what others had
// read. Under SERIALIZABLE it could do without timestamps, as LSNs reserved before validation would order transactions
// too; but readers would have to publish their LSN in every row they read, and an abort would leave a VOID record.
//
// Log metadata: a superseded version keeps its own beside it, for its readers. Memory: version_store.h (garbage
// collection). A tombstone is unlinked when no snapshot can lie below its absence. So a row that is created, absent,
// begins at 0: at every timestamp at which it can be looked for, the key was absent.
//
// One object per worker.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/epoch.h"
#include "concurrency_control/hekaton_word.h"
#include "concurrency_control/optimistic_accesses.h"
#include "concurrency_control/snapshot_clock.h"
#include "storage/version_store.h"

namespace dbx {

template <LogObserver Log>
class Hekaton : public OptimisticAccesses<Log, Hekaton<Log>> {
 public:
  static constexpr CcTraits kTraits = {.name = "HEKATON",
                                       .multi_version = true,
                                       // Under SERIALIZABLE. Replay in many versions needs no such order.
                                       .commit_order = CommitOrder::kPhysical,
                                       .commit_version = CommitVersion::kNone,
                                       .reads_are_locked = false,
                                       .copies_writes = true,
                                       .lock_table = false};

  class Shared {
   public:
    Shared(Log& log, EpochClock& clock, uint64_t, const Atomic<bool>&)
        : log(log), clock(clock), timestamps(MakeClock(log, clock.workers())), versions(clock.workers()) {
      CHECK(clock.workers() <= 1u << HekatonWord::kHolderBits);
    }
    // Superseded versions; while no worker runs.
    size_t memory_bytes() const {
      size_t total = 0;
      for (const auto& store : versions) total += store.value.memory_bytes();
      return total;
    }

    Log& log;
    EpochClock& clock;
    Isolation isolation = Isolation::kSerializable;  // set before a worker is created
    SnapshotClock timestamps;
    std::vector<CachePadded<VersionStore>> versions;  // by worker

   private:
    static SnapshotClock MakeClock([[maybe_unused]] Log& log, uint32_t workers) {
      if constexpr (kDrawsStamps<Log>) return SnapshotClock(workers, log.clock());
      return SnapshotClock(workers);
    }
  };

  Hekaton(Shared& shared, typename Log::TxnState& log_state, WorkerId worker)
      : Base(shared.log, log_state, shared.clock, worker),
        timestamps_(shared.timestamps),
        versions_(shared.versions[worker.value()].value),
        serializable_(shared.isolation == Isolation::kSerializable),
        meta_bytes_(RoundedUpToWords(shared.log.meta_bytes())),
        commits_per_watermark_(std::max(kCommitsPerWatermark, 4 * shared.timestamps.workers())) {}

  // The head of the version chain; in a persistent heap, of the chain that begins with the newest version.
  static constexpr size_t kRowBytes = kHeapVersions<Log> ? sizeof(RowVersions) : kVersionChainBytes;

  void Begin(TxnId txn) {
    Base::Begin(txn);
    has_read_old_ = is_writer_ = false;
    begin_ = timestamps_.Begin(this->worker());
  }

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    for (SpinWait wait;;) {
      Row* const row = this->FindOrCreate(table, key);
      if (const auto* own = this->FindOwn(row)) return this->ReadOwn(*own, visit);
      // Acquire: the tuple, the metadata and the chain of this version are visible.
      const uint64_t seen = row->control.load(std::memory_order_acquire);
      switch (PlaceOf(*row, seen)) {
        case Place::kRow:
          if (!(seen & Row::kAbsent)) ShowNewest(table, row, visit);
          this->OnRead({table, key, row->meta()});
          if (!StillHolds(*row, seen)) continue;
          if (serializable_) this->NoteRead(row, HekatonWord::Content(seen));
          if (!(seen & Row::kAbsent)) return Outcome::kOk;
          this->NoteMiss(table, row);
          return Outcome::kNotFound;
        case Place::kChain:
          if (HekatonWord::Begin(seen) > begin_ && MoveUp()) continue;
          return ReadOld(table, *row, visit);
        case Place::kNowhereYet:
          if (wait.yielding()) return Outcome::kConflict;
          wait.Wait();
          continue;
        case Place::kElsewhere:
          wait.Wait();
      }
    }
  }

  // A read-only transaction is done: it is serialized at its begin timestamp.
  bool LockWrites() {
    if (this->read_only()) {
      // An update of an absent row, or an insert of a present one, has read it. The row's metadata by now covers that
      // version.
      for (const auto& write : this->writes()) this->OnRead({*write.table, write.row->key, write.row->meta()});
      return true;
    }
    is_writer_ = true;
    timestamps_.PrepareToDraw();
    return Base::LockWrites();
  }

  // The draw is after locking the write set and before validating the read set.
  bool Recheck() {
    if (!is_writer_) return true;
    Draw();
    if (!serializable_) return true;
    for (const auto& read : this->reads()) {
      // Sequentially consistent, after reads were published, against writers that lock and then load the metadata.
      const uint64_t now = read.row->control.load();
      if (HekatonWord::Content(now) != read.seen) return false;
      if ((now & Row::kLocked) && HekatonWord::Holder(now) != this->worker()) return false;
    }
    return this->leaves().Unchanged();
  }

  // From Recheck on, of a transaction that has written.
  Timestamp read_timestamp() const { return serializable_ ? Timestamp(end_.value() - 1) : begin_; }
  Timestamp end_timestamp() const { return end_; }

  void Install() {
    if constexpr (!Base::kInHeap) {
      for (const auto& write : this->writes()) {
        if (write.written) Supersede(write);
      }
    }
    Base::Install();
  }

  void Release() {
    if (is_writer_) {
      this->ReleaseWrites(HekatonWord::WrittenAt(end_));
      timestamps_.EndWriting(this->worker());
      timestamps_.End(this->worker());
      CollectVersions();
    } else {
      this->QueueMisses();
      timestamps_.End(this->worker());
    }
  }

  void Abort() {
    Base::Abort();
    if constexpr (kDrawsStamps<Log>) this->log().Undrawn(this->log_state());
    if (is_writer_) timestamps_.EndWriting(this->worker());
    timestamps_.End(this->worker());
  }

 private:
  using Base = OptimisticAccesses<Log, Hekaton<Log>>;
  friend Base;

  static constexpr uint32_t kCommitsPerWatermark = 16;
  // A transaction that has read more does not re-validate its read set to raise its begin timestamp.
  static constexpr size_t kReadsToMoveUp = 16;

  // Where the version is that this transaction sees.
  enum class Place { kRow, kChain, kNowhereYet, kElsewhere };

  void Draw() {
    if constexpr (kDrawsStamps<Log>) this->log().Announce(this->log_state());
    end_ = timestamps_.Draw(this->worker());
    if constexpr (kDrawsStamps<Log>) this->log().Drawn(this->log_state(), end_);
  }

  static uint64_t Version(uint64_t control) { return control & ~Row::kQueued; }
  uint64_t LockBits() const { return HekatonWord::LockedBy(this->worker()); }
  static uint64_t FreshControl(const BTreeLeaf*) { return Row::kAbsent; }
  static uint64_t GapControl(uint64_t) { return 0; }

  Atomic<RowVersion*>& HeadOf(Row& row) const { return VersionChainOf(row, meta_bytes_); }

  static bool StillHolds(const Row& row, uint64_t seen) {
    CompilerBarrier();
    return HekatonWord::Content(row.control.load(std::memory_order_acquire)) == HekatonWord::Content(seen);
  }

  Place PlaceOf(const Row& row, uint64_t seen) const {
    if (seen & (Row::kLocked | Row::kGone)) return PlaceInLocked(row, seen);
    return HekatonWord::Begin(seen) <= begin_ ? Place::kRow : Place::kChain;
  }
  Place PlaceInLocked(const Row& row, uint64_t seen) const {
    // Unlinked: the key has another row, or none.
    if (seen & Row::kGone) return Place::kElsewhere;
    if (HekatonWord::Begin(seen) > begin_) return Place::kChain;
    const Timestamp end = timestamps_.EndOf(HekatonWord::Holder(seen));
    if (end <= begin_) return Place::kNowhereYet;
    // A read of the row counts only if the word is the same afterwards. Then the slot was of this lock.
    if (!(seen & HekatonWord::kInstalling)) return Place::kRow;
    return Version(row.control.load(std::memory_order_acquire)) == Version(seen) ? Place::kChain : Place::kNowhereYet;
  }

  // Of a present row, as its word was seen: a read counts only if the word is the same afterwards.
  template <class Visit>
  void ShowNewest(const Table& table, Row* row, Visit&& visit) {
    if constexpr (Base::kInHeap) {
      // A version never changes. Its slot is not used anew while this snapshot may see it.
      visit(TupleReader(table.versions_of(row).VisibleAt(begin_)->tuple()));
    } else {
      visit(RacyTupleReader(table.tuple_in(row)));
    }
  }
  void CopyNewest(const Table& table, Row* row) {
    if constexpr (Base::kInHeap) {
      this->CopyScanned(table, table.versions_of(row).VisibleAt(begin_)->tuple());
    } else {
      this->CopyScanned(table, table.tuple_in(row));
    }
  }
  HeapSlot* VersionSeen(const Table& table, Row* row, uint64_t seen) const {
    // A row that was loaded or adopted has no begin timestamp in its word; its version is older than all snapshots.
    return table.versions_of(row).VisibleAt(
        std::max({HekatonWord::Begin(seen), timestamps_.first(), Timestamp(heap_format::kLoadStamp)}));
  }
  Timestamp stamp() const { return end_; }
  bool FreeTombstone(Table& table, Row* row, uint64_t control) {
    if (HekatonWord::Begin(control) > this->log().durable_until()) return false;
    return this->heap().FreeTombstone(table, row);
  }

  template <class Visit>
  Outcome ReadOld(const Table& table, Row& row, Visit&& visit) {
    if (!MayReadOld()) return Outcome::kConflict;
    const std::byte* const tuple = OldTuple(table, row);
    if (tuple == nullptr) return Outcome::kNotFound;
    visit(TupleReader(tuple));
    return Outcome::kOk;
  }

  // A transaction that has written may read the newest only.
  bool MayReadOld() {
    if (serializable_ && !this->writes().empty()) return false;
    has_read_old_ = true;
    return true;
  }
  // The tuple of the version of the chain that is visible; nullptr: an absent one.
  const std::byte* OldTuple(const Table& table, Row& row) {
    if constexpr (Base::kInHeap) {
      HeapSlot* const old = table.versions_of(&row).VisibleAt(begin_);
      return old == nullptr || old->absent() ? nullptr : old->tuple();
    }
    RowVersion* const old = OldVersion(table, row);
    return old->absent ? nullptr : old->tuple(meta_bytes_);
  }
  RowVersion* OldVersion(const Table& table, Row& row) {
    // Acquire: pairs with the release that linked it.
    RowVersion* version = HeadOf(row).load(std::memory_order_acquire);
    while (version->begin > begin_) version = version->older;
    ASSERT(version->begin <= begin_ && begin_ < version->end);
    this->OnRead({table, row.key, version->meta()});
    return version;
  }

  // As Read. A key that is not in the leaf was absent in the snapshot: rows are unlinked and created only where it is
  // absent in every snapshot.
  template <class Visit>
  ScanStep ScanRow(Table& table, const BTreeEntry& entry, Visit& visit) {
    Row* const row = entry.row;
    if (const auto* own = this->FindOwn(row)) {
      return own->present ? this->Show(entry, this->Image(*own), visit) : ScanStep::kGoOn;
    }
    for (SpinWait wait;; wait.Wait()) {
      const uint64_t seen = row->control.load(std::memory_order_acquire);
      const Place place = PlaceOf(*row, seen);
      if (place == Place::kRow) {
        if (!(seen & Row::kAbsent)) CopyNewest(table, row);
        this->OnRead({table, entry.key, row->meta()});
        if (!StillHolds(*row, seen)) continue;
        if (serializable_) this->NoteRead(row, HekatonWord::Content(seen));
        return this->EndScanRow(table, entry, seen, visit);
      }
      if (place == Place::kChain) {
        if (HekatonWord::Begin(seen) > begin_ && MoveUp()) continue;
        if (!MayReadOld()) return ScanStep::kConflict;
        const std::byte* const tuple = OldTuple(table, *row);
        return tuple == nullptr ? ScanStep::kGoOn : this->Show(entry, tuple, visit);
      }
      // A row that is gone has changed its leaf, or will have.
      if (place == Place::kElsewhere || wait.yielding()) return ScanStep::kConflict;
    }
  }

  // Takes the present as begin timestamp, if all accessed versions are visible there too: they are the newest still,
  // and not locked by a transaction that may end below.
  bool MoveUp() {
    if (!serializable_ || has_read_old_ || this->reads().size() > kReadsToMoveUp) return false;
    const Timestamp now = timestamps_.Now();
    const auto holds = [](const auto& access) {
      return Version(access.row->control.load(std::memory_order_acquire)) == Version(access.seen);
    };
    if (!std::all_of(this->reads().begin(), this->reads().end(), holds)) return false;
    if (!std::all_of(this->writes().begin(), this->writes().end(), holds)) return false;
    if (!this->leaves().Unchanged()) return false;
    begin_ = now;
    return true;
  }

  // The newest version is the one that this transaction sees.
  bool MayWrite(uint64_t seen) {
    if (serializable_ && has_read_old_) return false;
    return HekatonWord::Begin(seen) <= begin_ || MoveUp();
  }

  // Puts the version that is about to be overwritten into the chain, with its metadata.
  void Supersede(const typename Base::Write& write) {
    const bool absent = write.seen & Row::kAbsent;
    const size_t tuple_bytes = absent ? 0 : write.table->tuple_bytes();
    RowVersion* const old = versions_.Take(meta_bytes_ + tuple_bytes);
    old->begin = HekatonWord::Begin(write.seen);
    old->end = end_;
    old->absent = absent;
    // Readers may be raising it.
    RacyCopy(old->meta(), write.row->meta(), meta_bytes_);
    std::memcpy(old->tuple(meta_bytes_), write.table->tuple_in(write.row), tuple_bytes);
    Atomic<RowVersion*>& head = HeadOf(*write.row);
    old->older = head.load(std::memory_order_relaxed);
    head.store(old, std::memory_order_release);
    // Release: a reader that sees it sees the chain. All overwriting is after it.
    write.row->control.store(write.seen | LockBits() | HekatonWord::kInstalling, std::memory_order_release);
    CompilerBarrier();
    versions_.Retire(old);
  }

  void CollectVersions() {
    if (++commits_ >= commits_per_watermark_) {
      commits_ = 0;
      watermark_ = timestamps_.Watermark();
      this->log().RaiseWatermark(watermark_);
    }
    if constexpr (Base::kInHeap) {
      this->heap().Collect(std::min(watermark_, this->log().durable_until()));
    } else {
      versions_.Collect(watermark_);
    }
  }

  // No snapshot lies below the absence, so none needs an earlier version.
  bool PrepareToForget(const Table&, uint64_t control) {
    if (HekatonWord::Begin(control) <= watermark_) return true;
    watermark_ = timestamps_.Watermark();
    return HekatonWord::Begin(control) <= watermark_;
  }

  SnapshotClock& timestamps_;
  VersionStore& versions_;
  const bool serializable_;
  const size_t meta_bytes_;  // of the log, rounded up
  const uint32_t commits_per_watermark_;
  Timestamp begin_;
  Timestamp end_;
  bool has_read_old_ = false;
  bool is_writer_ = false;
  uint32_t commits_ = 0;  // since the watermark was last read
  Timestamp watermark_;
};

}  // namespace dbx
