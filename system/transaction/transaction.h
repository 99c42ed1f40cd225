// A transaction: one worker's stored procedure calls, one after the other, under a concurrency control and a log.
//
//   run: access -> lock the write set -> Reserve -> publish reads -> validate the read set -> Submit | Void
//        -> install -> publish writes -> release -> [device] -> ack
//   (a log that appends each change when it is made: validate -> install -> Reserve -> Submit -> publish writes)
//
// `Commit` is that sequence. Locking the write set, validating the read set and installing are Silo's phases 1 to 3.
// Release precedes [device]: early lock release, locks are released at pre-commit, before the record is durable
// (write-ahead holds for the acknowledgement). The concurrency control decides when a row's log metadata is stable, the
// log scheme what it means, and the order of the stages is here alone.
//
// Schemes whose LSNs need not order reads (data logging, and commands with multi-version replay) reserve after
// validation: an abort then costs no space. One object per worker.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/outcome.h"
#include "base/types.h"
#include "benchmarks/workload.h"
#include "concurrency_control/contract.h"
#include "logging/contract.h"
#include "system/result.h"
#include "system/transaction/commit_probe.h"
#include "system/transaction/observer.h"
#include "system/transaction/time_ledger.h"

namespace dbx {

// The result of a call, for its worker.
struct CallResult {
  Outcome outcome;     // kOk: pre-committed; kRollback: ended without effect; kConflict: retry
  AbortReason reason;  // of a kConflict
  bool wrote;          // has a record in the log
};

template <ConcurrencyControl Cc, LogScheme Log>
class Transaction {
 public:
  using CommitPoint = typename Log::CommitPoint;
  // Even in a transaction that aborts, all reads are of one moment, except those of its own writes.
  static constexpr bool kReadsAreOfOneMoment = Cc::kTraits.multi_version;

  Transaction(typename Cc::Shared& shared, Log& log, typename Log::TxnState& log_state, WorkerId worker)
      : log_(log), log_state_(log_state), cc_(shared, log_state, worker) {}

  // --- called by a stored procedure (benchmarks/txn_context.h) ---
  Outcome Read(Table& table, Key key, auto&& visit) {
    const auto span = In(TimePart::kTracking);
    return cc_.Read(table, key, Work(visit));
  }
  Outcome Update(Table& table, Key key, auto&& change) {
    const auto span = In(TimePart::kTracking);
    return cc_.Update(table, key, Work(change));
  }
  Outcome Insert(Table& table, Key key, std::span<const std::byte> tuple) {
    const auto span = In(TimePart::kTracking);
    return cc_.Insert(table, key, tuple);
  }
  Outcome Delete(Table& table, Key key) {
    const auto span = In(TimePart::kTracking);
    return cc_.Delete(table, key);
  }
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    const auto span = In(TimePart::kTracking);
    return cc_.Scan(table, low, high, order, Work(visit));
  }

  // --- read by its log (LoggedTxn) ---
  ProcedureId procedure() const { return call_->procedure; }
  std::span<const std::byte> args() const { return call_->args; }
  Tid commit_version() const { return cc_.commit_version(); }
  Timestamp read_timestamp() const { return cc_.read_timestamp(); }
  Timestamp end_timestamp() const { return cc_.end_timestamp(); }
  void ForEachImage(auto&& visit) const {
    cc_.ForEachWrite([&](const WriteRef& write) { visit(*write.table, write.key, write.deleted, write.image); });
  }
  void ForEachChange(auto&& visit) const {
    cc_.ForEachChange(changed_ranges_, [&](const WriteRef& write, bool was_present) {
      visit(LoggedChange{write.table, write.key, write.deleted, was_present, write.image, write.meta, changed_ranges_});
    });
  }

  // --- called by its worker ---

  // Runs the call once, up to pre-commit or abort. Stores the commit point in `point`, and the times of its stages in
  // `times`, if that is not null.
  template <class WorkloadT>
  CallResult Run(WorkloadT& workload, const Call& call, CommitPoint point, CommitTimes* times = nullptr) {
    call_ = &call;
    times_ = times;
    const CallResult result = Attempt(workload, call, point);
    if constexpr (kTimed) log_state_.ledger.EndAttempt(/*in_vain=*/result.reason != AbortReason::kCount);
    return result;
  }

  // Outside of any call: runs `read(*this)`, which only reads, once. False: it must be tried again. What it read need
  // not be durable.
  template <class Read>
  bool RunReadOnly(TxnId id, Read&& read) {
    log_.Begin(log_state_);
    cc_.Begin(id);
    const bool has_read = read(*this) != Outcome::kConflict && cc_.LockWrites() && cc_.Recheck();
    has_read ? cc_.Release() : cc_.Abort();
    return has_read;
  }

  // Time by part since the last RestartTimes; all zero where that is not compiled in.
  TimeParts time_parts() const {
    if constexpr (kTimed) return log_state_.ledger.parts();
    return {};
  }
  void RestartTimes() {
    if constexpr (kTimed) log_state_.ledger.Restart();
  }

 private:
  static constexpr bool kTimed = requires(typename Log::TxnState & state) { state.ledger; };

