// The context in which a command record with timestamps runs again, in multi-version replay (Taurus, section 4.4;
// models TxnContext).
//
// A record has its transaction's read timestamp (r) and commit timestamp (e > r). It reads the versions that are
// visible at r, and its versions begin at e, over the newest version, which is put into the version chain of its row
// (storage/version_store.h). The log orders the writers of a row, and readers behind the writers that they read from.
// It does not order anti-dependencies: a transaction that overwrites what another has read may be replayed first, or at
// the same time.
//
// So, of a row and the transaction that is being replayed,
//  - the version visible at r is there, in the row or in its chain; versions that it must not see begin above r;
//  - if it writes the row, the version in the row is the one that it saw, and no other transaction writes the row
//    meanwhile. Where that does not hold, no engine has written the log: kConflict;
//  - a writer links the old version into the chain, then raises the row's word to e, and only then changes the tuple. A
//    reader of the row itself re-checks the word afterwards.
//
// A transaction recognises its own writes by the word, which begins at e: timestamps of transactions differ.
//
// Absence: a row that is created begins at 0, and the end of a chain, if it is read, means that there was none before.
// A delete leaves a tombstone, absent from e on; in an ordered table it is unlinked when no transaction reads below
// that any more, so that scans do not meet every tombstone ever left. Its memory stays, as others may have found it.
//
// Memory: versions that ended at or below the watermark of the replay (logging/replay_lanes.h) are free.
//
// The rows are handed over to a run that continues this one: their words have their writers' timestamps, and its
// timestamps are larger (SnapshotClock::StartAfter), so none of its transactions follows a chain into freed memory.
//
// Threads: one per worker; the versions outlive all of them.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "base/epoch.h"
#include "base/racy.h"
#include "base/spin.h"
#include "base/types.h"
#include "benchmarks/txn_context.h"
#include "concurrency_control/hekaton_word.h"
#include "logging/format.h"
#include "storage/row.h"
#include "storage/table.h"
#include "storage/tuple.h"
#include "storage/version_store.h"

namespace dbx {

class VersionedReplayTransaction {
 public:
  VersionedReplayTransaction(WorkerId worker, VersionStore& versions) : worker_(worker), versions_(versions) {}

  void Begin(Timestamp read_timestamp, Timestamp end_timestamp) {
    ASSERT(read_timestamp < end_timestamp && end_timestamp <= Timestamp(format::kTimestampMax));
    read_ = read_timestamp;
    end_ = end_timestamp;
  }

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    Row* const row = table.Find(key);
    if (row == nullptr) return Outcome::kNotFound;
    for (;;) {
      // Acquire: the tuple and the chain of this version are visible.
      const uint64_t seen = row->control.load(std::memory_order_acquire);
      if (!Sees(seen)) {
        const RowVersion* const old = OldVersion(table, *row);
        if (IsAbsent(old)) return Outcome::kNotFound;
        visit(TupleReader(TupleOf(old)));
        return Outcome::kOk;
      }
      if (seen & Row::kAbsent) return Outcome::kNotFound;
      visit(RacyTupleReader(table.tuple(row)));
      if (StillAt(*row, seen)) return Outcome::kOk;
    }
  }

