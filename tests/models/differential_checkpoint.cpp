// The steps of the checkpointer in the model of differential logging: Algorithm 2, in the order of Rules::stages.
#include <algorithm>

#include "tests/models/differential_model.h"

namespace dbx::models::differential {

namespace {

constexpr uint16_t kTorn = 0xdead;

class CheckpointStep {
 public:
  CheckpointStep(const Rules& rules, const Scenario& scenario, State& state, std::string* text)
      : rules_(rules), scenario_(scenario), state_(state), my_(state.checkpointer), text_(text) {}

  bool Take(bool fails);

 private:
  bool Fail(Stage stage);
  bool LoseAnchor();
  bool ReadReserved();
  bool ReadActive();
  bool SetFlag();
  bool AppendBegin();
  bool Advance();
  bool CountPages();
  bool AwaitFilled();
  bool VisitPage();
  bool ResetFlag();
  bool ListActive();
  bool AppendEnd();
  bool Flush();
  bool WriteAnchor();
  void PutAnchor();
  bool Punch();
  bool TakeBackPage();

  bool Has(Stage stage) const { return std::count(rules_.stages.begin(), rules_.stages.end(), stage) > 0; }
  void Toggle(Page& page) const { page.number = rules_.numbers ? my_.own : static_cast<int8_t>(page.number ^ 1); }
  uint8_t OwnBit() const { return static_cast<uint8_t>(1 << my_.copy); }
  bool IsDirty(const Page& page) const { return (page.dirty & OwnBit()) != 0; }
  void Copy(Page& page);
  std::string LogName(const char* preposition) const {
    return text_ == nullptr ? std::string() : scenario_.LogName(preposition, my_.at);
  }
  void StartOwn() { my_.own = static_cast<int8_t>(my_.own == 0 ? my_.number + 1 : my_.own); }
  void GoTo(Stage stage);
  void Next();
  void Idle();
  bool IsListedBefore(size_t stage) const;

