// A transaction of a master: a stored procedure's calls (models TxnContext) over trees of pages, with row locks under
// page locks (Taurus MM, section 5.2), serializable or read committed.
//
//   begin -> [pin leaf -> row lock -> read, or page change and PAGES record]* -> END -> row locks go -> [device] -> ack
//
// It locks each row that it reads or writes, and each range that it scans, until its end (strict two-phase locking).
// Locks are on keys, present or not, so a lock on a row that is missing keeps others from inserting it; a scan locks
// the gaps between its rows. Where another transaction has a conflicting lock it lets go of all pages and waits for
// that transaction's end; the youngest of a deadlock is rolled back.
//
// With read committed a Read or a Scan is a statement of its own: it takes no lock and sees whole transactions as of a
// time of its own (versioned_read.h), or runs again with locks, which it then keeps. Writes, and reads of rows that are
// about to be written (ReadForUpdate), lock.
//
// Changes are made in the pages at once. A row keeps its committed version beside the new one, which is what a rollback
// puts back, row by row, last first; the row locks go only when all are back.
//
// A transaction that wrote nothing, and none of whose locks have left the master, leaves no record. It too is
// acknowledged when the log is durable up to its end: what it read may be of transactions of this master that are not
// durable yet.
//
// Threads: one object per worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/outcome.h"
#include "base/types.h"
#include "multi_master/lock/kept_row_locks.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/master/master_log.h"
#include "multi_master/master/versioned_read.h"
#include "multi_master/page/paged_tree.h"
#include "storage/scan_order.h"
#include "storage/table.h"
#include "storage/tuple.h"

namespace dbx::mm {

// The trees of a master's tables, by TableId.
using Trees = std::vector<std::unique_ptr<PagedTree>>;

enum class Isolation : uint8_t { kSerializable, kReadCommitted };

class MmTransaction {
 public:
  // Serializable if it has no `versions`. `kept` may be null: nothing is counted.
  MmTransaction(Trees& trees, LocalLocks& locks, MasterLog& log, std::unique_ptr<VersionedReader> versions,
                KeptRowLocks* kept = nullptr)
      : trees_(trees), locks_(locks), log_(log), versions_(std::move(versions)), kept_(kept) {}

  // ---- called by its worker ----

  // `begun`: of its first attempt, by the master's clock; the younger one of a deadlock is rolled back. After a
  // deadlock it waits until the transactions that had been in its way have ended.
  void Begin(BeginTime begun, TxnId id = {});
  // The time up to which the log must be durable before the transaction is acknowledged.
  VsTime Commit();
  // Undoes what it has done.
  void Abort();

  bool wrote() const { return !written_.empty(); }
  const TxnName& name() const { return name_; }
  // A deadlock or a timeout ended its last call with kConflict.
  WaitResult last_wait() const { return last_wait_; }

  // ---- called by a stored procedure (benchmarks/txn_context.h) ----

  Outcome Read(Table& table, Key key, auto&& visit) {
    if (versions_ != nullptr) {
      Outcome outcome = Outcome::kNotFound;
      const auto see = [&](std::span<const std::byte> image, bool is_present) {
        if (!is_present) return;
        visit(TupleReader(image.data()));
        outcome = Outcome::kOk;
      };
      if (versions_->Read(table.id(), key, name_, see)) return outcome;
    }
    return ReadLocked(table, key, LockMode::kShared, visit);
  }

  // The row is locked as if it were written, whatever the isolation.
  Outcome ReadForUpdate(Table& table, Key key, auto&& visit) {
    return ReadLocked(table, key, LockMode::kExclusive, visit);
  }

