// Two-phase locking. The parameter `Policy` decides at a conflicting lock: abort (no_wait.h), or wait under a rule that
// prevents or breaks deadlocks (wait_die.h, dl_detect.h).
//
// Strict: every lock is held until Release or Abort, so the read set stays valid, and the lock of an absent row
// protects its key. Gaps between rows have no lock: validation at commit (Silo's phase 2) finds phantoms in scanned
// gaps (scanned_leaves.h), and a transaction that fails there repeatedly holds their leaves (held_leaves.h). Updates
// are made in place, with before-images of the changes, or through a log that appends them one by one, or in private
// copies which become new versions of the rows in a persistent heap (changes.h). `PlacesOver` decides whether locks and
// log metadata are in the rows or in a lock table of active rows.
//
// One object per worker. A row that the transaction has locked before is recognised only when a lock is refused: the
// common path searches nothing.
//
// Nothing waits for a lock after LockWrites, and a worker waits for one at a time, within Read, Update, Insert, Delete
// or Scan.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/epoch.h"
#include "base/outcome.h"
#include "base/spin.h"
#include "concurrency_control/absent_rows.h"
#include "concurrency_control/changes.h"
#include "concurrency_control/contract.h"
#include "concurrency_control/fetch_rows.h"
#include "concurrency_control/held_leaves.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/scanned_leaves.h"
#include "storage/tuple.h"

namespace dbx {

template <LogObserver Log, template <class> class PlacesOver, class Policy>
class TwoPhaseLocking {
 public:
  // Where a row's lock and log metadata are, and the type of the lock.
  using Places = PlacesOver<Log>;
  using Locks = typename Policy::template Locks<Places>;
  using Held = HeldLeaves<Locks, Policy::kWaits>;
  static constexpr CcTraits kTraits = {.name = Policy::kName,
                                       .multi_version = false,
                                       .commit_order = CommitOrder::kPhysical,
                                       .reads_are_locked = true,
                                       .copies_writes = Changes<Log>::kCopies,
                                       .lock_table = Locks::kLockTable,
                                       .detects_deadlocks = Policy::kDetectsDeadlocks};

  class Shared {
   public:
    Shared(Log& log, EpochClock& clock, uint64_t lock_table_buckets, const Atomic<bool>& stop)
        : log(log),
          clock(clock),
          locks(log, lock_table_buckets),
          policy(clock.workers()),
          held(clock.workers()),
          stop(stop) {}
    size_t memory_bytes() const { return locks.memory_bytes(); }

    Log& log;
    EpochClock& clock;
    typename Places::Shared locks;
    typename Policy::Shared policy;
    typename Held::Shared held;
    const Atomic<bool>& stop;
  };
  static constexpr size_t kRowBytes = Changes<Log>::kRowBytes;

  TwoPhaseLocking(Shared& shared, typename Log::TxnState& log_state, WorkerId worker)
      : log_(shared.log),
        log_state_(log_state),
        clock_(shared.clock),
        worker_(worker),
        locks_(MakeLocks(shared, worker)),
        held_(shared.held, locks_, worker),
        changes_(shared.log, log_state, worker),
        absent_rows_(shared.clock, worker) {
    accesses_.reserve(kAccessesReserved);
  }

  void Begin(TxnId txn) {
    accesses_.clear();
    leaves_.Clear();
    changes_.Begin(txn);
    writes_ = 0;
    if (absent_rows_.size() > 0 && ++begins_ % kTxnsPerSweep == 0) {
      if constexpr (Policy::kWaits) locks_.BeginSweep();
      absent_rows_.Sweep([this](Table& table, Row* row) { return TryRetire(table, row); });
    }
    if constexpr (Policy::kWaits) locks_.Begin(txn);
    held_.Begin(txn);
  }

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    Access* access = LockShared(table, key);
    if (access == nullptr) return Outcome::kConflict;
    if (!access->present) return Outcome::kNotFound;
    visit(TupleReader(changes_.TupleOf(table, access->row, *access)));
    return Outcome::kOk;
  }

