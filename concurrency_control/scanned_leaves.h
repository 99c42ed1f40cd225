// The leaves of ordered tables that a transaction has scanned: what it knows of the gaps between rows.
//
// A scan reads the rows of its range, absent ones too, as it reads any row. What has no row at all lies in a gap, and
// of the gaps of a leaf its version tells (storage/btree_node.h): no row came or went since. So at order 2 every
// scanned leaf must be unchanged but for the rows that the transaction created itself. Whoever creates a row does so
// before its own order 2, and whoever comes later finds the row.
//
// A leaf has the log metadata of its gaps, which the schemes treat like a row's (contract.h, duty 3), and a word in
// which a concurrency control may keep for the gaps what the control words of its rows have for them.
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

// Raises the word of a leaf. Sequentially consistent: who raises it and then finds the leaf unchanged has done so
// before anyone who locks the leaf afterwards loads the word.
inline void RaiseControl(BTreeLeaf& leaf, uint64_t value) {
  uint64_t seen = leaf.control.load();
  while (seen < value && !leaf.control.compare_exchange_weak(seen, value)) continue;
}

// Takes a row that is locked, and is gone once mark_gone() has run, out of an ordered table. What is known of it passes
// on to the gap that it leaves behind: its metadata, and `control` for the leaf's word. An empty leaf goes too, and a
// neighbour inherits. False: nothing was done, for a transaction holds the leaf (held_leaves.h).
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

// What reading a row means for the scan that met it.
enum class ScanStep : uint8_t { kGoOn, kEnd, kConflict };

// What a scan does with what it found in a leaf: reads it, looks again (after a wait, unless it holds the leaf from now
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

  // The transaction has created a row, which another may fill before it comes to it itself. Of what others did to the
  // leaf meanwhile, the versions will tell.
  void NoteCreated(const Row* row, const LeafChange& change) {
    if (leaves_.empty() || !change.changed()) return;
    created_ = row;
    change_ = change;
  }
  // It has locked or read the row and found it absent: if it created that, the gap is still what was scanned.
  void NoteAbsent(const Row* row) {
    if (__builtin_expect(row == created_, 0)) FollowChange();
  }

  // After what is published into the leaves' metadata.
  bool Unchanged() const { return __builtin_expect(leaves_.empty(), 1) || AllUnchanged(); }

  // Calls enter(const LeafRef&) -> LeafEntry for what was found in a leaf, and read_row(const BTreeEntry&) -> ScanStep
  // for the rows of a range, present and absent.
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
      // What was loaded must belong to the version that the batch was found in.
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
  const Row* created_ = nullptr;  // by `change_`, and not yet come to
  LeafChange change_;
};

}  // namespace dbx
