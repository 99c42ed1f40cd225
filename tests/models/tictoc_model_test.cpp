// How timestamps make an order (concurrency_control/tictoc.h and optimistic_accesses.h) as a model: a few transactions
// over two or three rows, delta of two bits, every interleaving. The transactions that commit must have a serial
// order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/models/expectations.h"
#include "tests/models/explorer.h"
#include "tests/models/serial_order.h"

namespace dbx::models {
namespace {

enum class TicTocFault {
  kNone,
  kNotRaised,           // rts is checked and not raised
  kLockedRowsPass,      // a row that another has locked passes
  kOldVersionsPass,     // a version that was replaced passes
  kDeltaOverflows,      // wts stays where it is, and delta runs over
  kWritesAtRts,         // a writer commits at the rts of what it replaces
  kOldRts,              // a writer looks at rts before it has the lock
  kKeptRowsNotRaised,   // a row that was locked and not written goes back as it was
  kInstallAfterUnlock,  // the version is there before its tuple
};

constexpr uint8_t kX = 0, kY = 1, kZ = 2;
constexpr size_t kRows = 3, kAccesses = 2;

struct TicTocAccess {
  enum Kind : uint8_t { kNone, kRead, kWrite, kKeep } kind = kNone;  // kKeep: locked, as an insert of what exists is
  uint8_t row = 0;
};
using TicTocTxn = std::array<TicTocAccess, kAccesses>;  // what is locked, in the order of rows

// A word: locked, two bits of delta, wts.
constexpr uint8_t kLocked = 1, kDeltaMax = 3;
uint8_t Wts(uint8_t word) { return word >> 3; }
uint8_t Rts(uint8_t word) { return static_cast<uint8_t>(Wts(word) + (word >> 1 & kDeltaMax)); }
uint8_t VersionOf(uint8_t word) { return word & ~(kDeltaMax << 1); }
uint8_t WrittenAt(uint8_t timestamp) { return static_cast<uint8_t>(timestamp << 3); }

template <size_t kTxns>
struct TicTocModel {
  static constexpr size_t kCells = 2 * kRows;  // words, then tuples, which count the writes
  static constexpr size_t kBufferedMax = 2;
  static constexpr size_t kThreads = kTxns;
  enum Outcome : uint8_t { kRunning, kCommitted, kAborted };
  struct Locals {
    uint8_t pc, at, now, locked, timestamp, outcome, seen[kAccesses], tuple[kAccesses];
  };
  TicTocFault fault;
  TicTocTxn txns[kTxns];
  std::array<uint8_t, kRows> rts_at_start;

  void Initial(Machine<TicTocModel>& machine) const {
    for (size_t row = 0; row < kRows; ++row) machine.memory[row] = Raised(rts_at_start[row], WrittenAt(0));
  }
  bool IsEnd(const Machine<TicTocModel>& machine) const {
    for (const Locals& locals : machine.locals) {
      if (locals.outcome == kRunning) return false;
    }
    return machine.BuffersAreEmpty();
  }
  static std::string CellName(size_t cell) {
    return std::string(cell < kRows ? "word " : "tuple ") + "xyz"[cell % kRows];
  }
  static std::string ThreadName(size_t thread) { return "T" + std::to_string(thread + 1); }

  enum Pc : uint8_t { kWord, kTuple, kStill, kLock, kLockSwap, kRaise, kRaiseSwap, kInstall, kUnlock, kAbort };

  // TicTocWord::RaisedTo.
  uint8_t Raised(uint8_t timestamp, uint8_t word) const {
    const int delta = timestamp - Wts(word);
    const int shift = fault == TicTocFault::kDeltaOverflows ? 0 : delta & ~kDeltaMax;
    return static_cast<uint8_t>((word & ~(kDeltaMax << 1)) + (shift << 3) + ((delta - shift) << 1));
  }

  void Step(Core<TicTocModel>& core) const {
    Locals& my = core.locals();
    if (my.outcome != kRunning) return core.Block();
    const TicTocTxn& txn = txns[core.thread()];
    while (my.at < kAccesses && !Concerns(my.pc, txn[my.at])) ++my.at;
    if (my.at == kAccesses) return Next(core, txn);
    const TicTocAccess access = txn[my.at];
    if (my.pc <= kStill) return StepAccess(core, access);
    if (my.pc <= kLockSwap) return StepLock(core, access);
    if (my.pc <= kRaiseSwap) return StepRaise(core, access);
    StepEnd(core, access);
  }
  static bool Concerns(uint8_t pc, TicTocAccess access) {
    if (access.kind == TicTocAccess::kNone) return false;
    if (pc <= kStill) return true;
    if (pc == kRaise || pc == kRaiseSwap) return access.kind == TicTocAccess::kRead;
    if (pc == kInstall) return access.kind == TicTocAccess::kWrite;
    return access.kind != TicTocAccess::kRead;
  }

