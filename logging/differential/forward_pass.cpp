#include "logging/differential/forward_pass.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "logging/differential/slot_change.h"
#include "logging/records/differential_records.h"
#include "logging/records/record_type.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

namespace {

// The one that batches are cut from, and the one that is read meanwhile.
constexpr uint32_t kBuffers = 2;

}  // namespace

ForwardPass::ForwardPass(const LogSource& source, const RestartPoint& point, const Database& database,
                         const Options& options, LogProgress& progress)
    : reader_(source, options.block_bytes, kBuffers),
      point_(point),
      database_(database),
      with_names_(options.with_names),
      progress_(progress),
      kept_(options.kept_bytes),
      met_(source.is_cut() ? point.ended_below.size() : 0),
      knows_begun_(!source.is_cut()),
      begun_(source.is_cut() ? point.number - 1 : 0) {
  CHECK(!source.is_cut() || (source.First() == point.needed && point.number > 0));
}

void ForwardPass::Run() {
  const LogSource& source = reader_.source();
  Atomic<uint64_t>& own_progress = progress_[source.log_index].value;
  for (RecordBatch batch; reader_.Cut(batch) == LogReader::Result::kBatch; batch.buffer->Release()) {
    const std::byte* bytes = batch.bytes;
    for (Lsn at = batch.first; at < batch.end;) {
      RecordHeader header;
      std::memcpy(&header, bytes, sizeof header);
      Visit({header, {bytes + sizeof header, header.length - sizeof header}, source.log_count}, at);
      at += header.length;
      bytes += header.length;
    }
    kept_.Append(batch.first, {batch.bytes, batch.end - batch.first});
    own_progress.store(batch.end.value(), std::memory_order_relaxed);
  }
}

// The shape of each record was checked when it was cut.
void ForwardPass::Visit(const RecordView& record, Lsn at) {
  switch (static_cast<RecordKind>(record.header.kind)) {
    case RecordKind::kChange:
      return VisitChange(record, at);
    case RecordKind::kCommit:
      return VisitCommit(record, at);
    case RecordKind::kAbort:
      return VisitAbort(record, at);
    case RecordKind::kCheckpointBegin:
      return VisitBegin(FieldOf<format::CheckpointBeginBody>(record.body)->number, at);
    case RecordKind::kCheckpointEnd:
      return VisitEnd(record, at);
    default:
      if (IsTransaction(record.header)) Refuse(at, "transaction of another scheme in a differential log");
  }
}

void ForwardPass::VisitChange(const RecordView& record, Lsn at) {
  SlotChange change;
  if (const char* fault = DecodeChange(record.header, record.body, change)) Refuse(at, fault);
  if (const char* fault = FaultOf(change, database_)) Refuse(at, fault);
  CheckMethod(record, format::kChangeImages, at);
  CheckNumber(change.number, at);
  CheckStillActive(change.txn, at);
  Attempt attempt = attempts_.Find(change.txn);
  if (change.Has(format::kChangeFirst)) {
    if (attempt.is_open) Refuse(at, "transaction that begins twice");
    attempt = {.first = at, .least_number = change.number, .is_open = true};
  } else if (!attempt.is_open) {
    if (!MayBeCut(change.txn, at)) Refuse(at, "change of a transaction that has not begun");
    attempt = {.first = at, .least_number = change.number, .is_open = true, .is_cut = true};
  }
  MeetWorker(change.txn);
  attempt.least_number = std::min(attempt.least_number, change.number);
  const bool compensates = change.Has(format::kChangeCompensation);
  if (!compensates) {
    ++attempt.standing;
  } else if (attempt.standing > 0) {
    --attempt.standing;
  } else if (!attempt.is_cut) {
    Refuse(at, "compensation of nothing");
  }
  attempt.is_taken_back |= compensates;
  attempts_.Set(change.txn, attempt);
}

void ForwardPass::VisitCommit(const RecordView& record, Lsn at) {
  const Attempt attempt = EndAttempt(record, at);
  if (attempt.is_taken_back) Refuse(at, "COMMIT of a transaction that was taken back");
  if (attempt.is_cut) CheckHadEnded(*FieldOf<TxnId>(record.body), at);
  ++commits_;
  if (with_names_) names_.push_back({at, *FieldOf<TxnId>(record.body)});
  TakeVector(record, attempt.first, at);
}

void ForwardPass::VisitAbort(const RecordView& record, Lsn at) {
  const Attempt attempt = EndAttempt(record, at);
  if (point_.method != DiffMethod::kDl1p && attempt.standing > 0) {
    Refuse(at, "ABORT of a transaction whose changes were not all taken back");
  }
  TakeVector(record, attempt.first, at);
}

// Physical records have the flag.
void ForwardPass::CheckMethod(const RecordView& record, uint16_t flag, Lsn at) const {
  const bool is_physical = (record.header.flags & flag) != 0;
  if (is_physical != (point_.method == DiffMethod::kPl2p)) Refuse(at, "record of another method than the anchor's");
}

void ForwardPass::TakeVector(const RecordView& record, Lsn first, Lsn at) {
  const uint32_t own = reader_.source().log_index;
  size_t offset = sizeof(TxnId);
  for (uint32_t log = 0; log < record.log_count; ++log) {
    if ((record.header.lv_mask >> log & 1) == 0) continue;
    const Lsn until = *FieldOf<Lsn>(record.body, offset);
    offset += sizeof until;
    if (log == own) {
      if (until > at) Refuse(at, "transaction that depends on its own log's future");
    } else if (until.value() > progress_[log].value.load(std::memory_order_relaxed)) {
      needs_.push_back({first, at, record.header.kind == static_cast<uint8_t>(RecordKind::kCommit), log, until});
    }
  }
}