  // Until the end of the returned object's scope, time counts towards `part`.
  auto In([[maybe_unused]] TimePart part) {
    if constexpr (kTimed) {
      return TimeSpan(log_state_.ledger, part);
    } else {
      return Untimed();
    }
  }
  struct Untimed {
    ~Untimed() {}  // so that a variable of it counts as used
  };

  // A procedure's function, whose time is the procedure's.
  decltype(auto) Work(auto& function) {
    if constexpr (kTimed) {
      return [this, &function](auto&&... arguments) -> decltype(auto) {
        const auto span = In(TimePart::kWork);
        return function(std::forward<decltype(arguments)>(arguments)...);
      };
    } else {
      return (function);
    }
  }

  template <class WorkloadT>
  CallResult Attempt(WorkloadT& workload, const Call& call, CommitPoint point) {
    const auto span = In(TimePart::kTracking);
    log_.Begin(log_state_);
    if constexpr (Log::kTraits.appends_changes) log_.StartChanges(log_state_, call.txn_id());
    cc_.Begin(call.txn_id());
    const Outcome outcome = RunProcedure(workload, call);
    if (outcome == Outcome::kOk) return Commit(point);
    if (outcome == Outcome::kConflict) return Abort(AbortReason::kLockConflict);
    return GiveUp(outcome);
  }

  template <class WorkloadT>
  Outcome RunProcedure(WorkloadT& workload, const Call& call) {
    const auto span = In(TimePart::kWork);
    auto&& context = observer::ContextOf(*this, call);
    return workload.Run(context, call.procedure, call.args);
  }

  CallResult Commit(CommitPoint point) {
    Note(&CommitTimes::begin);
    if (!cc_.LockWrites()) return Abort(AbortReason::kValidation);
    if (cc_.read_only()) return CommitReadOnly(point);
    if constexpr (Log::kTraits.reserve_before_recheck) {
      if (!log_.Reserve(log_state_, *this)) return Abort(AbortReason::kRecordTooLarge);
      Note(&CommitTimes::placed);
      PublishReads();
      if (!cc_.Recheck()) {
        log_.Void(log_state_);
        return Abort(AbortReason::kValidation);
      }
    } else {
      if (!cc_.Recheck()) return Abort(AbortReason::kValidation);
      if constexpr (Log::kTraits.appends_changes) cc_.Install();
      if (!ReserveCommit()) return Abort(AbortReason::kRecordTooLarge);
      Note(&CommitTimes::placed);
    }
    log_.Submit(log_state_, *this);
    Note(&CommitTimes::complete);
    if constexpr (!Log::kTraits.appends_changes) cc_.Install();
    cc_.ForEachWrite([this](const WriteRef& write) { log_.PublishWrite(log_state_, write.meta); });
    log_.SetCommitPoint(log_state_, point);
    cc_.Release();
    return {Outcome::kOk, AbortReason::kCount, true};
  }

  // A record that commits changes before it always fits.
  bool ReserveCommit() {
    const bool fits = log_.Reserve(log_state_, *this);
    if constexpr (Log::kTraits.appends_changes) CHECK(fits);
    return fits;
  }

  void Note(uint64_t CommitTimes::*stage) {
    if (times_ != nullptr) times_->*stage = Clock::NowTicks();
  }

  // A read-only transaction leaves no record: it only waits until what it read is durable.
  CallResult CommitReadOnly(CommitPoint point) {
    log_.SetReadOnlyPoint(log_state_, point);
    if (!cc_.Recheck()) return Abort(AbortReason::kValidation);
    cc_.Release();
    return {Outcome::kOk, AbortReason::kCount, false};
  }

  void PublishReads() {
    if constexpr (Log::kTraits.tracks_reads) {
      cc_.ForEachRead([this](Meta meta) { log_.PublishRead(log_state_, meta); });
    }
  }

  CallResult Abort(AbortReason reason) {
    cc_.Abort();
    const bool hopeless = reason == AbortReason::kRecordTooLarge;
    return {hopeless ? Outcome::kRollback : Outcome::kConflict, reason, false};
  }

  // The procedure ended without success. Invalid reads may have caused the failure: validate and retry.
  CallResult GiveUp(Outcome outcome) {
    if (!cc_.LockWrites() || !cc_.Recheck()) return Abort(AbortReason::kValidation);
    cc_.Abort();
    const AbortReason reason = outcome == Outcome::kNotFound ? AbortReason::kNotFound
                               : outcome == Outcome::kExists ? AbortReason::kExists
                                                             : AbortReason::kCount;
    return {Outcome::kRollback, reason, false};
  }

  Log& log_;
  typename Log::TxnState& log_state_;
  Cc cc_;
  const Call* call_ = nullptr;
  // Of the row that ForEachChange visits; its memory is kept.
  struct NoRanges {};
  [[no_unique_address]] mutable std::conditional_t<Log::kTraits.row_chains, std::vector<ByteRange>, NoRanges>
      changed_ranges_;
  CommitTimes* times_ = nullptr;  // the time-breakdown switch: clocks are read only where this is set
};

}  // namespace dbx
