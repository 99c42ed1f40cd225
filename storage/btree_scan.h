// A scan of a range of keys of BTreeIndex, up or down, in batches.
//
//   BTreeScan scan(index, low, high, ScanOrder::kAscending);
//   while (scan.NextBatch()) {
//     ...scan.leaf()...                              // where the batch was found
//     for (const BTreeEntry& entry : scan.entries()) ...
//   }
//
// The entries of a batch are those that its leaf had at one moment, at leaf().version. Every leaf whose range meets the
// scan's up to where it ended is reported, also if it has no entry there; a leaf with many entries makes several
// batches. A key that is in the index all the while is seen once, a key that never is, never.
//
// The rest of a leaf (control, log metadata) is loaded after its batch: if the leaf is then still Unchanged, both are
// of one version; if not, Repeat makes the next batch cover the same range anew, of the same leaf or of another one. A
// leaf may have more batches than its entries make, at one version: it can inherit a neighbour's range
// (BTreeIndex::UnlinkEmpty) while the scan is on its way. A transaction that depends on gaps (phantoms) keeps the
// LeafRefs.
//
// Owned by one thread, within one epoch section.
#pragma once

#include <span>

#include "storage/btree_index.h"
#include "storage/scan_order.h"

namespace dbx {

class BTreeScan {
 public:
  static constexpr uint32_t kBatch = 16;

  // Both ends are part of the range.
  BTreeScan(const BTreeIndex& index, Key low, Key high, ScanOrder order)
      : index_(index), low_(low), high_(high), order_(order), done_(low > high) {}

  // False: the range is exhausted. Otherwise the functions below return the batch.
  bool NextBatch();

  const LeafRef& leaf() const { return leaf_; }
  std::span<const BTreeEntry> entries() const { return {entries_, count_}; }  // in the order of the scan
  bool Unchanged() const { return leaf_.Unchanged(); }

  // The last batch is void.
  void Repeat();

 private:
  // Where the rest of the range starts.
  enum class Position : uint8_t {
    kUnknown,
    kInLeaf,    // in the leaf of the last batch
    kNextLeaf,  // at the start of the next one
  };

  bool FindLeaf();
  bool StepToNextLeaf();
  bool CopyAscending();
  bool CopyDescending();

  const BTreeIndex& index_;
  Key low_, high_;                      // the rest of the range
  Key batch_low_ = 0, batch_high_ = 0;  // the rest before the last batch
  const ScanOrder order_;
  bool done_;
  Position position_ = Position::kUnknown;
  BTreeIndex::Descent at_;
  Key leaf_low_ = 0, leaf_high_ = 0;      // the range of at_.leaf
  Key parent_low_ = 0, parent_high_ = 0;  // of its parent
  LeafRef leaf_;
  uint32_t count_ = 0;
  BTreeEntry entries_[kBatch];
};

// Calls visit(const BTreeEntry&) for the entries of a range, in the order of the scan, until it returns false. For
// callers that need no leaves.
template <class Visit>
void ScanEntries(const BTreeIndex& index, Key low, Key high, ScanOrder order, Visit&& visit) {
  BTreeScan scan(index, low, high, order);
  while (scan.NextBatch()) {
    for (const BTreeEntry& entry : scan.entries()) {
      if (!visit(entry)) return;
    }
  }
}

// Calls visit(Key, Row&) for every entry in the order of keys; for single-threaded phases.
template <class Visit>
void ForEachEntry(const BTreeIndex& index, Visit&& visit) {
  ScanEntries(index, 0, ~Key{0}, ScanOrder::kAscending, [&](const BTreeEntry& entry) {
    visit(entry.key, *entry.row);
    return true;
  });
}

}  // namespace dbx
