// The leaves of ordered tables that a transaction has scanned: the part of its read set that protects it from phantoms.
//
// A scan reads the rows of its range, absent ones too, as it reads any row. A key without a row lies in a gap, and the
// version of a leaf covers its gaps (storage/btree_node.h): while it is the same, no row was inserted or unlinked. So
// at validation (Silo's phase 2) every scanned leaf must be unchanged but for the rows that the transaction created
// itself. A transaction creates rows before its own validation, and later transactions find the row.
//
// A leaf has the log metadata of its gaps, which the schemes treat like a row's (contract.h, duty 3), and a word that a
// concurrency control may use for the gaps as it uses the control words of rows.
//
// One object per worker.
#pragma once

#include <algorithm>
#include <vector>

#include "base/epoch.h"
#include "base/outcome.h"
#include "base/spin.h"
#include "concurrency_control/log_observer.h"
#include "storage/table.h"

namespace dbx {

// Raises the word of a leaf. Sequentially consistent: if the leaf is found unchanged after raising the word, every
// worker that locks the leaf afterwards loads the raised word.
inline void RaiseControl(BTreeLeaf& leaf, uint64_t value) {
  uint64_t seen = leaf.control.load();
  while (seen < value && !leaf.control.compare_exchange_weak(seen, value)) continue;
}

// Unlinks a locked row, which is kGone once mark_gone() has run, from an ordered table. The gap that it leaves takes
// over its metadata, and `control` for the leaf's word. An empty leaf is unlinked too, and a neighbour inherits. False:
// nothing was done, as a transaction holds the leaf (held_leaves.h).
template <LogObserver Log, class MarkGone>
[[gnu::noinline]] bool UnlinkFromLeaf(Log& log, EpochClock& clock, WorkerId worker, Table& table, Row* row, Meta meta,
                                      uint64_t control, MarkGone&& mark_gone) {
  LeafChange change;
  const auto leave = [&](BTreeLeaf& leaf) {
    mark_gone();
    log.Absorb(leaf.meta(), meta);
    RaiseControl(leaf, control);
  };
  if (!table.Unlink(row, leave, change)) return false;
  if (!change.emptied) return true;
  table.UnlinkEmptyLeaf(row->key, clock, worker, [&](BTreeLeaf& leaving, BTreeLeaf& heir) {
    log.Absorb(heir.meta(), leaving.meta());
    RaiseControl(heir, leaving.control.load());
  });
  return true;
}

// How a scan proceeds after reading a row.
enum class ScanStep : uint8_t { kGoOn, kEnd, kConflict };

// What a scan does with a leaf that it found: reads it, looks again (after a wait, unless it holds the leaf from now
// on), or aborts.
enum class LeafEntry : uint8_t { kRead, kAgain, kHeldNow, kConflict };

class ScannedLeaves {
 public:
  struct Leaf {
    LeafRef ref;
    uint64_t control;  // the leaf's word, as the last batch of it found it
  };

  ScannedLeaves() { leaves_.reserve(kLeavesReserved); }

  void Clear() {
    leaves_.clear();
    created_ = nullptr;
  }
  const std::vector<Leaf>& leaves() const { return leaves_; }

  // The transaction has created a row, which another may fill before this one accesses it. Changes that others made to
  // the leaf meanwhile show in the versions.
  void NoteCreated(const Row* row, const LeafChange& change) {
    if (leaves_.empty() || !change.changed()) return;
    created_ = row;
    change_ = change;
  }
  // It has locked or read the row and found it absent: if it created the row, the gap is still as scanned.
  void NoteAbsent(const Row* row) {
    if (__builtin_expect(row == created_, 0)) FollowChange();
  }

  // After publishing into the leaves' metadata.
  bool Unchanged() const { return __builtin_expect(leaves_.empty(), 1) || AllUnchanged(); }

  // Calls enter(const LeafRef&) -> LeafEntry for each batch found in a leaf, and read_row(const BTreeEntry&) ->
  // ScanStep for the rows of a range, present and absent.
  template <LogObserver Log, class Enter, class ReadRow>
  [[gnu::noinline]] Outcome Scan(Log& log, typename Log::TxnState& state, const Table& table, Key low, Key high,
                                 ScanOrder order, Enter&& enter, ReadRow&& read_row) {
    log.OnScan(state, table, low, high);
    BTreeScan scan(table.tree(), low, high, order);
    for (SpinWait changed; scan.NextBatch();) {
      const LeafEntry entry = enter(scan.leaf());
      if (entry == LeafEntry::kConflict) return Outcome::kConflict;
      const Leaf leaf{scan.leaf(), scan.leaf().leaf->control.load()};
      log.OnRead(state, {table, low, leaf.ref.leaf->meta()});
      // The loaded metadata must belong to the version of the batch.
      if (entry == LeafEntry::kAgain || entry == LeafEntry::kHeldNow || !scan.Unchanged()) {
        scan.Repeat();
        if (entry != LeafEntry::kHeldNow) changed.Wait();
        continue;
      }
      Note(leaf);
      for (const BTreeEntry& entry : scan.entries()) {
        const ScanStep step = read_row(entry);
        if (step != ScanStep::kGoOn) return step == ScanStep::kEnd ? Outcome::kOk : Outcome::kConflict;
      }
    }
    return Outcome::kOk;
  }

 private:
  static constexpr size_t kLeavesReserved = 16;

  // A leaf makes several batches. The word may have risen in between though the version is the same: the leaf has
  // inherited a neighbour's range, and this batch may be the first of that.
  void Note(const Leaf& leaf) {
    if (leaves_.empty() || leaves_.back().ref != leaf.ref) {
      leaves_.push_back(leaf);
    } else {
      leaves_.back().control = leaf.control;
    }
  }

  [[gnu::noinline]] void FollowChange() {
    created_ = nullptr;
    bool had_leaf = false;
    uint64_t control = 0;
    for (Leaf& leaf : leaves_) {
      if (leaf.ref != LeafRef{change_.leaf, change_.before}) continue;
      leaf.ref.version = change_.after;
      had_leaf = true;
      control = leaf.control;
    }
    if (had_leaf && change_.split_off.leaf != nullptr) leaves_.push_back({change_.split_off, control});
  }

  [[gnu::noinline]] bool AllUnchanged() const {
    return std::all_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return leaf.ref.Unchanged(); });
  }

  std::vector<Leaf> leaves_;
  const Row* created_ = nullptr;  // by `change_`, and not yet accessed
  LeafChange change_;
};

}  // namespace dbx
