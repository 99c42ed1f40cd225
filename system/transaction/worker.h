// A worker: runs its list of calls in turn, acknowledges transactions that have become durable, keeps its own
// statistics.
//
// It never waits for the log to harden a transaction: it runs further ones, up to the capacity of its acknowledgement
// queue (ELEDA, section 3.3, calls it latency hiding; LATENCY_HIDING 0 turns it off). It prefetches index buckets and
// rows of the calls queued behind the current one (LOOKAHEAD), so that most memory is in cache when it is needed. The
// latency of a call starts when it is taken from the queue. Statistics and latency histogram are the worker's own; they
// are read after it has been joined. Until then another thread may read how much it has executed, aborted and
// acknowledged, and the buckets of the histogram (live_counter.h); these are 0 from the end of its warm-up to `go`.
//
// Counted are transactions that began after `go`; in a timed run, only those executed, and those found durable, before
// `stop`. A worker that waits for ring space or acknowledgements when the run is stopped counts nothing that becomes
// durable later. The latency histogram holds exactly the transactions that count as acknowledged. The thread that sets
// `stop` reads the logs' positions afterwards: the acknowledged bytes are checked against these (log_interval.h).
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/host.h"
#include "base/live_counter.h"
#include "base/spin.h"
#include "benchmarks/workload.h"
#include "system/node.h"
#include "system/result.h"
#include "system/transaction/ack_file.h"
#include "system/transaction/ack_queue.h"
#include "system/transaction/commit_probe.h"
#include "system/transaction/observer.h"
#include "system/transaction/transaction.h"

namespace dbx {

template <class Cc, class Log, class WorkloadT>
class Worker final : public WorkerThread {
  static_assert(WorkloadT::kProcedureNames.size() <= kProceduresMax);

 public:
  // `calls` must not be empty unless no transaction is requested.
  Worker(WorkerId id, typename Cc::Shared& shared, Log& log, WorkloadT& workload, CallList calls,
         const WorkerOptions& options, AckFile* ack_file)
      : id_(id),
        shared_(shared),
        log_(log),
        workload_(workload),
        calls_(std::move(calls)),
        options_(options),
        ack_file_(ack_file),
        transaction_(shared, log, log_state_, id),
        acks_(log, options.ack_queue_length),
        probe_(options.time_breakdown),
        sequence_(options.first_sequence) {
    if constexpr (Log::kTraits.logs) log_.InitWorker(log_state_, id);
    if constexpr (kChargesReads) log_state_.charges.SetNanos(options.read_nanos);
    if constexpr (requires { WorkloadT::kNoteBytes; }) {
      if (ack_file != nullptr) workload.NoteReadersIn(id, ack_file->NotesOf(id));
    }
  }

  void Run(RunControl& control) override {
    const Presence presence(*this, control);
    // A log may have its device written by workers.
    if constexpr (Log::kTraits.logs) host::EndSleepsOnTime();
    now_ = Clock::NowTicks();
    WarmUp(control);
    // Before another thread sees that it is warm, and may read them.
    stats_ = {};
    latency_ = {};
    ack_waits_ = {};
    probe_.Reset();
    first_measured_ = sequence_;
    AwaitGo(control);
    now_ = Clock::NowTicks();
    const uint64_t begin = now_;
    transaction_.RestartTimes();
    for (uint64_t n = 0; options_.txn_count == 0 || n < options_.txn_count; ++n) {
      if (control.stop.load(std::memory_order_relaxed)) break;
      RunNext(control);
    }
    stats_.run_seconds = Clock::ToSeconds(Clock::NowTicks() - begin);
    stats_.time_parts = transaction_.time_parts();
    if constexpr (kChargesReads) stats_.charged_reads = log_state_.charges.charged();
    control.finished.fetch_add(1);
    Drain(control);
  }

  const CommitParts& commit_parts() const override { return probe_.parts(); }

 private:
  // However the thread ends, by an exception of a procedure too, no other thread waits for it afterwards.
  struct Presence {
    Presence(Worker& worker, RunControl& control) : worker(worker), control(control) { worker.Enter(control); }
    ~Presence() { worker.Leave(control); }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    Worker& worker;
    RunControl& control;
  };

  // Data logging copies the whole row too.
  static constexpr WrittenRows kWrittenRows = Cc::kTraits.copies_writes || Log::kTraits.payload == PayloadKind::kData
                                                  ? WrittenRows::kWhole
                                                  : WrittenRows::kTouched;
  static constexpr std::chrono::microseconds kAckWait{50};
  static constexpr bool kChargesReads = requires(typename Log::TxnState & state) { state.charges; };

