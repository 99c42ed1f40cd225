// How vectors of readers and writers meet (concurrency_control/silo.h, logging/taurus/taurus_log.h, in the order of
// system/transaction/transaction.h) as a model: command logging, where a writer must learn of the readers of
// the version that it overwrites.
//
// Each transaction reads one row, writes one row, or both, and writes to a log of its own or to one that it shares;
// what keeps it from being read-only but is of no interest here (its own private row) is left out. When all have
// ended: a transaction that comes later on a row covers the LSN of one that came before, and no two cover each other.
#include <gtest/gtest.h>

#include "tests/models/expectations.h"
#include "tests/models/explorer.h"

namespace dbx::models {
namespace {

enum class OccFault {
  kNone,
  kPlainCopy,  // readLV is stored, not raised (trap 35)
  kNoFence,    // it is raised by a load and a store (trap 14)
  kRaiseAfterRecheck,
  kRaiseBeforeLsn,  // readLV is raised before the own LSN exists (trap 13, Alg. 6 as printed)
  kReadLvIgnored,   // a writer does not merge readLV (trap 13)
  kReserveFirst,    // a writer reserves before it has merged what it depends on (trap 36)
  kUnlockFirst,     // the row is released before its writeLV is published
};

constexpr uint8_t kNoRow = 255;
constexpr size_t kLogs = 2;
// Cells: of each row its control word (2 * version + locked) and both vectors; of each log reserved_until.
constexpr size_t kControl = 0, kWriteLv = 2, kReadLv = kWriteLv + 2 * kLogs, kReservedUntil = kReadLv + 2 * kLogs;

struct OccTxn {
  uint8_t reads, writes, log;
};

template <size_t kTxns>
struct OccModel {
  static constexpr size_t kCells = kReservedUntil + kLogs;
  static constexpr size_t kBufferedMax = 4;
  static constexpr size_t kThreads = kTxns;
  enum Outcome : uint8_t { kRunning, kCommitted, kAborted };
  struct Locals {
    uint8_t pc, seen, j, lv[kLogs], record_lv[kLogs], end, read_version, write_seen, expected, outcome;
  };
  OccFault fault;
  OccTxn txns[kTxns];

  void Initial(Machine<OccModel>&) const {}
  bool IsEnd(const Machine<OccModel>& machine) const {
    for (const Locals& locals : machine.locals) {
      if (locals.outcome == kRunning) return false;
    }
    return machine.BuffersAreEmpty();
  }
  static std::string CellName(size_t cell) {
    const auto element = [&](const char* name, size_t base) {
      return std::string(name) + "(" + "xy"[(cell - base) / kLogs] + ")[" + std::to_string((cell - base) % kLogs) + "]";
    };
    if (cell < kWriteLv) return std::string("control(") + "xy"[cell] + ")";
    if (cell < kReadLv) return element("writeLV", kWriteLv);
    if (cell < kReservedUntil) return element("readLV", kReadLv);
    return "log " + std::to_string(cell - kReservedUntil) + "'s reserved_until";
  }
  static std::string ThreadName(size_t thread) { return "T" + std::to_string(thread + 1); }

  enum Pc : uint8_t {
    kReadVersion,
    kOnRead,
    kStillVersion,
    kReadWritten,
    kLock,
    kOnWriteW,
    kOnWriteR,
    kReserve,
    kRaise,
    kRaiseSwap,
    kRecheck,
    kPublish,
    kRelease,
    kAbort,
    kOver
  };

  void Step(Core<OccModel>& core) const {
    Locals& my = core.locals();
    const OccTxn& txn = txns[core.thread()];
    if (my.outcome != kRunning) return core.Block();
    if (my.pc <= kReadWritten) return StepAccess(core, txn);
    if (my.pc <= kReserve) return StepOrder(core, txn);
    StepCommit(core, txn);
    if (my.outcome == kCommitted) Judge(core);
  }