  Outcome Update(Table& table, Key key, auto&& change) {
    PinnedLeaf leaf = PinLocked(table, key, LockMode::kExclusive);
    if (!leaf) return Outcome::kConflict;
    const std::optional<RowView> row = leaf.Find(key);
    if (!row || !row->current.present) return Outcome::kNotFound;
    image_.assign(row->current.image.begin(), row->current.image.end());
    NoSink sink;
    TupleWriter<NoSink> writer(image_.data(), sink);
    change(writer);
    Put(table, std::move(leaf), key);
    return Outcome::kOk;
  }

  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple);
  Outcome Delete(Table& table, Key key);

  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    if (low > high) return Outcome::kOk;
    if (versions_ != nullptr && versions_->Scan(table.id(), low, high, name_)) {
      for (size_t i = 0, rows = versions_->rows(); i < rows; ++i) {
        const size_t at = order == ScanOrder::kAscending ? i : rows - 1 - i;
        if (!visit(versions_->KeyAt(at), TupleReader(versions_->ImageAt(at)))) break;
      }
      return Outcome::kOk;
    }
    if (order == ScanOrder::kAscending) return ScanUp(table, low, high, visit);
    // Leaves lead to the right only. The rows are locked up to `high` whichever of them are visited.
    const size_t tuple_bytes = table.tuple_bytes();
    std::vector<Key> keys;
    scanned_.clear();
    const Outcome outcome = ScanUp(table, low, high, [&](Key key, const TupleReader& tuple) {
      keys.push_back(key);
      scanned_.resize(keys.size() * tuple_bytes);
      tuple.CopyAt(0, std::span(scanned_).last(tuple_bytes));
      return true;
    });
    if (outcome != Outcome::kOk) return outcome;
    for (size_t i = keys.size(); i > 0; --i) {
      if (!visit(keys[i - 1], TupleReader(&scanned_[(i - 1) * tuple_bytes]))) break;
    }
    return Outcome::kOk;
  }

 private:
  struct Written {
    TableId table;
    Key key;
  };
  // kLookAgain: the leaf was let go, and the caller pins it again. kConflict: it was let go, and the transaction ends.
  enum class Granted : uint8_t { kAll, kLookAgain, kConflict };

  PagedTree& TreeOf(const Table& table) const { return *trees_[table.id().value()]; }
  LeafHints* HintsOf(const Table& table) {
    if (hints_.size() < trees_.size()) hints_.resize(trees_.size());
    return &hints_[table.id().value()];
  }
  Outcome ReadLocked(Table& table, Key key, LockMode mode, auto&& visit) {
    PinnedLeaf leaf = PinLocked(table, key, mode);
    if (!leaf) return Outcome::kConflict;
    const std::optional<RowView> row = leaf.Find(key);
    if (!row || !row->current.present) return Outcome::kNotFound;
    visit(TupleReader(row->current.image.data()));
    return Outcome::kOk;
  }
  // The leaf of the key, with the row lock that goes with the mode. Empty: a conflict that ends the transaction.
  PinnedLeaf PinLocked(Table& table, Key key, LockMode mode);
  Granted LockRows(PinnedLeaf& leaf, std::span<const RowLock> asked);
  // `image_` becomes the row, whose lock it holds.
  void Put(Table& table, PinnedLeaf leaf, Key key);
  // False: the leaf had no room, has been let go, and was split.
  bool TryPut(Table& table, PinnedLeaf& leaf, Key key);
  void NoteWritten(const Table& table, Key key);
  void Restore(const Written& row);

  // Calls see(Key, const TupleReader&) -> bool for the rows from `low` to `high`, and locks them and the gaps between.
  Outcome ScanUp(Table& table, Key low, Key high, auto&& see) {
    PagedTree& tree = TreeOf(table);
    LeafHints* const hints = HintsOf(table);
    PinnedLeaf leaf = tree.PinLeaf(low, LockMode::kShared, hints);
    for (Key next = low;;) {
      // The leaf's next row in the range, or its last key of the range.
      const SlottedPage& page = leaf.page();
      const uint32_t slot = page.LowerBound(next);
      const Key last = page.IsBelowHighKey(high) ? high : page.high_key() - 1;
      const bool has_row = slot < page.slots() && page.KeyAt(slot) <= last;
      const Key key = has_row ? page.KeyAt(slot) : last;
      const Granted granted = LockRange(leaf, next, key, has_row);
      if (granted == Granted::kConflict) return Outcome::kConflict;
      if (granted == Granted::kLookAgain) {
        leaf = tree.PinLeaf(next, LockMode::kShared, hints);
        continue;
      }
      if (has_row) {
        const RowView row = page.RowAt(slot);
        if (row.current.present && !see(key, TupleReader(row.current.image.data()))) return Outcome::kOk;
      }
      if (key == high) return Outcome::kOk;
      next = key + 1;
      if (!page.IsBelowHighKey(next)) tree.MoveRight(leaf);
    }
  }
  // The keys from `low` to `key`, and the row `key` if there is one, deleted or not.
  Granted LockRange(PinnedLeaf& leaf, Key low, Key key, bool has_row);

  Trees& trees_;
  LocalLocks& locks_;
  MasterLog& log_;
  std::unique_ptr<VersionedReader> versions_;
  KeptRowLocks* const kept_;
  std::vector<LeafHints> hints_;  // by TableId
  TxnName name_;
  TxnId id_;
  std::vector<Written> written_;  // each row once, in the order of first writes
  std::vector<std::byte> image_;
  std::vector<std::byte> scanned_;
  WaitResult last_wait_ = WaitResult::kLookAgain;
  std::vector<TxnName> blockers_;  // of a wait that ended the last attempt
};

}  // namespace dbx::mm