  // So many transactions, and as long as the run's warm-up lasts.
  void WarmUp(RunControl& control) {
    const auto goes_on = [&](uint64_t n) {
      return n < options_.warmup_count ||
             (options_.timed_warmup && !control.warmup_over.load(std::memory_order_relaxed));
    };
    for (uint64_t n = 0; goes_on(n) && !control.stop.load(std::memory_order_relaxed); ++n) RunNext(control);
  }

  // Other workers may still warm up, and wait for epochs to become durable.
  void AwaitGo(RunControl& control) {
    Leave(control);
    control.warm.fetch_add(1);
    SpinWait wait;
    while (!control.go.load(std::memory_order_acquire)) wait.Wait();
    Enter(control);
  }

  // The measured interval of a timed run is over. Sequentially consistent: LSNs found durable before this load are
  // covered by those that the thread that stores `stop` finds durable afterwards.
  bool IsOver(const RunControl& control) const { return options_.txn_count == 0 && control.stop.load(); }

  void RunNext(RunControl& control) {
    Call& call = NextCall();
    call.set_txn_id(TxnId::Make(id_, sequence_++));
    has_ended_ = false;
    const uint64_t begin_ticks = now_;
    if (acks_.full()) WaitForAcks(control);
    if (acks_.full()) return;  // the run has been stopped
    SpinWait backoff;
    for (uint64_t tries = 1;; ++tries) {
      if (control.pause.load(std::memory_order_relaxed)) Pause(control);
      shared_.clock.Refresh(id_);
      CommitTimes* const times = probe_.Draw();
      const CallResult result = transaction_.Run(workload_, call, acks_.NextPoint(), times);
      Count(control, call, result);
      if (!IsOver(control)) stats_.max_tries = std::max(stats_.max_tries, tries);
      if (result.outcome != Outcome::kConflict) {
        if (times != nullptr && result.wrote) Follow(call.txn_id());
        has_ended_ = true;
        Finish(control, call, result, begin_ticks);
        return;
      }
      if (control.stop.load(std::memory_order_relaxed)) return;
      PayPenalty(control, backoff);
    }
  }

  Call& NextCall() {
    const size_t count = calls_.calls.size();
    const auto at = [&](size_t ahead) -> Call& {
      const size_t index = next_ + ahead;
      return calls_.calls[index < count ? index : index % count];
    };
    // One way or the other for a whole run: a branch that is always predicted.
    if (options_.lookahead != 0) {
      // Each call takes one number, so the calls ahead get the next ones.
      if constexpr (requires { WorkloadT::kKeysFollowFromId; }) {
        at(options_.lookahead).set_txn_id(TxnId::Make(id_, sequence_ + options_.lookahead));
      }
      workload_.PrefetchBuckets(at(options_.lookahead));
      if constexpr (Log::kTraits.version_heap) {
        // Row, then version: two misses, the second of which is found by the first.
        workload_.PrefetchRows(at((2 * options_.lookahead + 2) / 3), WrittenRows::kNoTuple);
        workload_.PrefetchRows(at((options_.lookahead + 2) / 3), kWrittenRows);
      } else {
        workload_.PrefetchRows(at((options_.lookahead + 1) / 2), kWrittenRows);
      }
    }
    Call& call = calls_.calls[next_];
    next_ = next_ + 1 == count ? 0 : next_ + 1;
    return call;
  }

  void Count(const RunControl& control, const Call& call, const CallResult& result) {
    if (IsOver(control)) return;
    if (result.reason != AbortReason::kCount) AddLive(stats_.aborts[static_cast<size_t>(result.reason)], 1);
    stats_.user_rollbacks += result.outcome == Outcome::kRollback;
    const bool executed = result.outcome == Outcome::kOk;
    AddLive(stats_.executed, executed);
    stats_.executed_of[call.procedure.value()] += executed;
  }

  void Finish(RunControl& control, const Call& call, const CallResult& result, uint64_t begin_ticks) {
    now_ = Clock::NowTicks();
    if (result.outcome == Outcome::kRollback) return;
    if constexpr (Log::kTraits.logs) {
      acks_.Push(call.txn_id(), result.wrote ? log_.OwnBytes(log_state_) : 0, begin_ticks);
      PollAcks(control);
      if (!options_.latency_hiding && !acks_.empty()) WaitForAcks(control);
    } else {
      Acknowledge(control, call.txn_id(), result.wrote, 0, begin_ticks);
    }
  }

  void Follow(TxnId id) {
    if constexpr (Log::kTraits.logs) {
      LsnPerLog ends{};
      log_.OwnEnds(log_state_, ends);
      probe_.Follow(id, ends);
    }
  }

