// The common part of optimistic concurrency controls: they read rows without locks and remember their versions (the
// read set), keep writes in private copies (the write set), and at commit lock the write set, validate the read set
// (phantoms: scanned_leaves.h), and install.
//
// A control word holds Row::kLocked, kAbsent, kGone, kQueued in its low bits and the version number above them.
// Row::kQueued may be set on an unlocked row by any worker and is no part of the version; while a row is locked, no
// other worker changes its word.
//
// The concurrency control `Cc` that derives from this defines versions and the order of transactions:
//
//   static Version(control)   the word without the bits that may change while its tuple stays: equal words before and
//                             after a read, unlocked, mean that the read is of one version
//   FreshControl(leaf)        of a row that is created, absent: not below what was ever forgotten of its key, and after
//                             all readers of the gap that it appears in; nullptr: the table is not ordered
//   GapControl(control)       the value to which the leaf's word must be raised when such a row leaves a gap
//   PrepareToForget(table, control)   whether such a row will not start below this absent one, so that this one may be
//                             unlinked
//   Recheck, Release          as in contract.h
// and, where it overrides the defaults here:
//   LockBits()                the bits that a locked word has and an unlocked one lacks: kLocked, and others
//   MayWrite(seen)            whether the newest version may be overwritten by this transaction
//   ScanRow(table, entry, visit)   a scan's read of a row
// and, where rows have their versions in a persistent heap (log_observer.h):
//   VersionSeen(table, row, seen)   the slot of the version, nullptr if there is none
//   stamp()                   of the transaction, from Recheck on
//   FreeTombstone(table, row, control)   of an absent row that is locked: nothing of it is left. False: not yet
//
// A writer that finds a row locked waits for a bounded time only, then aborts, so that nothing hangs when a holder is
// descheduled. Nothing bounds the retries of a transaction whose read set keeps changing, by updates or phantoms:
// optimistic transactions may starve, here as in the papers. Only the changed ranges of a tuple are copied back, and
// small gaps between them; a log that appends changes (log_observer.h) makes them itself, from whole tuples, and as
// that is after validation, it has none to take back.
//
// One object per worker.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/epoch.h"
#include "base/outcome.h"
#include "base/racy.h"
#include "base/spin.h"
#include "concurrency_control/absent_rows.h"
#include "concurrency_control/contract.h"
#include "concurrency_control/fetch_rows.h"
#include "concurrency_control/log_observer.h"
#include "concurrency_control/new_versions.h"
#include "concurrency_control/scanned_leaves.h"
#include "storage/tuple.h"

namespace dbx {

template <LogObserver Log, class Cc>
class OptimisticAccesses {
 public:
  // A row holds nothing besides its header, its log metadata and its tuple.
  static constexpr size_t kRowBytes = 0;

  void Begin([[maybe_unused]] TxnId txn) {
    for (const Write& write : writes_) filter_[FilterWord(write.row)] = 0;
    reads_.clear();
    leaves_.Clear();
    writes_.clear();
    dirty_.clear();
    misses_.clear();
    images_.Clear();
    locked_ = 0;
    if constexpr (kInHeap) new_versions_.Begin(txn);
    if (absent_rows_.size() > 0 && ++begins_ % kTxnsPerSweep == 0) {
      absent_rows_.Sweep([this](Table& table, Row* row) { return TryRetire(table, row); });
    }
  }

  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    // The worker that marked a row kGone is about to unlink it.
    for (SpinWait gone;;) {
      Row* row = FindOrCreate(table, key);
      if (const Write* own = FindOwn(row)) return ReadOwn(*own, visit);
      uint64_t seen;
      if (!UnlockedVersion(row, seen)) return Outcome::kConflict;
      if (seen & Row::kGone) {
        gone.Wait();
        continue;
      }
      if ((seen & Row::kAbsent) == 0) visit(RacyTupleReader(table.tuple_in(row)));
      log_.OnRead(log_state_, {table, key, row->meta()});
      if (!StillVersion(row, seen)) continue;
      NoteRead(row, seen);
      if ((seen & Row::kAbsent) == 0) return Outcome::kOk;
      NoteMiss(table, row);
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
    Write* write = OwnOrNewWrite<Expect::kNoRow>(table, key);
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

  template <class Visit>
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, Visit&& visit) {
    FetchForScan<Log>(worker_, table, low, high);
    if (scanned_tuple_.size() < table.tuple_bytes()) scanned_tuple_.resize(table.tuple_bytes());
    const auto enter = [](const LeafRef&) { return LeafEntry::kRead; };
    return leaves_.Scan(log_, log_state_, table, low, high, order, enter,
                        [&](const BTreeEntry& entry) { return cc().ScanRow(table, entry, visit); });
  }