ForwardPass::Attempt ForwardPass::EndAttempt(const RecordView& record, Lsn at) {
  const TxnId txn = *FieldOf<TxnId>(record.body);
  CheckStillActive(txn, at);
  CheckMethod(record, format::kEndStamped, at);
  Attempt attempt = attempts_.Find(txn);
  if (!attempt.is_open) {
    if (!MayBeCut(txn, at)) Refuse(at, "end of a transaction that has changed nothing");
    attempt.is_cut = true;
  }
  MeetWorker(txn);
  attempts_.Set(txn, {});
  return attempt;
}

void ForwardPass::CheckStillActive(TxnId txn, Lsn at) const {
  if (point_.number == 0 || at < point_.begin || txn.worker().value() >= point_.ended_below.size()) return;
  if (txn.sequence() >= point_.ended_below[txn.worker().value()]) return;
  Refuse(at, "record of a transaction that had ended before the anchor's checkpoint began");
}

// Of one whose first change may lie where the log was truncated.
bool ForwardPass::MayBeCut(TxnId txn, Lsn at) const {
  const uint32_t worker = txn.worker().value();
  if (at >= point_.begin || worker >= met_.size() || met_[worker]) return false;
  return txn.sequence() <= point_.ended_below[worker];
}

// Its COMMIT had been filled before the checkpoint asked for the sequences.
void ForwardPass::CheckHadEnded(TxnId txn, Lsn at) const {
  if (txn.sequence() < point_.ended_below[txn.worker().value()]) return;
  Refuse(at, "COMMIT of a transaction that is needed, and not according to the anchor");
}

void ForwardPass::MeetWorker(TxnId txn) {
  const uint32_t worker = txn.worker().value();
  if (worker < met_.size()) met_[worker] = true;
}

void ForwardPass::CheckNumber(uint32_t number, Lsn at) {
  if (number > begun_) Refuse(at, "change of a checkpoint that has not begun");
  if (knows_begun_) {
    if (number + 1 < begun_) Refuse(at, "change that a later checkpoint should have reached");
    return;
  }
  if (!lowest_ || number < lowest_->number) lowest_ = {number, at};
  if (!highest_ || number > highest_->number) highest_ = {number, at};
}

// The number of the last BEGIN up to here, where that was not met.
void ForwardPass::LearnBegun(uint32_t number) {
  begun_ = number;
  knows_begun_ = true;
  if (highest_) CheckNumber(highest_->number, highest_->at);
  if (lowest_) CheckNumber(lowest_->number, lowest_->at);
}

void ForwardPass::VisitBegin(uint32_t number, Lsn at) {
  if (!knows_begun_) {
    if (number > point_.number) Refuse(at, "checkpoint that the anchor's should have preceded");
    LearnBegun(number - 1);
  }
  if (number <= begun_) Refuse(at, "checkpoint that began before");
  begun_ = number;
  if (number != point_.number) return;
  found_begin_ = true;
  if (at != point_.begin) Refuse(at, "checkpoint that began elsewhere, according to the anchor");
  attempts_.ForEach([&](TxnId, const Attempt& attempt) {
    if (attempt.is_cut || attempt.first < point_.needed)
      Refuse(attempt.first, "change that is needed, and not according to the anchor");
  });
}

void ForwardPass::VisitEnd(const RecordView& record, Lsn at) {
  const uint32_t number = FieldOf<format::CheckpointEndBody>(record.body)->number;
  if (!knows_begun_ && number <= begun_) LearnBegun(number);
  if (number != begun_ || number == ended_) Refuse(at, "end of a checkpoint that is not under way");
  ended_ = number;
  if (number != point_.number) return;
  found_end_ = true;
  if (at != point_.end) Refuse(at, "checkpoint that ended elsewhere, according to the anchor");
  CheckListed(record, at);
}

void ForwardPass::CheckListed(const RecordView& record, Lsn at) const {
  std::vector<TxnId> listed;
  for (size_t offset = sizeof(format::CheckpointEndBody); const auto txn = FieldOf<TxnId>(record.body, offset);
       offset += sizeof *txn) {
    listed.push_back(*txn);
  }
  std::sort(listed.begin(), listed.end());
  attempts_.ForEach([&](TxnId txn, const Attempt& attempt) {
    const bool is_in_backup = attempt.least_number < point_.number;
    if (!is_in_backup || std::binary_search(listed.begin(), listed.end(), txn)) return;
    Refuse(at, "checkpoint's end that does not list a transaction with changes in the backup");
  });
}

void ForwardPass::Judge(const std::vector<Lsn>& ends) {
  losers_begin_ = reader_.position();
  attempts_.ForEach([&](TxnId, const Attempt& open) { losers_begin_ = std::min(losers_begin_, open.first); });
  for (const Need& need : needs_) {
    if (need.until <= ends[need.log] || (!uncovered_.empty() && uncovered_.back() == need.end)) continue;
    // All that it depends on has its place below the BEGIN of its log, as every BEGIN precedes every END; and the logs
    // were durable up to END. Between BEGIN and END that is not so: another log may have its END before.
    if (point_.number > 0 && need.end < point_.begin) Refuse(need.end, "end that depends on what a log has lost since");
    uncovered_.push_back(need.end);
    losers_ += need.commits;
    losers_begin_ = std::min(losers_begin_, need.first);
  }
  needs_ = {};
}

bool ForwardPass::Counts(Lsn end) const { return !std::binary_search(uncovered_.begin(), uncovered_.end(), end); }

std::vector<TxnId> ForwardPass::Names() const {
  std::vector<TxnId> winners;
  for (const Name& name : names_) {
    if (Counts(name.commit)) winners.push_back(name.txn);
  }
  return winners;
}

}  // namespace dbx
