// Group commit of write-behind logging: which stamps are durable, said by records of a gap log (Arulraj et al., section
// 4.2; tests/models/write_behind_model.h has every order below, and what goes wrong in others).
//
// A worker has one word: 0, a bound of the stamp that it is about to draw, or the stamp. A transaction:
//   Announce    its bound, clock + 1
//   Drawn       its stamp; waits while that is not below the durable c_d
//   (it installs its versions)
//   Installed   its slots join the dirty tuples
//   Close       it joins the closed transactions, the word becomes 0, and then the number of its group is loaded; only
//               then its locks are released
//   Undrawn     instead: it aborts
//
// A commit, by whichever worker finds that it is due:
//   1. the number of the group that is collected is raised; then the clock C is loaded, then each worker's word
//   2. all dirty tuples of all workers are written back and drained
//   3. a record is written and drained:
//        c_p   C, but below every bound, and never less than it was
//        c_d   C + kWindow, and never less
//        long runners   the words that are stamps up to c_p: drawn, not installed, so that no transaction has read
//                       from them
//        last sequences   by worker, of the closed transactions up to c_p
//   4. stamps below c_d may be stored; a transaction of this group or an earlier one, with a stamp up to c_p, is
//   durable
//
// A stamp up to c_p alone says little: the record may list it as a long runner. So a commit point has the group too.
// `durable_until` is simpler, and later than need be: up to it every transaction is durable or has aborted. A reader of
// what is durable is acknowledged by it at once.
//
// Threads: a worker's calls are its own; Commit by any, one at a time; the rest from any.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/gaps/gap_log.h"
#include "logging/write_behind/closed_transactions.h"
#include "logging/write_behind/dirty_tuples.h"
#include "storage/persistent_memory.h"

namespace dbx {

class GroupCommit {
 public:
  // After the first record of this life is durable, which is the newest of `log`. `heap` and `log` outlive this, as
  // does `clock`: the last stamp that was drawn. Stamps may go beyond it by `window` until the next record.
  GroupCommit(PersistentMemory& heap, GapLog& log, Atomic<uint64_t>& clock, uint32_t workers,
              uint64_t window = kStampWindow);

  // ---- by a worker ----

  // Before a transaction: there will be room for it among those that are closed. Throws as Commit.
  void AwaitRoom(WorkerId worker) {
    if (of_[worker.value()]->closed.full()) CommitUntilRoom(worker);
  }

  void Announce(WorkerId worker) {
    // Sequentially consistent, before the draw: a committer whose clock is not below the stamp finds the bound.
    of_[worker.value()]->word.store(BoundWord(clock_.load(std::memory_order_relaxed) + 1));
  }
  // Throws as Commit.
  void Drawn(WorkerId worker, Timestamp stamp) {
    of_[worker.value()]->word.store(StampWord(stamp.value()), std::memory_order_release);
    while (stamp.value() >= limit_.load(std::memory_order_acquire)) AwaitLimit(stamp);
  }
  // Its versions are stored, and the rows point to them. Of the slot, `bytes` are to be written back; the rest was
  // streamed (PersistentWriter::Stream).
  void Installed(WorkerId worker, const HeapSlot* slot, size_t bytes) {
    WriteBackLater(worker, reinterpret_cast<const std::byte*>(slot), bytes);
  }
  // The lines of the heap are to be written back with the group of the worker's transaction.
  void WriteBackLater(WorkerId worker, const std::byte* from, size_t bytes) {
    DirtyTuples& dirty = of_[worker.value()]->dirty;
    if (dirty.full()) Flush(worker);
    dirty.Add(heap_.bytes().data(), from, bytes);
  }
  // Of the transaction with the worker's number `sequence`. Returns the group. Sequentially consistent: a committer
  // that does not find the slots among the dirty ones has found the stamp, and has raised the number before.
  uint64_t Close(WorkerId worker, Timestamp stamp, uint64_t sequence) {
    OfWorker& own = *of_[worker.value()];
    own.closed.Add(stamp.value(), sequence);
    own.word.store(0);
    return collecting_.load() + 1;
  }
  void Undrawn(WorkerId worker) { of_[worker.value()]->word.store(0, std::memory_order_release); }
  // Of a reader, after its last read.
  uint64_t group() const { return collecting_.load() + 1; }
  // Writes back and drains the worker's own dirty tuples.
  void Flush(WorkerId worker);

  // No slot has a stamp in a gap any more: the records have no gaps from now on.
  void DropGaps() { drop_gaps_.store(true, std::memory_order_release); }
  // Once no worker runs: everything is durable, and the record says that the life has ended by itself. Throws as
  // Commit.
  void End(const std::optional<std::pair<uint64_t, uint64_t>>& digest);

  // ---- by any ----

  // Commits a group, unless another thread does. Throws the error of a device, and from then on.
  bool Commit();
  void ThrowIfFailed() const {
    if (!failed_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(failure_);
  }
  bool IsDurable(uint64_t stamp, uint64_t group) const {
    // All up to the stamp: a transaction that read what was durable waits for no group.
    if (stamp <= durable_until_.load(std::memory_order_acquire)) return true;
    // The group first: c_p is then at least that group's.
    return done_.load(std::memory_order_acquire) >= group && stamp <= c_p_.load(std::memory_order_acquire);
  }
  // A stamp was drawn that no record covers yet.
  bool has_uncommitted() const {
    return clock_.load(std::memory_order_relaxed) > durable_until_.load(std::memory_order_relaxed);
  }
  Timestamp durable_until() const { return Timestamp(durable_until_.load(std::memory_order_acquire)); }
  uint64_t c_d() const { return limit_.load(std::memory_order_acquire); }

 private:
  struct OfWorker {
    // 0, or a bound or a stamp.
    alignas(kCacheLineBytes) Atomic<uint64_t> word{0};
    DirtyTuples dirty;
    ClosedTransactions closed;
    std::unique_ptr<PersistentWriter> writer;
  };
  static constexpr uint64_t BoundWord(uint64_t bound) { return bound << 1; }
  static constexpr uint64_t StampWord(uint64_t stamp) { return stamp << 1 | 1; }
  static constexpr bool IsStamp(uint64_t word) { return (word & 1) != 0; }

  void AwaitLimit(Timestamp stamp);
  void CommitUntilRoom(WorkerId worker);
  void CommitNext(auto&& finish);
  void DrainDirty();
  GapRecord NextRecord(uint64_t clock);
  void Publish(const GapRecord& record);

  PersistentMemory& heap_;
  GapLog& log_;
  Atomic<uint64_t>& clock_;
  const uint64_t window_;
  std::vector<std::unique_ptr<OfWorker>> of_;
  std::unique_ptr<PersistentWriter> writer_;  // of commits
  mutable Mutex mutex_;                       // of commits
  std::vector<uint64_t> words_, ends_;        // of the commit; guarded by mutex_
  std::exception_ptr failure_;                // guarded by mutex_
  Atomic<bool> failed_{false}, drop_gaps_{false};
  Atomic<uint64_t> collecting_{0}, done_{0};
  Atomic<uint64_t> c_p_{0}, limit_{0}, durable_until_{0};
};

}  // namespace dbx
