// Taurus MM (Depoutovitch et al., PVLDB 16(12), 2023) as a model: up to three masters run transactions under page locks
// that carry lists of row locks; their logs end each flush with an LFB, which the other masters apply; page stores keep
// a chain of versions of each page; a statement may read versions without locks, page by page; a page is split; masters
// cut their logs, crash, are fenced, and their losers are undone by a survivor; the GLM dies, and a new one makes its
// table from the masters' reports. Exact causality is kept next to the
// clocks, as sets of records.
//
// One step is one message delivered, one operation of a transaction, one flush, one LFB applied, one crash. A run ends
// when no transaction can go on; Verdict() then judges serializability, durability and that every LFB can be applied.
// The clocks' rules and the names are those of multi_master/vs_clock.h. Links are FIFO for each pair, unless the
// scenario reorders them. Short runs are searched exhaustively (crash_search.h), longer ones are drawn at random
// (multi_master_expectations.h).
//
// Symbols: END: the record of a transaction's end; LFB: log flush buffer, with a vector as its stamp; TV: the vector up
// to which a versioned read sees the logs; GLM: the global lock manager. Rows a and b are on page P, row c on page Q; a
// split of P moves b to page R.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/models/crash_search.h"

namespace dbx::models::multi_master {

inline constexpr size_t kMasters = 3, kPages = 3, kRows = 3, kTxns = 5, kOpsMax = 4;
inline constexpr size_t kRecordsMax = 24, kMessagesMax = 12, kRequestsMax = 6;
inline constexpr size_t kMovedRow = 1, kRight = 2;  // row b, page R
inline constexpr size_t kGap = kRows,
                        kLocks = kRows + 1;  // a lock of a page's gaps is in its list behind those of rows
inline constexpr uint8_t kNone = 255;
inline constexpr uint8_t kShared = 1, kExclusive = 2;  // modes of locks; 0: none

// Each is a behaviour of the paper as printed (kPrinted...), or a slip. None: what multi_master/ does.
enum class Fault : uint8_t {
  kNone,
  kPrintedScalarGrant,    // section 5.1.1: a grant gives a scalar only; the stamp does not cover the page's version
  kPrintedNoAfters,       // a grant does not carry the END times of transactions whose row locks were dropped
  kPrintedSharedRelease,  // section 5.2.1: a release of a shared page lock replaces the GLM's list
  kPrintedReaderEnd,      // section 5.2.5: a transaction without writes leaves no END
  kStrictMerged,          // the answer to a strict read is merged into the progress vector
  kReleasedBeforeFlush,   // a page lock is released before its records are durable
  kEndToldEarly,          // the GLM is told of an END that is not durable
  kUnlockedBeforeUndo,    // row locks of an abort are released before its undo
  kFreedWithoutLosers,    // pages of a dead master are free without the row locks of its losers
  kGlmForgetsList,        // the GLM drops its list when it grants an exclusive page lock
  kNoGenerations,         // a late message counts for a later lock
  kNoVs4,                 // a grant does not raise the clock above the page's version
  kPredecessorOnly,       // an LFB is applied once its predecessor is
  kPrintedOwnClock,       // section 5.1.2: an LFB is compared with the receiver's clock, not with its own log
  kNoValidityCheck,       // a local version is read whatever it builds upon
  kPrintedValidity,       // section 5.3: validity looks at versions of the page, not at ENDs
  kPrintedSnapshot,       // section 5.1.3: TV counts as a snapshot
  kPrintedSplit,          // sections 5.2.4, 5.3: TV need not cover splits that made pages which its master has changed
  kNoFence,               // a dead master's log takes an append after it was read
  kToldNotAfter,          // ENDs that the GLM tells of do not raise `after`
  kListAfterFlush,        // a release's list is built after its flush
  kLocalAfterTv,          // validity does not look at local changes after TV's own time
  kEndedHere,             // a change of an own transaction is seen once it has ended, though after TV's own time
  kNoVersionRead,         // a page without a version at TV is read as an empty one
  kReaderStaysLeft,       // a reader does not move right
  kPrunedEarly,           // after-lists are pruned of what all masters have applied, whatever statements read
  kListEvicted,           // the after-list goes with its page's frame
  kSplitLeavesLocks,      // row locks above the separator stay on the old page
  kSplitForgetsGap,       // a gap lock across the separator stays on the old page alone
  kSplitForgetsAfter,     // the new page begins with an empty after-list
  kSplitListNotSent,      // a release of a page that was split does not carry the new page's list
  kReleasingNotSent,      // the same, if a release of the new page has begun and is not sent
  kSplitNotReplayed,      // a death does not replay splits over the GLM's lists
  kLosersOnOldPage,       // a loser's row lock is added where its change was, after the splits
  kEndedUnapplied,        // a survivor ends a loser before it has applied the logs of dead masters to their ends
  kUndoOnOldPage,         // a row is restored on the page on which it was changed
  kCutByStores,           // a log is cut by the progress of the page stores alone
  kCutPastOpen,           // a log is cut in a transaction that has no END there
  kCutPastSplit,          // a log is cut past a split whose page has not been released
  kCutAtSend,             // ... past a split whose page's release is sent, and has not arrived
  kCutUnapplied,          // a log is cut past what all masters have applied
  kLsnFromLog,            // after a death a page's LSN is the newest in what is left of the log
  kGrantsBeforeReports,   // a new GLM grants before all masters have reported
  kOldTermAccepted,       // a master takes a grant or a reclaim of the GLM before
  kReportNoRowLocks,      // a report lacks the row locks of the master's own transactions
  kReportNoAfters,        // a report lacks after-lists
  kReportNoLosers,        // a report lacks the rows of losers that the master undoes
  kReportBeforeFlush,     // a report is sent before the master's own log is durable
  kReportOnOldPage,       // reported row locks stay on the page on which they were granted
  kPlacedOnArrival,       // reported row locks get their page when the report arrives, not when all have
  kReportLsnLost,         // pages that no master holds are granted as they were loaded
  kRequestsNotAnew,       // requests in flight are not sent again to a new GLM
  kEarlierLogsUnread,     // a new GLM reads the log of a dead survivor, not those of masters that died before it
  kCutUnreported,         // a log is cut past a split that a new GLM does not know yet
  kNumber
};
const char* NameOf(Fault fault);

enum class Failure : uint8_t {
  kNothing,
  kPageLsn,
  kChainOrder,
  kLostUpdate,
  kAppendAfterFence,
  kReleaseNotHeld,
  kVersionMissing,
  kEffectFirst,
  kBufferGap,
  kReadNoPrefix,
  kReadUnended,
  kReadMisses,
  kStuck,
  kChainHole,
  kNeverApplied,
  kAckLost,
  kRowLost,
  kDirtyRead,
  kNotSerializable,
  kNotSnapshot,
  kRowNotThere,
};
const char* TextOf(Failure failure);

// A program is a string of pairs: "ra" reads row a, "wc" writes row c, "ga" reads the page's rows from a on and locks
// its gaps, "sb" splits page P, "!!" aborts.
struct Program {
  uint8_t master = 0;
  std::string_view ops;
};
struct Scenario {
  std::string_view name;
  uint8_t masters = 2;
  std::vector<Program> programs;
  uint8_t evictions = 1, reads = 2;               // of shared page locks, versioned reads: at most
  uint8_t crashes = 0, restarts = 0, strict = 0;  // restarts: of the GLM, at most
  uint8_t prunes = 0, discards = 0, cuts = 0;     // of after-lists, of own pages from the buffer, of logs: at most
  bool reorders = false;
  bool tells = false;            // the GLM tells masters of ENDs
  std::string_view points = "";  // the rows that a statement looks up, one by one; empty: it scans all
  bool slow_releases = false;    // other steps come between the list of a release and its message
  uint8_t may_die = 0xff;        // bit m: master m
  bool own_at_once = false;      // a master reads its own log at once
  uint16_t applies = 0xffff;     // bit 3 i + k: master i applies LFBs of master k
};

// ---- States: bytes only, zero where unused ----

struct Lsn {
  uint8_t master, time;  // kNone, 0: as loaded
  bool operator==(const Lsn&) const = default;
};
// The last value and its writer, and what a reader sees while the writer has not ended. Writers: transaction + 1.
struct Row {
  uint8_t value, writer, before, before_writer;
};
struct PageCopy {
  Lsn lsn;
  uint8_t there, row_bits;
  Row rows[kRows];