  bool read_only() const {
    return std::none_of(writes_.begin(), writes_.end(), [](const Write& write) { return IsChanged(write); });
  }

  // In the order of addresses, which excludes deadlocks between writers. A row that turned out not to be written (an
  // insert of an existing key) is locked too: it was read, and this is its validation.
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
    if constexpr (kInHeap) TakeSlots();
    return true;
  }

  template <class Visit>
  void ForEachRead(Visit&& visit) {
    for (const ReadEntry& read : reads_) visit(read.row->meta());
    for (const ScannedLeaves::Leaf& leaf : leaves_.leaves()) visit(leaf.ref.leaf->meta());
    for (const Write& write : writes_) {
      if (!write.written) visit(write.row->meta());
    }
  }

  void Install() {
    if constexpr (kAppendsChanges<Log>) return AppendChanges();
    if constexpr (kInHeap) return InstallVersions();
    for (const Dirty& dirty : dirty_) {
      const Write& write = writes_[dirty.write];
      if (!write.present) continue;
      RacyCopy(write.table->tuple_in(write.row) + dirty.offset, Image(write) + dirty.offset, dirty.end - dirty.offset);
    }
  }

  template <class Visit>
  void ForEachWrite(Visit&& visit) const {
    for (const Write& write : writes_) {
      if (write.written) visit(WriteRef{write.table, write.row->key, !write.present, Image(write), write.row->meta()});
    }
  }

  // With the write set locked: `seen` of a write is its row's word before.
  template <class Visit>
  void ForEachChange(std::vector<ByteRange>& ranges, Visit&& visit) const {
    for (uint32_t i = 0; i < writes_.size(); ++i) {
      const Write& write = writes_[i];
      if (!write.written) continue;
      const bool was_present = (write.seen & Row::kAbsent) == 0;
      ranges.clear();
      if (was_present && write.present) RangesOf(i, ranges);
      visit(WriteRef{write.table, write.row->key, !write.present, Image(write), write.row->meta()}, was_present);
    }
  }

  void Abort() {
    for (uint32_t i = 0; i < locked_; ++i) {
      const Write& write = writes_[lock_order_[i]];
      Unlock(write, write.seen);
    }
    locked_ = 0;
    if constexpr (kInHeap) new_versions_.GiveBack();
    QueueMisses();
  }

 protected:
  static constexpr bool kInHeap = kHeapVersions<Log>;

  struct ReadEntry {
    Row* row;
    uint64_t seen;
  };
  struct Write {
    Row* row;
    Table* table;
    uint64_t seen;  // of the version that was copied; once locked, the word before, which is restored
    PrivateCopies::Place image;
    bool written;
    bool present;  // as this transaction sees the row
  };

  OptimisticAccesses(Log& log, typename Log::TxnState& log_state, EpochClock& clock, WorkerId worker)
      : log_(log),
        log_state_(log_state),
        clock_(clock),
        worker_(worker),
        absent_rows_(clock, worker),
        new_versions_(log, log_state, worker) {
    reads_.reserve(kAccessesReserved);
    writes_.reserve(kAccessesReserved);
    dirty_.reserve(kAccessesReserved);
  }

  static constexpr uint64_t LockBits() { return Row::kLocked; }
  static constexpr bool MayWrite(uint64_t) { return true; }

  // Unlocks: written rows get the version `written`, other locked rows keep theirs.
  void ReleaseWrites(uint64_t written) {
    for (const Write& write : writes_) {
      Unlock(write, write.written ? written | (write.present ? 0 : Row::kAbsent) : write.seen);
    }
    locked_ = 0;
    QueueMisses();
  }

  Write* FindOwn(const Row* row) {
    if (writes_.empty() || filter_[FilterWord(row)] == 0) return nullptr;
    for (Write& write : writes_) {
      if (write.row == row) return &write;
    }
    return nullptr;
  }

  template <class Visit>
  Outcome ReadOwn(const Write& own, Visit&& visit) const {
    if (!own.present) return Outcome::kNotFound;
    visit(TupleReader(Image(own)));
    return Outcome::kOk;
  }

