// The leaves of ordered tables that a transaction holds: gap locks, for transactions that phantoms would starve.
//
// Two-phase locking protects the gaps of a scanned range against phantoms by validation (scanned_leaves.h): it costs
// inserts nothing and is not fair. A new row in a scanned leaf, outside of the range too, fails the scanner, however
// old it is, without bound. So once kFailedScansMax attempts of a transaction have failed for a leaf, the next one
// holds each leaf before it reads it (storage/btree_node.h): no other transaction creates or unlinks a row there until
// it ends. A transaction whose scans validate holds nothing, and costs inserts one test of the version that they have
// in a register.
//
// All held leaves stand behind one lock, that of the worker's token, a row in no table: taken exclusive before the
// first leaf, released after the last, through the policy's own locks. A transaction that meets a leaf held by another,
// to create a row there or to hold it too, aborts if its policy never waits; else it asks for a shared lock of the
// token as for any row. So a policy's guarantees for waits on rows hold for leaves: under WAIT_DIE the younger aborts,
// and under DL_DETECT every cycle is found, whatever locks and leaves it consists of. It keeps the shared locks until
// it has created its row or holds its leaf: meanwhile the workers that it has waited for hold nothing anew, so that a
// retried transaction does not take the same leaf before the one that waited. It waits once for each worker at most.
//
// Splits, and the unlinking of empty leaves:
//  - A leaf that is held is split by its holder only, which then holds both parts.
//  - Sweeps skip held leaves (two_phase_locking.h, TryRetire), and never wait for them: a row stays queued, and an
//    empty leaf whose heir is held stays in the tree until a row of it is unlinked again.
//  - Validation stays as it is. A held leaf is changed by its holder alone; a row that the holder created there may be
//    filled by another transaction before the holder locks it, which fails the attempt once.
//
// Optimistic concurrency controls hold no leaves: there nothing bounds the attempts of a transaction whose read set
// keeps changing, be it rows or leaves. (Under HEKATON a transaction that writes nothing is not validated.)
//
// One object per worker.
#pragma once

#include <vector>

#include "base/cache_line.h"
#include "base/types.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/scanned_leaves.h"
#include "storage/table.h"

namespace dbx {

template <class Locks, bool kWaits>
class HeldLeaves {
 public:
  // Of all workers.
  class Shared {
   public:
    explicit Shared(uint32_t workers) : tokens_(workers) {}

   private:
    friend class HeldLeaves;
    std::vector<CachePadded<Row>> tokens_;  // by worker
  };

  HeldLeaves(Shared& shared, Locks& locks, WorkerId worker) : shared_(shared), locks_(locks), worker_(worker) {
    leaves_.reserve(kLeavesReserved);
  }

  // Starts an attempt; nothing is held.
  void Begin(TxnId txn) {
    if (txn == txn_) return;
    txn_ = txn;
    failed_scans_ = 0;
  }
  // The attempt fails because a scanned leaf has changed (a phantom).
  void NoteFailedScan() { ++failed_scans_; }

  // This worker's name in the control word of a leaf.
  uint64_t own_name() const { return uint64_t{worker_.value()} + 1; }

  // Before a scan reads the rows that it found in a leaf. kConflict: the policy lets it wait no longer.
  LeafEntry Enter(const LeafRef& found) {
    return __builtin_expect(failed_scans_ < kFailedScansMax, 1) ? LeafEntry::kRead : Hold(found);
  }
  // The transaction's own insert has changed a leaf.
  void NoteSplit(const LeafChange& change) {
    if (is_holding_ && change.split_off.leaf != nullptr && change.split_off.held()) {
      leaves_.push_back(change.split_off.leaf);
    }
  }
  // Waits as long as worker `holder`, which held a leaf just now, holds any, if the policy allows. False: a conflict.
  [[gnu::noinline]] bool AwaitEnd([[maybe_unused]] uint64_t holder) {
    if constexpr (kWaits) {
      typename Locks::Handle share;
      if (locks_.AwaitShared(&TokenOf(holder), share) != LockResult::kOk) return false;
      shares_.push_back(share);
      return true;
    }
    return false;
  }
  // The row is created or the leaf is held.
  void EndWaits() {
    for (const auto share : shares_) locks_.ReleaseShared(share);
    shares_.clear();
  }
  // When the transaction's locks are released.
  void End() {
    if (__builtin_expect(is_holding_ || !shares_.empty(), 0)) EndAll();
  }

 private:
  static constexpr uint32_t kFailedScansMax = 3;
  static constexpr size_t kLeavesReserved = 16;

  Row& TokenOf(uint64_t name) { return shared_.tokens_[name - 1].value; }

  [[gnu::noinline]] LeafEntry Hold(const LeafRef& found) {
    if (found.held()) {
      const uint64_t holder = found.leaf->control.load();
      if (holder == own_name()) return LeafEntry::kRead;
      // Perhaps no longer held.
      if (holder == 0 || !found.Unchanged()) return LeafEntry::kAgain;
      return AwaitEnd(holder) ? LeafEntry::kAgain : LeafEntry::kConflict;
    }
    if (!is_holding_ && !TakeToken()) return LeafEntry::kConflict;
    leaves_.push_back(found.leaf);
    if (found.leaf->TryHold(found.version, own_name())) {
      EndWaits();
      return LeafEntry::kHeldNow;
    }
    leaves_.pop_back();
    return LeafEntry::kAgain;
  }

  // False: a conflict with workers that have waited for it.
  bool TakeToken() {
    if constexpr (kWaits) {
      Row* const token = &TokenOf(own_name());
      LockResult result = locks_.TryExclusive(token, token_);
      if (result != LockResult::kOk) result = locks_.AwaitExclusive(token, token_);
      if (result != LockResult::kOk) return false;
    }
    is_holding_ = true;
    return true;
  }

  // The leaves first: workers that wait for the token find them free.
  [[gnu::noinline]] void EndAll() {
    for (BTreeLeaf* const leaf : leaves_) leaf->EndHold();
    leaves_.clear();
    EndWaits();
    if constexpr (kWaits) {
      if (is_holding_) locks_.ReleaseExclusive(token_, &TokenOf(own_name()));
    }
    is_holding_ = false;
  }

  Shared& shared_;
  Locks& locks_;
  const WorkerId worker_;
  TxnId txn_{};
  uint32_t failed_scans_ = 0;  // attempts of txn_
  bool is_holding_ = false;    // the token, and perhaps leaves
  typename Locks::Handle token_{};
  std::vector<BTreeLeaf*> leaves_;
  std::vector<typename Locks::Handle> shares_;  // of the tokens of workers that it has waited for
};

}  // namespace dbx
