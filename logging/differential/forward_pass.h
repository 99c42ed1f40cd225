// The first pass of recovery over one differential log, forward: every record is checked, the end of the valid prefix
// (ELV) is found, and with the ends of all logs it is known which transactions count, the winners. The second pass,
// backward, changes pages.
//
// A COMMIT in the valid prefix counts if its LSN vector is covered by the ends of the logs (Taurus, section 3.3): a
// transaction that released its locks before it was durable may be read by one in another log, whose vector then names
// its COMMIT. Only stored elements are compared: those that LV compression left out were durable when the anchor was
// written, and a log that ends below an anchor is refused. Elements that a log has already reached need not be kept.
// The same holds for ABORTs that have a vector (PL2P).
//
// What the writers promise is checked here, of all records, needed or not:
//  - changes: they fit their tables, and they and the ends of transactions are as the run's method logs them
//  - attempts to run a transaction: one first change, further ones, one COMMIT or ABORT; no COMMIT
//    after a compensation, and no ABORT without all compensations, where the method logs them always
//  - checkpoints: BEGINs count up, an END follows its BEGIN; the number of a change is that of the last BEGIN before
//    it, or one less, as pages are reached by one checkpoint after the other
//  - the anchor: BEGIN and END of its checkpoint are where it says; above BEGIN nothing is of transactions that had
//    ended before; nothing below `needed` is of an attempt that had not; END lists all attempts that have changes in
//    the backup and had not ended
//
// A log that was truncated below what the anchor's checkpoint g needs is read from `needed` on. What may be missing:
//  - Attempts whose first change lies below. When `needed` was taken the log was reserved at least that far, and only
//    then was it asked which transactions were active: one with a place below `needed` was among these, which would
//    have lowered it, or had ended. So such an attempt ends below BEGIN(g). Its worker was at that transaction then, or
//    behind it, and behind it for certain if the transaction had committed: the anchor's sequence says which. And as a
//    worker makes one attempt after the other, it is the first of its worker whose records are met here. It is known by
//    a change that is not the FIRST, or by an end without a change.
//  - The last BEGIN below. Checkpoints of a run count up by one, and each appends a BEGIN: before the first BEGIN(b)
//    that is met the last one was b - 1; an END(h) that is met before shows that it was h. Until then numbers are only
//    known to be below g, as a page gets g after BEGIN(g) has its place; what was met is judged when it is known.
//  - Anchors of LV compression. An element that a COMMIT leaves out was durable when an anchor below was written, hence
//    before END(g) had a place in any log: step 4 of the checkpoint awaits places below BEGIN. Each log must hold
//    END(g).
//
// Threads: a pass belongs to one thread; LogProgress is shared by the passes over all logs of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/differential/kept_log.h"
#include "logging/differential/txn_map.h"
#include "logging/differential_methods.h"
#include "logging/log_reader.h"
#include "storage/database.h"

namespace dbx {

// How far each log has been read; relaxed, as it only says which LSNs need not be remembered.
using LogProgress = std::vector<CachePadded<Atomic<uint64_t>>>;

// The checkpoint from whose backup the database is restored, as one log has it.
struct RestartPoint {
  uint32_t number = 0;  // 0: the backup with which the run begins, which has no BEGIN and END
  Lsn begin;            // where BEGIN starts
  Lsn end;              // where END starts
  Lsn needed;           // nothing below is needed
  // By worker: all of its transactions with lower sequence numbers had ended before the checkpoint.
  std::span<const uint64_t> ended_below{};
  DiffMethod method = DiffMethod::kDl1p;
};

class ForwardPass {
 public:
  struct Options {
    size_t block_bytes = 1 << 20;
    bool with_names = false;  // the transactions' ids are kept
    size_t kept_bytes = 0;    // of records, for the backward pass
  };

  // `database` is paged and has the tables of the run.
  ForwardPass(const LogSource& source, const RestartPoint& point, const Database& database, const Options& options,
              LogProgress& progress);

