// Tombstones and placeholders (absent rows) that one worker must unlink: left by deletes, failed look-ups and aborted
// inserts.
//
// A row joins the list of the worker that sets Row::kQueued first, so it is in one list at most. It is unlinked from
// the index once no transaction holds it and its log metadata is forgettable, or is handed to a gap (scanned_leaves.h);
// its memory is reused once no worker can still have a pointer to it. Owned by one worker.
#pragma once

#include <algorithm>
#include <deque>

#include "base/epoch.h"
#include "storage/table.h"

namespace dbx {

// What a look-up expects to find; only a hint.
enum class Expect : uint8_t { kRow, kNoRow };

// The result of an attempt to unlink a row.
enum class RetireResult : uint8_t {
  kRetired,  // unlinked
  kPresent,  // it has a tuple again and has left the list
  kNotYet,   // it is locked, or its metadata still matters
};

class AbsentRows {
 public:
  AbsentRows(EpochClock& clock, WorkerId worker) : clock_(clock), worker_(worker) {}

  void Add(Table& table, Row* row) { queued_.push_back({&table, row}); }
  size_t size() const { return queued_.size(); }

  // Between transactions: tries the oldest few. `try_retire(Table&, Row*)` marks the row kGone and unlinks it.
  template <class TryRetire>
  void Sweep(TryRetire&& try_retire) {
    // A share of a long list, so that the list shrinks at any rate of growth.
    const size_t share = std::max(kTriesPerSweep, queued_.size() / 8);
    for (size_t tries = std::min(queued_.size(), share); tries > 0; --tries) {
      const Entry entry = queued_.front();
      queued_.pop_front();
      switch (try_retire(*entry.table, entry.row)) {
        case RetireResult::kRetired:
          unlinked_.push_back({entry, clock_.RetireEpoch(worker_)});
          break;
        case RetireResult::kPresent:
          break;
        case RetireResult::kNotYet:
          queued_.push_back(entry);
          break;
      }
    }
    if (unlinked_.empty()) return;
    const Epoch safe = clock_.SafeEpoch();
    for (; !unlinked_.empty() && unlinked_.front().stamp < safe; unlinked_.pop_front()) {
      unlinked_.front().entry.table->Recycle(worker_, unlinked_.front().entry.row);
    }
  }

 private:
  static constexpr size_t kTriesPerSweep = 64;

  struct Entry {
    Table* table;
    Row* row;
  };
  struct Unlinked {
    Entry entry;
    Epoch stamp;
  };

  EpochClock& clock_;
  const WorkerId worker_;
  std::deque<Entry> queued_;
  std::deque<Unlinked> unlinked_;
};

}  // namespace dbx