  // Silo::Read, with OnRead; OwnOrNewWrite's version.
  void StepAccess(Core<OccModel>& core, const OccTxn& txn) const {
    Locals& my = core.locals();
    switch (my.pc) {
      case kReadVersion:
        if (txn.reads == kNoRow) return void(my.pc = kReadWritten);
        my.seen = core.Load(kControl + txn.reads);
        if (my.seen % 2 == 0) my.pc = kOnRead;
        return;
      case kOnRead:
        RaiseOwn(core, kWriteLv + txn.reads * kLogs, kStillVersion);
        return;
      case kStillVersion:
        my.read_version = my.seen / 2;
        my.pc = core.Load(kControl + txn.reads) == my.seen ? kReadWritten : kReadVersion;
        return;
      default:
        my.pc = fault == OccFault::kReserveFirst ? kReserve : kLock;
        if (txn.writes == kNoRow) return void(my.pc = kReserve);
        my.write_seen = core.Load(kControl + txn.writes);
        if (my.write_seen % 2 != 0) my.pc = kReadWritten;
    }
  }
  // lv::Raise, element by element.
  void RaiseOwn(Core<OccModel>& core, size_t shared, uint8_t then) const {
    Locals& my = core.locals();
    const uint8_t value = core.Load(shared + my.j);
    if (value > my.lv[my.j]) my.lv[my.j] = my.record_lv[my.j] = value;
    if (++my.j == kLogs) my.j = 0, my.pc = then;
  }

  // LockWrites with OnWrite, then TaurusLog::Reserve.
  void StepOrder(Core<OccModel>& core, const OccTxn& txn) const {
    Locals& my = core.locals();
    const bool reserved = my.end != 0;
    switch (my.pc) {
      case kLock: {  // LockUnchanged
        uint8_t now = my.write_seen;
        if (core.CompareExchange(kControl + txn.writes, now, static_cast<uint8_t>(my.write_seen + 1))) {
          my.pc = kOnWriteW;
        } else {
          my.outcome = now == my.write_seen ? kRunning : kAborted;  // LockWrites gives up
        }
        return;
      }
      case kOnWriteW:
        return RaiseOwn(core, kWriteLv + txn.writes * kLogs, fault == OccFault::kReadLvIgnored ? kReserve : kOnWriteR);
      case kOnWriteR:
        return RaiseOwn(core, kReadLv + txn.writes * kLogs, reserved ? kRaise : kReserve);
      default:
        if (fault == OccFault::kRaiseBeforeLsn && my.expected == 0 && txn.reads != kNoRow) {
          my.expected = 1;  // once
          my.pc = kRaise;
          return;
        }
        my.end = static_cast<uint8_t>(core.FetchAdd(kReservedUntil + txn.log, 1) + 1);
        my.lv[txn.log] = my.end;
        my.expected = 0;
        my.pc = AfterReserve();
        if (fault == OccFault::kReserveFirst && txn.writes != kNoRow) my.pc = kLock;
    }
  }
  uint8_t AfterReserve() const {
    return fault == OccFault::kRaiseAfterRecheck || fault == OccFault::kRaiseBeforeLsn ? kRecheck : kRaise;
  }

