// A worker: runs its list of calls in turn, acknowledges what has become durable, keeps its own statistics.
//
// It never waits for the log to harden a transaction: it goes on, up to the capacity of its acknowledgement queue
// (LATENCY_HIDING 0 takes that away: ELEDA, section 3.3, calls it latency hiding). It prefetches index buckets and rows
// of the calls queued behind the current one, so that most memory is in cache when it is needed. Statistics and latency
// histogram are the worker's own; they are read after it has been joined.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/host.h"
#include "base/spin.h"
#include "benchmarks/workload.h"
#include "system/ack_file.h"
#include "system/ack_queue.h"
#include "system/commit_probe.h"
#include "system/observer.h"
#include "system/result.h"
#include "system/transaction.h"

namespace dbx {

// What the main thread tells all workers.
struct RunControl {
  Atomic<bool> go{false};        // start the measured interval
  Atomic<bool> stop{false};      // end it
  Atomic<uint32_t> warm{0};      // workers that are done with their warm-up
  Atomic<uint32_t> finished{0};  // workers that have run all their transactions
};

struct WorkerOptions {
  uint64_t txn_count = 0;     // in the measured interval; 0: until told to stop
  uint64_t warmup_count = 0;  // before it
  uint64_t abort_penalty_ns = 0;
  uint64_t first_sequence = 0;  // of its transactions
  size_t ack_queue_length = 1 << 15;
  bool time_breakdown = false;
  bool latency_hiding = true;  // false: the next transaction waits until this one is acknowledged
};

template <class Cc, class Log, class WorkloadT>
class Worker {
  static_assert(WorkloadT::kProcedureNames.size() <= kProceduresMax);

 public:
  // `calls` must not be empty unless no transaction is asked for.
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
  }

  // The thread's body. Throws when the log fails.
  void Run(RunControl& control) {
    const Presence presence(*this);
    now_ = Clock::NowTicks();
    for (uint64_t n = 0; n < options_.warmup_count && !control.stop.load(std::memory_order_relaxed); ++n) {
      RunNext(control);
    }
    AwaitGo(control);
    stats_ = {};
    latency_ = {};
    probe_.Reset();
    begin_ = now_ = Clock::NowTicks();
    transaction_.RestartTimes();
    for (uint64_t n = 0; options_.txn_count == 0 || n < options_.txn_count; ++n) {
      if (control.stop.load(std::memory_order_relaxed)) break;
      RunNext(control);
    }
    stats_.run_seconds = Clock::ToSeconds(Clock::NowTicks() - begin_);
    stats_.time_parts = transaction_.time_parts();
    // What is acknowledged after the interval has ended counts towards latency, not towards throughput.
    counting_ = options_.txn_count != 0;
    control.finished.fetch_add(1);
    Drain();
  }

  const WorkerStats& stats() const { return stats_; }
  const LatencyHistogram& latency() const { return latency_; }
  const CommitParts& commit_parts() const { return probe_.parts(); }

 private:
  // However the thread ends, by an exception of a procedure too, nobody waits for it afterwards.
  struct Presence {
    explicit Presence(Worker& worker) : worker(worker) { worker.shared_.clock.Enter(worker.id_); }
    ~Presence() { worker.Leave(); }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    Worker& worker;
  };

  // How many calls ahead their buckets and their rows are fetched.
  static constexpr size_t kBucketsAhead = 6;
  static constexpr size_t kRowsAhead = 3;
  // A log of data takes the whole row too.
  static constexpr WrittenRows kWrittenRows = Cc::kTraits.copies_writes || Log::kTraits.payload == PayloadKind::kData
                                                  ? WrittenRows::kWhole
                                                  : WrittenRows::kTouched;
  static constexpr std::chrono::microseconds kAckWait{50};

  // Others may still warm up, and wait for epochs to become durable.
  void AwaitGo(RunControl& control) {
    Leave();
    control.warm.fetch_add(1);
    SpinWait wait;
    while (!control.go.load(std::memory_order_acquire)) wait.Wait();
    shared_.clock.Enter(id_);
  }