  // Through with all accesses: on to the next stage.
  void Next(Core<TicTocModel>& core, const TicTocTxn& txn) const {
    Locals& my = core.locals();
    my.at = my.now = 0;
    switch (my.pc) {
      case kWord:
        my.pc = kLock;
        return;
      case kLock:
        my.pc = kRaise;
        return ChooseTimestamp(my, txn);
      case kRaise:
        my.pc = fault == TicTocFault::kInstallAfterUnlock ? kUnlock : kInstall;
        return KeepRows(my, txn);
      case kInstall:
        if (fault == TicTocFault::kInstallAfterUnlock) return End(core, kCommitted);
        my.pc = kUnlock;
        return;
      case kUnlock:
        if (fault != TicTocFault::kInstallAfterUnlock) return End(core, kCommitted);
        my.pc = kInstall;
        return;
      default:
        End(core, kAborted);
    }
  }
  void End(Core<TicTocModel>& core, Outcome outcome) const {
    core.locals().outcome = outcome;
    if (outcome == kCommitted) Judge(core);
  }

  // Read and OwnOrNewWrite.
  static void StepAccess(Core<TicTocModel>& core, TicTocAccess access) {
    Locals& my = core.locals();
    uint8_t& seen = my.seen[my.at];
    switch (my.pc) {
      case kWord:
        seen = core.Load(access.row);
        if ((seen & kLocked) == 0) my.pc = kTuple;
        return;
      case kTuple:
        my.tuple[my.at] = core.Load(kRows + access.row);
        my.pc = kStill;
        return;
      default:
        my.pc = kWord;
        if (VersionOf(core.Load(access.row)) == VersionOf(seen)) ++my.at;
    }
  }

  // LockUnchanged.
  void StepLock(Core<TicTocModel>& core, TicTocAccess access) const {
    Locals& my = core.locals();
    uint8_t& seen = my.seen[my.at];
    if (my.pc == kLock) {
      my.now = core.Load(access.row);
      if ((my.now & kLocked) != 0) return;
      my.pc = kLockSwap;
      if (VersionOf(my.now) != VersionOf(seen)) GiveUp(my);
      return;
    }
    my.pc = kLock;
    if (!core.CompareExchange(access.row, my.now, my.now | kLocked)) return;
    my.locked |= static_cast<uint8_t>(1 << my.at);
    if (fault != TicTocFault::kOldRts) seen = my.now;
    my.now = 0;
    ++my.at;
  }
  static void GiveUp(Locals& my) { my.pc = kAbort, my.at = my.now = 0; }

  // LeastTimestamp.
  void ChooseTimestamp(Locals& my, const TicTocTxn& txn) const {
    for (size_t i = 0; i < kAccesses; ++i) {
      if (txn[i].kind == TicTocAccess::kNone) continue;
      int least = Wts(my.seen[i]);
      if (txn[i].kind == TicTocAccess::kWrite) {
        least = fault == TicTocFault::kWritesAtRts ? std::max<int>(Rts(my.seen[i]), least + 1) : Rts(my.seen[i]) + 1;
      }
      my.timestamp = static_cast<uint8_t>(std::max<int>(my.timestamp, least));
    }
  }
  void KeepRows(Locals& my, const TicTocTxn& txn) const {
    if (fault == TicTocFault::kKeptRowsNotRaised) return;
    for (size_t i = 0; i < kAccesses; ++i) {
      if (txn[i].kind == TicTocAccess::kKeep && Rts(my.seen[i]) < my.timestamp) {
        my.seen[i] = Raised(my.timestamp, my.seen[i]);
      }
    }
  }

  // RaiseRts.
  void StepRaise(Core<TicTocModel>& core, TicTocAccess access) const {
    Locals& my = core.locals();
    if (Rts(my.seen[my.at]) >= my.timestamp) return void(++my.at);
    if (my.pc == kRaise) {
      my.now = core.Load(access.row);
      if (Wts(my.now) != Wts(my.seen[my.at]) && fault != TicTocFault::kOldVersionsPass) return GiveUp(my);
      if (Rts(my.now) >= my.timestamp) return void(++my.at);
      if ((my.now & kLocked) != 0) return fault == TicTocFault::kLockedRowsPass ? void(++my.at) : GiveUp(my);
      my.pc = kRaiseSwap;
      return;
    }
    my.pc = kRaise;
    if (fault == TicTocFault::kNotRaised || core.CompareExchange(access.row, my.now, Raised(my.timestamp, my.now))) {
      ++my.at;
    }
  }

