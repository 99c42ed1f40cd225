// The versions of rows in a persistent heap (storage/heap/table_versions.h), as one worker makes and frees them.
//
// A version is written once, into a slot of its own that no other worker sees until it is installed. Installing stores
// the stamp and makes the row point to the slot; the version before is the next of the chain. What an abort leaves is a
// free slot, as its `begin` was never stored.
//
// A superseded version is freed when no snapshot needs it and its successor is durable for good (the log says up to
// which stamp all are). Free means that its `begin` is durably 0. A tombstone is freed last, when it is the only slot
// of its row that is not: an older version would come back with the next restart.
//
// One object per worker.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/types.h"
#include "storage/table.h"

namespace dbx {

class HeapVersions {
 public:
  explicit HeapVersions(WorkerId worker) : worker_(worker) {}

  // For a new version. Throws HeapFull, when no slot of this worker waits to be free either, and Error where the memory
  // failed: a device that has no space may have lost what was written back, so no second try is right.
  HeapSlot* Take(const Table& table, Key key, TxnId txn) {
    try {
      return table.versions()->Take(worker_, key, txn);
    } catch (const HeapFull&) {
      if (zeroed_.empty()) throw;
    }
    FreeZeroed();
    return table.versions()->Take(worker_, key, txn);
  }
  // Of a transaction that aborts.
  void GiveBack(const Table& table, HeapSlot* slot) { table.versions()->Free(worker_, slot); }

  // The slot gets this tuple, or none if null. Returned is how much of it is to be written back once it is installed.
  size_t Fill(const Table& table, HeapSlot* slot, const std::byte* tuple) {
    size_t bytes = sizeof(HeapSlot);
    if (tuple == nullptr) {
      slot->flags = HeapSlot::kAbsent, slot->tuple_bytes = 0;
    } else if (!Stream(*table.versions(), slot, tuple)) {
      bytes += slot->tuple_bytes;
    }
    slot->checksum = heap_format::ChecksumOf(*slot, tuple);
    return bytes;
  }
  // The slot becomes the newest version of the row, whose lock is held, at `stamp`. It is not durable yet.
  void Install(Table& table, Row* row, HeapSlot* slot, Timestamp stamp) {
    RowVersions& versions = table.versions_of(row);
    HeapSlot* const old = versions.newest.load(std::memory_order_relaxed);
    slot->older = old;
    // Relaxed: the release below publishes it to readers of the row.
    slot->begin.store(stamp.value(), std::memory_order_relaxed);
    versions.slots.fetch_add(1, std::memory_order_relaxed);
    versions.newest.store(slot, std::memory_order_release);
    if (old != nullptr) {
      old->end = stamp;
      superseded_.push_back({&table, row, old});
    }
  }

  // What was installed by streaming alone is durable.
  void DrainStreamed() {
    if (streamed_by_ == nullptr) return;
    streamed_by_->Drain();
    streamed_by_ = nullptr;
  }

  // Frees versions that ended at or below `until`, the oldest first: a few or, if many wait, a share of them.
  void Collect(Timestamp until) {
    for (size_t most = std::max(kFreedPerCall, superseded_.size() / 8); most > 0 && !superseded_.empty(); --most) {
      const Version& version = superseded_.front();
      if (version.slot->end > until) break;
      Zero(version);
      superseded_.pop_front();
    }
    if (zeroed_.size() >= kZeroedPerDrain) FreeMany();
  }

  // Of an absent row, whose lock is held and whose absence is durable for good and visible to all: frees its tombstone.
  // False: older versions of it are not free yet, or the tombstone is not; it is to be asked again.
  bool FreeTombstone(Table& table, Row* row) {
    RowVersions& versions = table.versions_of(row);
    const uint64_t slots = versions.slots.load(std::memory_order_acquire);
    HeapSlot* const tombstone = versions.newest.load(std::memory_order_relaxed);
    if (slots > (tombstone == nullptr ? 0 : 1)) return false;
    if (tombstone == nullptr) return true;
    ASSERT(tombstone->absent());
    versions.newest.store(nullptr, std::memory_order_release);
    Zero({&table, row, tombstone});
    HasSlowDrains() ? FreeMany() : FreeZeroed();
    return versions.slots.load(std::memory_order_relaxed) == 0;
  }

 private:
  bool Stream(const TableVersions& versions, HeapSlot* slot, const std::byte* tuple) {
    PersistentWriter& writer = versions.heap().writer(worker_);
    if (!writer.Stream(slot->tuple(), tuple, versions.slot_bytes() - sizeof(HeapSlot))) return false;
    streamed_by_ = &writer;
    return true;
  }

  static constexpr size_t kFreedPerCall = 8;
  static constexpr size_t kZeroedPerDrain = 16;
  static constexpr size_t kZeroedPerSlowDrain = 512;

  struct Version {
    Table* table;
    Row* row;  // linked as long as one of its slots is not durably 0
    HeapSlot* slot;
  };

  void Zero(const Version& version) {
    version.slot->begin.store(0, std::memory_order_relaxed);
    writer(version).WriteBack(reinterpret_cast<const std::byte*>(version.slot), sizeof(HeapSlot));
    zeroed_.push_back(version);
  }
  bool HasSlowDrains() const { return zeroed_.front().table->versions()->heap().memory().drains_are_slow(); }
  // A worker that waits for a disk does so for many slots.
  void FreeMany() {
    if (zeroed_.size() >= kZeroedPerSlowDrain || !HasSlowDrains()) FreeZeroed();
  }
  void FreeZeroed() {
    if (zeroed_.empty()) return;
    writer(zeroed_.front()).Drain();
    for (const Version& version : zeroed_) {
      version.table->versions()->Free(worker_, version.slot);
      // Release: a worker that finds the row without slots finds them free.
      version.table->versions_of(version.row).slots.fetch_sub(1, std::memory_order_release);
    }
    zeroed_.clear();
  }
  PersistentWriter& writer(const Version& version) const { return version.table->versions()->heap().writer(worker_); }

  const WorkerId worker_;
  PersistentWriter* streamed_by_ = nullptr;  // since its last Drain
  std::deque<Version> superseded_;           // about in the order of their ends
  std::vector<Version> zeroed_;              // written back and not drained
};

}  // namespace dbx
