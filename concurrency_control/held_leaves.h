// The leaves of ordered tables that a transaction holds: gap locks, for those that would starve without.
//
// Two-phase locking protects the gaps of a scanned range against phantoms by validation (scanned_leaves.h): it costs
// inserts nothing and is not fair. Whatever appears in a scanned leaf, outside of the range too, fails the
// scanner, however old it is, and nothing ends that. So once kFailedScansMax attempts of a transaction have failed for
// a leaf, the next one holds each leaf before it reads it (storage/btree_node.h): no other transaction creates or
// unlinks a row there until it ends. A transaction that never scans in vain holds nothing, and costs those that create
// rows one look at the version that they have in a register.
//
// All that a transaction holds is one lock, that of its worker's token, a row in no table: taken exclusive before the
// first leaf, given back after the last, through the policy's own locks. A transaction that meets a leaf of another, to
// create a row there or to hold it too, aborts if its policy never waits; else it asks for a share of the token as for
// any row. So what a policy guarantees of waits for rows holds for leaves: under WAIT_DIE the younger aborts, and under
// DL_DETECT every cycle is found, whatever locks and leaves it goes through. It keeps the shares until it has made its
// row or holds its leaf: meanwhile those that it has waited for hold nothing anew, so that a transaction that is run
// again does not take the same leaf again before the one that waited is there. It waits once for each worker at most.
//
// What a leaf's split or an empty leaf's end means:
//  - A leaf that is held is split by its holder only, which then holds both parts.
//  - Sweeps leave alone what is held (two_phase_locking.h, TryRetire), and never wait for it: a row stays queued, and
//    an empty leaf whose heir is held stays in the tree until a row of it is unlinked again.
//  - Validation stays as it is. A leaf that is held changes by the holder alone; a row that the holder created there
//  may
//    still be filled by another before the holder locks it, which fails the attempt once.
//
// Optimistic concurrency controls hold nothing: there nothing bounds the attempts of a transaction whose read set keeps
// changing, be it rows or leaves, and none of them claims more. (Under HEKATON a transaction that writes nothing is not
// validated.)
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

  // An attempt; nothing is held.
  void Begin(TxnId txn) {
    if (txn == txn_) return;
    txn_ = txn;
    failed_scans_ = 0;
  }
  // The attempt fails because a leaf that it has scanned has changed.
  void NoteFailedScan() { ++failed_scans_; }

  // How this worker is named in the control word of a leaf.
  uint64_t own_name() const { return uint64_t{worker_.value()} + 1; }

  // Before a scan reads what it found in a leaf. kConflict: the policy lets it wait no longer.
  LeafEntry Enter(const LeafRef& found) {
    return __builtin_expect(failed_scans_ < kFailedScansMax, 1) ? LeafEntry::kRead : Hold(found);
  }
  // The own insert has changed a leaf.
  void NoteSplit(const LeafChange& change) {
    if (is_holding_ && change.split_off.leaf != nullptr && change.split_off.held()) {
      leaves_.push_back(change.split_off.leaf);
    }
  }
  // Waits as long as `holder`, who held a leaf just now, holds any, if the policy lets it. False: a conflict.
  [[gnu::noinline]] bool AwaitEnd([[maybe_unused]] uint64_t holder) {
    if constexpr (kWaits) {
      typename Locks::Handle share;
      if (locks_.AwaitShared(&TokenOf(holder), share) != LockResult::kOk) return false;
      shares_.push_back(share);
      return true;
    }
    return false;
  }
  // What it has waited for is done.
  void EndWaits() {
    for (const auto share : shares_) locks_.ReleaseShared(share);
    shares_.clear();
  }
  // With the transaction's locks.
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
      // No longer held by anyone, perhaps.
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

  // False: a conflict with those that have waited for it.
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

  // The leaves first: those that wait for the token find them free.
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
  std::vector<typename Locks::Handle> shares_;  // of the tokens of those that it has waited for
};

}  // namespace dbx