  template <class Change>
  Outcome Update(Table& table, Key key, Change&& change) {
    Row* const row = table.Find(key);
    if (row == nullptr) return Outcome::kNotFound;
    const Outcome writable = MakeOwn(table, *row);
    if (writable != Outcome::kOk) return writable;
    NoSink sink;
    TupleWriter<NoSink> tuple(table.tuple(row), sink);
    change(tuple);
    return Outcome::kOk;
  }

  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    for (SpinWait gone;; gone.Wait()) {
      Row* const row = table.FindOrCreate(
          worker_, key, [](Row& made) { made.control.store(Row::kAbsent, std::memory_order_relaxed); });
      uint64_t seen = row->control.load(std::memory_order_acquire);
      if (IsPresent(table, *row, seen)) return Outcome::kExists;
      if (!Sees(seen)) return Outcome::kConflict;
      // The worker that unlinks it has marked it first, and erases it soon; then there is another.
      if (seen & Row::kGone) continue;
      if (seen & Row::kLocked) return Outcome::kConflict;
      if (!TryLock(*row, seen)) continue;
      if (!IsOwn(seen) && !IsFresh(seen)) Supersede(table, *row, seen);
      SetWord(*row, HekatonWord::WrittenAt(end_) | Row::kAbsent | Row::kLocked);
      std::memcpy(table.tuple(row), tuple.data(), tuple.size());
      SetWord(*row, HekatonWord::WrittenAt(end_));
      return Outcome::kOk;
    }
  }

  Outcome Delete(Table& table, Key key) {
    Row* const row = table.Find(key);
    if (row == nullptr) return Outcome::kNotFound;
    const Outcome writable = MakeOwn(table, *row);
    if (writable != Outcome::kOk) return writable;
    SetWord(*row, HekatonWord::WrittenAt(end_) | Row::kAbsent);
    if (table.ordered()) deleted_.push_back({&table, row, end_});
    return Outcome::kOk;
  }

  // Other workers concurrently replay transactions that the log does not order against this one: rows are inserted and
  // unlinked. The tuple is copied, as it is shown once.
  template <class Visit>
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, Visit&& visit) {
    if (scanned_tuple_.size() < table.tuple_bytes()) scanned_tuple_.resize(table.tuple_bytes());
    ScanEntries(table.tree(), low, high, order, [&](const BTreeEntry& entry) {
      const std::byte* const tuple = StableTuple(table, *entry.row);
      return tuple == nullptr || visit(entry.key, TupleReader(tuple));
    });
    return Outcome::kOk;
  }

  // Garbage collection: no transaction that is being replayed, or will be, reads below the watermark.
  void Collect(Timestamp watermark) {
    versions_.Collect(watermark);
    while (!deleted_.empty() && deleted_.front().end <= watermark) {
      TryUnlink(deleted_.front());
      deleted_.pop_front();
    }
  }

 private:
  struct Deleted {
    Table* table;
    Row* row;
    Timestamp end;  // of the transaction that deleted it
  };

  bool IsOwn(uint64_t word) const { return HekatonWord::Begin(word) == end_; }
  bool Sees(uint64_t word) const { return HekatonWord::Begin(word) <= read_ || IsOwn(word); }
  // Never written, and without a chain.
  static bool IsFresh(uint64_t word) { return HekatonWord::Begin(word) == Timestamp() && (word & Row::kAbsent); }
  static bool StillAt(const Row& row, uint64_t seen) {
    CompilerBarrier();
    return row.control.load(std::memory_order_acquire) == seen;
  }
  // Release: a reader that sees the word sees the chain, and the tuple that belongs to it. All later changes are after
  // it.
  static void SetWord(Row& row, uint64_t word) {
    CompilerBarrier();
    row.control.store(word, std::memory_order_release);
    CompilerBarrier();
  }
  // Excludes workers that unlink an absent row, and writers that the log does not order, which no engine has written.
  // Readers are not affected.
  static bool TryLock(Row& row, uint64_t seen) {
    return row.control.compare_exchange_strong(seen, seen | Row::kLocked, std::memory_order_acq_rel);
  }

  static const std::byte* TupleOf(const RowVersion* version) {
    return reinterpret_cast<const std::byte*>(version + 1);  // without metadata
  }
  static bool IsAbsent(const RowVersion* version) { return version == nullptr || version->absent; }
  // The version of the chain that is visible; nullptr: there was none.
  const RowVersion* OldVersion(const Table& table, Row& row) const {
    // Acquire: pairs with the release that linked it.
    const RowVersion* version = VersionChainOf(row, table.layout().log_bytes).load(std::memory_order_acquire);
    while (version != nullptr && version->begin > read_) version = version->older;
    return version;
  }
  bool IsPresent(const Table& table, Row& row, uint64_t seen) const {
    return Sees(seen) ? (seen & Row::kAbsent) == 0 : !IsAbsent(OldVersion(table, row));
  }

  // Makes a row that the transaction sees its own, for changes in place.
  Outcome MakeOwn(const Table& table, Row& row) {
    const uint64_t seen = row.control.load(std::memory_order_acquire);
    if (!IsPresent(table, row, seen)) return Outcome::kNotFound;
    if (!Sees(seen)) return Outcome::kConflict;
    if (IsOwn(seen)) return Outcome::kOk;
    if ((seen & Row::kLocked) || !TryLock(row, seen)) return Outcome::kConflict;
    Supersede(table, row, seen);
    SetWord(row, HekatonWord::WrittenAt(end_));
    return Outcome::kOk;
  }

  // Puts the row's version into the chain.
  void Supersede(const Table& table, Row& row, uint64_t seen) {
    const bool absent = seen & Row::kAbsent;
    const size_t tuple_bytes = absent ? 0 : table.tuple_bytes();
    RowVersion* const old = versions_.Take(tuple_bytes);
    old->begin = HekatonWord::Begin(seen);
    old->end = end_;
    old->absent = absent;
    std::memcpy(old->tuple(0), table.tuple(&row), tuple_bytes);
    Atomic<RowVersion*>& head = VersionChainOf(row, table.layout().log_bytes);
    old->older = head.load(std::memory_order_relaxed);
    head.store(old, std::memory_order_release);
    versions_.Retire(old);
  }

  // The tuple that the transaction sees in a row, until its next access; nullptr: absent.
  const std::byte* StableTuple(const Table& table, Row& row) {
    for (;;) {
      const uint64_t seen = row.control.load(std::memory_order_acquire);
      if (!Sees(seen)) {
        const RowVersion* const old = OldVersion(table, row);
        return IsAbsent(old) ? nullptr : TupleOf(old);
      }
      if (seen & Row::kAbsent) return nullptr;
      if (IsOwn(seen)) return table.tuple(&row);
      RacyCopy(scanned_tuple_.data(), table.tuple(&row), table.tuple_bytes());
      if (StillAt(row, seen)) return scanned_tuple_.data();
    }
  }

  void TryUnlink(const Deleted& deleted) {
    uint64_t word = HekatonWord::WrittenAt(deleted.end) | Row::kAbsent;
    const uint64_t gone = word | Row::kLocked | Row::kGone;
    // It has been inserted again, or was deleted twice by the same transaction.
    if (!deleted.row->control.compare_exchange_strong(word, gone, std::memory_order_acq_rel)) return;
    LeafChange change;
    deleted.table->Unlink(
        deleted.row, [](BTreeLeaf&) {}, change);
    if (!change.emptied) return;
    deleted.table->UnlinkEmptyLeaf(deleted.row->key, stopped_clock_, WorkerId(0), [](BTreeLeaf&, BTreeLeaf&) {});
  }

  WorkerId worker_;
  VersionStore& versions_;
  Timestamp read_;
  Timestamp end_;
  std::vector<std::byte> scanned_tuple_;
  std::deque<Deleted> deleted_;  // of ordered tables
  // A stopped clock: no unlinked leaf is reused during replay.
  EpochClock stopped_clock_{1};
};
static_assert(TxnContext<VersionedReplayTransaction>);
static_assert(HekatonWord::Begin(~uint64_t{0}) == Timestamp(format::kTimestampMax));

}  // namespace dbx