  // Install, Release, Abort.
  void StepEnd(Core<TicTocModel>& core, TicTocAccess access) const {
    Locals& my = core.locals();
    const size_t i = my.at;
    const bool wrote = access.kind == TicTocAccess::kWrite;
    if (my.pc == kInstall) {
      core.Store(kRows + access.row, static_cast<uint8_t>(my.tuple[i] + 1), Order::kRelease);
    } else if ((my.locked >> i & 1) != 0) {
      const bool installs = wrote && my.pc == kUnlock;
      core.Store(access.row, installs ? WrittenAt(my.timestamp) : my.seen[i], Order::kRelease);
    }
    if (!core.blocked()) ++my.at;
  }

  // --- what must hold among all that have committed: no circle ---
  void Judge(Core<TicTocModel>& core) const { JudgeSerialOrder(core, txns); }
};

constexpr TicTocAccess R(uint8_t row) { return {TicTocAccess::kRead, row}; }
constexpr TicTocAccess W(uint8_t row) { return {TicTocAccess::kWrite, row}; }
constexpr TicTocAccess K(uint8_t row) { return {TicTocAccess::kKeep, row}; }

// Each reads what the other writes. With an rts to start from, one of them may commit below the other.
TicTocModel<2> Skew(TicTocFault fault, uint8_t rts_of_y = 0) {
  return {fault, {{R(kX), W(kY)}, {R(kY), W(kX)}}, {0, rts_of_y, 0}};
}
TicTocModel<2> SkewOverKeptRow(TicTocFault fault) { return {fault, {{K(kX), W(kY)}, {R(kY), W(kX)}}, {0, 2, 0}}; }
TicTocModel<2> TwoWriters(TicTocFault fault) { return {fault, {{W(kX)}, {W(kX)}}, {}}; }
TicTocModel<3> Circle(TicTocFault fault) {
  return {fault, {{R(kX), W(kY)}, {R(kY), W(kZ)}, {R(kZ), W(kX)}}, {1, 0, 2}};
}
TicTocModel<3> ReaderOfTwo(TicTocFault fault) { return {fault, {{R(kX), R(kY)}, {R(kX), W(kY)}, {W(kX)}}, {0, 2, 0}}; }
TicTocModel<2> ReaderOfPair(TicTocFault fault) { return {fault, {{R(kX), R(kY)}, {W(kX), W(kY)}}, {2, 0, 0}}; }
// Two readers see two writers in an order each.
TicTocModel<4> Fork(TicTocFault fault) {
  return {fault, {{R(kX), R(kY)}, {R(kY), R(kX)}, {W(kX)}, {W(kY)}}, {0, 1, 0}};
}

TEST(TicTocModel, WhatCommitsHasASerialOrder) {
  for (const uint8_t rts : {0, 1, 2, 3, 4, 5, 9}) ExpectNone("skew", Skew(TicTocFault::kNone, rts));
  ExpectNone("skew over a row that is kept", SkewOverKeptRow(TicTocFault::kNone));
  ExpectNone("two writers", TwoWriters(TicTocFault::kNone));
  ExpectNone("a circle", Circle(TicTocFault::kNone));
  ExpectNone("a reader of two rows", ReaderOfTwo(TicTocFault::kNone));
  ExpectNone("a reader of a pair", ReaderOfPair(TicTocFault::kNone));
}
TEST(TicTocModel, TwoReadersSeeTwoWritersInOneOrder) { ExpectNone("a fork", Fork(TicTocFault::kNone)); }
TEST(TicTocModel, AnRtsThatIsNotRaisedIsFound) { ExpectNoSerialOrder(Skew(TicTocFault::kNotRaised, 4)); }
TEST(TicTocModel, ALockedRowThatPassesIsFound) { ExpectNoSerialOrder(Skew(TicTocFault::kLockedRowsPass)); }
TEST(TicTocModel, AnOldVersionThatPassesIsFound) { ExpectNoSerialOrder(Skew(TicTocFault::kOldVersionsPass)); }
TEST(TicTocModel, ADeltaThatOverflowsIsFound) { ExpectNoSerialOrder(Skew(TicTocFault::kDeltaOverflows, 3)); }
TEST(TicTocModel, AWriterAtTheRtsOfWhatItReplacesIsFound) { ExpectNoSerialOrder(Skew(TicTocFault::kWritesAtRts, 1)); }
TEST(TicTocModel, AnRtsThatWasSeenBeforeTheLockIsFound) { ExpectNoSerialOrder(Skew(TicTocFault::kOldRts, 2)); }
TEST(TicTocModel, AKeptRowThatIsNotRaisedIsFound) {
  ExpectNoSerialOrder(SkewOverKeptRow(TicTocFault::kKeptRowsNotRaised));
}
TEST(TicTocModel, AVersionBeforeItsTupleIsFound) {
  ExpectNoSerialOrder(ReaderOfPair(TicTocFault::kInstallAfterUnlock));
}

}  // namespace
}  // namespace dbx::models