  template <class Change>
  Outcome Update(Table& table, Key key, Change&& change) {
    Access* access = LockExclusive(table, key);
    if (access == nullptr) return Outcome::kConflict;
    if (!access->present) return Outcome::kNotFound;
    const bool again = MarkWritten(*access, true);
    changes_.Update(table, *access, again, change);
    return Outcome::kOk;
  }

  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    ASSERT(tuple.size() == table.tuple_bytes());
    Access* access = LockExclusive<Expect::kNoRow>(table, key);
    if (access == nullptr) return Outcome::kConflict;
    if (access->present) return Outcome::kExists;
    const bool again = MarkWritten(*access, true);
    changes_.Insert(table, *access, again, tuple);
    return Outcome::kOk;
  }

  Outcome Delete(Table& table, Key key) {
    Access* access = LockExclusive(table, key);
    if (access == nullptr) return Outcome::kConflict;
    if (!access->present) return Outcome::kNotFound;
    const bool again = MarkWritten(*access, false);
    changes_.Delete(table, *access, again);
    return Outcome::kOk;
  }

  template <class Visit>
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, Visit&& visit) {
    // All rows, before a leaf of the table is held (held_leaves.h): others would need room in it.
    FetchForScan<Log>(worker_, table, 0, ~Key{0});
    const auto enter = [this](const LeafRef& found) { return held_.Enter(found); };
    return leaves_.Scan(log_, log_state_, table, low, high, order, enter, [&](const BTreeEntry& entry) {
      Access* access = nullptr;
      // A row that is gone has changed its leaf, or will have.
      const LockResult locked = LockShared(table, entry.row, entry.key, access);
      if (locked == LockResult::kGone) held_.NoteFailedScan();
      if (locked != LockResult::kOk) return ScanStep::kConflict;
      if (!access->present) return ScanStep::kGoOn;
      return visit(entry.key, TupleReader(changes_.TupleOf(table, entry.row, *access))) ? ScanStep::kGoOn
                                                                                        : ScanStep::kEnd;
    });
  }

  bool read_only() const { return writes_ == 0; }
  bool LockWrites() { return true; }
  bool Recheck() {
    if (leaves_.Unchanged()) return true;
    held_.NoteFailedScan();
    return false;
  }

  template <class Visit>
  void ForEachRead(Visit&& visit) {
    for (Access& access : accesses_) {
      if (!access.written) visit(locks_.meta(access.lock));
    }
    for (const ScannedLeaves::Leaf& leaf : leaves_.leaves()) visit(leaf.ref.leaf->meta());
  }
  template <class Visit>
  void ForEachWrite(Visit&& visit) const {
    for (const Access& access : accesses_) {
      if (!access.written) continue;
      visit(WriteRef{access.table, access.row->key, !access.present,
                     changes_.TupleOf(*access.table, access.row, access), locks_.meta(access.lock)});
    }
  }

  template <class Visit>
  void ForEachChange(std::vector<ByteRange>& ranges, Visit&& visit) const {
    for (const Access& access : accesses_) {
      if (!access.written) continue;
      const std::byte* const tuple = changes_.TupleOf(*access.table, access.row, access);
      // Install will change it.
      const bool was_present = (access.row->control.load(std::memory_order_relaxed) & Row::kAbsent) == 0;
      // Of an update alone: it searches all before-images of the transaction.
      ranges.clear();
      if (was_present && access.present) changes_.RangesOf(tuple, access.table->tuple_bytes(), ranges);
      visit(WriteRef{access.table, access.row->key, !access.present, tuple, locks_.meta(access.lock)}, was_present);
    }
  }

  void Install() {
    changes_.Install(accesses_);
    for (Access& access : accesses_) {
      if (access.written) SetPresence(access);
    }
  }

  void Release() {
    for (Access& access : accesses_) {
      QueueIfAbsent(access);
      if (access.exclusive) {
        locks_.ReleaseExclusive(access.lock, access.row);
      } else {
        locks_.ReleaseShared(access.lock);
      }
    }
    held_.End();
    if (writes_ > 0) changes_.Collect();
  }

  void Abort() {
    changes_.Undo();
    Release();
  }

 private:
  static constexpr size_t kAccessesReserved = 64;
  static constexpr uint64_t kTxnsPerSweep = 64;

  struct LockedRow {
    Row* row;
    Table* table;
    typename Locks::Handle lock;
    bool exclusive;
    bool written;
    bool present;  // as this transaction sees the row
  };
  using Access = typename Changes<Log>::template AccessOf<LockedRow>;

  static Locks MakeLocks(Shared& shared, WorkerId worker) {
    if constexpr (Policy::kWaits) {
      return Locks(shared.locks, shared.policy, shared.stop, worker);
    } else {
      return Locks(shared.locks);
    }
  }

  // Inlined, or else scans slow down reads by key.
  [[gnu::always_inline]] LockResult LockShared(Table& table, Row* row, Key key, Access*& access) {
    typename Locks::Handle lock;
    LockResult result = locks_.TryShared(row, lock);
    if (result == LockResult::kConflict) {
      access = FindOwn(row);
      if (access != nullptr) return LockResult::kOk;
      if constexpr (Policy::kWaits) result = locks_.AwaitShared(row, lock);
    }
    if (result != LockResult::kOk) return result;
    log_.OnRead(log_state_, {table, key, locks_.meta(lock)});
    access = Add(table, row, lock, false);
    return LockResult::kOk;
  }

  // Both return the access of the locked row, or nullptr on a conflict.
  Access* LockShared(Table& table, Key key) {
    Access* access = nullptr;
    for (SpinWait gone;; gone.Wait()) {
      Row* const row = FindOrCreate(table, key);
      if (row == nullptr) return nullptr;
      switch (LockShared(table, row, key, access)) {
        case LockResult::kOk:
          return access;
        case LockResult::kConflict:
          return nullptr;
        case LockResult::kGone:
          break;
      }
    }
  }

  template <Expect kExpect = Expect::kRow>
  Access* LockExclusive(Table& table, Key key) {
    typename Locks::Handle lock;
    for (SpinWait gone;; gone.Wait()) {
      Row* const row = FindOrCreate<kExpect>(table, key);
      if (row == nullptr) return nullptr;
      LockResult result = locks_.TryExclusive(row, lock);
      if (result == LockResult::kConflict) {
        if (Access* own = FindOwn(row)) return own->exclusive ? own : Upgrade(own);
        if constexpr (Policy::kWaits) result = locks_.AwaitExclusive(row, lock);
      }
      switch (result) {
        case LockResult::kOk:
          log_.OnWrite(log_state_, {table, key, locks_.meta(lock)});
          return Add(table, row, lock, true);
        case LockResult::kConflict:
          return nullptr;
        case LockResult::kGone:
          break;
      }
    }
  }

  // An ordered table's look-up for an insert descends the tree once. nullptr: a conflict, as another transaction holds
  // the leaf in which the row would be.
  template <Expect kExpect = Expect::kRow>
  Row* FindOrCreate(Table& table, Key key) {
    if (kExpect == Expect::kNoRow && table.ordered()) return FindOrCreateInLeaf(table, key);
    if (Row* row = table.Find(key)) return row;
    if (table.ordered()) return FindOrCreateInLeaf(table, key);
    FetchOnMiss<Log>(worker_, table, key);
    return table.FindOrCreate(worker_, key, [this](Row& row) {
      locks_.InitFreshMeta(log_, row);
      row.control.store(Row::kAbsent, std::memory_order_release);
    });
  }

  // The row inherits the metadata of the gap that it appears in.
  [[gnu::noinline]] Row* FindOrCreateInLeaf(Table& table, Key key) {
    FetchOnMiss<Log>(worker_, table, key);
    const auto init = [this](Row& row, BTreeLeaf& leaf) {
      locks_.InitFreshMeta(log_, row, leaf.meta());
      row.control.store(Row::kAbsent, std::memory_order_release);
    };
    for (LeafChange change;;) {
      Row* const row = table.FindOrCreate(worker_, key, init, change, held_.own_name());
      if (row == nullptr) {
        if (!held_.AwaitEnd(change.held_by)) return nullptr;
        continue;
      }
      held_.EndWaits();
      held_.NoteSplit(change);
      leaves_.NoteCreated(row, change);
      return row;
    }
  }

  Access* Add(Table& table, Row* row, typename Locks::Handle lock, bool exclusive) {
    const bool present = (row->control.load(std::memory_order_relaxed) & Row::kAbsent) == 0;
    if (!present) leaves_.NoteAbsent(row);
    accesses_.push_back(Access{LockedRow{row, &table, lock, exclusive, false, present}});
    return &accesses_.back();
  }

  // The first access of a row that this transaction has locked.
  Access* FindOwn(Row* row) {
    for (Access& access : accesses_) {
      if (access.row == row) return &access;
    }
    return nullptr;
  }

  // `own` is shared. A row that was read more than once has as many shares: one becomes the exclusive lock, the others,
  // which are behind it in the list, are released.
  Access* Upgrade(Access* own) {
    Row* const row = own->row;
    const auto behind = accesses_.begin() + (own - accesses_.data()) + 1;
    accesses_.erase(std::remove_if(behind, accesses_.end(),
                                   [&](const Access& access) {
                                     if (access.row != row) return false;
                                     locks_.ReleaseShared(access.lock);
                                     return true;
                                   }),
                    accesses_.end());
    if (locks_.Upgrade(row, own->lock) != LockResult::kOk) return nullptr;
    own->exclusive = true;
    log_.OnWrite(log_state_, {*own->table, row->key, locks_.meta(own->lock)});
    return own;
  }

  // True: this transaction has written it before.
  bool MarkWritten(Access& access, bool present) {
    const bool again = access.written;
    if (!again) ++writes_;
    access.written = true;
    access.present = present;
    return again;
  }

  static void SetPresence(const Access& access) {
    Locks::Flags::Change(access.row, access.present ? 0 : Row::kAbsent, access.present ? Row::kAbsent : 0);
  }

  // Before unlocking: afterwards another worker could unlink the row.
  void QueueIfAbsent(const Access& access) {
    const uint64_t control = access.row->control.load(std::memory_order_relaxed);
    if ((control & (Row::kAbsent | Row::kQueued)) != Row::kAbsent) return;
    if (Locks::Flags::MarkQueued(access.row)) absent_rows_.Add(*access.table, access.row);
  }

  RetireResult TryRetire(Table& table, Row* row) {
    typename Locks::Handle lock;
    if (locks_.TryExclusive(row, lock) != LockResult::kOk) return RetireResult::kNotYet;
    const uint64_t control = row->control.load(std::memory_order_relaxed);
    if ((control & Row::kAbsent) == 0) {
      Locks::Flags::Change(row, 0, Row::kQueued);
      locks_.ReleaseExclusive(lock, row);
      return RetireResult::kPresent;
    }
    // In an ordered table its metadata is handed to the gap. There scans read absent rows, and as readers keep metadata
    // from being forgotten, rows that had to be forgettable first would never be unlinked. Where records name slots,
    // scans keep nothing, and a slot is free for another key only once its delete is durable.
    const bool must_be_forgettable = !table.ordered() || kAppendsChanges<Log>;
    if (must_be_forgettable && !locks_.MayForget(log_, lock)) {
      locks_.ReleaseExclusive(lock, row);
      return RetireResult::kNotYet;
    }
    if (!changes_.FreeTombstone(table, row)) {
      locks_.ReleaseExclusive(lock, row);
      return RetireResult::kNotYet;
    }
    const auto mark_gone = [row] { Locks::Flags::Change(row, Row::kGone, 0); };
    if (!table.ordered()) {
      mark_gone();
      table.Unlink(row);
    } else if (!UnlinkFromLeaf(log_, clock_, worker_, table, row, locks_.meta(lock), 0, mark_gone)) {
      locks_.ReleaseExclusive(lock, row);
      return RetireResult::kNotYet;
    }
    locks_.ReleaseGone(lock, row);
    return RetireResult::kRetired;
  }

  Log& log_;
  typename Log::TxnState& log_state_;
  EpochClock& clock_;
  const WorkerId worker_;
  Locks locks_;
  Held held_;
  std::vector<Access> accesses_;
  ScannedLeaves leaves_;
  Changes<Log> changes_;
  uint32_t writes_ = 0;
  uint64_t begins_ = 0;
  AbsentRows absent_rows_;
};

}  // namespace dbx