  bool Has(size_t row) const { return (row_bits >> row & 1) != 0; }
};
struct RowLocks {
  uint16_t rows[kLocks];  // two bits a transaction

  uint8_t ModeOf(size_t row, size_t txn) const { return rows[row] >> 2 * txn & 3; }
  void Set(size_t row, size_t txn, uint8_t mode) {
    rows[row] = static_cast<uint16_t>((rows[row] & ~(3u << 2 * txn)) | static_cast<unsigned>(mode) << 2 * txn);
  }
};
struct Record {
  enum Kind : uint8_t { kNothing, kWrite, kUndo, kMoveIn, kMoveOut, kCommit, kReadOnly, kAbort };
  uint8_t time, kind, txn, page, row, stored;
  Row image;
  Lsn previous;             // of the page
  uint32_t past[kMasters];  // the records that it builds upon, a bit each

  bool IsOfPage() const { return kind >= kWrite && kind <= kMoveOut; }
  bool IsSplit() const { return kind == kMoveIn || kind == kMoveOut; }
  bool IsEnd() const { return kind >= kCommit; }
};
struct Lfb {
  uint8_t stamp[kMasters], predecessor, until, unused[3];  // until: the number of records below its end
  uint32_t past[kMasters];
};
struct Message {
  enum Kind : uint8_t { kRequest, kRelease, kEnds, kGrant, kReclaim };
  uint8_t kind, page, mode, generation;
  Lsn lsn;
  uint8_t after[kMasters], ends;
  RowLocks locks;
  uint8_t split, term;  // split: 0, or the generation of page R that the rest is about; term: of the GLM
  RowLocks split_locks;
  uint8_t split_after[kMasters], unused2;
};
// What a master has of a page.
struct Local {
  uint8_t mode, generation;            // of the lock that is held
  uint8_t last_generation, reclaimed;  // reclaimed: 0, or the generation that the GLM asks for
  uint8_t want_mode, want_generation, fresh, releasing;
  uint8_t after[kMasters], split, unused[4];  // split: the generation of page R that was split off under this grant
  RowLocks locks;
  PageCopy copy;
  Message release;  // while it is releasing
};
struct Master {
  uint8_t clock[kMasters], after[kMasters], applied[kMasters], next[kMasters];  // next: the LFB to apply
  uint8_t alive, recovered, fenced, last_lfb;
  uint8_t ended, told;                                   // transactions: known here as ended; the GLM was told
  uint8_t count, durable, lfb_count, cut, term, unused;  // cut: records below it are gone; term: of the last report
  uint8_t splits[kMasters], unused2;                     // the splits that made the pages which this master has changed
  uint32_t past[kMasters], seen[kMasters];
  Local pages[kPages];
  Record records[kRecordsMax];
  Lfb lfbs[kRecordsMax];
};
struct Link {
  uint8_t count, unused;
  Message messages[kMessagesMax];
};
struct Request {
  uint8_t master, mode, generation;
};
struct Global {  // what the GLM has of a page
  uint8_t modes[kMasters], generations[kMasters], asked[kMasters], after[kMasters];
  uint8_t count, unused;
  Request queue[kRequestsMax];
  Lsn lsn;
  RowLocks locks;
};
struct Chain {  // what the page stores have of a page
  uint8_t count, unused;
  uint8_t masters[kRecordsMax], records[kRecordsMax];
};
struct Txn {
  enum Step : uint8_t { kAbsent, kRuns, kUndoes, kEnded, kAckPending, kAbortPending, kAcked, kAborted, kDead };
  struct Read {
    uint8_t row, value;
  };
  struct Write {
    uint8_t row;
    Row old;
  };
  uint8_t master, step, op, blockers, writes_done, read_count, write_count, taken;  // taken: over from a dead master
  Read reads[kOpsMax];
  Write writes[kOpsMax];  // to be undone