  // An ordered table's look-up for an insert descends the tree once.
  template <Expect kExpect = Expect::kRow>
  Row* FindOrCreate(Table& table, Key key) {
    if (kExpect == Expect::kNoRow && table.ordered()) return FindOrCreateInLeaf(table, key);
    if (Row* row = table.Find(key)) return row;
    if (table.ordered()) return FindOrCreateInLeaf(table, key);
    FetchOnMiss<Log>(worker_, table, key);
    return table.FindOrCreate(worker_, key, [this](Row& row) {
      log_.FreshMeta(row.meta());
      row.control.store(cc().FreshControl(nullptr), std::memory_order_release);
    });
  }

  // As Read, but the tuple is copied: it is shown once, and only after its version was confirmed.
  template <class Visit>
  ScanStep ScanRow(Table& table, const BTreeEntry& entry, Visit& visit) {
    Row* const row = entry.row;
    if (const Write* own = FindOwn(row)) return own->present ? Show(entry, Image(*own), visit) : ScanStep::kGoOn;
    uint64_t seen;
    do {
      // Unlinking a kGone row has changed its leaf, or will.
      if (!UnlockedVersion(row, seen) || (seen & Row::kGone)) return ScanStep::kConflict;
      if ((seen & Row::kAbsent) == 0) CopyScanned(table, table.tuple_in(row));
      log_.OnRead(log_state_, {table, entry.key, row->meta()});
    } while (!StillVersion(row, seen));
    NoteRead(row, seen);
    return EndScanRow(table, entry, seen, visit);
  }
  void CopyScanned(const Table& table, const std::byte* tuple) {
    RacyCopy(scanned_tuple_.data(), tuple, table.tuple_bytes());
  }
  // The copy is valid.
  template <class Visit>
  ScanStep EndScanRow(Table& table, const BTreeEntry& entry, uint64_t seen, Visit& visit) {
    if ((seen & Row::kAbsent) == 0) return Show(entry, scanned_tuple_.data(), visit);
    if ((seen & Row::kQueued) == 0) NoteMiss(table, entry.row);
    return ScanStep::kGoOn;
  }
  template <class Visit>
  static ScanStep Show(const BTreeEntry& entry, const std::byte* tuple, Visit& visit) {
    return visit(entry.key, TupleReader(tuple)) ? ScanStep::kGoOn : ScanStep::kEnd;
  }

  std::byte* Image(const Write& write) const { return images_.At(write.image); }
  HeapVersions& heap() { return new_versions_.heap(); }
  void NoteRead(Row* row, uint64_t seen) { reads_.push_back({row, seen}); }
  void NoteMiss(Table& table, Row* row) {
    leaves_.NoteAbsent(row);
    misses_.push_back({&table, row});
  }
  void OnRead(const RowRef& row) { log_.OnRead(log_state_, row); }
  Log& log() { return log_; }
  typename Log::TxnState& log_state() { return log_state_; }

  // Placeholders of misses join this worker's list, unless they are in one.
  void QueueMisses() {
    constexpr uint64_t kStates = Row::kLocked | Row::kAbsent | Row::kGone | Row::kQueued;
    for (const Miss& miss : misses_) {
      uint64_t control = miss.row->control.load(std::memory_order_relaxed);
      // If the word changes without its version, try again.
      while ((control & kStates) == Row::kAbsent) {
        if (miss.row->control.compare_exchange_weak(control, control | Row::kQueued, std::memory_order_relaxed)) {
          absent_rows_.Add(*miss.table, miss.row);
          break;
        }
      }
    }
    misses_.clear();
  }

  const std::vector<ReadEntry>& reads() const { return reads_; }
  std::vector<Write>& writes() { return writes_; }
  WorkerId worker() const { return worker_; }
  const ScannedLeaves& leaves() const { return leaves_; }

 private:
  // The bytes that were changed of a write's image.
  void RangesOf(uint32_t write, std::vector<ByteRange>& ranges) const {
    for (const Dirty& dirty : dirty_) {
      if (dirty.write == write && dirty.offset < dirty.end) ranges.push_back({dirty.offset, dirty.end});
    }
    JoinRanges(ranges, kRangeGapBytes);
  }

  static constexpr size_t kAccessesReserved = 64;
  static constexpr uint64_t kTxnsPerSweep = 64;
  static constexpr size_t kFilterWords = 4096;
  // A change that begins no farther behind the last one's end joins it: the bytes between are copied back unchanged.
  // Not where the log has the ranges.
  static constexpr uint32_t kMergedGapBytes = kRowChains<Log> ? kRangeGapBytes : 128;