  // PublishReads, Recheck, PublishWrite, Release.
  void StepCommit(Core<OccModel>& core, const OccTxn& txn) const {
    Locals& my = core.locals();
    switch (my.pc) {
      case kRaise:  // lv::RaiseShared
        if (txn.reads == kNoRow) return void(my.pc = AfterRaise(txn));
        my.expected = core.Load(kReadLv + txn.reads * kLogs + my.j);
        if (my.expected < my.lv[my.j]) return void(my.pc = kRaiseSwap);
        return NextElement(my, txn);
      case kRaiseSwap: {
        const auto cell = kReadLv + txn.reads * kLogs + my.j;
        if (fault == OccFault::kNoFence) {
          core.Store(cell, my.lv[my.j], Order::kRelease);
        } else if (fault == OccFault::kPlainCopy) {
          core.Store(cell, my.lv[my.j], Order::kSeqCst);
        } else if (!core.CompareExchange(cell, my.expected, my.lv[my.j])) {
          if (my.expected < my.lv[my.j]) return;
        }
        if (core.blocked()) return;
        return NextElement(my, txn);
      }
      case kRecheck: {
        my.pc = kPublish;
        if (txn.reads != kNoRow) {
          const uint8_t now = core.Load(kControl + txn.reads);
          const bool own = txn.reads == txn.writes && now == my.seen + 1;
          if (now != my.seen && !own) return void(my.pc = txn.writes == kNoRow ? kOver : kAbort);
        }
        if (fault == OccFault::kRaiseAfterRecheck) return void(my.pc = kRaise);
        if (txn.writes == kNoRow) my.outcome = kCommitted;
        return;
      }
      default:
        StepRelease(core, txn);
    }
  }
  uint8_t AfterRaise(const OccTxn&) const { return fault == OccFault::kRaiseAfterRecheck ? kPublish : kRecheck; }
  void NextElement(Locals& my, const OccTxn& txn) const {
    my.expected = 0;
    if (++my.j < kLogs) return void(my.pc = kRaise);
    my.j = 0;
    my.pc = AfterRaise(txn);
    if (fault == OccFault::kRaiseBeforeLsn) my.pc = kReserve, my.expected = 1;
  }

  void StepRelease(Core<OccModel>& core, const OccTxn& txn) const {
    Locals& my = core.locals();
    if (my.pc == kOver) return void(my.outcome = kAborted);
    if (txn.writes == kNoRow) return void(my.outcome = kCommitted);
    if (my.pc == kAbort) {
      core.Store(kControl + txn.writes, my.write_seen, Order::kRelease);
      if (!core.blocked()) my.outcome = kAborted;
      return;
    }
    const bool unlocks = my.pc == kRelease || (fault == OccFault::kUnlockFirst && my.j == 0 && my.expected == 0);
    if (unlocks) {
      core.Store(kControl + txn.writes, static_cast<uint8_t>(my.write_seen + 2), Order::kRelease);
      my.expected = 1;
      if (my.pc == kRelease && !core.blocked()) my.outcome = kCommitted;
      return;
    }
    core.Store(kWriteLv + txn.writes * kLogs + my.j, my.lv[my.j], Order::kRelease);
    if (core.blocked() || ++my.j < kLogs) return;
    my.j = 0;
    if (fault == OccFault::kUnlockFirst) return void(my.outcome = kCommitted);
    my.pc = kRelease;
  }

