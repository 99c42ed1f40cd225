#include "logging/differential/backward_checks.h"

#include <algorithm>

#include "logging/records/differential_records.h"

namespace dbx {

using format::RecordKind;

namespace {

constexpr Lsn kNoEnd = Lsn(UINT64_MAX);
constexpr const char* kNotAccordingToAnchor = "change that is needed, and not according to the anchor";

}  // namespace

void BackwardChecks::VisitChange(const SlotChange& change, Lsn at) {
  CheckMethod(change.Has(format::kChangeImages), at);
  CheckStillActive(change.txn, at);
  TakeNumber(change, at);
  Attempt attempt = attempts_.Find(change.txn);
  if (!attempt.is_open) {
    attempt = {.top = kNoEnd, .bottom = at, .is_open = true};
    if (LowestOf(change.txn.worker()) == change.txn) Refuse(at, "transaction that begins twice");
  }
  attempt.bottom = at;
  const bool compensates = change.Has(format::kChangeCompensation);
  ++(compensates ? attempt.compensations : attempt.changes);
  attempt.excess = std::max(attempt.excess + (compensates ? 1 : -1), 0);
  if (compensates && attempt.commits) Refuse(attempt.top, "COMMIT of a transaction that was taken back");
  if (change.number < point_.number) CheckIsListed(attempt, change.txn);
  const bool is_open_at_begin = point_.number > 0 && at < point_.needed && attempt.top >= point_.begin;
  if (is_open_at_begin) Refuse(at, kNotAccordingToAnchor);
  MeetWorker(change.txn);
  if (change.Has(format::kChangeFirst)) {
    CheckBegins(attempt);
    attempt = {};
  }
  attempts_.Set(change.txn, attempt);
}

bool BackwardChecks::VisitEnd(const RecordView& record, Lsn at) {
  const bool commits = record.header.kind == static_cast<uint8_t>(RecordKind::kCommit);
  const TxnId txn = *FieldOf<TxnId>(record.body);
  CheckMethod((record.header.flags & format::kEndStamped) != 0, at);
  CheckStillActive(txn, at);
  if (const Attempt& behind = attempts_.Find(txn); behind.is_open) RefuseWithoutBegin(behind);
  attempts_.Set(txn, {.top = at, .bottom = at, .is_open = true, .commits = commits});
  MeetWorker(txn);
  ForEachElement(record, [&](uint32_t log, Lsn until) {
    if (log == source_.log_index && until > at) Refuse(at, "transaction that depends on its own log's future");
  });
  const bool counts = IsCovered(record, source_.log_index, ends_);
  // All that it depends on has its place below the BEGIN of its log, as every BEGIN precedes every END; and the logs
  // were durable up to END. Between BEGIN and END that is not so: another log may have its END before.
  if (!counts && point_.number > 0 && at < point_.begin) Refuse(at, "end that depends on what a log has lost since");
  winners_ += commits && counts;
  losers_ += commits && !counts;
  if (commits && counts && with_names_) names_.push_back(txn);
  return counts;
}

// Physical records are those of PL2P.
void BackwardChecks::CheckMethod(bool is_physical, Lsn at) const {
  if (is_physical != (point_.method == DiffMethod::kPl2p)) Refuse(at, "record of another method than the anchor's");
}

void BackwardChecks::CheckStillActive(TxnId txn, Lsn at) const {
  if (point_.number == 0 || at < point_.begin || txn.worker().value() >= point_.ended_below.size()) return;
  if (txn.sequence() >= point_.ended_below[txn.worker().value()]) return;
  Refuse(at, "record of a transaction that had ended before the anchor's checkpoint began");
}

// Its first change was met.
void BackwardChecks::CheckBegins(const Attempt& attempt) const {
  if (attempt.excess > 0) Refuse(attempt.bottom, "compensation of nothing");
  CheckTakenBack(attempt);
}

// All of its changes that were met, which are the last ones.
void BackwardChecks::CheckTakenBack(const Attempt& attempt) const {
  const bool aborts = attempt.top != kNoEnd && !attempt.commits;
  const bool must_compensate = aborts && point_.method != DiffMethod::kDl1p;
  if (must_compensate && attempt.compensations < attempt.changes) {
    Refuse(attempt.top, "ABORT of a transaction whose changes were not all taken back");
  }
}

// It has a change in the backup.
void BackwardChecks::CheckIsListed(const Attempt& attempt, TxnId txn) const {
  const bool is_active_at_end = found_end_ && attempt.bottom < point_.end && attempt.top > point_.end;
  if (!is_active_at_end || std::ranges::binary_search(listed_, txn)) return;
  Refuse(point_.end, "checkpoint's end that does not list a transaction with changes in the backup");
}

void BackwardChecks::TakeNumber(const SlotChange& change, Lsn at) {
  if (!least_ || change.number < least_->number) least_ = {change.number, at};
  if (!most_ || change.number > most_->number) most_ = {change.number, at};
}

// Between the last BEGIN that was met and the one below it, which has the number.
void BackwardChecks::CheckNumbers(uint32_t begun) {
  if (most_ && most_->number > begun) Refuse(most_->at, "change of a checkpoint that has not begun");
  if (least_ && least_->number + 1 < begun) Refuse(least_->at, "change that a later checkpoint should have reached");
  if (ended_ && (ended_->number != begun || begun == 0)) {
    Refuse(ended_->at, "end of a checkpoint that is not under way");
  }
  least_ = most_ = ended_ = std::nullopt;
}

void BackwardChecks::VisitCheckpointBegin(uint32_t number, Lsn at) {
  if (begun_ && number >= begun_->number) Refuse(begun_->at, "checkpoint that began before");
  CheckNumbers(number);
  begun_ = {number, at};
  if (number != point_.number) return;
  found_begin_ = true;
  if (at != point_.begin) Refuse(at, "checkpoint that began elsewhere, according to the anchor");
}

void BackwardChecks::VisitCheckpointEnd(const RecordView& record, Lsn at) {
  const auto end = *FieldOf<format::CheckpointEndBody>(record.body);
  if (ended_) Refuse(ended_->at, "end of a checkpoint that is not under way");
  ended_ = {end.number, at};
  if (end.number != point_.number) return;
  found_end_ = true;
  if (at != point_.end) Refuse(at, "checkpoint that ended elsewhere, according to the anchor");
  for (uint32_t i = 0; i < end.active; ++i) {
    listed_.push_back(*FieldOf<TxnId>(record.body, sizeof end + i * sizeof(TxnId)));
  }
  std::ranges::sort(listed_);
}

void BackwardChecks::Finish() {
  // The anchor was written when the checkpoint's records were durable in all logs.
  if (point_.number > 0 && !(found_begin_ && found_end_)) {
    Refuse(found_end_ ? point_.begin : point_.end, "no checkpoint begins or ends here, as the run's anchor says");
  }
  CheckNumbers(source_.is_cut() ? begun_->number - 1 : 0);
  attempts_.ForEach([&](TxnId txn, const Attempt& attempt) { CheckCut(txn, attempt); });
}

// Its first change was not met.
void BackwardChecks::CheckCut(TxnId txn, const Attempt& attempt) const {
  const uint32_t worker = txn.worker().value();
  const bool may_be_cut = source_.is_cut() && attempt.bottom < point_.begin && worker < point_.ended_below.size() &&
                          txn.sequence() <= point_.ended_below[worker] && LowestOf(txn.worker()) == txn;
  if (!may_be_cut) RefuseWithoutBegin(attempt);
  if (attempt.top >= point_.begin) Refuse(attempt.bottom, kNotAccordingToAnchor);
  CheckTakenBack(attempt);
  // Its COMMIT had been filled before the checkpoint asked for the sequences.
  if (attempt.commits && txn.sequence() == point_.ended_below[worker]) {
    Refuse(attempt.top, "COMMIT of a transaction that is needed, and not according to the anchor");
  }
}

void BackwardChecks::RefuseWithoutBegin(const Attempt& attempt) const {
  const bool has_changes = attempt.changes + attempt.compensations > 0;
  Refuse(attempt.bottom, has_changes ? "change of a transaction that has not begun"
                                     : "end of a transaction that has changed nothing");
}

void BackwardChecks::MeetWorker(TxnId txn) {
  const uint32_t worker = txn.worker().value();
  if (worker >= lowest_.size()) lowest_.resize(worker + 1);
  lowest_[worker] = txn;
}

std::optional<TxnId> BackwardChecks::LowestOf(WorkerId worker) const {
  return worker.value() < lowest_.size() ? lowest_[worker.value()] : std::nullopt;
}

}  // namespace dbx