  bool IsActive() const { return step == kRuns || step == kUndoes; }
};
struct Reader {  // a statement that reads versions
  uint8_t is_active, master, row;
  uint8_t tv[kMasters], out[kRows];
};
struct State {
  Master masters[kMasters];
  Link to_glm[kMasters], to_master[kMasters];
  Global pages[kPages];
  Chain chains[kPages];
  Txn txns[kTxns];
  Lsn ends[kTxns];  // the last END of each
  uint8_t ended;    // known to the GLM
  uint8_t crashes, evictions, reads, strict, prunes, discards, cuts;
  Reader reader;
  Failure failure;
  uint8_t failure_at, restarts, term, collecting;  // term: of the GLM; collecting: it has not all reports
};

// ---- Steps ----

struct Move {
  enum Kind : uint8_t {
    kDeliver,
    kStep,
    kFlush,
    kApply,
    kRelease,
    kEvict,
    kTell,
    kRead,
    kReadPage,
    kStrict,
    kCrash,
    kRecover,
    kSend,
    kDiscard,
    kPrune,
    kPruneGlobal,
    kCut,
    kRestart,
    kReport,
    kBreak
  };
  Kind kind;
  uint8_t a, b, c;
};
std::vector<Move> AllMoves();

inline constexpr uint8_t PageOf(size_t row) { return row == 2 ? 1 : 0; }
inline constexpr uint8_t BitOf(size_t at) { return static_cast<uint8_t>(1u << at); }
inline constexpr bool Conflict(uint8_t a, uint8_t b) { return a == kExclusive || b == kExclusive; }

// A state with the rules by which it changes. Methods are in multi_master_locks.cpp, _log.cpp, _txn.cpp, _crash.cpp,
// _restart.cpp, _read.cpp and _verdict.cpp.
class World {
 public:
  World(State& state, const Scenario& scenario, Fault fault) : s(state), scenario_(scenario), fault_(fault) {}

