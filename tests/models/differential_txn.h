// One step of a transaction in the model of differential logging. Those of this testbed reserve a place in the log
// first (differential_txn.cpp); those of Algorithm 1 of the paper append a record last (differential_printed_txn.cpp).
#pragma once

#include "tests/models/differential_model.h"

namespace dbx::models::differential {

class TxnStep {
 public:
  TxnStep(const Rules& rules, const Scenario& scenario, State& state, size_t txn, std::string* text)
      : rules_(rules),
        scenario_(scenario),
        state_(state),
        txn_(txn),
        my_(state.txns[txn]),
        operations_(scenario.txns[txn]),
        log_(scenario.LogOf(txn, my_.op)),
        text_(text) {}

  bool Take();

 private:
  bool Operation();
  bool Change();
  bool AddPage();
  bool Apply();
  bool Fill();
  bool Commit();
  bool ReserveCommit();
  bool FillCommit();
  bool Abort();
  bool ReserveAbort(uint8_t pc);
  bool SecondLook();
  bool QuietUndo();
  bool Compensate();
  bool AppendAbort();
  bool BecomeInactive();

  bool TakePrinted();
  bool TakeMutex(uint8_t pc);
  bool Update();
  bool Unlock();
  bool AppendChange();
  bool StartUndo();
  bool UndoOne();

  uint8_t me() const { return static_cast<uint8_t>(txn_ + 1); }
  Record& Reserved() { return state_.At(log_, my_.place); }
  bool flag() const { return state_.checkpointer.flag != 0; }
  bool physical() const { return rules_.restart == Restart::kPhysical; }
  bool IsDurable(const Page& page) const;
  // The page of the newest change that an abort has not taken back.
  uint8_t NewestPage() const { return PageOf(operations_[FirstOf(operations_, my_.op) + my_.changes - 1]); }
  void Flip(Page& page, uint16_t delta);
  int8_t NumberOf(const Page& page) const;
  Record ChangeOf(uint8_t page, uint16_t delta, bool compensates) const;
  Record EndOf(Record::Kind kind, uint8_t flags) const;
  void ReleaseLocks(bool committed, uint8_t place);
  void EndAttempt();

  const Rules& rules_;
  const Scenario& scenario_;
  State& state_;
  const size_t txn_;
  Txn& my_;
  const std::string_view operations_;
  const size_t log_;
  std::string* const text_;
};

}  // namespace dbx::models::differential
