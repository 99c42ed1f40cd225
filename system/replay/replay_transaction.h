// The context in which a redo record is replayed: a command runs again (models TxnContext), images are put.
//
// No concurrency control: two transactions that replay at the same time never conflict, the order of replay guarantees
// that. Writes go into the row in place, without undo: a transaction in the log has committed, so it can only succeed.
// Rows are created by inserts alone, never as placeholders of misses.
//
// Threads: one per worker. The indexes allow concurrent inserts and deletes of other keys. Only in PutNewest may two
// workers write the same row.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "base/epoch.h"
#include "base/spin.h"
#include "base/types.h"
#include "benchmarks/txn_context.h"
#include "logging/row_changes.h"
#include "storage/row.h"
#include "storage/table.h"
#include "storage/tuple.h"

namespace dbx {

class ReplayTransaction {
 public:
  explicit ReplayTransaction(WorkerId worker) : worker_(worker) {}

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    const Row* row = FindPresent(table, key);
    if (row == nullptr) return Outcome::kNotFound;
    visit(TupleReader(table.tuple(row)));
    return Outcome::kOk;
  }

  template <class Change>
  Outcome Update(Table& table, Key key, Change&& change) {
    Row* row = FindPresent(table, key);
    if (row == nullptr) return Outcome::kNotFound;
    NoSink sink;
    TupleWriter<NoSink> tuple(table.tuple(row), sink);
    change(tuple);
    return Outcome::kOk;
  }

  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    return Put(table, key, tuple, /*may_exist=*/false);
  }

  Outcome Delete(Table& table, Key key) {
    Row* row = FindPresent(table, key);
    if (row == nullptr) return Outcome::kNotFound;
    row->control.store(Row::kAbsent, std::memory_order_relaxed);
    if (table.ordered()) UnlinkDeleted(table, row);
    return Outcome::kOk;
  }

  // Other workers concurrently replay transactions that the log does not order against this one: rows elsewhere in the
  // same leaves are inserted and unlinked.
  template <class Visit>
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, Visit&& visit) {
    ScanEntries(table.tree(), low, high, order, [&](const BTreeEntry& entry) {
      const bool absent = (entry.row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0;
      return absent || visit(entry.key, TupleReader(table.tuple(entry.row)));
    });
    return Outcome::kOk;
  }

  // Makes the whole tuple that of `key`: an insert, or the image of a data record.
  Outcome Put(Table& table, Key key, std::span<const std::byte> tuple, bool may_exist) {
    Row* row = table.FindOrCreate(worker_, key,
                                  [](Row& made) { made.control.store(Row::kAbsent, std::memory_order_relaxed); });
    const bool absent = (row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0;
    if (!absent && !may_exist) return Outcome::kExists;
    std::memcpy(table.tuple(row), tuple.data(), tuple.size());
    // Replay orders all accesses to the row; the control word is atomic for later transactions.
    if (absent) row->control.store(0, std::memory_order_relaxed);
    return Outcome::kOk;
  }

  // The row that is there changes in place. False: there is none.
  bool Change(Table& table, const RowChange& change) {
    Row* row = FindPresent(table, change.key);
    if (row == nullptr) return false;
    ApplyTo(table.tuple(row), table.tuple_bytes(), change);
    return true;
  }

  // Last writer wins: a version with its stamp, where versions are replayed in any order: it stays unless a newer one
  // is there. `image` is empty for a delete, which leaves a tombstone. The control word holds lock and stamp, as Silo's
  // does.
  void PutNewest(Table& table, Key key, std::span<const std::byte> image, Stamp stamp) {
    Row* row = table.FindOrCreate(worker_, key,
                                  [](Row& made) { made.control.store(Row::kAbsent, std::memory_order_relaxed); });
    const uint64_t seen = Lock(*row);
    const bool is_newer = Stamp(seen >> Row::kSharedBits) < stamp;
    if (is_newer && !image.empty()) std::memcpy(table.tuple(row), image.data(), image.size());
    const uint64_t version = (stamp.value() << Row::kSharedBits) | (image.empty() ? Row::kAbsent : 0);
    // Release: the next worker that locks the row sees the tuple.
    row->control.store(is_newer ? version : seen, std::memory_order_release);
  }

 private:
  // The control word before it was locked.
  static uint64_t Lock(Row& row) {
    SpinWait wait;
    uint64_t seen = row.control.load(std::memory_order_relaxed);
    for (;;) {
      if (seen & Row::kLocked) {
        wait.Wait();
        seen = row.control.load(std::memory_order_relaxed);
      } else if (row.control.compare_exchange_weak(seen, seen | Row::kLocked, std::memory_order_acquire)) {
        return seen;
      }
    }
  }

  // Otherwise the scans of a queue would meet every tombstone ever left in it. The row's memory is not freed, as
  // another worker's scan may have found it.
  void UnlinkDeleted(Table& table, Row* row) {
    LeafChange change;
    table.Unlink(
        row, [](BTreeLeaf&) {}, change);
    if (!change.emptied) return;
    table.UnlinkEmptyLeaf(row->key, stopped_clock_, WorkerId(0), [](BTreeLeaf&, BTreeLeaf&) {});
  }

  static Row* FindPresent(Table& table, Key key) {
    Row* row = table.Find(key);
    if (row == nullptr || (row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return nullptr;
    return row;
  }

  WorkerId worker_;
  // A stopped clock: no unlinked leaf is reused during replay.
  EpochClock stopped_clock_{1};
};
static_assert(TxnContext<ReplayTransaction>);

}  // namespace dbx