  bool Can(const Move& move) const;
  void Do(const Move& move);
  // Applies what masters have appended to their own logs.
  void ReadOwnLogs();
  // Once no transaction can go on: flushes, applies what is left, and judges the run.
  void Finish();
  std::string Describe(const Move& move) const;

  struct Statistics {
    size_t reads = 0, invalid = 0, not_snapshots = 0, acked = 0, aborted = 0;
  };
  static Statistics& statistics();

 private:
  struct Order {  // of the committed versions of a row
    std::array<uint8_t, kRecordsMax * kMasters> values;
    size_t count = 0;
    // count: not there
    size_t Find(uint8_t value) const;
  };

  bool CanEvict(const Local& local, size_t page) const;
  bool CanDo(const Move& move, const Master& my) const;
  bool Has(Fault fault) const { return fault_ == fault; }
  void Fail(Failure failure, size_t at = 0);

  // Logs, clocks, page stores
  uint8_t Append(size_t m, uint8_t kind, size_t txn, size_t page = 0, size_t row = 0, Row image = {});
  void Flush(size_t m);
  void Acknowledge(const Record& record);
  void Store();
  bool StoreOne(Record& record, uint8_t m, uint8_t at);
  bool MayApply(size_t m, size_t k) const;
  void Apply(size_t m, size_t k);
  void ApplyRecord(size_t m, size_t k, const Record& record);
  PageCopy VersionAt(size_t page, size_t count) const;
  PageCopy Newest(size_t page) const { return VersionAt(page, s.chains[page].count); }
  // The number of versions up to this one; kNone: it is not there.
  uint8_t FindVersion(size_t page, Lsn lsn) const;
  const Record* FindRecord(size_t m, uint8_t time) const;
  void ApplyTo(PageCopy& copy, size_t m, const Record& record) const;
  void AddPast(uint32_t (&past)[kMasters], size_t m, uint8_t time, bool with_causes) const;
  size_t FirstOf(size_t m, size_t lfb) const { return lfb == 0 ? 0 : s.masters[m].lfbs[lfb - 1].until; }
  size_t CutUntil(size_t m) const;

  // Locks
  void Send(Link& link, const Message& message);
  void DeliverToGlm(size_t m, const Message& message);
  void DeliverToMaster(size_t m, const Message& message);
  void OnRelease(size_t m, const Message& message);
  void OnGrant(size_t m, const Message& message);
  void Grant(size_t page);
  void OnEndsTold(size_t m, uint8_t ends);
  void Release(size_t m, size_t page);
  void BuildRelease(size_t m, size_t page);
  void SendRelease(size_t m, size_t page);
  void Drop(RowLocks& locks, uint8_t (&after)[kMasters], uint8_t ended) const;
  void DropEnded(size_t m);
  void DropEnded(size_t m, size_t page);
  uint8_t EndsToTell(size_t m) const;

