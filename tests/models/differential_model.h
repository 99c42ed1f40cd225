// Differential logging (Lee, Kim, Cha, ICDE 2001) as a model. Up to three transactions under strict two-phase locking
// change pages of one slot and log the XOR of before and after image, each attempt of a transaction in one of two logs;
// a fuzzy checkpointer copies the pages to one of two backups at a time. In every state a crash may leave any prefix of
// each log, from what was flushed up to the first place that is not filled. A restart from it (differential_restart.h)
// must give what a serial execution of the recovered transactions gives, in the order of their COMMITs
// (differential_verdict.h). Changes do not commute: a page's new value is a hash of the old one, the transaction and
// the operation. A restart reads the backup that the anchor names, so the state of the other one does not matter.
//
// Steps are in differential_txn.cpp, differential_printed_txn.cpp and differential_checkpoint.cpp, the search is
// crash_search.h.
//
// Symbols: BEGIN(g), END(g): the records at the start and the end of checkpoint g; x and y: the pages; CTT, ATT: the
// tables of committed transactions, and of those to be undone; LV: LSN vector, here the number of records of each log
// that must be there; ELV: the number that is there after the crash.
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

namespace dbx::models::differential {

inline constexpr size_t kPages = 2, kTxns = 3, kLogs = 2, kCopies = 2, kRecordsMax = 24, kChangesMax = 2;
inline constexpr uint8_t kNone = 255;
inline constexpr int8_t kFar = 127;  // beyond every position in a log

// ---- Rules: the defaults are those of this testbed, a test changes one of them ----

// The stages of a checkpoint. What a log is needed from is the lesser of what kReserved and kActive read.
enum class Stage : uint8_t {
  kReserved,  // reads how far the logs are reserved
  kActive,    // reads where active transactions have their first records
  kFlagOn,    // from here on aborts log compensations
  kBegin,     // BEGIN into each log
  kNumber,    // the current number becomes the checkpoint's; part of kFlagOn where this stage is left out
  kCount,     // pages are counted; part of kNumber where this stage is left out
  kFilled,    // waits until all places below BEGIN are filled
  kPages,     // toggles each page, and copies it if it is dirty
  kFlagOff,
  kList,      // lists the active transactions
  kEnd,       // END into each log
  kFlush,     // END is durable in each log
  kAnchor,    // the anchor names the new backup
  kPunch,     // the logs are given up below what is needed
  kTakeBack,  // a checkpoint that failed goes on here, once the flag is reset: all pages are toggled and dirty
};
using Stages = std::vector<Stage>;
Stages OurStages();  // all but kCount
Stages Without(Stage left_out, Stages stages = OurStages());
Stages Moved(Stage stage, Stage behind, Stages stages = OurStages());

enum class Append : uint8_t {
  kPlaceFirst,   // a place in the log is reserved before the page's latch is taken, and filled after its release
  kUnderMutex,   // the record is appended before the mutex is released
  kBehindMutex,  // the record is appended after that (Algorithm 1, step 6)
};
enum class Undo : uint8_t {
  kByFlag,         // no checkpoint: ABORT gets its place before the undo, which is not logged; else compensations
  kNoSecondLook,   // the flag is read once; ABORT is appended after the undo
  kNotLogged,      // as kByFlag does without a checkpoint, whether there is one or not
  kCompensated,    // always compensations
  kAsPrinted,      // no records, ABORT appended after the undo (section 3.4); goes with kUnderMutex and kBehindMutex
  kPrintedByFlag,  // as printed, but with compensations while the flag is set
};
// When a transaction reads the current number, which completes the one bit of a number that a page has in memory.
enum class NumberRead : uint8_t { kUnderLatch, kAfterPlace, kBeforePlace };

enum class Restart : uint8_t {
  kOnePass,   // DL1P, backward
  kPrinted,   // Algorithm 3
  kTwoPass,   // DL2P: forward, then backward
  kPhysical,  // PL2P: before and after images, logs merged by a stamp
};

struct Rules {
  Stages stages = OurStages();
  Append append = Append::kPlaceFirst;
  Undo undo = Undo::kByFlag;
  Restart restart = Restart::kOnePass;
  bool mutex_always = true;  // false: only if the checkpoint flag was seen set (Algorithm 1, step 2)
  bool numbers = true;       // BackupID is the checkpoint's number; false: one bit, compared with the backup page's
  NumberRead number_read = NumberRead::kUnderLatch;
  bool dirties_both = true;      // false: a change sets the dirty bit of the next copy alone
  bool all_ends_durable = true;  // false: the anchor is written when END is durable in log 0
  bool has_lv = true;            // COMMIT carries an LV, and counts if ELV covers it
  bool reuse_waits = true;       // a slot is used anew when its deleter is durable; false: at once
  // A checkpoint that fails
  bool spares_anchor_copy = true;  // false: checkpoint g goes to copy g mod 2
  bool dirties_all = true;         // false: its pages are not made dirty again
  bool toggles_all = true;         // false: the pages that it has not reached stay as they are
  bool stops_after_anchor = true;  // false: another one follows after an anchor that is said not to have been written
  bool needed_ascends = true;      // false: an anchor may need more of a log than the one before
  // Restart
  bool commit_wins = true;        // false: a COMMIT between BEGIN and END leaves its transaction in ATT
  bool abort_leaves_att = true;   // false: an ABORT below BEGIN leaves its transaction in ATT
  bool reads_below_begin = true;  // false: the scan ends at BEGIN, even if ATT is not empty
  bool first_clears = true;       // an attempt's first record takes its transaction out of both tables
  bool abort_leaves_ctt = true;   // an ABORT takes its transaction out of CTT
  bool abort_ends = true;         // DL2P: as a COMMIT does; false: the transaction is a loser
  bool losers_whole = true;       // DL2P: all changes of losers are undone; false: those in the backup alone
  bool undo_first = true;         // PL2P; false: redo first
  bool abort_has_lv = true;       // PL2P: ABORT counts if ELV covers its LV; false: always
  bool attempts_apart = true;     // PL2P; false: changes stay pending behind an ABORT that does not count
  // Damage: a restart checks what the writers promise (differential_verdict.h), and must not refuse what they write.
  bool checks = true;
  bool knows_cut_attempts = true;  // false: attempts that began where the log has been given up count as damage
};

// A transaction is a string of operations: x and y change a page, n does so with y, which it adds if need be, r uses
// the slot of x anew, of which nothing is read; C commits; A aborts, and what follows is another attempt under the same
// id.
struct Scenario {
  enum class Fails : uint8_t {
    kNothing,
    kSpace,   // no space for a page, for the sync of the backup, or for the anchor
    kAnchor,  // the anchor was written, and the checkpointer is told that it was not
  };
  std::array<std::string_view, kTxns> txns;
  std::array<uint8_t, kTxns> log_of = {};  // of the first attempt
  uint8_t logs = 1;
  uint8_t checkpoints = 1;
  Fails fails = Fails::kNothing;   // at most once, at any time
  uint8_t pages = kPages;          // at first
  bool retries_elsewhere = false;  // each further attempt has its records in the next log
  bool truncates = false;          // logs are punched below what is needed
  bool looks_early = false;        // a transaction reads the position that it publishes in a step of its own
  bool flushes = false;            // logs become durable without a checkpoint, too

