// What the writers of a differential log promise, checked of all records that a restart reads, newest first, needed or
// not; and which COMMITs and ABORTs count.
//
// One that is in the valid prefix counts if its LSN vector is covered by the ends of the logs (Taurus, section 3.3): a
// transaction that released its locks before it was durable may be read by one in another log, whose vector then names
// its COMMIT. The same holds for ABORTs that have a vector (PL2P).
//
// Checked are:
//  - the ends of transactions are as the run's method logs them, and so are changes
//  - attempts to run a transaction: one first change, further ones, one COMMIT or ABORT, without which its worker does
//    not try it again at once; no COMMIT after a compensation, and no ABORT without all compensations, where the method
//    logs them always
//  - checkpoints: BEGINs count up, an END follows its BEGIN; the number of a change is that of the last BEGIN before
//    it, or one less, as pages are reached by one checkpoint after the other
//  - the anchor: BEGIN and END of its checkpoint are where it says; above BEGIN nothing is of transactions that had
//    ended before; nothing below `needed` is of an attempt that had not; END lists all attempts that have changes in
//    the backup and had not ended
//
// A log that was truncated below what the anchor's checkpoint g needs is read down to `needed`. What may be missing:
//  - Attempts whose first change lies below. When `needed` was taken the log was reserved at least that far, and only
//    then was it asked which transactions were active: one with a place below `needed` was among these, which would
//    have lowered it, or had ended. So such an attempt ends below BEGIN(g). Its worker was at that transaction then, or
//    behind it, and behind it for certain if the transaction had committed: the anchor's sequence says which. And as a
//    worker makes one attempt after the other, it is the first of its worker whose records are there.
//  - The last BEGIN below. Checkpoints of a run count up by one, and each appends a BEGIN: before BEGIN(b) the last one
//    was b - 1.
//  - Anchors of LV compression. An element that a COMMIT leaves out was durable when an anchor below was written, hence
//    before END(g) had a place in any log: step 4 of the checkpoint awaits places below BEGIN. Each log must hold
//    END(g).
//
// Threads: one, that of its log's pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/types.h"
#include "logging/differential/restart_point.h"
#include "logging/differential/slot_change.h"
#include "logging/differential/txn_map.h"
#include "logging/log_reader.h"

namespace dbx {

class BackwardChecks {
 public:
  // `source` is read down to First(). `ends` are those of all logs, and outlive this.
  BackwardChecks(const LogSource& source, const RestartPoint& point, std::span<const Lsn> ends, bool with_names)
      : source_(source), point_(point), ends_(ends), with_names_(with_names) {
    CHECK(!source.is_cut() || point.number > 0);
  }

  // The records, newest first. All throw Error(kCorrupt).
  void VisitChange(const SlotChange& change, Lsn at);
  // Of a COMMIT or ABORT. Returns whether it counts.
  bool VisitEnd(const RecordView& record, Lsn at);
  void VisitCheckpointBegin(uint32_t number, Lsn at);
  void VisitCheckpointEnd(const RecordView& record, Lsn at);
  // All records were visited.
  void Finish();

  // COMMITs that count, and that do not.
  uint64_t winners() const { return winners_; }
  uint64_t losers() const { return losers_; }
  // Of the winners, with names.
  const std::vector<TxnId>& names() const { return names_; }

 private:
  // An attempt whose first change was not met yet.
  struct Attempt {
    Lsn top;     // of its COMMIT or ABORT; behind the log, if it has none
    Lsn bottom;  // of its last record that was met
    uint32_t changes = 0;
    uint32_t compensations = 0;
    int32_t excess = 0;  // compensations whose changes were not met yet
    bool is_open = false;
    bool commits = false;

    bool IsEmpty() const { return !is_open; }
  };
  struct NumberAt {
    uint32_t number;
    Lsn at;
  };

  void CheckMethod(bool is_physical, Lsn at) const;
  void CheckStillActive(TxnId txn, Lsn at) const;
  void CheckBegins(const Attempt& attempt) const;
  void CheckTakenBack(const Attempt& attempt) const;
  void CheckIsListed(const Attempt& attempt, TxnId txn) const;
  void CheckCut(TxnId txn, const Attempt& attempt) const;
  [[noreturn]] void RefuseWithoutBegin(const Attempt& attempt) const;
  void TakeNumber(const SlotChange& change, Lsn at);
  void CheckNumbers(uint32_t begun);
  void MeetWorker(TxnId txn);
  std::optional<TxnId> LowestOf(WorkerId worker) const;
  [[noreturn]] void Refuse(Lsn at, const char* why) const { ThrowDamaged(source_, at, why); }

  const LogSource source_;
  const RestartPoint point_;
  const std::span<const Lsn> ends_;
  const bool with_names_;
  uint64_t winners_ = 0;
  uint64_t losers_ = 0;
  std::vector<TxnId> names_;
  TxnMap<Attempt> attempts_;
  std::vector<std::optional<TxnId>> lowest_;  // by worker, if it was met: of its last record that was
  // Of the last BEGIN that was met; and below it, of changes and of END.
  std::optional<NumberAt> begun_;
  std::optional<NumberAt> least_, most_, ended_;
  bool found_begin_ = false;
  bool found_end_ = false;
  std::vector<TxnId> listed_;  // by END, ascending
};

}  // namespace dbx