  struct Dirty {
    uint32_t write;  // index in writes_
    uint32_t offset;
    uint32_t end;
  };
  // The sink of TupleWriter.
  struct DirtyRanges {
    std::vector<Dirty>& dirty;
    uint32_t write;
    const std::byte* image;
    void BeforeChange(const std::byte* at, size_t length) {
      const auto offset = static_cast<uint32_t>(at - image);
      const auto end = static_cast<uint32_t>(offset + length);
      if (Dirty* const last = dirty.empty() ? nullptr : &dirty.back();
          last != nullptr && last->write == write && last->offset <= offset && offset <= last->end + kMergedGapBytes) {
        last->end = std::max(last->end, end);
      } else {
        dirty.push_back({write, offset, end});
      }
    }
  };
  struct Miss {
    Table* table;
    Row* row;
  };
  struct NoHeap {
    NoHeap(Log&, typename Log::TxnState&, WorkerId) {}
  };

  // A row that was absent, was inserted and was deleted again does not change: where records are of changes, it has
  // none.
  static bool IsChanged(const Write& write) {
    if (!kAppendsChanges<Log>) return write.written;
    return write.written && (write.present || (write.seen & Row::kAbsent) == 0);
  }

  // Readers that run into a change find another version of the row afterwards.
  void AppendChanges() {
    for (const Write& write : writes_) {
      if (!IsChanged(write)) continue;
      log_.Change(log_state_, *write.table, write.row, write.present ? Image(write) : nullptr, nullptr);
    }
  }

  // Before a stamp is drawn, so that a full heap leaves none that is not installed.
  void TakeSlots() {
    // Taking a slot executes a locked instruction, which waits for the cache misses before it: these overlap here.
    if (writes_.size() > 1) {
      for (const Write& write : writes_) write.table->versions()->PrefetchPartition(write.row->key);
      for (const Write& write : writes_) write.table->versions()->PrefetchSlot(write.row->key);
    }
    for (uint32_t i = 0; i < writes_.size(); ++i) {
      const Write& write = writes_[i];
      if (write.written) new_versions_.Take(*write.table, write.row, i);
    }
  }
  void InstallVersions() {
    new_versions_.Install(cc().stamp(), [this](uint32_t i) -> const std::byte* {
      return writes_[i].present ? Image(writes_[i]) : nullptr;
    });
  }

  static bool SameVersion(uint64_t a, uint64_t b) { return Cc::Version(a) == Cc::Version(b); }
  Cc& cc() { return static_cast<Cc&>(*this); }

  // The row inherits the metadata of the gap that it appears in.
  [[gnu::noinline]] Row* FindOrCreateInLeaf(Table& table, Key key) {
    FetchOnMiss<Log>(worker_, table, key);
    LeafChange change;
    const auto init = [this](Row& row, BTreeLeaf& leaf) {
      CopyLeafMeta(row.meta(), leaf.meta(), log_.meta_bytes());
      row.control.store(cc().FreshControl(&leaf), std::memory_order_release);
    };
    Row* const row = table.FindOrCreate(worker_, key, init, change);
    leaves_.NoteCreated(row, change);
    return row;
  }