  // Reads the log to the end of its valid prefix. Throws Error.
  void Run();
  // `ends` are those of all logs: which COMMITs and ABORTs do not count.
  void Judge(const std::vector<Lsn>& ends);

  const LogReader& reader() const { return reader_; }
  // After Run.
  KeptLog& kept() { return kept_; }
  // The records of the checkpoint.
  bool found_begin() const { return found_begin_; }
  bool found_end() const { return found_end_; }
  // After Judge. Whether the COMMIT or ABORT that starts there counts.
  bool Counts(Lsn end) const;
  // Where the first change starts that no end counts for; the end of the log, if there is none.
  Lsn losers_begin() const { return losers_begin_; }
  // Transactions with a COMMIT.
  uint64_t winners() const { return commits_ - losers_; }
  uint64_t losers() const { return losers_; }
  std::vector<TxnId> Names() const;

 private:
  // A COMMIT or ABORT that counts only if a log is valid up to `until`.
  struct Need {
    Lsn first;  // where the attempt's first change starts
    Lsn end;
    bool commits;
    uint32_t log;
    Lsn until;
  };
  struct Name {
    Lsn commit;
    TxnId txn;
  };
  // An attempt that has not ended yet.
  struct Attempt {
    Lsn first;  // where its first change starts
    uint32_t least_number = 0;
    uint32_t standing = 0;  // changes that were not taken back
    bool is_open = false;
    bool is_taken_back = false;  // at least in part
    bool is_cut = false;         // `first` is where it was met; its first change lies below

    bool IsEmpty() const { return !is_open; }
  };

  void Visit(const RecordView& record, Lsn at);
  void VisitChange(const RecordView& record, Lsn at);
  void VisitCommit(const RecordView& record, Lsn at);
  void VisitAbort(const RecordView& record, Lsn at);
  // Of the end of an attempt whose first change starts at `first`.
  void TakeVector(const RecordView& record, Lsn first, Lsn at);
  void CheckMethod(const RecordView& record, uint16_t flag, Lsn at) const;
  Attempt EndAttempt(const RecordView& record, Lsn at);
  void VisitBegin(uint32_t number, Lsn at);
  void VisitEnd(const RecordView& record, Lsn at);
  void CheckListed(const RecordView& record, Lsn at) const;
  void CheckStillActive(TxnId txn, Lsn at) const;
  bool MayBeCut(TxnId txn, Lsn at) const;
  void CheckHadEnded(TxnId txn, Lsn at) const;
  void MeetWorker(TxnId txn);
  void CheckNumber(uint32_t number, Lsn at);
  void LearnBegun(uint32_t number);
  [[noreturn]] void Refuse(Lsn at, const char* why) const { ThrowDamaged(reader_.source(), at, why); }

  LogReader reader_;
  const RestartPoint point_;
  const Database& database_;
  const bool with_names_;
  LogProgress& progress_;
  KeptLog kept_;
  uint64_t commits_ = 0;
  std::vector<Need> needs_;
  std::vector<Name> names_;
  std::vector<Lsn> uncovered_;  // ends that do not count, ascending
  uint64_t losers_ = 0;         // COMMITs among them
  Lsn losers_begin_;
  TxnMap<Attempt> attempts_;
  std::vector<bool> met_;  // by worker: it has a record here. Of a log that is read whole: unused
  bool knows_begun_;       // false: begun_ is the largest possible number
  uint32_t begun_;         // the number of the last BEGIN
  // Of changes met before begun_ is known: the lowest and the highest number, and the first places of these.
  struct NumberAt {
    uint32_t number;
    Lsn at;
  };
  std::optional<NumberAt> lowest_, highest_;
  uint32_t ended_ = 0;  // and END
  bool found_begin_ = false;
  bool found_end_ = false;
};

}  // namespace dbx
