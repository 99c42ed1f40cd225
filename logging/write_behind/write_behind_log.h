// Write-behind logging (Arulraj, Perron, Pavlo, "Write-Behind Logging", PVLDB 10(4), 2016): a transaction's changes
// reach a persistent heap first, and the log says afterwards which of them count. There is no redo and no undo: after a
// restart the heap is the database, less the versions whose stamps lie in a gap of the log.
//
// A version of a row is written to a free slot of the heap (storage/heap), where it is the transaction's private copy;
// group_commit.h has the order of stamps, slots, records and acknowledgements, README.md the rest.
//
// The clock of stamps is the log's, as a stamp must not be drawn unseen. A worker that finds at a look for
// acknowledgements that the flush interval is over commits a group; where that takes as long as a write of a device, a
// thread does (commit_thread.h).
//
// Threads: as logging/contract.h says; a state is its worker's.
#pragma once

#include "base/clock.h"
#include "logging/contract.h"
#include "logging/gaps/heap_options.h"
#include "logging/log_set.h"
#include "logging/write_behind/commit_thread.h"
#include "logging/write_behind/group_commit.h"
#include "logging/write_behind/index_lines.h"

namespace dbx {

// A stamp and the group with which it becomes durable.
class GroupPoint {
 public:
  static constexpr size_t kWords = 2;
  explicit GroupPoint(uint64_t* words) : words_(words) {}

  void Set(uint64_t stamp, uint64_t group) const { words_[0] = stamp, words_[1] = group; }
  uint64_t stamp() const { return words_[0]; }
  uint64_t group() const { return words_[1]; }

 private:
  uint64_t* words_;
};

template <class Payload>
class WriteBehindLog : public LogDefaults {
 public:
  static constexpr LogTraits kTraits = {.name = "LOG_WBL",
                                        .scheme = format::Scheme::kWriteBehind,
                                        .payload = Payload::kKind,
                                        .logs = true,
                                        .fixed_bytes = sizeof(HeapSlot),
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = true,
                                        .version_heap = true,
                                        .draws_stamps = true,
                                        .replay_order = ReplayOrder::kNone};
  using CommitPoint = GroupPoint;

  struct TxnState {
    WorkerId worker{};
    Timestamp stamp{};
    uint64_t sequence = 0;    // of the transaction
    uint64_t slot_bytes = 0;  // of its versions
    uint32_t begins = 0;
    bool sweeps = false;
  };

  explicit WriteBehindLog(const HeapOptions& options)
      : options_(options),
        commits_(std::make_unique<GroupCommit>(*options.heap, *options.gaps, clock_.value, options.workers)) {
    clock_.value.store(options.gaps->newest()->c_p);
    for (const auto& lines : options.lines_of_indexes) index_lines_.emplace_back(options.index_lines, lines);
    if (options.commits_are_slow) thread_ = std::make_unique<CommitThread>(*commits_, options.flush_interval_us);
  }

  void InitWorker(TxnState& state, WorkerId worker) {
    state.worker = worker;
    state.sweeps = options_.sweep != nullptr;
  }

  void Begin(TxnState& state) {
    commits_->AwaitRoom(state.worker);
    state.slot_bytes = 0;
    if (__builtin_expect(state.sweeps, 0) && ++state.begins % kBeginsPerSweep == 0) Sweep(state);
  }

  // ---- by the concurrency control (log_observer.h) ----

  Atomic<uint64_t>& clock() { return clock_.value; }
  Timestamp durable_until() const { return commits_->durable_until(); }
  void Announce(TxnState& state) { commits_->Announce(state.worker); }
  void Drawn(TxnState& state, Timestamp stamp) {
    state.stamp = stamp;
    commits_->Drawn(state.worker, stamp);
  }
  void Installed(TxnState& state, const HeapSlot* slot, size_t bytes) {
    state.sequence = slot->txn.sequence();
    state.slot_bytes += sizeof(HeapSlot) + slot->tuple_bytes;
    if (__builtin_expect(!index_lines_.empty(), 0)) ChangeIndex(state, *slot);
    commits_->Installed(state.worker, slot, bytes);
  }
  void Undrawn(TxnState& state) { commits_->Undrawn(state.worker); }

  // ---- by the transaction ----

  bool Reserve(TxnState&, const LoggedTxn auto&) { return true; }
  void Submit(TxnState&, const LoggedTxn auto&) {}
  void Void(TxnState&) {}
  void SetCommitPoint(TxnState& state, CommitPoint point) {
    point.Set(state.stamp.value(), commits_->Close(state.worker, state.stamp, state.sequence));
  }
  // What it has read is not above the clock.
  void SetReadOnlyPoint(TxnState&, CommitPoint point) {
    const uint64_t clock = clock_.value.load();
    point.Set(clock, commits_->group());
  }
  static constexpr size_t point_words() { return CommitPoint::kWords; }
  bool IsDurable(CommitPoint point) const {
    if (commits_->IsDurable(point.stamp(), point.group())) return true;
    if (!CommitIfDue()) return false;
    return commits_->IsDurable(point.stamp(), point.group());
  }

  void OwnEnds(const TxnState&, LsnPerLog&) const {}
  uint64_t OwnBytes(const TxnState& state) const { return state.slot_bytes; }
  const DurableVector& durable() const { return none_; }
  void ThrowIfFailed() const { commits_->ThrowIfFailed(); }

  // The last record of a life that ends by itself; no worker runs.
  void WriteRunEnd(const std::optional<std::pair<uint64_t, uint64_t>>& digest) {
    thread_.reset();
    if (options_.sweep && !options_.sweep(WorkerId(0))) commits_->DropGaps();
    commits_->End(digest);
  }

 private:
  void ChangeIndex(TxnState& state, const HeapSlot& slot) {
    if (!IndexLines::IsIndexChange(slot)) return;
    index_lines_[state.worker.value()].Change(state.stamp.value(), [&](const std::byte* line) {
      commits_->WriteBackLater(state.worker, line, heap_format::kLineBytes);
    });
  }

  // While partitions are left to be adopted, a worker adopts one at every so many attempts.
  static constexpr uint32_t kBeginsPerSweep = 32;

  void Sweep(TxnState& state) {
    if (options_.sweep(state.worker)) return;
    state.sweeps = false;
    commits_->DropGaps();
  }

  bool CommitIfDue() const {
    if (thread_ != nullptr) return false;
    const uint64_t now = Clock::NowTicks();
    uint64_t last = last_.value.load(std::memory_order_relaxed);
    // Another worker's commit may have begun since.
    if (now < last || Clock::ToNanos(now - last) < options_.flush_interval_us * 1000) return false;
    // One of the workers that find it over.
    if (!last_.value.compare_exchange_strong(last, now, std::memory_order_relaxed)) return false;
    return commits_->Commit();
  }

  const HeapOptions options_;
  CachePadded<Atomic<uint64_t>> clock_{uint64_t{0}};
  const std::unique_ptr<GroupCommit> commits_;
  std::vector<IndexLines> index_lines_;                      // by worker; none without INDEX_LINES
  std::unique_ptr<CommitThread> thread_;                     // or workers commit
  mutable CachePadded<Atomic<uint64_t>> last_{uint64_t{0}};  // ticks at which the last group commit of a worker began
  const DurableVector none_;                                 // there are no logs whose ends would be waited for
};

}  // namespace dbx