  std::string Name() const;
  // The log of the attempt that operation `op` belongs to.
  size_t LogOf(size_t txn, size_t op) const;
  // For descriptions of steps: nothing if there is one log.
  std::string LogName(const char* preposition, size_t log) const;
  uint16_t FirstValue(size_t page) const;
};

// ---- States ----

struct Record {
  enum Kind : uint8_t { kNothing, kChange, kCommit, kAbort, kVoid, kBegin, kEnd };
  static constexpr uint8_t kFilled = 1, kFirst = 2, kCompensation = 4;  // flags
  uint16_t delta = 0, before = 0;  // before: used by physical logging alone, whose after image is before ^ delta
  uint8_t kind = kNothing, txn = 0, page = 0, list = 0, flags = 0;  // list: active transactions, a bit each
  int8_t number = 0;                                                // BackupID, or the checkpoint's number
  uint8_t lv[kLogs] = {};
  uint8_t stamp = 0;  // of COMMITs, and of ABORTs of physical logging: their order
  uint8_t unused = 0;

  bool filled() const { return (flags & kFilled) != 0; }
};

struct Page {
  uint16_t value;
  int8_t number;               // BackupID
  uint8_t dirty, latch, lock;  // dirty: a bit per copy; latch and lock: 0, or the holder + 1
  uint8_t lv[kLogs];           // of the last transaction that committed a change
};
struct BackupPage {
  uint16_t value;
  int8_t number;
  uint8_t unused;
};

struct Txn {
  enum Pc : uint8_t {
    kOperation,
    kApply,
    kFill,
    kCommit,
    kFillCommit,
    kSecondLook,
    kQuietUndo,
    kCompensate,
    kApplyUndo,
    kFillUndo,
    kAppendAbort,
    kInactive,
    kFlag,
    kMutex,
    kCopyId,
    kUpdate,
    kUnlock,
    kAppend,
    kUndoFlag,
    kUndoMutex,
    kUndo
  };
  // seen: what was read of the checkpoint flag, or that the global number was read, or the position to publish
  uint8_t pc, op, changes, place, mutex, seen, active, first, stamp;
  int8_t number;
  uint8_t lv[kLogs];
  uint16_t deltas[kChangesMax];  // of the changes that an abort has to take back
};

struct Anchor {
  uint8_t copy;
  int8_t number, begin[kLogs], end[kLogs], needed[kLogs];
};

struct Checkpointer {
  enum PageStep : uint8_t { kMutex, kToggle, kCopy };
  // at: the page or the log of the stage; named: the copy that the anchor names; list: active transactions, by log
  uint8_t stage, at, page_step, flag, copy, named, failed, failures, pages, list[kLogs];
  // number: the current one; own: of the checkpoint that is under way, else 0
  int8_t number, own, begin[kLogs], end[kLogs], needed[kLogs];
};

struct State {
  Page pages[kPages];
  Txn txns[kTxns];
  BackupPage backups[kCopies][kPages];
  Anchor anchor;
  Checkpointer checkpointer;
  uint8_t counts[kLogs], durable[kLogs], punched[kLogs], stamps, pages_there, unused;
  Record records[kRecordsMax];  // of log 0 from the front, of log 1 from the back

