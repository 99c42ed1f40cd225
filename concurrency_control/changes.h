// How a transaction under two-phase locking changes the rows that it has locked, one class for each way:
//   in place, with before-images by which an abort undoes the changes (undo_log.h);
//   through its log, which appends a record of each change when it makes it and takes the changes back itself
//     (LogTraits::appends_changes);
//   in private copies, of which new versions are made at commit, where rows have versions in a persistent heap
//     (LogTraits::version_heap; new_versions.h). Of a row's versions the newest alone is read, by transactions with a
//     lock of the row. The version before is the before-image, until the new one is durable.
//
// An `AccessOf` a locked row (two_phase_locking.h) has it, and whether it is `written` and `present`, both as the
// change leaves them. `again`: the transaction has written the row before. Owned by one worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "concurrency_control/contract.h"
#include "concurrency_control/log_observer.h"
#include "concurrency_control/new_versions.h"
#include "concurrency_control/undo_log.h"
#include "storage/byte_range.h"
#include "storage/table.h"
#include "storage/touched_words.h"
#include "storage/tuple.h"

namespace dbx {

// Changes whose tuples lie in the rows.
class ChangesInRows {
 public:
  static constexpr size_t kRowBytes = 0;
  static constexpr bool kCopies = false;
  template <class LockedRow>
  using AccessOf = LockedRow;

  static const std::byte* TupleOf(const Table& table, Row* row, const auto&) { return table.tuple_in(row); }
  // There are no versions to make or to free.
  static void Install(const auto&) {}
  static void Collect() {}
  static constexpr bool FreeTombstone(Table&, Row*) { return true; }
};

template <class Log>
class Changes : public ChangesInRows {
 public:
  Changes(Log&, typename Log::TxnState&, WorkerId) {}

  // Before the first change of a transaction.
  void Begin(TxnId) { undo_.Clear(); }

  void Update(Table& table, auto& access, bool, auto&& change) {
    TupleWriter<UndoLog> tuple(table.tuple_in(access.row), undo_);
    change(tuple);
  }
  void Insert(Table& table, auto& access, bool again, std::span<const std::byte> tuple) {
    std::byte* const at = table.tuple_in(access.row);
    // Only a row that this transaction has deleted itself holds bytes that an abort must bring back.
    if (again) undo_.BeforeChange(at, tuple.size());
    std::memcpy(at, tuple.data(), tuple.size());
  }
  // The presence of a row changes when the transaction commits.
  void Delete(Table&, auto&, bool) {}
  void Undo() { undo_.Undo(); }

  // Those bytes of the tuple at `tuple` that were changed; of one that was deleted and inserted again, all.
  void RangesOf(const std::byte* tuple, size_t bytes, std::vector<ByteRange>& ranges) const {
    ranges.clear();
    undo_.ForEach([&](const std::byte* at, const std::byte*, size_t length) {
      if (at < tuple || at >= tuple + bytes || length == 0) return;
      const auto offset = static_cast<uint32_t>(at - tuple);
      ranges.push_back({offset, offset + static_cast<uint32_t>(length)});
    });
    JoinRanges(ranges, kRangeGapBytes);
  }

 private:
  UndoLog undo_;
};

template <class Log>
requires kAppendsChanges<Log>
class Changes<Log> : public ChangesInRows {
 public:
  Changes(Log& log, typename Log::TxnState& log_state, WorkerId) : log_(log), log_state_(log_state) {}

  void Begin(TxnId) {}

  // The procedure changes a copy: the record is that of the whole change, and no procedure runs under a latch.
  void Update(Table& table, auto& access, bool, auto&& change) {
    const size_t bytes = table.tuple_bytes();
    if (copy_.size() < bytes) copy_.resize(std::max(bytes, kCopyBytesMin));
    std::memcpy(copy_.data(), table.tuple_in(access.row), bytes);
    touched_.Start(copy_.data(), bytes);
    TupleWriter<TouchedWords> tuple(copy_.data(), touched_);
    change(tuple);
    log_.Change(log_state_, table, access.row, copy_.data(), &touched_);
  }
  void Insert(Table& table, auto& access, bool, std::span<const std::byte> tuple) {
    log_.Change(log_state_, table, access.row, tuple.data(), nullptr);
  }
  void Delete(Table& table, auto& access, bool) { log_.Change(log_state_, table, access.row, nullptr, nullptr); }
  void Undo() { log_.TakeBack(log_state_); }