  // The version of a row while it is not being written. False: a writer holds it for too long.
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
    return SameVersion(row->control.load(std::memory_order_acquire), seen);
  }

  // Rows of the write set mark a byte here, so that most look-ups of own writes end at once.
  static size_t FilterWord(const Row* row) {
    return ((reinterpret_cast<uintptr_t>(row) >> 4) * 0x9E3779B97F4A7C15u >> 40) % kFilterWords;
  }

  // The write entry of a row, its private copy taken if it is new; nullptr on a conflict.
  template <Expect kExpect = Expect::kRow>
  Write* OwnOrNewWrite(Table& table, Key key) {
    for (SpinWait gone;;) {
      Row* row = FindOrCreate<kExpect>(table, key);
      if (Write* own = FindOwn(row)) return own;
      uint64_t seen;
      if (!UnlockedVersion(row, seen)) return nullptr;
      if (seen & Row::kGone) {
        gone.Wait();
        continue;
      }
      if (!cc().MayWrite(seen)) return nullptr;
      PrivateCopies::Place image;
      if (!CopyImage(table, row, seen, image)) continue;
      if (seen & Row::kAbsent) NoteMiss(table, row);
      writes_.push_back({row, &table, seen, image, false, (seen & Row::kAbsent) == 0});
      filter_[FilterWord(row)] = 1;
      return &writes_.back();
    }
  }

  // A private copy of the version that was seen. False: the row has another one by now.
  bool CopyImage(const Table& table, Row* row, uint64_t seen, PrivateCopies::Place& image) {
    const size_t bytes = kInHeap ? CopyBytesInHeap(table) : table.tuple_bytes();
    std::byte* const to = images_.Next(bytes);
    if constexpr (kInHeap) {
      if (!StillVersion(row, seen)) return false;
      if ((seen & Row::kAbsent) == 0) std::memcpy(to, cc().VersionSeen(table, row, seen)->tuple(), table.tuple_bytes());
    } else {
      if ((seen & Row::kAbsent) == 0) RacyCopy(to, table.tuple_in(row), bytes);
      if (!StillVersion(row, seen)) return false;
    }
    image = images_.Keep(bytes);
    return true;
  }

  // Locks the row if it still has the version that was copied.
  bool LockUnchanged(Write& write) {
    SpinWait wait;
    uint64_t now = write.row->control.load(std::memory_order_relaxed);
    for (;;) {
      if (now & Row::kLocked) {
        if (wait.yielding()) return false;
        wait.Wait();
        now = write.row->control.load(std::memory_order_relaxed);
      } else if (!SameVersion(now, write.seen)) {
        return false;
      } else if (write.row->control.compare_exchange_weak(now, now | cc().LockBits())) {
        // Sequentially consistent against readers that raise metadata and then validate.
        write.seen = now;
        return true;
      }
    }
  }

  // `control` is unlocked. A row that is absent now (a tombstone) joins this worker's list, unless it is in one.
  void Unlock(const Write& write, uint64_t control) {
    control |= write.seen & Row::kQueued;
    if ((control & (Row::kAbsent | Row::kQueued)) == Row::kAbsent) {
      control |= Row::kQueued;
      absent_rows_.Add(*write.table, write.row);
    }
    // Release: the installed tuple and metadata are visible to every reader of the new version.
    write.row->control.store(control, std::memory_order_release);
  }

  RetireResult TryRetire(Table& table, Row* row) {
    uint64_t control = row->control.load(std::memory_order_relaxed);
    if (control & Row::kLocked) return RetireResult::kNotYet;
    if ((control & Row::kAbsent) == 0) {
      const bool left = row->control.compare_exchange_strong(control, control & ~Row::kQueued);
      return left ? RetireResult::kPresent : RetireResult::kNotYet;
    }
    if (!cc().PrepareToForget(table, control)) return RetireResult::kNotYet;
    if (!row->control.compare_exchange_strong(control, control | cc().LockBits())) return RetireResult::kNotYet;
    // In an ordered table its metadata is handed to the gap: scans, which read it, would keep it from being forgotten.
    // Where records name slots, scans keep nothing, and a slot is free for another key only once its delete is durable.
    const bool must_be_forgettable = !table.ordered() || kAppendsChanges<Log>;
    if (must_be_forgettable && !log_.Forgettable(row->meta())) {
      row->control.store(control, std::memory_order_release);
      return RetireResult::kNotYet;
    }
    if constexpr (kInHeap) {
      if (!cc().FreeTombstone(table, row, control)) {
        row->control.store(control, std::memory_order_release);
        return RetireResult::kNotYet;
      }
    }
    // The version changes with kGone: a transaction that has read the absence fails its validation.
    const auto mark_gone = [&] { row->control.store(control | cc().LockBits() | Row::kGone); };
    if (table.ordered()) {
      UnlinkFromLeaf(log_, clock_, worker_, table, row, row->meta(), Cc::GapControl(control), mark_gone);
    } else {
      mark_gone();
      table.Unlink(row);
    }
    return RetireResult::kRetired;
  }

  Log& log_;
  typename Log::TxnState& log_state_;
  EpochClock& clock_;
  const WorkerId worker_;
  std::vector<ReadEntry> reads_;
  ScannedLeaves leaves_;
  std::vector<std::byte> scanned_tuple_;
  std::vector<Write> writes_;
  std::vector<Dirty> dirty_;
  std::vector<Miss> misses_;
  std::vector<uint32_t> lock_order_;
  PrivateCopies images_;
  uint32_t locked_ = 0;
  uint64_t begins_ = 0;
  uint8_t filter_[kFilterWords] = {};
  AbsentRows absent_rows_;
  [[no_unique_address]] std::conditional_t<kInHeap, NewVersions<Log>, NoHeap> new_versions_;
};

}  // namespace dbx