  const Record& At(size_t log, size_t at) const { return records[log == 0 ? at : kRecordsMax - 1 - at]; }
  Record& At(size_t log, size_t at) { return records[log == 0 ? at : kRecordsMax - 1 - at]; }
  // Returns the record's place.
  uint8_t Append(size_t log, const Record& record);
  // The number of records of the log below its first place that is not filled.
  uint8_t ReadyUntil(size_t log) const;
};

inline char PageName(size_t page) { return "xy"[page]; }
inline uint8_t PageOf(char operation) { return operation == 'y' || operation == 'n' ? 1 : 0; }
inline uint8_t BitOf(size_t txn) { return static_cast<uint8_t>(1 << txn); }
// What the operation of this number of the transaction makes of a page.
uint16_t NewValue(uint16_t value, size_t txn, size_t op);
// The operation with which the attempt begins that ends with operation `end`.
size_t FirstOf(std::string_view txn, size_t end);

// ---- The model ----

// One step of a transaction, or of the checkpointer, which may fail; as Model::Take.
bool TakeTxnStep(const Rules& rules, const Scenario& scenario, State& state, size_t txn, std::string* text);
bool TakeCheckpointStep(const Rules& rules, const Scenario& scenario, State& state, bool fails, std::string* text);

template <class... Args>
void Tell(std::string* text, fmt::format_string<Args...> format, Args&&... args) {
  if (text != nullptr) *text = fmt::format(format, std::forward<Args>(args)...);
}

class Model {
 public:
  using State = differential::State;
  // A step of each transaction and of the checkpointer, the failure of the latter, a flush of each log.
  static constexpr uint8_t kCheckpointMove = kTxns, kFailureMove = kTxns + 1, kFlushMove = kTxns + 2;
  static constexpr uint8_t kMoves = kFlushMove + kLogs;

  Model(Rules rules, Scenario scenario);

  State Initial() const;
  bool Take(State& state, uint8_t move, std::string* text) const;
  std::string Judge(const State& state);
  bool IsEnd(const State& state) const;
  static uint64_t FingerprintOf(const State& state);

  const Rules& rules() const { return rules_; }
  const Scenario& scenario() const { return scenario_; }
  size_t images() const { return images_.size(); }         // that crashes have left and that were restarted from
  int8_t newest_backup() const { return newest_backup_; }  // the highest number that a restart has read

 private:
  bool Flush(State& state, size_t log, std::string* text) const;

  Rules rules_;
  Scenario scenario_;
  Fingerprints disks_;   // the disks of states that have been judged
  Fingerprints images_;  // what crashes left of them
  int8_t newest_backup_ = 0;
};

}  // namespace dbx::models::differential