  // Transactions
  char KindOf(size_t txn) const { return scenario_.programs[txn].ops[2 * s.txns[txn].op]; }
  uint8_t RowOf(size_t txn) const {
    return static_cast<uint8_t>(scenario_.programs[txn].ops[2 * s.txns[txn].op + 1] - 'a');
  }
  bool IsThrough(size_t txn) const { return 2 * s.txns[txn].op == scenario_.programs[txn].ops.size(); }
  bool CanStep(size_t txn) const;
  bool CanRelease(size_t m, size_t page) const;
  void Step(size_t txn);
  bool HasPage(size_t txn, size_t page, uint8_t need);
  bool HasAppliedDead(size_t m) const;
  size_t PageFor(size_t m, size_t row) const;
  size_t WantedPage(size_t txn) const;
  bool HasRow(size_t txn, size_t row, uint8_t need, size_t& page);
  void Access(size_t txn, size_t page, uint8_t need);
  void Split(size_t txn);
  void Undo(size_t txn);
  void StartUndo(size_t txn);
  void End(size_t txn, uint8_t kind);
  uint8_t BlockersOf(size_t m, size_t page, size_t row, size_t txn, uint8_t need) const;
  bool IsInCycle(size_t txn) const;

  // Deaths
  bool CanCrash(size_t m) const;
  void Crash(size_t m);
  void Recover(size_t m);
  uint8_t LosersOf(size_t m);
  void TellSurvivors(size_t m);
  void ReplayLog(size_t m, uint8_t losers);
  void ReplaySplit();
  void FreePages(size_t m);
  void TakeOver(size_t txn, size_t survivor);

  // Restarts of the GLM
  bool CanRestart() const;
  bool CanReport(size_t m) const;
  void Restart();
  void Report(size_t m);
  void ReportRowLocks(size_t m);
  void PlaceRowLocks();
  void EndCollecting();

  // Versioned reads, verdict
  void StartRead(size_t m);
  void ReadPage();
  bool FindRow(size_t m, size_t row, PageCopy& copy);
  void ReadRow(const PageCopy& copy, size_t row);
  bool FindCopy(size_t m, size_t page, PageCopy& copy);
  bool IsValid(size_t m, size_t page, Lsn lsn) const;
  bool EndedAt(uint8_t writer, const uint8_t (&tv)[kMasters]) const;
  void CheckRead(size_t row, uint8_t value);
  uint8_t LeastTv(size_t k) const;
  bool CanPrune(const uint8_t (&after)[kMasters]) const;
  void Prune(uint8_t (&after)[kMasters]) const;
  bool Sees(Lsn lsn, const uint8_t (&tv)[kMasters]) const { return lsn.master == kNone || lsn.time <= tv[lsn.master]; }
  bool IsNoSnapshot(const uint8_t (&out)[kRows]) const;
  uint8_t Committed() const;
  Order OrderOf(size_t row, uint8_t committed, bool every) const;
  void JudgeRows(uint8_t committed);
  void JudgeOrder(uint8_t committed);

  State& s;
  const Scenario& scenario_;
  const Fault fault_;
};

// For crash_search.h.
class Model {
 public:
  using State = multi_master::State;
  static constexpr uint8_t kMoves = 2 * kMasters * kMessagesMax + 2 * kTxns + 7 * kMasters + kMasters * kMasters +
                                    5 * kMasters * kPages + kPages + 2 + kMasters;

  Model(Scenario scenario, Fault fault);

  State Initial() const;
  bool Take(State& state, uint8_t move, std::string* text) const;
  std::string Judge(const State& state) const;
  bool IsEnd(const State&) const { return true; }  // Judge does
  static uint64_t FingerprintOf(const State& state);
  const std::vector<Move>& moves() const { return moves_; }

 private:
  const Scenario scenario_;
  const Fault fault_;
  const std::vector<Move> moves_;
};

// Steps that may be left out for ever do not keep a run from its end.
inline bool IsOptional(Move::Kind kind) {
  return kind == Move::kRead || kind == Move::kCrash || kind == Move::kEvict || kind == Move::kStrict ||
         kind == Move::kDiscard || kind == Move::kPrune || kind == Move::kPruneGlobal || kind == Move::kCut ||
         kind == Move::kRestart;
}
std::string TextOf(const State& state);

}  // namespace dbx::models::multi_master
