#include "tests/models/differential_restart.h"

#include <algorithm>

namespace dbx::models::differential {

bool CrashImage::Covers(const Record& end) const {
  for (size_t k = 0; k < kLogs && rules.has_lv; ++k) {
    if (end.lv[k] > cut[k]) return false;
  }
  return true;
}

namespace {

// The tables of one log: a bit per transaction.
struct Tables {
  uint8_t ctt = 0, att = 0;
};

class Recovery {
 public:
  explicit Recovery(const CrashImage& image)
      : image_(image), rules_(image.rules), state_(image.state), anchor_(image.state.anchor) {
    for (size_t p = 0; p < kPages; ++p) values_[p] = state_.backups[anchor_.copy][p].value;
  }

  Values Run();

 private:
  void PrintedPass(size_t log);
  void OnePass(size_t log);
  void ForwardPass(size_t log);
  void BackwardPass(size_t log);
  void UndoPass(size_t log);
  void RedoPass();
  void RedoAttempt(size_t log, int end);

  template <class OnChange>
  void ScanBackward(size_t log, OnChange on_change);
  void SeeAbort(const Record& record, bool above_begin, Tables& tables) const;

  const Record& At(size_t log, int at) const { return state_.At(log, static_cast<size_t>(at)); }
  int Lowest(size_t log) const { return LowestOf(image_, log); }
  // Where a pass forward starts: the changes of all records below BEGIN are in the backup.
  int ReadFrom(size_t log) const { return std::max(anchor_.begin[log] + 1, Lowest(log)); }
  bool IsInBackup(size_t log, int at) const;
  bool Ends(const Record& record) const;
  void Flip(const Record& record) { values_[record.page] ^= record.delta; }