  // --- what must hold between any two that have committed ---
  void Judge(Core<OccModel>& core) const {
    const Locals& mine = core.locals();
    if (mine.record_lv[txns[core.thread()].log] >= mine.end) core.Fail("a transaction depends on its own log's future");
    for (size_t other = 0; other < kTxns; ++other) {
      const Locals& theirs = core.LocalsOf(other);
      if (other == core.thread() || theirs.outcome != kCommitted) continue;
      Compare(core, txns[core.thread()], mine, txns[other], theirs);
      Compare(core, txns[other], theirs, txns[core.thread()], mine);
      if (Covers(mine, txns[other], theirs) && Covers(theirs, txns[core.thread()], mine)) {
        core.Fail("two transactions wait for each other in replay");
      }
    }
  }
  static bool Covers(const Locals& later, const OccTxn& txn, const Locals& earlier) {
    return later.record_lv[txn.log] >= earlier.end;
  }
  static void Compare(Core<OccModel>& core, const OccTxn& a, const Locals& first, const OccTxn& b, const Locals& last) {
    const bool covered = last.lv[a.log] >= first.end;
    const auto version = [](const Locals& writer) { return writer.write_seen / 2 + 1; };
    if (a.writes != kNoRow && a.writes == b.reads && last.read_version >= version(first) && !covered) {
      core.Fail("a reader does not cover the writer");
    }
    if (a.writes != kNoRow && a.writes == b.writes && version(last) > version(first) && !covered) {
      core.Fail("a writer does not cover the writer before it");
    }
    if (a.reads != kNoRow && a.reads == b.writes && version(last) > first.read_version && !covered) {
      core.Fail("a writer does not cover a reader of what it overwrites");
    }
  }
};

constexpr uint8_t kX = 0, kY = 1;

// One or two readers of a row in one log, and its writer in another.
OccModel<2> ReaderAndWriter(OccFault fault) { return {fault, {{kX, kNoRow, 0}, {kNoRow, kX, 1}}}; }
OccModel<3> TwoReadersAndWriter(OccFault fault) { return {fault, {{kX, kNoRow, 0}, {kX, kNoRow, 0}, {kNoRow, kX, 1}}}; }
// Each reads what the other writes.
OccModel<2> Crosswise(OccFault fault) { return {fault, {{kX, kY, 0}, {kY, kX, 1}}}; }
OccModel<2> TwoWriters(OccFault fault) { return {fault, {{kNoRow, kX, 0}, {kNoRow, kX, 1}}}; }
OccModel<2> WritersInOneLog(OccFault fault) { return {fault, {{kNoRow, kX, 0}, {kNoRow, kX, 0}}}; }
OccModel<2> ReadersThatWrite(OccFault fault) { return {fault, {{kX, kX, 0}, {kX, kX, 1}}}; }
OccModel<3> ChainOfThree(OccFault fault) { return {fault, {{kX, kY, 0}, {kY, kX, 1}, {kX, kNoRow, 1}}}; }

constexpr const char* kMissed = "a writer does not cover a reader of what it overwrites";

TEST(OccModel, WhoeverComesLaterCoversWhoeverCameBefore) {
  ExpectNone("reader and writer", ReaderAndWriter(OccFault::kNone));
  ExpectNone("two readers and a writer", TwoReadersAndWriter(OccFault::kNone));
  ExpectNone("two writers", TwoWriters(OccFault::kNone));
  ExpectNone("two writers in one log", WritersInOneLog(OccFault::kNone));
  ExpectNone("two that read and write", ReadersThatWrite(OccFault::kNone));
  ExpectNone("crosswise", Crosswise(OccFault::kNone));
  ExpectNone("crosswise with a reader", ChainOfThree(OccFault::kNone));
}
TEST(OccModel, ARaiseThatIsACopyIsFoundWithTwoReaders) {
  ExpectFound(TwoReadersAndWriter(OccFault::kPlainCopy), kMissed);
  ExpectNone("one reader that copies", ReaderAndWriter(OccFault::kPlainCopy));
}
TEST(OccModel, ARaiseWithoutAFenceIsFound) { ExpectFound(ReaderAndWriter(OccFault::kNoFence), kMissed); }
TEST(OccModel, ARaiseAfterTheRecheckIsFound) { ExpectFound(ReaderAndWriter(OccFault::kRaiseAfterRecheck), kMissed); }
TEST(OccModel, ARaiseBeforeTheOwnLsnIsFound) { ExpectFound(ReaderAndWriter(OccFault::kRaiseBeforeLsn), kMissed); }
TEST(OccModel, AWriterThatIgnoresReadersIsFound) { ExpectFound(ReaderAndWriter(OccFault::kReadLvIgnored), kMissed); }
TEST(OccModel, ADependencyLearntAfterTheReservationIsFound) {
  ExpectFound(ChainOfThree(OccFault::kReserveFirst), "a transaction depends on its own log's future");
}
TEST(OccModel, ARowReleasedBeforeItsVectorIsPublishedIsFound) {
  ExpectFound(TwoWriters(OccFault::kUnlockFirst), "a writer does not cover the writer before it");
}

}  // namespace
}  // namespace dbx::models
