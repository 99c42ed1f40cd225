// What every concurrency control does whose rows have versions in a persistent heap (heap_versions.h): it writes into
// private copies in DRAM, and at commit makes new versions of them.
//
// The order of a commit, in which the write set is locked all the while:
//   Take       a slot for each written row. A heap that is full shows here, before there is a stamp
//   (a stamp is drawn, and the log is told: log_observer.h)
//   Install    every row gets its version; streamed tuples are drained; then the log is told of each slot
//   GiveBack   instead: an abort leaves the slots as they were
//
// One object per worker.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/cache_line.h"
#include "concurrency_control/heap_versions.h"
#include "concurrency_control/log_observer.h"
#include "storage/table.h"

namespace dbx {

// Private copies of tuples. One transaction's; the memory is kept for the next.
class PrivateCopies {
 public:
  // A copy's place: it stays where others move.
  using Place = size_t;

  PrivateCopies() : bytes_(kInitialBytes) {}

  void Clear() { used_ = 0; }
  // Room for the next copy, to be filled in before it is kept, if it is.
  std::byte* Next(size_t bytes) {
    if (used_ + bytes > bytes_.size()) bytes_.resize(2 * (used_ + bytes));
    return bytes_.data() + used_;
  }
  Place Keep(size_t bytes) { return std::exchange(used_, used_ + RoundedUpToWords(bytes)); }
  std::byte* At(Place place) const { return const_cast<std::byte*>(bytes_.data()) + place; }

 private:
  static constexpr size_t kInitialBytes = 64 << 10;

  std::vector<std::byte> bytes_;
  size_t used_ = 0;
};

// Of a copy from which a new version will be stored: whole lines are.
inline size_t CopyBytesInHeap(const Table& table) { return RoundUp(table.tuple_bytes(), kCacheLineBytes); }

template <class Log>
class NewVersions {
 public:
  NewVersions(Log& log, typename Log::TxnState& log_state, WorkerId worker)
      : log_(log), log_state_(log_state), heap_(worker) {}

  void Begin(TxnId txn) {
    txn_ = txn;
    versions_.clear();
  }
  // Of a row that was written, which is number `write` of its transaction's. Throws Error (kNoSpace).
  void Take(Table& table, Row* row, uint32_t write) {
    versions_.push_back({&table, row, heap_.Take(table, row->key, txn_), write});
  }
  // tuple_of(write) is the tuple that was written, or nullptr: a tombstone. All tuples are stored first, as installing
  // a version executes a locked instruction, which waits for stores past the caches. All versions are installed before
  // any joins the dirty tuples: a group commit that writes back one version of a transaction finds all of them there.
  template <class TupleOf>
  void Install(Timestamp stamp, TupleOf&& tuple_of) {
    for (NewVersion& version : versions_) {
      version.unwritten_bytes = heap_.Fill(*version.table, version.slot, tuple_of(version.write));
    }
    for (NewVersion& version : versions_) heap_.Install(*version.table, version.row, version.slot, stamp);
    heap_.DrainStreamed();
    if constexpr (kDrawsStamps<Log>) {
      for (const NewVersion& version : versions_) log_.Installed(log_state_, version.slot, version.unwritten_bytes);
    }
  }
  void GiveBack() {
    for (const NewVersion& version : versions_) heap_.GiveBack(*version.table, version.slot);
  }

  HeapVersions& heap() { return heap_; }

 private:
  struct NewVersion {
    Table* table;
    Row* row;
    HeapSlot* slot;
    uint32_t write;
    size_t unwritten_bytes = 0;  // of an installed one, from its start: they are to be written back
  };

  Log& log_;
  typename Log::TxnState& log_state_;
  TxnId txn_;
  std::vector<NewVersion> versions_;  // of the rows that were written, from Take on
  HeapVersions heap_;
};

}  // namespace dbx
