// Silo (Tu et al., SOSP 2013): optimistic concurrency control with epochs.
//
// A transaction reads rows without locks and remembers their versions, keeps what it writes in private copies, and at
// commit locks what it writes, re-checks what it read, and installs. The control word of a row:
//
//   bits 0-3   Row::kLocked, kAbsent, kGone, kQueued
//   bits 4-27  sequence within the epoch   \  the TID of the last writer; larger than every TID that it had
//   bits 28-63 epoch                       /  read or written, and in the epoch of its commit
//
// Row::kQueued may be set on an unlocked row by any worker and is no part of the version.
//
// Differences from the paper: a writer that finds a row locked waits for a bounded time only, then aborts, so that
// nothing hangs when a holder is not running; only the ranges of a tuple that changed are copied back.
//
// One object per worker.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/epoch.h"
#include "base/outcome.h"
#include "base/racy.h"
#include "base/spin.h"
#include "concurrency_control/absent_rows.h"
#include "concurrency_control/contract.h"
#include "concurrency_control/log_observer.h"
#include "storage/tuple.h"

namespace dbx {

template <LogObserver Log>
class Silo {
 public:
  static constexpr CcTraits kTraits = {.name = "SILO",
                                       .multi_version = false,
                                       .commit_order = CommitOrder::kPhysical,
                                       .commit_version = CommitVersion::kEpochTid,
                                       .reads_are_locked = false,
                                       .lock_table = false};

  class Shared {
   public:
    Shared(Log& log, EpochClock& clock, uint64_t, const Atomic<bool>&) : log(log), clock(clock) {}
    size_t memory_bytes() const { return 0; }

    Log& log;
    EpochClock& clock;
  };
  static size_t RowMetaBytes(size_t log_meta_bytes) { return log_meta_bytes; }

  Silo(Shared& shared, typename Log::TxnState& log_state, WorkerId worker)
      : log_(shared.log),
        log_state_(log_state),
        worker_(worker),
        clock_(shared.clock),
        images_(kInitialImageBytes),
        absent_rows_(shared.clock, worker) {
    reads_.reserve(kAccessesReserved);
    writes_.reserve(kAccessesReserved);
    dirty_.reserve(kAccessesReserved);
  }

  void Begin(TxnId) {
    for (const Write& write : writes_) filter_[FilterWord(write.row)] = 0;
    reads_.clear();
    writes_.clear();
    dirty_.clear();
    misses_.clear();
    images_used_ = 0;
    locked_ = 0;
    if (absent_rows_.size() > 0 && ++begins_ % kTxnsPerSweep == 0) {
      absent_rows_.Sweep([this](Table& table, Row* row) { return TryRetire(table, row); });
    }
  }

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    // Whoever marked a row gone is about to unlink it.
    for (SpinWait gone;;) {
      Row* row = FindOrCreate(table, key);
      if (const Write* own = FindOwn(row)) {
        if (!own->present) return Outcome::kNotFound;
        visit(TupleReader(Image(*own)));
        return Outcome::kOk;
      }
      uint64_t seen;
      if (!UnlockedVersion(row, seen)) return Outcome::kConflict;
      if (seen & Row::kGone) {
        gone.Wait();
        continue;
      }
      if ((seen & Row::kAbsent) == 0) visit(RacyTupleReader(table.tuple(row)));
      log_.OnRead(log_state_, {table, key, row->meta()});
      if (!StillVersion(row, seen)) continue;
      reads_.push_back({row, seen});
      if ((seen & Row::kAbsent) == 0) return Outcome::kOk;
      misses_.push_back({&table, row});
      return Outcome::kNotFound;
    }
  }

