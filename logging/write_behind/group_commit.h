// Group commit of write-behind logging: which stamps are durable, said by records of a gap log (Arulraj et al., section
// 4.2; tests/models/write_behind_model.h has every order below, and what goes wrong in others).
//
// A worker has one word: 0, a bound of the stamp that it is about to draw, or the stamp. A transaction:
//   Announce    its bound, clock + 1
//   Drawn       its stamp; waits while that is not below the durable c_d
//   (it installs its versions)
//   Installed   its slots join the dirty tuples
//   Close       the word becomes 0, and then the number of its group is loaded; only then its locks are released
//   Void        instead: it aborts
//
// A commit, by whichever worker finds that it is due:
//   1. the number of the group that is collected is raised; then the clock C is loaded, then each worker's word
//   2. all dirty tuples of all workers are written back and drained
//   3. a record is written and drained:
//        c_p   C, but below every bound, and never less than it was
//        c_d   C + kWindow, and never less
//        long runners   the words that are stamps up to c_p: drawn, not installed, so that no transaction has read
//                       from them
//   4. stamps below c_d may be stored; a transaction of this group or an earlier one, with a stamp up to c_p, is
//   durable
//
// A stamp up to c_p alone says little: the record may list it as a long runner. So a commit point has the group too.
// `durable_until` is simpler, and later than need be: up to it every transaction is durable or has aborted.
//
// Threads: a worker's calls are its own; Commit by any, one at a time; the rest from any.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/write_behind/dirty_tuples.h"
#include "logging/write_behind/gap_log.h"
#include "storage/persistent_memory.h"

namespace dbx {

class GroupCommit {
 public:
  // How far stamps may go beyond the clock of the last record.
  static constexpr uint64_t kWindow = uint64_t{1} << 24;

  // After the first record of this life is durable, which is the newest of `log`. `heap` and `log` outlive this, as
  // does `clock`: the last stamp that was drawn.
  GroupCommit(PersistentMemory& heap, GapLog& log, Atomic<uint64_t>& clock, uint32_t workers,
              uint64_t window = kWindow);

  // ---- by a worker ----

  void Announce(WorkerId worker) {
    // Sequentially consistent, before the draw: a committer whose clock is not below the stamp finds the bound.
    words_[worker.value()].value.word.store(BoundWord(clock_.load(std::memory_order_relaxed) + 1));
  }
  // Throws as Commit.
  void Drawn(WorkerId worker, Timestamp stamp) {
    words_[worker.value()].value.word.store(StampWord(stamp.value()), std::memory_order_release);
    while (stamp.value() >= limit_.load(std::memory_order_acquire)) AwaitLimit(stamp);
  }
  // Its versions are stored, and the rows point to them.
  void Installed(WorkerId worker, const HeapSlot* slot) {
    DirtyTuples& dirty = dirty_[worker.value()]->value;
    if (dirty.full()) Flush(worker);
    dirty.Add(heap_.bytes().data(), slot);
  }
  // Returns the group. Sequentially consistent: a committer that does not find the slots among the dirty ones has
  // found the stamp, and has raised the number before.
  uint64_t Close(WorkerId worker) {
    words_[worker.value()].value.word.store(0);
    return collecting_.load() + 1;
  }
  void Void(WorkerId worker) { words_[worker.value()].value.word.store(0, std::memory_order_release); }
  // Of a reader, after its last read.
  uint64_t group() const { return collecting_.load() + 1; }
  // Writes back and drains the worker's own dirty tuples.
  void Flush(WorkerId worker);

  // ---- by any ----

  // Commits a group, unless another thread does. Throws the error of a device, and from then on.
  bool Commit();
  bool IsDurable(uint64_t stamp, uint64_t group) const {
    // The group first: c_p is then at least that group's.
    return done_.load(std::memory_order_acquire) >= group && stamp <= c_p_.load(std::memory_order_acquire);
  }
  Timestamp durable_until() const { return Timestamp(durable_until_.load(std::memory_order_acquire)); }
  uint64_t c_p() const { return c_p_.load(std::memory_order_acquire); }
  uint64_t c_d() const { return limit_.load(std::memory_order_acquire); }
  uint64_t done() const { return done_.load(std::memory_order_acquire); }

 private:
  // A worker's word: 0, or a bound or a stamp.
  struct Word {
    Atomic<uint64_t> word{0};
  };
  static constexpr uint64_t BoundWord(uint64_t bound) { return bound << 1; }
  static constexpr uint64_t StampWord(uint64_t stamp) { return stamp << 1 | 1; }

  void AwaitLimit(Timestamp stamp);
  void CommitNext();
  void DrainDirty();
  GapRecord NextRecord(uint64_t clock, const std::vector<uint64_t>& words) const;
  void Publish(const GapRecord& record);

  PersistentMemory& heap_;
  GapLog& log_;
  Atomic<uint64_t>& clock_;
  const uint64_t window_;
  std::vector<CachePadded<Word>> words_;                          // by worker
  std::vector<std::unique_ptr<CachePadded<DirtyTuples>>> dirty_;  // by worker
  std::vector<std::unique_ptr<PersistentWriter>> writers_;        // by worker
  std::unique_ptr<PersistentWriter> writer_;                      // of commits
  Mutex mutex_;                                                   // of commits
  std::exception_ptr failure_;                                    // guarded by mutex_
  Atomic<uint64_t> collecting_{0}, done_{0};
  Atomic<uint64_t> c_p_{0}, limit_{0}, durable_until_{0};
};

}  // namespace dbx