 private:
  static constexpr size_t kCopyBytesMin = 4096;

  Log& log_;
  typename Log::TxnState& log_state_;
  std::vector<std::byte> copy_;
  TouchedWords touched_;  // of copy_
};

template <class Log>
requires kHeapVersions<Log>
class Changes<Log> {
 public:
  static_assert(kDrawsStamps<Log>, "two-phase locking has no clock: a log whose rows have versions draws their stamps");
  static constexpr size_t kRowBytes = sizeof(RowVersions);
  static constexpr bool kCopies = true;
  template <class LockedRow>
  struct AccessOf : LockedRow {
    PrivateCopies::Place copy = 0;  // once it is written
  };

  Changes(Log& log, typename Log::TxnState& log_state, WorkerId worker)
      : log_(log), log_state_(log_state), versions_(log, log_state, worker) {}

  void Begin(TxnId txn) {
    copies_.Clear();
    versions_.Begin(txn);
  }

  // Of a present row.
  const std::byte* TupleOf(const Table& table, Row* row, const auto& access) const {
    return access.written ? copies_.At(access.copy) : NewestOf(table, row)->tuple();
  }

  void Update(Table& table, auto& access, bool again, auto&& change) {
    if (!again) {
      std::memcpy(MakeCopy(table, access), NewestOf(table, access.row)->tuple(), table.tuple_bytes());
    }
    NoSink sink;  // an abort drops the copy
    TupleWriter<NoSink> tuple(copies_.At(access.copy), sink);
    change(tuple);
  }
  void Insert(Table& table, auto& access, bool again, std::span<const std::byte> tuple) {
    std::memcpy(again ? copies_.At(access.copy) : MakeCopy(table, access), tuple.data(), tuple.size());
  }
  // Its copy is filled in if the transaction inserts the row again.
  void Delete(Table& table, auto& access, bool again) {
    if (!again) MakeCopy(table, access);
  }
  // The rows are as they were.
  void Undo() {}

  // All that were written are locked until this transaction's word is 0 again (log_observer.h). Nothing aborts it any
  // more, so no stamp is drawn in vain. Throws Error: kNoSpace, before there is a stamp, and as the log does.
  void Install(const auto& accesses) {
    for (uint32_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].written) versions_.Take(*accesses[i].table, accesses[i].row, i);
    }
    versions_.Install(Draw(), [&](uint32_t i) -> const std::byte* {
      return accesses[i].present ? copies_.At(accesses[i].copy) : nullptr;
    });
  }

  // After a transaction that has written. There are no snapshots: a superseded version is needed until its successor is
  // durable for good.
  void Collect() { versions_.heap().Collect(log_.durable_until()); }
  // Of an absent row, whose exclusive lock is held. False: something of it is left, for now.
  bool FreeTombstone(Table& table, Row* row) {
    const HeapSlot* const tombstone = NewestOf(table, row);
    if (tombstone != nullptr && tombstone->begin.load(std::memory_order_relaxed) > log_.durable_until().value()) {
      return false;
    }
    return versions_.heap().FreeTombstone(table, row);
  }

 private:
  // Relaxed: the row's lock is held.
  static HeapSlot* NewestOf(const Table& table, Row* row) {
    return table.versions_of(row).newest.load(std::memory_order_relaxed);
  }

  std::byte* MakeCopy(const Table& table, auto& access) {
    const size_t bytes = CopyBytesInHeap(table);
    std::byte* const copy = copies_.Next(bytes);
    access.copy = copies_.Keep(bytes);
    return copy;
  }

  // All that the transaction has read or overwritten has a smaller stamp, as its locks are held.
  Timestamp Draw() {
    log_.Announce(log_state_);
    const Timestamp stamp(log_.clock().fetch_add(1) + 1);
    log_.Drawn(log_state_, stamp);
    return stamp;
  }

  Log& log_;
  typename Log::TxnState& log_state_;
  PrivateCopies copies_;
  NewVersions<Log> versions_;
};

}  // namespace dbx