  const CrashImage& image_;
  const Rules& rules_;
  const State& state_;
  const Anchor& anchor_;
  Values values_;
};

Values Recovery::Run() {
  const size_t logs = image_.scenario.logs;
  switch (rules_.restart) {
    case Restart::kPrinted:
      for (size_t log = 0; log < logs; ++log) PrintedPass(log);
      break;
    case Restart::kOnePass:
      for (size_t log = 0; log < logs; ++log) OnePass(log);
      break;
    case Restart::kTwoPass:
      for (size_t log = 0; log < logs; ++log) ForwardPass(log);
      for (size_t log = 0; log < logs; ++log) BackwardPass(log);
      break;
    case Restart::kPhysical:
      if (!rules_.undo_first) RedoPass();
      for (size_t log = 0; log < logs; ++log) UndoPass(log);
      if (rules_.undo_first) RedoPass();
      break;
  }
  return values_;
}

// ---- Algorithm 3 ------------------------------------------------------------------------------------------------

void Recovery::PrintedPass(size_t log) {
  Tables tables;
  for (int at = image_.cut[log] - 1; at >= 0; --at) {
    const Record& record = At(log, at);
    const uint8_t txn = BitOf(record.txn);
    const bool committed = (tables.ctt & txn) != 0;
    if (at == anchor_.end[log]) {  // step 5
      tables.att = static_cast<uint8_t>(record.list & ~tables.ctt);
    } else if (at < anchor_.begin[log]) {  // step 7
      if (record.kind == Record::kChange && (tables.att & txn) != 0) Flip(record);
    } else if (record.kind == Record::kCommit && image_.Covers(record)) {  // steps 4 B and 6 B
      tables.ctt |= txn;
    } else if (record.kind == Record::kAbort && at < anchor_.end[log]) {  // step 6 C
      tables.att |= txn;
    } else if (record.kind == Record::kChange && at > anchor_.end[log]) {  // step 4 D
      if (committed) Flip(record);
    } else if (record.kind == Record::kChange) {  // step 6 D
      const bool same = record.number == state_.backups[anchor_.copy][record.page].number;
      if (committed == same) Flip(record);
    }
  }
}

// ---- One pass ---------------------------------------------------------------------------------------------------

// on_change(record, at, committed, reached): committed: the transaction is in CTT; reached: the record is above BEGIN
// or its transaction in ATT.
template <class OnChange>
void Recovery::ScanBackward(size_t log, OnChange on_change) {
  Tables tables;
  for (int at = image_.cut[log] - 1; at >= Lowest(log); --at) {
    const bool above_begin = at > anchor_.begin[log];
    const int open = rules_.commit_wins ? tables.att & ~tables.ctt : tables.att;
    if (at < anchor_.begin[log] && (open == 0 || !rules_.reads_below_begin)) return;
    const Record& record = At(log, at);
    const uint8_t txn = BitOf(record.txn);
    switch (record.kind) {
      case Record::kCommit:
        if (image_.Covers(record)) tables.ctt |= txn;
        break;
      case Record::kAbort:
        SeeAbort(record, above_begin, tables);
        break;
      case Record::kEnd:
        if (at != anchor_.end[log]) break;
        tables.att |= static_cast<uint8_t>(record.list & ~(rules_.commit_wins ? 0 : tables.ctt));
        break;
      case Record::kChange:
        on_change(record, at, (tables.ctt & txn) != 0, above_begin || (tables.att & txn) != 0);
        if ((record.flags & Record::kFirst) != 0 && rules_.first_clears) {
          tables.ctt &= static_cast<uint8_t>(~txn);
          tables.att &= static_cast<uint8_t>(~txn);
        }
        break;
      default:
        break;
    }
  }
}

void Recovery::SeeAbort(const Record& record, bool above_begin, Tables& tables) const {
  const uint8_t txn = BitOf(record.txn);
  if (rules_.restart != Restart::kOnePass) {
    if (Ends(record)) tables.ctt |= txn;
    return;
  }
  if (rules_.abort_leaves_ctt) tables.ctt &= static_cast<uint8_t>(~txn);
  if (above_begin) {
    tables.att |= txn;
  } else if (rules_.abort_leaves_att) {
    tables.att &= static_cast<uint8_t>(~txn);
  }
}

void Recovery::OnePass(size_t log) {
  ScanBackward(log, [&](const Record& record, int at, bool committed, bool reached) {
    const bool in_backup = IsInBackup(log, at);
    if (!rules_.commit_wins && at < anchor_.begin[log]) {  // Algorithm 3, step 7
      if (reached) Flip(record);
    } else if (committed ? !in_backup : in_backup && reached) {
      Flip(record);
    }
  });
}

bool Recovery::IsInBackup(size_t log, int at) const {
  const Record& record = At(log, at);
  if (rules_.numbers) return record.number < anchor_.number;
  if (at < anchor_.begin[log]) return true;
  return at < anchor_.end[log] && record.number != state_.backups[anchor_.copy][record.page].number;
}

// ---- Two passes -------------------------------------------------------------------------------------------------

void Recovery::ForwardPass(size_t log) {
  for (int at = ReadFrom(log); at < image_.cut[log]; ++at) {
    if (At(log, at).kind == Record::kChange && At(log, at).number >= anchor_.number) Flip(At(log, at));
  }
}

void Recovery::BackwardPass(size_t log) {
  ScanBackward(log, [&](const Record& record, int, bool committed, bool reached) {
    if (!committed && reached && (rules_.losers_whole || record.number < anchor_.number)) Flip(record);
  });
}

// ---- Physical images --------------------------------------------------------------------------------------------

void Recovery::UndoPass(size_t log) {
  ScanBackward(log, [&](const Record& record, int, bool committed, bool reached) {
    if (!committed && reached && record.number < anchor_.number) values_[record.page] = record.before;
  });
}

// Merges the logs: of the next ends of each log, that with the least stamp comes first.
void Recovery::RedoPass() {
  std::array<int, kLogs> next;
  for (size_t log = 0; log < kLogs; ++log) next[log] = ReadFrom(log);
  for (;;) {
    size_t from = kLogs;
    for (size_t log = 0; log < image_.scenario.logs; ++log) {
      while (next[log] < image_.cut[log] && !Ends(At(log, next[log]))) ++next[log];
      if (next[log] >= image_.cut[log]) continue;
      if (from == kLogs || At(log, next[log]).stamp < At(from, next[from]).stamp) from = log;
    }
    if (from == kLogs) return;
    RedoAttempt(from, next[from]++);
  }
}

// Whether a COMMIT or an ABORT counts.
bool Recovery::Ends(const Record& record) const {
  if (record.kind == Record::kCommit) return image_.Covers(record);
  if (record.kind != Record::kAbort) return false;
  if (rules_.restart == Restart::kTwoPass) return rules_.abort_ends;
  return !rules_.abort_has_lv || image_.Covers(record);
}

void Recovery::RedoAttempt(size_t log, int end) {
  const uint8_t txn = At(log, end).txn;
  const auto is_change = [&](int at) { return At(log, at).kind == Record::kChange && At(log, at).txn == txn; };
  const auto starts = [&](int at) { return (At(log, at).flags & Record::kFirst) != 0 && rules_.attempts_apart; };
  int at = end;
  while (at > ReadFrom(log) && !(is_change(at) && starts(at))) --at;
  for (; at < end; ++at) {
    const Record& record = At(log, at);
    if (is_change(at) && record.number >= anchor_.number) {
      values_[record.page] = static_cast<uint16_t>(record.before ^ record.delta);
    }
  }
}

}  // namespace

int LowestOf(const CrashImage& image, size_t log) {
  return std::max<int>(image.state.anchor.needed[log], image.state.punched[log]);
}

Values Recover(const CrashImage& image) { return Recovery(image).Run(); }

}  // namespace dbx::models::differential