  template <class Change>
  Outcome Update(Table& table, Key key, Change&& change) {
    Write* write = OwnOrNewWrite(table, key);
    if (write == nullptr) return Outcome::kConflict;
    if (!write->present) return Outcome::kNotFound;
    write->written = true;
    DirtyRanges ranges{dirty_, static_cast<uint32_t>(write - writes_.data()), Image(*write)};
    TupleWriter<DirtyRanges> tuple(Image(*write), ranges);
    change(tuple);
    return Outcome::kOk;
  }

  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    ASSERT(tuple.size() == table.tuple_bytes());
    Write* write = OwnOrNewWrite(table, key);
    if (write == nullptr) return Outcome::kConflict;
    if (write->present) return Outcome::kExists;
    write->written = write->present = true;
    std::memcpy(Image(*write), tuple.data(), tuple.size());
    dirty_.push_back({static_cast<uint32_t>(write - writes_.data()), 0, static_cast<uint32_t>(tuple.size())});
    return Outcome::kOk;
  }

  Outcome Delete(Table& table, Key key) {
    Write* write = OwnOrNewWrite(table, key);
    if (write == nullptr) return Outcome::kConflict;
    if (!write->present) return Outcome::kNotFound;
    write->written = true;
    write->present = false;
    return Outcome::kOk;
  }

  bool read_only() const {
    return std::none_of(writes_.begin(), writes_.end(), [](const Write& write) { return write.written; });
  }

  // In the order of addresses, so that writers that wait for each other do not do so in a circle. A row that turned out
  // not to be written (an insert of what exists) is locked too: it was read, and this is its re-check.
  bool LockWrites() {
    lock_order_.clear();
    for (uint32_t i = 0; i < writes_.size(); ++i) lock_order_.push_back(i);
    std::sort(lock_order_.begin(), lock_order_.end(),
              [this](uint32_t a, uint32_t b) { return writes_[a].row < writes_[b].row; });
    for (const uint32_t i : lock_order_) {
      if (!LockUnchanged(writes_[i])) return false;
      ++locked_;
      Row* const row = writes_[i].row;
      log_.OnWrite(log_state_, {*writes_[i].table, row->key, row->meta()});
    }
    return true;
  }

  template <class Visit>
  void ForEachRead(Visit&& visit) {
    for (const ReadEntry& read : reads_) visit(read.row->meta());
    for (const Write& write : writes_) {
      if (!write.written) visit(write.row->meta());
    }
  }

  bool Recheck() {
    // Sequentially consistent, after the write locks and before the re-check: the epoch of the commit.
    const Epoch epoch = clock_.Current();
    uint64_t largest = last_tid_;
    for (const ReadEntry& read : reads_) {
      const uint64_t now = read.row->control.load();
      if (Version(now) != Version(read.seen) &&
          (Version(now) != (Version(read.seen) | Row::kLocked) || FindOwn(read.row) == nullptr)) {
        return false;
      }
      largest = std::max(largest, read.seen >> Row::kSharedBits);
    }
    for (const Write& write : writes_) largest = std::max(largest, write.seen >> Row::kSharedBits);
    commit_tid_ = std::max(largest + 1, EpochTid::First(epoch));
    return true;
  }

  // The TID; after Recheck.
  uint64_t commit_version() const { return commit_tid_; }

  void Install() {
    for (const Dirty& dirty : dirty_) {
      const Write& write = writes_[dirty.write];
      if (!write.present) continue;
      RacyCopy(write.table->tuple(write.row) + dirty.offset, Image(write) + dirty.offset, dirty.length);
    }
  }

  template <class Visit>
  void ForEachWrite(Visit&& visit) const {
    for (const Write& write : writes_) {
      if (write.written) visit(WriteRef{write.table, write.row->key, !write.present, Image(write), write.row->meta()});
    }
  }

  void Release() {
    if (!writes_.empty()) last_tid_ = commit_tid_;
    for (const Write& write : writes_) {
      uint64_t control = write.seen;
      if (write.written) {
        control = (commit_tid_ << Row::kSharedBits) | (write.present ? 0 : Row::kAbsent);
      }
      Unlock(write, control);
    }
    locked_ = 0;
    QueueMisses();
  }

  void Abort() {
    for (uint32_t i = 0; i < locked_; ++i) {
      const Write& write = writes_[lock_order_[i]];
      Unlock(write, write.seen);
    }
    locked_ = 0;
    QueueMisses();
  }

 private:
  static constexpr size_t kAccessesReserved = 64;
  static constexpr size_t kInitialImageBytes = 64 << 10;
  static constexpr uint64_t kTxnsPerSweep = 64;
  static constexpr size_t kFilterWords = 4096;

  struct ReadEntry {
    Row* row;
    uint64_t seen;
  };
  struct Write {
    Row* row;
    Table* table;
    uint64_t seen;  // the version that the private copy was taken of
    size_t image;   // offset in images_
    bool written;
    bool present;  // as this transaction sees the row
  };
  struct Dirty {
    uint32_t write;  // index in writes_
    uint32_t offset;
    uint32_t length;
  };
  // The sink of TupleWriter.
  struct DirtyRanges {
    std::vector<Dirty>& dirty;
    uint32_t write;
    const std::byte* image;
    void BeforeChange(const std::byte* at, size_t length) {
      dirty.push_back({write, static_cast<uint32_t>(at - image), static_cast<uint32_t>(length)});
    }
  };
  struct Miss {
    Table* table;
    Row* row;
  };

  static uint64_t Version(uint64_t control) { return control & ~Row::kQueued; }

  Row* FindOrCreate(Table& table, Key key) {
    if (Row* row = table.Find(key)) return row;
    return table.FindOrCreate(worker_, key, [this](Row& row) {
      log_.FreshMeta(row.meta());
      // One epoch back: above the TID of any row of this key that was unlinked (TryRetire), below any commit.
      const uint64_t tid = EpochTid::First(Epoch(clock_.Current().value() - 1));
      row.control.store((tid << Row::kSharedBits) | Row::kAbsent, std::memory_order_release);
    });
  }

  // The version of a row that nobody is writing. False: a writer holds it for too long.
  static bool UnlockedVersion(const Row* row, uint64_t& seen) {
    SpinWait wait;
    for (;;) {
      // Acquire: the tuple and metadata of this version are visible.
      seen = row->control.load(std::memory_order_acquire);
      if ((seen & Row::kLocked) == 0 || (seen & Row::kGone)) return true;
      if (wait.yielding()) return false;
      wait.Wait();
    }
  }
  static bool StillVersion(const Row* row, uint64_t seen) {
    CompilerBarrier();
    return Version(row->control.load(std::memory_order_acquire)) == Version(seen);
  }

  std::byte* Image(const Write& write) const { return const_cast<std::byte*>(images_.data()) + write.image; }

  // Rows that were written set a byte here, so that most look-ups of own writes end at once.
  static size_t FilterWord(const Row* row) {
    return ((reinterpret_cast<uintptr_t>(row) >> 4) * 0x9E3779B97F4A7C15u >> 40) % kFilterWords;
  }
  Write* FindOwn(const Row* row) {
    if (writes_.empty() || filter_[FilterWord(row)] == 0) return nullptr;
    for (Write& write : writes_) {
      if (write.row == row) return &write;
    }
    return nullptr;
  }

  // The write entry of a row, its private copy taken if it is new; nullptr on a conflict.
  Write* OwnOrNewWrite(Table& table, Key key) {
    for (SpinWait gone;;) {
      Row* row = FindOrCreate(table, key);
      if (Write* own = FindOwn(row)) return own;
      uint64_t seen;
      if (!UnlockedVersion(row, seen)) return nullptr;
      if (seen & Row::kGone) {
        gone.Wait();
        continue;
      }
      const size_t bytes = table.tuple_bytes();
      if (images_used_ + bytes > images_.size()) images_.resize(2 * (images_used_ + bytes));
      if ((seen & Row::kAbsent) == 0) RacyCopy(images_.data() + images_used_, table.tuple(row), bytes);
      if (!StillVersion(row, seen)) continue;
      if (seen & Row::kAbsent) misses_.push_back({&table, row});
      writes_.push_back({row, &table, seen, images_used_, false, (seen & Row::kAbsent) == 0});
      images_used_ += (bytes + 7) / 8 * 8;
      filter_[FilterWord(row)] = 1;
      return &writes_.back();
    }
  }

  // Locks the row if it still has the version that was copied.
  static bool LockUnchanged(Write& write) {
    SpinWait wait;
    uint64_t now = write.row->control.load(std::memory_order_relaxed);
    for (;;) {
      if (now & Row::kLocked) {
        if (wait.yielding()) return false;
        wait.Wait();
        now = write.row->control.load(std::memory_order_relaxed);
      } else if (Version(now) != Version(write.seen)) {
        return false;
      } else if (write.row->control.compare_exchange_weak(now, now | Row::kLocked)) {
        // Sequentially consistent against readers that raise metadata and then re-check.
        write.seen = now;
        return true;
      }
    }
  }

  // `control` is unlocked. A row that is absent now joins this worker's list, unless it is in one.
  void Unlock(const Write& write, uint64_t control) {
    control |= write.seen & Row::kQueued;
    if ((control & (Row::kAbsent | Row::kQueued)) == Row::kAbsent) {
      control |= Row::kQueued;
      absent_rows_.Add(*write.table, write.row);
    }
    // Release: the installed tuple and metadata are visible to whoever sees the new version.
    write.row->control.store(control, std::memory_order_release);
  }

  void QueueMisses() {
    for (const Miss& miss : misses_) {
      uint64_t control = miss.row->control.load(std::memory_order_relaxed);
      constexpr uint64_t kStates = Row::kLocked | Row::kAbsent | Row::kGone | Row::kQueued;
      if ((control & kStates) != Row::kAbsent) continue;
      if (miss.row->control.compare_exchange_strong(control, control | Row::kQueued, std::memory_order_relaxed)) {
        absent_rows_.Add(*miss.table, miss.row);
      }
    }
    misses_.clear();
  }

  RetireResult TryRetire(Table& table, Row* row) {
    uint64_t control = row->control.load(std::memory_order_relaxed);
    if (control & Row::kLocked) return RetireResult::kNotYet;
    if ((control & Row::kAbsent) == 0) {
      const bool left = row->control.compare_exchange_strong(control, control & ~Row::kQueued);
      return left ? RetireResult::kPresent : RetireResult::kNotYet;
    }
    // A row of this key that is created later starts with a larger TID.
    if (EpochTid::EpochOf(control >> Row::kSharedBits).value() + 2 > clock_.Current().value())
      return RetireResult::kNotYet;
    if (!row->control.compare_exchange_strong(control, control | Row::kLocked)) return RetireResult::kNotYet;
    if (!log_.Forgettable(row->meta())) {
      row->control.store(control, std::memory_order_release);
      return RetireResult::kNotYet;
    }
    // The version changes with kGone: whoever has read the absence fails its re-check.
    row->control.store(control | Row::kLocked | Row::kGone);
    table.Unlink(row);
    return RetireResult::kRetired;
  }

  Log& log_;
  typename Log::TxnState& log_state_;
  const WorkerId worker_;
  EpochClock& clock_;
  std::vector<ReadEntry> reads_;
  std::vector<Write> writes_;
  std::vector<Dirty> dirty_;
  std::vector<Miss> misses_;
  std::vector<uint32_t> lock_order_;
  std::vector<std::byte> images_;
  size_t images_used_ = 0;
  uint32_t locked_ = 0;
  uint64_t last_tid_ = 0;
  uint64_t commit_tid_ = 0;
  uint64_t begins_ = 0;
  uint8_t filter_[kFilterWords] = {};
  AbsentRows absent_rows_;
};

}  // namespace dbx
