// A worker of a master: runs its list of calls in turn, in a closed loop, and acknowledges transactions that have
// become durable. It runs further ones meanwhile, unless LATENCY_HIDING is 0. All that it acknowledges is in the file
// of acknowledgements, if there is one, with the warm-up.
//
// Threads: its own; another one reads `executed` meanwhile, and the rest after it has ended.
#pragma once

#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/host.h"
#include "base/live_counter.h"
#include "benchmarks/workload.h"
#include "multi_master/master/master.h"
#include "system/cluster/cluster_result.h"
#include "system/transaction/ack_file.h"

namespace dbx {

struct ClusterRunControl {
  Atomic<uint32_t> warm{0};
  Atomic<bool> warmup_over{false};  // of a timed warm-up
  Atomic<bool> go{false};
  Atomic<bool> stop{false};
  Atomic<uint32_t> finished{0};
};

struct ClusterWorkerOptions {
  uint64_t txn_count = 0;  // 0: until stop
  uint64_t warmup_count = 0;
  bool timed_warmup = false;
  bool latency_hiding = true;
  uint64_t abort_penalty_ns = 0;
};

template <class WorkloadT>
class ClusterWorker {
 public:
  ClusterWorker(WorkerId id, mm::Master& master, WorkloadT& workload, CallList calls,
                const ClusterWorkerOptions& options, AckFile* acks)
      : id_(id),
        master_(master),
        workload_(workload),
        calls_(std::move(calls)),
        options_(options),
        acks_(acks),
        txn_(master.NewTransaction()) {
    if constexpr (requires { WorkloadT::kNoteBytes; }) {
      if (acks != nullptr) workload.NoteReadersIn(id, acks->NotesOf(id));
    }
  }

  void Run(ClusterRunControl& control) {
    for (uint64_t n = 0; n < options_.warmup_count || (options_.timed_warmup && !control.warmup_over.load()); ++n) {
      if (control.stop.load()) break;
      RunNext(control);
    }
    DropAcks();
    result_ = {};
    control.warm.fetch_add(1);
    while (!control.go.load() && !control.stop.load()) host::SleepFor(std::chrono::microseconds(50));
    const uint64_t begin = Clock::NowTicks();
    for (uint64_t n = 0; (options_.txn_count == 0 || n < options_.txn_count) && !control.stop.load(); ++n) {
      RunNext(control);
    }
    // Of a timed run only what was durable when it ended counts; of another one all does, with its time.
    options_.txn_count != 0 ? AwaitAcks() : PollAcks();
    result_.seconds = Clock::ToSeconds(Clock::NowTicks() - begin);
    control.finished.fetch_add(1);
  }

  const MasterResult& result() const { return result_; }

 private:
  static constexpr size_t kUnacknowledgedMax = 4096;

  struct Pending {
    TxnId id;
    bool wrote;
    mm::VsTime end;
    uint64_t begin_ticks;
  };

  void RunNext(const ClusterRunControl& control) {
    Call& call = calls_.calls[next_];
    next_ = next_ + 1 == calls_.calls.size() ? 0 : next_ + 1;
    call.set_txn_id(TxnId::Make(id_, sequence_++));
    const uint64_t begin_ticks = Clock::NowTicks();
    const mm::BeginTime begun(host::MonotonicNanos());
    while (!Try(call, begun, begin_ticks)) {
      if (control.stop.load()) return;
      if (options_.abort_penalty_ns > 0) host::SleepFor(std::chrono::nanoseconds(options_.abort_penalty_ns));
    }
    PollAcks();
    if (!options_.latency_hiding) AwaitAcks();
    if (pending_.size() >= kUnacknowledgedMax) AwaitHalf();
  }

  // False: a conflict ended it, and it is to be tried again.
  bool Try(const Call& call, mm::BeginTime begun, uint64_t begin_ticks) {
    txn_.Begin(begun, call.txn_id());
    const Outcome outcome = workload_.Run(txn_, call.procedure, call.args);
    if (outcome == Outcome::kOk) {
      const bool wrote = txn_.wrote();
      pending_.push_back({call.txn_id(), wrote, txn_.Commit(), begin_ticks});
      ++result_.executed;
      return true;
    }
    const mm::WaitResult wait = txn_.last_wait();
    txn_.Abort();
    if (outcome != Outcome::kConflict) {
      ++result_.rollbacks;
      return true;
    }
    result_.victims += wait == mm::WaitResult::kVictim;
    result_.timeouts += wait == mm::WaitResult::kTimedOut;
    return false;
  }

  void PollAcks() {
    const mm::VsTime durable = master_.log().durable_until();
    const uint64_t now = Clock::NowTicks();
    while (!pending_.empty() && pending_.front().end.value() <= durable.value()) {
      if (acks_ != nullptr) acks_->Acknowledge(pending_.front().id, pending_.front().wrote);
      ++result_.acknowledged;
      result_.latency.Record(Clock::ToNanos(now - pending_.front().begin_ticks));
      pending_.pop_front();
    }
  }
  void AwaitAcks() {
    if (!pending_.empty()) master_.log().AwaitDurable(pending_.back().end);
    PollAcks();
  }
  // The log goes on with what it has while this worker makes more.
  void AwaitHalf() {
    master_.log().AwaitDurable(pending_[pending_.size() / 2].end);
    PollAcks();
  }
  void DropAcks() {
    AwaitAcks();
    pending_.clear();
  }

  const WorkerId id_;
  mm::Master& master_;
  WorkloadT& workload_;
  CallList calls_;
  const ClusterWorkerOptions options_;
  AckFile* const acks_;  // null: there is no such file
  mm::MmTransaction txn_;
  size_t next_ = 0;
  uint64_t sequence_ = 0;
  std::deque<Pending> pending_;
  MasterResult result_;
};

}  // namespace dbx
