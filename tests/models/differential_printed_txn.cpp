// Algorithm 1 and the undo of section 3.4, step by step as printed.
#include "tests/models/differential_txn.h"

namespace dbx::models::differential {

bool TxnStep::TakePrinted() {
  switch (my_.pc) {
    case Txn::kFlag:
      my_.mutex = state_.checkpointer.flag;
      my_.pc = my_.mutex != 0 ? Txn::kMutex : Txn::kCopyId;
      Tell(text_, "T{} reads the checkpoint flag: {}", me(), my_.mutex);
      return true;
    case Txn::kMutex:
      return TakeMutex(Txn::kCopyId);
    case Txn::kCopyId:
      my_.number = NumberOf(state_.pages[PageOf(operations_[my_.op])]);
      my_.pc = Txn::kUpdate;
      Tell(text_, "T{} copies the BackupID of {}: {}", me(), PageName(PageOf(operations_[my_.op])), my_.number);
      return true;
    case Txn::kUpdate:
      return Update();
    case Txn::kUnlock:
      return Unlock();
    case Txn::kAppend:
      return AppendChange();
    case Txn::kUndoFlag:
      return StartUndo();
    case Txn::kUndoMutex:
      return TakeMutex(Txn::kUndo);
    default:
      return UndoOne();
  }
}

bool TxnStep::TakeMutex(uint8_t pc) {
  const uint8_t number = pc == Txn::kUndo ? NewestPage() : PageOf(operations_[my_.op]);
  Page& page = state_.pages[number];
  if (page.latch != 0) return false;
  page.latch = me();
  my_.pc = pc;
  Tell(text_, "T{} takes the mutex of {}", me(), PageName(number));
  return true;
}

bool TxnStep::Update() {
  const uint8_t number = PageOf(operations_[my_.op]);
  Page& page = state_.pages[number];
  const uint8_t after_mutex = rules_.append == Append::kUnderMutex ? Txn::kOperation : Txn::kAppend;
  if (rules_.append == Append::kUnderMutex) AppendChange();
  Flip(page, my_.deltas[my_.changes - (rules_.append == Append::kUnderMutex ? 1 : 0)]);
  my_.pc = my_.mutex != 0 ? uint8_t{Txn::kUnlock} : after_mutex;
  if (my_.pc != Txn::kUnlock) my_.mutex = 0;
  Tell(text_, "T{} changes {}{}", me(), PageName(number),
       rules_.append == Append::kUnderMutex ? " and appends its record" : "");
  return true;
}

bool TxnStep::Unlock() {
  const bool appended = rules_.append == Append::kUnderMutex;
  const uint8_t number = PageOf(operations_[my_.op - (appended ? 1u : 0u)]);
  state_.pages[number].latch = 0;
  my_.mutex = 0;
  my_.pc = appended ? Txn::kOperation : Txn::kAppend;
  Tell(text_, "T{} releases the mutex of {}", me(), PageName(number));
  return true;
}

bool TxnStep::AppendChange() {
  const uint8_t page = PageOf(operations_[my_.op]);
  Record record = ChangeOf(page, my_.deltas[my_.changes], false);
  record.number = std::exchange(my_.number, int8_t{0});
  record.flags |= Record::kFilled;
  state_.Append(log_, record);
  ++my_.changes;
  ++my_.op;
  my_.pc = Txn::kOperation;
  Tell(text_, "T{} appends its record of {}", me(), PageName(page));
  return true;
}

bool TxnStep::StartUndo() {
  if (my_.changes == 0) {
    state_.Append(log_, EndOf(Record::kAbort, Record::kFilled));
    Tell(text_, "T{} appends ABORT", me());
    ReleaseLocks(false, 0);
    EndAttempt();
    return true;
  }
  my_.seen = state_.checkpointer.flag;
  my_.mutex = rules_.mutex_always || flag();
  my_.pc = my_.mutex != 0 ? Txn::kUndoMutex : Txn::kUndo;
  Tell(text_, "T{} is to undo its change of {} and reads the checkpoint flag: {}", me(), PageName(NewestPage()),
       my_.seen);
  return true;
}

bool TxnStep::UndoOne() {
  const uint8_t number = NewestPage();
  Page& page = state_.pages[number];
  const uint16_t delta = std::exchange(my_.deltas[my_.changes - 1], uint16_t{0});
  const bool logs = rules_.undo == Undo::kPrintedByFlag && my_.seen != 0;
  if (logs) {
    Record record = ChangeOf(number, delta, true);
    record.number = NumberOf(page);
    record.flags |= Record::kFilled;
    state_.Append(log_, record);
  }
  Flip(page, delta);
  if (my_.mutex != 0) page.latch = 0;
  --my_.changes;
  my_.mutex = my_.seen = 0;
  my_.pc = Txn::kUndoFlag;
  Tell(text_, "T{} undoes its change of {}{}", me(), PageName(number), logs ? ", with a record" : "");
  return true;
}

}  // namespace dbx::models::differential