  const Rules& rules_;
  const Scenario& scenario_;
  State& state_;
  Checkpointer& my_;
  std::string* const text_;
};

bool CheckpointStep::Take(bool fails) {
  if (my_.stage == kNone || (my_.stage == 0 && my_.number >= scenario_.checkpoints)) return false;
  const Stage stage = rules_.stages[my_.stage];
  if (fails) return Fail(stage);
  switch (stage) {
    case Stage::kReserved:
      return ReadReserved();
    case Stage::kActive:
      return ReadActive();
    case Stage::kFlagOn:
      return SetFlag();
    case Stage::kBegin:
      return AppendBegin();
    case Stage::kNumber:
      return Advance();
    case Stage::kCount:
      return CountPages();
    case Stage::kFilled:
      return AwaitFilled();
    case Stage::kPages:
      return VisitPage();
    case Stage::kFlagOff:
      return ResetFlag();
    case Stage::kList:
      return ListActive();
    case Stage::kEnd:
      return AppendEnd();
    case Stage::kFlush:
      return Flush();
    case Stage::kAnchor:
      return WriteAnchor();
    case Stage::kPunch:
      return Punch();
    case Stage::kTakeBack:
      return TakeBackPage();
  }
  return false;
}

bool CheckpointStep::ReadReserved() {
  for (size_t k = 0; k < scenario_.logs; ++k) {
    my_.needed[k] = std::min(my_.needed[k], static_cast<int8_t>(state_.counts[k]));
  }
  Tell(text_, "the checkpointer reads how far the logs are reserved");
  Next();
  return true;
}

bool CheckpointStep::ReadActive() {
  for (size_t t = 0; t < kTxns; ++t) {
    const Txn& txn = state_.txns[t];
    int8_t& needed = my_.needed[scenario_.LogOf(t, txn.op)];
    if (txn.active != 0) needed = std::min(needed, static_cast<int8_t>(txn.first));
  }
  for (size_t k = 0; k < scenario_.logs && rules_.needed_ascends; ++k) {
    my_.needed[k] = std::max(my_.needed[k], state_.anchor.needed[k]);
  }
  Tell(text_, "the checkpointer reads the first LSNs of the active");
  Next();
  return true;
}

bool CheckpointStep::SetFlag() {
  StartOwn();
  my_.flag = 1;
  my_.copy = static_cast<uint8_t>(rules_.spares_anchor_copy ? 1 - my_.named : my_.own % 2);
  Tell(text_, "the checkpointer sets the flag, for checkpoint {} to copy {}", my_.own, "AB"[my_.copy]);
  if (!Has(Stage::kNumber)) my_.number = my_.own;
  if (!Has(Stage::kNumber) && !Has(Stage::kCount)) my_.pages = state_.pages_there;
  Next();
  return true;
}

bool CheckpointStep::AppendBegin() {
  StartOwn();
  Record record;
  record.kind = Record::kBegin;
  record.flags = Record::kFilled;
  record.number = my_.own;
  my_.begin[my_.at] = static_cast<int8_t>(state_.Append(my_.at, record));
  Tell(text_, "the checkpointer appends BEGIN({}){}", record.number, LogName("to"));
  if (++my_.at == scenario_.logs) Next();
  return true;
}

// No page is added meanwhile.
bool CheckpointStep::Advance() {
  my_.number = my_.own;
  if (!Has(Stage::kCount)) my_.pages = state_.pages_there;
  Tell(text_, "the checkpointer advances the current number to {}", my_.number);
  Next();
  return true;
}

bool CheckpointStep::CountPages() {
  my_.pages = state_.pages_there;
  Tell(text_, "the checkpointer counts the pages: {}", my_.pages);
  Next();
  return true;
}

bool CheckpointStep::AwaitFilled() {
  for (size_t k = 0; k < scenario_.logs; ++k) {
    if (state_.ReadyUntil(k) <= my_.begin[k]) return false;
  }
  Tell(text_, "the checkpointer sees that all places below BEGIN are filled");
  Next();
  return true;
}

// Where all take the mutex, what happens under it is one step.
bool CheckpointStep::VisitPage() {
  Page& page = state_.pages[my_.at];
  if (my_.page_step == Checkpointer::kMutex && page.latch != 0) return false;
  if (rules_.mutex_always) {
    Tell(text_, "the checkpointer toggles {}{}", PageName(my_.at), IsDirty(page) ? " and copies it" : "");
    Toggle(page);
    Copy(page);
    if (++my_.at == my_.pages) Next();
    return true;
  }
  switch (my_.page_step++) {
    case Checkpointer::kMutex:
      page.latch = kTxns + 1;
      Tell(text_, "the checkpointer takes the mutex of {}", PageName(my_.at));
      return true;
    case Checkpointer::kToggle:
      Toggle(page);
      Tell(text_, "the checkpointer toggles the BackupID of {}", PageName(my_.at));
      return true;
    default:
      Tell(text_, "the checkpointer copies {} and releases its mutex", PageName(my_.at));
      Copy(page);
      page.latch = 0;
      my_.page_step = Checkpointer::kMutex;
      if (++my_.at == my_.pages) Next();
      return true;
  }
}

void CheckpointStep::Copy(Page& page) {
  if (!IsDirty(page)) return;
  page.dirty ^= OwnBit();
  state_.backups[my_.copy][my_.at] = {page.value, page.number, 0};
}

bool CheckpointStep::ResetFlag() {
  my_.flag = 0;
  Tell(text_, "the checkpointer resets the flag");
  my_.failed != 0 ? GoTo(Stage::kTakeBack) : Next();
  return true;
}

bool CheckpointStep::ListActive() {
  std::string names;
  for (size_t t = 0; t < kTxns; ++t) {
    if (state_.txns[t].active == 0) continue;
    my_.list[scenario_.LogOf(t, state_.txns[t].op)] |= BitOf(t);
    if (text_ != nullptr) names += fmt::format("{}T{}", names.empty() ? "" : ", ", t + 1);
  }
  for (size_t k = 0; k < scenario_.logs && my_.end[k] != 0; ++k) {  // a variant: END has its place already
    Record& end = state_.At(k, static_cast<size_t>(my_.end[k]));
    end.list = my_.list[k];
    end.flags |= Record::kFilled;
  }
  Tell(text_, "the checkpointer lists the active: {}", names.empty() ? "none" : names);
  Next();
  return true;
}

bool CheckpointStep::AppendEnd() {
  const bool is_listed = IsListedBefore(my_.stage);
  Record record;
  record.kind = Record::kEnd;
  record.number = my_.own;
  record.list = my_.list[my_.at];
  record.flags = is_listed ? Record::kFilled : 0;
  my_.end[my_.at] = static_cast<int8_t>(state_.Append(my_.at, record));
  Tell(text_, "the checkpointer {} END({}){}", is_listed ? "appends" : "reserves a place for", my_.own,
       LogName(is_listed ? "to" : "in"));
  if (++my_.at == scenario_.logs) Next();
  return true;
}

bool CheckpointStep::IsListedBefore(size_t stage) const {
  const auto end = rules_.stages.begin() + static_cast<std::ptrdiff_t>(stage);
  return std::find(rules_.stages.begin(), end, Stage::kList) != end;
}

bool CheckpointStep::Flush() {
  const size_t logs = rules_.all_ends_durable ? scenario_.logs : 1;
  for (size_t k = 0; k < logs; ++k) {
    if (state_.ReadyUntil(k) <= my_.end[k]) return false;
  }
  for (size_t k = 0; k < logs; ++k) {
    state_.durable[k] = std::max(state_.durable[k], static_cast<uint8_t>(my_.end[k] + 1));
  }
  Tell(text_, "the checkpointer flushes {}", logs == scenario_.logs ? "END" : "END of log 0");
  Next();
  return true;
}

bool CheckpointStep::WriteAnchor() {
  PutAnchor();
  my_.named = my_.copy;
  Tell(text_, "the checkpointer writes the anchor");
  Next();
  return true;
}

void CheckpointStep::PutAnchor() {
  Anchor& anchor = state_.anchor;
  anchor.copy = my_.copy;
  anchor.number = my_.own;
  for (size_t k = 0; k < kLogs; ++k) {
    anchor.begin[k] = my_.begin[k];
    anchor.end[k] = my_.end[k];
    anchor.needed[k] = scenario_.truncates && k < scenario_.logs ? my_.needed[k] : int8_t{0};
  }
}

bool CheckpointStep::Punch() {
  for (size_t k = 0; k < scenario_.logs; ++k) state_.punched[k] = static_cast<uint8_t>(my_.needed[k]);
  Tell(text_, "the checkpointer punches the logs below what is needed");
  Next();
  return true;
}

// ---- Failures: the copy of a page is torn, the backup is not synced, the anchor not written ----------------------

bool CheckpointStep::Fail(Stage stage) {
  if (my_.failures > 0) return false;
  if (scenario_.fails == Scenario::Fails::kAnchor) return stage == Stage::kAnchor && LoseAnchor();
  if (scenario_.fails != Scenario::Fails::kSpace) return false;
  if (stage == Stage::kPages) {
    Page& page = state_.pages[my_.at];
    if (!IsDirty(page) || page.latch != 0) return false;
    Tell(text_, "the checkpointer toggles {} and finds no space for its copy", PageName(my_.at));
    Toggle(page);
    page.dirty ^= OwnBit();
    state_.backups[my_.copy][my_.at] = {kTorn, 0, 0};
    GoTo(Stage::kFlagOff);
  } else if (stage == Stage::kList || stage == Stage::kAnchor) {
    Tell(text_, "the checkpointer finds no space for the {}", stage == Stage::kList ? "backup" : "anchor");
    GoTo(Stage::kTakeBack);
  } else {
    return false;
  }
  my_.failed = my_.failures = 1;
  return true;
}

bool CheckpointStep::LoseAnchor() {
  PutAnchor();
  Tell(text_, "the checkpointer writes the anchor, and is told that it has failed");
  my_.failures = 1;
  Idle();
  if (rules_.stops_after_anchor) my_.stage = kNone;
  return true;
}

// The flag is off, so aborts do not log their undo; no page is copied.
bool CheckpointStep::TakeBackPage() {
  Page& page = state_.pages[my_.at];
  if (page.latch != 0) return false;
  if (rules_.toggles_all) page.number = static_cast<int8_t>(rules_.numbers ? my_.own : my_.own % 2);
  if (rules_.dirties_all) page.dirty |= OwnBit();
  Tell(text_, "the checkpointer gives up {}{}{}", PageName(my_.at), rules_.toggles_all ? ", toggled" : "",
       rules_.dirties_all ? ", dirty again" : "");
  if (++my_.at == my_.pages) Idle();
  return true;
}

// ---- From stage to stage ----------------------------------------------------------------------------------------

void CheckpointStep::GoTo(Stage stage) {
  my_.at = 0;
  my_.stage =
      static_cast<uint8_t>(std::find(rules_.stages.begin(), rules_.stages.end(), stage) - rules_.stages.begin());
}

void CheckpointStep::Next() {
  my_.at = 0;
  if (rules_.stages[++my_.stage] == Stage::kTakeBack) Idle();
}

void CheckpointStep::Idle() {
  my_.stage = my_.at = my_.failed = my_.copy = my_.pages = 0;
  my_.own = 0;
  for (size_t k = 0; k < kLogs; ++k) {
    my_.begin[k] = my_.end[k] = 0;
    my_.list[k] = 0;
    my_.needed[k] = kFar;
  }
}

}  // namespace

bool TakeCheckpointStep(const Rules& rules, const Scenario& scenario, State& state, bool fails, std::string* text) {
  return CheckpointStep(rules, scenario, state, text).Take(fails);
}

}  // namespace dbx::models::differential