  void RunNext(RunControl& control) {
    Call& call = NextCall();
    call.set_txn_id(TxnId::Make(id_, sequence_++));
    const uint64_t begin_ticks = now_;
    if (acks_.full()) WaitForAcks();
    SpinWait backoff;
    for (uint64_t tries = 1;; ++tries) {
      shared_.clock.Refresh(id_);
      CommitTimes* const times = probe_.Draw();
      const CallResult result = transaction_.Run(workload_, call, acks_.NextPoint(), times);
      if (result.reason != AbortReason::kCount) ++stats_.aborts[static_cast<size_t>(result.reason)];
      stats_.max_tries = std::max(stats_.max_tries, tries);
      if (result.outcome != Outcome::kConflict) {
        if (times != nullptr && result.wrote) Follow(call.txn_id());
        Finish(call, result, begin_ticks);
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
    workload_.PrefetchBuckets(at(kBucketsAhead));
    workload_.PrefetchRows(at(kRowsAhead), kWrittenRows);
    Call& call = calls_.calls[next_];
    next_ = next_ + 1 == count ? 0 : next_ + 1;
    return call;
  }

  void Finish(const Call& call, const CallResult& result, uint64_t begin_ticks) {
    now_ = Clock::NowTicks();
    if (result.outcome == Outcome::kRollback) {
      ++stats_.user_rollbacks;
      return;
    }
    ++stats_.executed;
    ++stats_.executed_of[call.procedure.value()];
    if constexpr (Log::kTraits.logs) {
      acks_.Push(call.txn_id(), result.wrote, begin_ticks);
      PollAcks();
      if (!options_.latency_hiding && !acks_.empty()) WaitForAcks();
    } else {
      Acknowledge(call.txn_id(), result.wrote, begin_ticks);
    }
  }

  void Follow(TxnId id) {
    if constexpr (Log::kTraits.logs) {
      LsnPerLog ends{};
      log_.OwnEnds(log_state_, ends);
      probe_.Follow(id, ends);
    }
  }

  bool PollAcks() {
    if constexpr (Log::kTraits.logs) probe_.Look(log_.durable(), now_);
    return acks_.Poll([this](TxnId id, bool wrote, uint64_t begin_ticks) { Acknowledge(id, wrote, begin_ticks); });
  }

  void Acknowledge(TxnId id, bool wrote, uint64_t begin_ticks) {
    // What began before the measured interval is warm-up.
    if (begin_ticks >= begin_) {
      stats_.acknowledged += counting_;
      latency_.Record(Clock::ToNanos(now_ - begin_ticks));
    }
    probe_.Acknowledged(id, now_);
    if (ack_file_ != nullptr && wrote) ack_file_->Acknowledge(id);
    observer::Acknowledged(id);
  }

  void PayPenalty(const RunControl& control, SpinWait& backoff) {
    if (options_.abort_penalty_ns == 0) return backoff.Wait();
    const uint64_t begin = Clock::NowTicks();
    Leave();
    do {
      now_ = Clock::NowTicks();
      PollAcks();
    } while (Clock::ToNanos(now_ - begin) < options_.abort_penalty_ns && !control.stop.load(std::memory_order_relaxed));
    shared_.clock.Enter(id_);
  }

  // Nobody waits for this worker any more.
  void Leave() {
    log_.Idle(log_state_);
    shared_.clock.Leave(id_);
  }

  void WaitForAcks() {
    const uint64_t begin = Clock::NowTicks();
    Leave();
    for (;;) {
      now_ = Clock::NowTicks();
      if (PollAcks()) break;
      log_.ThrowIfFailed();
      host::SleepFor(kAckWait);
    }
    shared_.clock.Enter(id_);
    stats_.wait_seconds += Clock::ToSeconds(now_ - begin);
  }

  void Drain() {
    Leave();
    while (!acks_.empty()) {
      now_ = Clock::NowTicks();
      if (PollAcks()) continue;
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
  uint64_t now_ = 0;
  uint64_t begin_ = 0;
  bool counting_ = true;
  WorkerStats stats_;
  LatencyHistogram latency_;
};

}  // namespace dbx