  bool PollAcks(const RunControl& control) {
    if constexpr (Log::kTraits.logs) probe_.Look(log_.durable(), now_);
    return acks_.Poll([&](TxnId id, uint64_t own_bytes, uint64_t begin_ticks) {
      Acknowledge(control, id, own_bytes != 0, own_bytes, begin_ticks);
    });
  }

  // The same between two attempts, or while the worker waits.
  bool LookForAcks(const RunControl& control) {
    now_ = Clock::NowTicks();
    return PollAcks(control);
  }

  // Called once it has been found durable, and not before: IsOver decides by that.
  void Acknowledge(const RunControl& control, TxnId id, bool wrote, uint64_t own_bytes, uint64_t begin_ticks) {
    // A transaction that began before the measured interval is warm-up.
    const bool is_measured = id.sequence() >= first_measured_;
    const bool counts = is_measured && !IsOver(control);
    if (counts) {
      AddLive(stats_.acknowledged, 1);
      stats_.acknowledged_log_bytes += own_bytes;
      latency_.Record(Clock::ToNanos(now_ - begin_ticks));
    } else if (is_measured) {
      ++stats_.acknowledged_late;
      stats_.late_nanos_max = std::max(stats_.late_nanos_max, Clock::ToNanos(now_ - begin_ticks));
    }
    if constexpr (Log::kTraits.version_heap) {
      if (first_acknowledged_ticks_ == 0) first_acknowledged_ticks_ = now_;
    }
    probe_.Acknowledged(id, now_, counts);
    if (ack_file_ != nullptr) ack_file_->Acknowledge(id, wrote);
    observer::Acknowledged(id);
  }

  // Workers may abort each other for long. What they have committed before is acknowledged meanwhile.
  void BackOff(const RunControl& control, SpinWait& backoff) {
    if (backoff.yielding()) LookForAcks(control);
    backoff.Wait();
  }

  void PayPenalty(RunControl& control, SpinWait& backoff) {
    if (options_.abort_penalty_ns == 0) return BackOff(control, backoff);
    const uint64_t begin = Clock::NowTicks();
    Leave(control);
    do {
      LookForAcks(control);
    } while (Clock::ToNanos(now_ - begin) < options_.abort_penalty_ns && !control.stop.load(std::memory_order_relaxed));
    Enter(control);
  }

  // Unless there is a pause, whose end it waits for.
  void Enter(const RunControl& control) {
    for (SpinWait wait;;) {
      shared_.clock.Enter(id_);
      if (!control.pause.load()) return;
      shared_.clock.Leave(id_);
      while (control.pause.load()) wait.Wait();
    }
  }

  // No thread waits for this worker any more.
  void Leave(RunControl& control) {
    log_.Idle(log_state_);
    if (!control.ended_below.empty()) {
      // The clock's release publishes the number to a thread that sees this worker outside of its section.
      control.ended_below[id_.value()].value.store(has_ended_ ? sequence_ : sequence_ - 1, std::memory_order_relaxed);
    }
    shared_.clock.Leave(id_);
  }

  void Pause(RunControl& control) {
    Leave(control);
    Enter(control);
  }

  // Until there are any, or the run has been stopped.
  void WaitForAcks(RunControl& control) {
    const uint64_t begin = Clock::NowTicks();
    ack_waits_.Begin(begin);
    Leave(control);
    // Fast memory is done before a thread could have slept.
    for (LongWait wait;; wait.Wait()) {
      if (LookForAcks(control) || control.stop.load(std::memory_order_relaxed)) break;
      log_.ThrowIfFailed();
    }
    Enter(control);
    ack_waits_.End(now_);
    stats_.wait_seconds += Clock::ToSeconds(now_ - begin);
  }

  void Drain(RunControl& control) {
    Leave(control);
    while (!acks_.empty()) {
      if (LookForAcks(control)) continue;
      log_.ThrowIfFailed();
      host::SleepFor(kAckWait);
    }
  }

  const WorkerId id_;
  typename Cc::Shared& shared_;
  Log& log_;
  WorkloadT& workload_;
  CallList calls_;
  const WorkerOptions options_;
  AckFile* const ack_file_;
  typename Log::TxnState log_state_;
  Transaction<Cc, Log> transaction_;
  AckQueue<Log> acks_;
  CommitProbe probe_;
  size_t next_ = 0;
  uint64_t sequence_;
  bool has_ended_ = true;  // the transaction with the number before
  uint64_t now_ = 0;
  uint64_t first_measured_ = 0;  // sequence number of the first transaction after the warm-up
};

}  // namespace dbx
