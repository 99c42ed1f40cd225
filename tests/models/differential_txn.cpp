#include "tests/models/differential_txn.h"

#include <algorithm>

namespace dbx::models::differential {

bool TxnStep::Take() {
  switch (my_.pc) {
    case Txn::kOperation:
      return Operation();
    case Txn::kApply:
    case Txn::kApplyUndo:
      return Apply();
    case Txn::kFill:
    case Txn::kFillUndo:
      return Fill();
    case Txn::kCommit:
      return ReserveCommit();
    case Txn::kFillCommit:
      return FillCommit();
    case Txn::kSecondLook:
      return SecondLook();
    case Txn::kQuietUndo:
      return QuietUndo();
    case Txn::kCompensate:
      return Compensate();
    case Txn::kAppendAbort:
      return AppendAbort();
    case Txn::kInactive:
      return BecomeInactive();
    default:
      return TakePrinted();
  }
}

bool TxnStep::Operation() {
  if (my_.op >= operations_.size()) return false;
  switch (operations_[my_.op]) {
    case 'C':
      return Commit();
    case 'A':
      return Abort();
    default:
      return Change();
  }
}

// ---- A change: reserve, apply under the latch, fill -------------------------------------------------------------

bool TxnStep::Change() {
  const char operation = operations_[my_.op];
  Page& page = state_.pages[PageOf(operation)];
  if (page.lock != 0 && page.lock != me()) return false;
  if (operation == 'n' && state_.pages_there < kPages) return AddPage();
  const bool is_reuse = operation == 'r';
  if (is_reuse && rules_.reuse_waits && !IsDurable(page)) return false;
  if (scenario_.truncates && scenario_.looks_early && my_.active == 0 && my_.seen == 0) {
    my_.seen = 1;
    my_.first = state_.counts[log_];
    Tell(text_, "T{} reads how far its log is reserved: {}", me(), my_.first);
    return true;
  }
  if (scenario_.truncates && my_.active == 0) {
    my_.active = 1;
    if (!scenario_.looks_early) my_.first = state_.counts[log_];
    my_.seen = 0;
    Tell(text_, "T{} publishes its first LSN, {}", me(), my_.first);
    return true;
  }
  if (rules_.number_read == NumberRead::kBeforePlace && my_.seen == 0) {
    my_.seen = 1;
    my_.number = state_.checkpointer.number;
    Tell(text_, "T{} reads the global number: {}", me(), my_.number);
    return true;
  }
  page.lock = me();
  my_.active = 1;
  for (size_t k = 0; k < kLogs && !is_reuse; ++k) my_.lv[k] = std::max(my_.lv[k], page.lv[k]);
  const auto delta = static_cast<uint16_t>(page.value ^ NewValue(page.value, txn_, my_.op));
  if (rules_.append == Append::kPlaceFirst) {
    my_.place = state_.Append(log_, ChangeOf(PageOf(operation), delta, false));
    my_.pc = Txn::kApply;
    if (rules_.number_read == NumberRead::kAfterPlace) my_.number = state_.checkpointer.number;
    Tell(text_, "T{} reserves a place for its change of {}", me(), PageName(PageOf(operation)));
  } else {
    my_.deltas[my_.changes] = delta;
    my_.pc = rules_.mutex_always ? Txn::kMutex : Txn::kFlag;
    my_.mutex = 1;
    Tell(text_, "T{} makes its record of {}", me(), PageName(PageOf(operation)));
  }
  return true;
}

// A new page counts as reached by the current checkpoint, which does not copy it.
bool TxnStep::AddPage() {
  Page& page = state_.pages[state_.pages_there++];
  page.number = static_cast<int8_t>(rules_.numbers ? state_.checkpointer.number : state_.checkpointer.number % 2);
  page.dirty = 3;
  Tell(text_, "T{} adds page y, with number {}", me(), page.number);
  return true;
}

bool TxnStep::Apply() {
  const Record& record = Reserved();
  Page& page = state_.pages[record.page];
  if (page.latch != 0) return false;
  my_.number = NumberOf(page);
  Flip(page, record.delta);
  const bool undoes = my_.pc == Txn::kApplyUndo;
  my_.pc = undoes ? Txn::kFillUndo : Txn::kFill;
  Tell(text_, "T{} {} {} under the latch, with number {}", me(), undoes ? "undoes its change of" : "changes",
       PageName(record.page), my_.number);
  return true;
}

bool TxnStep::Fill() {
  Record& record = Reserved();
  record.number = my_.number;
  record.flags |= Record::kFilled;
  Tell(text_, "T{} fills its {} of {}", me(), my_.pc == Txn::kFill ? "record" : "compensation", PageName(record.page));
  if (my_.pc == Txn::kFill) {
    my_.deltas[my_.changes++] = record.delta;
    ++my_.op;
    my_.pc = Txn::kOperation;
  } else {
    my_.deltas[--my_.changes] = 0;
    my_.pc = Txn::kCompensate;
  }
  my_.place = my_.seen = 0;
  my_.number = 0;
  return true;
}

// ---- Commit: locks go when COMMIT is filled ---------------------------------------------------------------------

bool TxnStep::Commit() {
  if (rules_.append != Append::kPlaceFirst) {
    my_.stamp = state_.stamps++;
    const uint8_t place = state_.Append(log_, EndOf(Record::kCommit, Record::kFilled));
    Tell(text_, "T{} appends COMMIT", me());
    ReleaseLocks(true, place);
    EndAttempt();
    return true;
  }
  my_.stamp = state_.stamps++;
  if (!physical()) return ReserveCommit();
  my_.pc = Txn::kCommit;
  Tell(text_, "T{} draws stamp {}", me(), my_.stamp);
  return true;
}

bool TxnStep::ReserveCommit() {
  my_.place = state_.Append(log_, EndOf(Record::kCommit, 0));
  my_.pc = Txn::kFillCommit;
  Tell(text_, "T{} reserves COMMIT", me());
  return true;
}

bool TxnStep::FillCommit() {
  Reserved().flags |= Record::kFilled;
  Tell(text_, "T{} fills COMMIT and releases its locks", me());
  ReleaseLocks(true, my_.place);
  EndAttempt();
  return true;
}

// ---- Abort ------------------------------------------------------------------------------------------------------

bool TxnStep::Abort() {
  switch (rules_.undo) {
    case Undo::kByFlag:
      return flag() ? Compensate() : ReserveAbort(Txn::kSecondLook);
    case Undo::kNoSecondLook:
      if (flag()) return Compensate();
      my_.pc = Txn::kQuietUndo;
      my_.place = kNone;
      Tell(text_, "T{} is to abort and sees no checkpoint", me());
      return true;
    case Undo::kNotLogged:
      return ReserveAbort(Txn::kQuietUndo);
    case Undo::kCompensated:
      return Compensate();
    default:
      return StartUndo();
  }
}

bool TxnStep::ReserveAbort(uint8_t pc) {
  my_.place = state_.Append(log_, EndOf(Record::kAbort, 0));
  my_.pc = pc;
  Tell(text_, "T{} reserves ABORT", me());
  return true;
}

bool TxnStep::SecondLook() {
  if (!flag()) {
    my_.pc = Txn::kQuietUndo;
    Tell(text_, "T{} sees that no checkpoint runs", me());
    return true;
  }
  Record record;
  record.kind = Record::kVoid;
  record.flags = Record::kFilled;
  Reserved() = record;
  my_.place = 0;
  my_.pc = Txn::kCompensate;
  Tell(text_, "T{} sees that a checkpoint has begun, and voids ABORT", me());
  return true;
}

bool TxnStep::QuietUndo() {
  if (my_.changes > 0) {
    Page& page = state_.pages[NewestPage()];
    if (page.latch != 0) return false;
    Tell(text_, "T{} undoes its change of {} under the latch", me(), PageName(NewestPage()));
    Flip(page, std::exchange(my_.deltas[my_.changes - 1], uint16_t{0}));
    --my_.changes;
    return true;
  }
  if (my_.place == kNone) return AppendAbort();
  Reserved().flags |= Record::kFilled;
  my_.place = 0;
  my_.pc = Txn::kInactive;
  ReleaseLocks(false, 0);
  Tell(text_, "T{} fills ABORT and releases its locks", me());
  return true;
}

bool TxnStep::Compensate() {
  if (my_.changes > 0) {
    const uint8_t page = NewestPage();
    my_.place = state_.Append(log_, ChangeOf(page, my_.deltas[my_.changes - 1], true));
    my_.pc = Txn::kApplyUndo;
    if (rules_.number_read != NumberRead::kUnderLatch) my_.number = state_.checkpointer.number;
    Tell(text_, "T{} reserves a place for a compensation of {}", me(), PageName(page));
    return true;
  }
  if (!physical()) return AppendAbort();
  my_.stamp = state_.stamps++;
  my_.pc = Txn::kAppendAbort;
  Tell(text_, "T{} draws stamp {}", me(), my_.stamp);
  return true;
}

bool TxnStep::AppendAbort() {
  state_.Append(log_, EndOf(Record::kAbort, Record::kFilled));
  my_.place = 0;
  my_.pc = Txn::kInactive;
  ReleaseLocks(false, 0);
  Tell(text_, "T{} appends ABORT and releases its locks", me());
  return true;
}

bool TxnStep::BecomeInactive() {
  Tell(text_, "T{} is no longer active", me());
  EndAttempt();
  return true;
}

// ---- What they share --------------------------------------------------------------------------------------------

bool TxnStep::IsDurable(const Page& page) const {
  return std::equal(page.lv, page.lv + kLogs, state_.durable,
                    [](uint8_t lv, uint8_t durable) { return lv <= durable; });
}

void TxnStep::Flip(Page& page, uint16_t delta) {
  page.value ^= delta;
  page.dirty |= rules_.dirties_both ? 3 : 1 << (1 - state_.checkpointer.named);
}

// The page has one bit of the number in memory; the global number, or the one before it, completes it.
int8_t TxnStep::NumberOf(const Page& page) const {
  if (!rules_.numbers) return page.number;
  const int8_t global = rules_.number_read == NumberRead::kUnderLatch ? state_.checkpointer.number : my_.number;
  return static_cast<int8_t>(global - ((global ^ page.number) & 1));
}

Record TxnStep::ChangeOf(uint8_t page, uint16_t delta, bool compensates) const {
  Record record;
  record.kind = Record::kChange;
  record.txn = static_cast<uint8_t>(txn_);
  record.page = page;
  record.delta = delta;
  record.before = state_.pages[page].value;
  record.flags = compensates ? Record::kCompensation : my_.changes == 0 ? Record::kFirst : 0;
  return record;
}

Record TxnStep::EndOf(Record::Kind kind, uint8_t flags) const {
  Record record;
  record.kind = kind;
  record.txn = static_cast<uint8_t>(txn_);
  record.flags = flags;
  record.stamp = my_.stamp;
  std::copy(my_.lv, my_.lv + kLogs, record.lv);
  return record;
}

void TxnStep::ReleaseLocks(bool committed, uint8_t place) {
  for (Page& page : state_.pages) {
    if (page.lock != me()) continue;
    page.lock = 0;
    if (!committed) continue;
    std::copy(my_.lv, my_.lv + kLogs, page.lv);
    page.lv[log_] = static_cast<uint8_t>(place + 1);
  }
}

void TxnStep::EndAttempt() {
  const auto op = static_cast<uint8_t>(my_.op + 1);
  my_ = {};
  my_.op = op;
}

bool TakeTxnStep(const Rules& rules, const Scenario& scenario, State& state, size_t txn, std::string* text) {
  return TxnStep(rules, scenario, state, txn, text).Take();
}

}  // namespace dbx::models::differential
