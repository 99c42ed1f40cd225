// How a reader finds out what belongs to its snapshot (concurrency_control/hekaton.h and snapshot_clock.h) as models:
// a few transactions over two rows, and a version that is freed under a reader; every interleaving.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/expectations.h"
#include "tests/models/explorer.h"
#include "tests/models/serial_order.h"

namespace dbx::models {
namespace {

enum class SnapshotFault {
  kNone,
  kNotAnnounced,      // a writer draws its end timestamp before it says that it does
  kDrawingIsLater,    // a writer that is drawing is taken to end later
  kDrawBeforeLocks,   // a writer draws before it has its locks
  kDrawAfterRecheck,  // a writer draws after it has looked at what it read
  kNotMarked,         // a tuple is overwritten and the word does not say so
  kSlotBeforeRows,    // a writer takes its end timestamp back before it unlocks
  kLockedReadsPass,   // a row that was read and is locked by another passes the re-check
  kOldReadsPass,      // a version that was replaced passes the re-check
  kUnlockFirst,       // the version is there before its tuple
};

constexpr uint8_t kX = 0, kY = 1;
constexpr size_t kRows = 2, kAccesses = 2, kVersions = 4;
constexpr uint8_t kDrawing = 0, kNever = 255;

struct SnapshotAccess {
  enum Kind : uint8_t { kNone, kRead, kWrite } kind = kNone;
  uint8_t row = 0;
};
using SnapshotTxn = std::array<SnapshotAccess, kAccesses>;  // what is locked, in the order of rows

// A word: locked, installing, two bits of holder, begin.
constexpr uint8_t kLocked = 1, kInstalling = 2;
uint8_t BeginOf(uint8_t word) { return word >> 4; }
uint8_t HolderOf(uint8_t word) { return word >> 2 & 3; }
uint8_t ContentOf(uint8_t word) { return word & ~(kLocked | 3 << 2); }
uint8_t LockedBy(size_t thread) { return static_cast<uint8_t>(kLocked | thread << 2); }

template <size_t kTxns>
struct SnapshotModel {
  // Words; tuples, which count the writes; the counter; end timestamps; and where each version of a row begins, which
  // only the chain tells.
  static constexpr size_t kTuples = kRows, kLast = 2 * kRows, kEnds = kLast + 1, kBegins = kEnds + kTxns;
  static constexpr size_t kCells = kBegins + kRows * kVersions;
  static constexpr size_t kBufferedMax = 2;
  static constexpr size_t kThreads = kTxns;
  enum Outcome : uint8_t { kRunning, kCommitted, kAborted };
  struct Locals {
    uint8_t pc, at, begin, end, now, locked, outcome, seen[kAccesses], tuple[kAccesses];
  };
  SnapshotFault fault;
  SnapshotTxn txns[kTxns];

  void Initial(Machine<SnapshotModel>& machine) const {
    for (size_t thread = 0; thread < kTxns; ++thread) machine.memory[kEnds + thread] = kNever;
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t v = 1; v < kVersions; ++v) machine.memory[kBegins + row * kVersions + v] = kNever;
    }
  }
  bool IsEnd(const Machine<SnapshotModel>& machine) const {
    for (const Locals& locals : machine.locals) {
      if (locals.outcome == kRunning) return false;
    }
    return machine.BuffersAreEmpty();
  }
  static std::string CellName(size_t cell) {
    if (cell < kTuples) return std::string("word ") + "xy"[cell];
    if (cell < kLast) return std::string("tuple ") + "xy"[cell - kTuples];
    return cell == kLast ? "the counter" : "end of T" + std::to_string(cell - kEnds + 1);
  }
  static std::string ThreadName(size_t thread) { return "T" + std::to_string(thread + 1); }

  enum Pc : uint8_t {
    kBegin,
    kWord,
    kSlot,
    kTuple,
    kStill,
    kLock,
    kLockSwap,
    kAnnounce,
    kDraw,
    kPublish,
    kRecheck,
    kMark,
    kInstall,
    kUnlock,
    kRetract,
    kAbort,
    kAbortRetract
  };

  bool Writes(size_t thread) const {
    return txns[thread][0].kind == SnapshotAccess::kWrite || txns[thread][1].kind == SnapshotAccess::kWrite;
  }
  // The stage of a writer after this one.
  Pc After(Pc pc) const {
    const bool early = fault == SnapshotFault::kDrawBeforeLocks, late = fault == SnapshotFault::kDrawAfterRecheck;
    switch (pc) {
      case kWord:
        return early ? kAnnounce : kLock;
      case kLock:
        return early || late ? kRecheck : kAnnounce;
      case kPublish:
        return early ? kLock : late ? kMark : kRecheck;
      case kRecheck:
        return late ? kAnnounce : kMark;
      case kMark:
        return fault == SnapshotFault::kSlotBeforeRows ? kRetract
               : fault == SnapshotFault::kUnlockFirst  ? kUnlock
                                                       : kInstall;
      case kInstall:
        return fault == SnapshotFault::kUnlockFirst ? kRetract : kUnlock;
      case kUnlock:
        return fault == SnapshotFault::kUnlockFirst ? kInstall : kRetract;
      default:
        return kInstall;
    }
  }

  void Step(Core<SnapshotModel>& core) const {
    Locals& my = core.locals();
    if (my.outcome != kRunning) return core.Block();
    if (my.pc == kBegin || (my.pc >= kAnnounce && my.pc <= kPublish) || my.pc == kRetract || my.pc == kAbortRetract) {
      return StepClock(core);
    }
    const SnapshotTxn& txn = txns[core.thread()];
    while (my.at < kAccesses && !Concerns(my.pc, txn[my.at])) ++my.at;
    if (my.at == kAccesses) return Next(core);
    const SnapshotAccess access = txn[my.at];
    if (my.pc <= kStill) return StepAccess(core, access);
    if (my.pc <= kLockSwap) return StepLock(core, access);
    if (my.pc == kRecheck) return StepRecheck(core, access);
    StepEnd(core, access);
  }
  static bool Concerns(uint8_t pc, SnapshotAccess access) {
    if (access.kind == SnapshotAccess::kNone) return false;
    if (pc <= kStill) return true;
    return (pc == kRecheck) == (access.kind == SnapshotAccess::kRead);
  }
  // Through with all accesses: on to the next stage.
  void Next(Core<SnapshotModel>& core) const {
    Locals& my = core.locals();
    my.at = my.now = 0;
    if (my.pc == kAbort) {
      my.pc = kAbortRetract;
    } else if (my.pc == kWord && !Writes(core.thread())) {
      End(core, kCommitted);
    } else {
      my.pc = After(static_cast<Pc>(my.pc));
    }
  }
  void End(Core<SnapshotModel>& core, Outcome outcome) const {
    core.locals().outcome = outcome;
    if (outcome == kCommitted) Judge(core);
  }
  static void GiveUp(Locals& my) { my.pc = kAbort, my.at = my.now = 0; }

  // SnapshotClock.
  void StepClock(Core<SnapshotModel>& core) const {
    Locals& my = core.locals();
    const size_t end = kEnds + core.thread();
    switch (my.pc) {
      case kBegin:
        my.begin = core.Load(kLast);
        my.pc = kWord;
        return;
      case kAnnounce:
        if (fault != SnapshotFault::kNotAnnounced) core.Store(end, kDrawing, Order::kRelease);
        if (!core.blocked()) my.pc = kDraw;
        return;
      case kDraw:
        my.end = static_cast<uint8_t>(core.FetchAdd(kLast, 1) + 1);
        my.pc = kPublish;
        return;
      case kPublish:
        core.Store(end, my.end, Order::kRelease);
        if (!core.blocked()) my.pc = After(kPublish);
        return;
      default:
        core.Store(end, kNever, Order::kRelease);
        if (core.blocked()) return;
        if (my.pc == kAbortRetract) return End(core, kAborted);
        if (fault != SnapshotFault::kSlotBeforeRows) return End(core, kCommitted);
        my.pc = kInstall;
    }
  }

  // Read and OwnOrNewWrite.
  void StepAccess(Core<SnapshotModel>& core, SnapshotAccess access) const {
    Locals& my = core.locals();
    uint8_t& seen = my.seen[my.at];
    switch (my.pc) {
      case kWord:
        seen = core.Load(access.row);
        if (access.kind == SnapshotAccess::kWrite && (seen & kLocked)) return;
        if (BeginOf(seen) > my.begin) return ReadOld(core, access);
        my.pc = (seen & kLocked) ? kSlot : kTuple;
        return;
      case kSlot:
        my.now = core.Load(kEnds + HolderOf(seen));
        if (my.now == kDrawing && fault == SnapshotFault::kDrawingIsLater) my.now = kNever;
        if (my.now <= my.begin) return GiveUp(my);
        my.pc = kTuple;
        return;
      case kTuple:
        my.pc = kStill;
        if (!(seen & kInstalling)) my.tuple[my.at] = core.Load(kTuples + access.row);
        return;
      default:
        my.pc = kWord;
        my.now = core.Load(access.row);
        if (seen & kInstalling) {
          if (my.now == seen) ReadOld(core, access);
        } else if (ContentOf(my.now) == ContentOf(seen)) {
          seen = ContentOf(seen);
          ++my.at;
        }
    }
  }
  // The first of the chain that does not begin later. Under serializability a writer does without.
  void ReadOld(Core<SnapshotModel>& core, SnapshotAccess access) const {
    Locals& my = core.locals();
    if (Writes(core.thread())) return GiveUp(my);
    const auto begin_of = [&](size_t version) { return core.Ghost(kBegins + access.row * kVersions + version); };
    uint8_t version = kVersions - 2;
    // The chain holds what has a successor.
    while (begin_of(version + 1) == kNever || begin_of(version) > my.begin) --version;
    my.tuple[my.at] = version;
    my.now = 0;
    ++my.at;
  }

  // LockUnchanged.
  static void StepLock(Core<SnapshotModel>& core, SnapshotAccess access) {
    Locals& my = core.locals();
    if (my.pc == kLock) {
      my.now = core.Load(access.row);
      if ((my.now & kLocked) != 0) return;
      my.pc = kLockSwap;
      if (my.now != my.seen[my.at]) GiveUp(my);
      return;
    }
    my.pc = kLock;
    if (!core.CompareExchange(access.row, my.now, my.now | LockedBy(core.thread()))) return;
    my.locked |= static_cast<uint8_t>(1 << my.at);
    my.now = 0;
    ++my.at;
  }

  void StepRecheck(Core<SnapshotModel>& core, SnapshotAccess access) const {
    Locals& my = core.locals();
    const uint8_t now = core.Load(access.row);
    if (ContentOf(now) != my.seen[my.at] && fault != SnapshotFault::kOldReadsPass) return GiveUp(my);
    const bool others = (now & kLocked) && HolderOf(now) != core.thread();
    if (others && fault != SnapshotFault::kLockedReadsPass) return GiveUp(my);
    ++my.at;
  }

  // Install, Release, Abort.
  void StepEnd(Core<SnapshotModel>& core, SnapshotAccess access) const {
    Locals& my = core.locals();
    const auto version = static_cast<uint8_t>(my.tuple[my.at] + 1);
    const auto locked = static_cast<uint8_t>(my.seen[my.at] | LockedBy(core.thread()));
    if (my.pc == kMark) {
      core.Ghost(kBegins + access.row * kVersions + version) = my.end;
      if (fault != SnapshotFault::kNotMarked) core.Store(access.row, locked | kInstalling, Order::kRelease);
    } else if (my.pc == kInstall) {
      core.Store(kTuples + access.row, version, Order::kRelease);
    } else if (my.pc == kUnlock) {
      core.Store(access.row, static_cast<uint8_t>(my.end << 4), Order::kRelease);
    } else if ((my.locked >> my.at & 1) != 0) {
      core.Store(access.row, my.seen[my.at], Order::kRelease);
    }
    if (core.blocked()) return;
    ++my.at;
    if (fault == SnapshotFault::kSlotBeforeRows && my.pc == kUnlock && LastWrite(core.thread()) < my.at) {
      End(core, kCommitted);
    }
  }
  size_t LastWrite(size_t thread) const { return txns[thread][1].kind == SnapshotAccess::kWrite ? 1 : 0; }

  // --- what must hold among all that have committed: no circle ---
  void Judge(Core<SnapshotModel>& core) const { JudgeSerialOrder(core, txns); }
};

constexpr SnapshotAccess R(uint8_t row) { return {SnapshotAccess::kRead, row}; }
constexpr SnapshotAccess W(uint8_t row) { return {SnapshotAccess::kWrite, row}; }

SnapshotModel<2> ReaderOfPair(SnapshotFault fault) { return {fault, {{R(kX), R(kY)}, {W(kX), W(kY)}}}; }
SnapshotModel<3> ReaderOfTwoPairs(SnapshotFault fault) {
  return {fault, {{R(kX), R(kY)}, {W(kX), W(kY)}, {W(kX), W(kY)}}};
}
SnapshotModel<2> Skew(SnapshotFault fault) { return {fault, {{R(kX), W(kY)}, {R(kY), W(kX)}}}; }
SnapshotModel<2> TwoWriters(SnapshotFault fault) { return {fault, {{W(kX)}, {W(kX)}}}; }
// The first comes before the second, which overwrites what it read; the reader must not see the second alone.
SnapshotModel<3> ReaderOfAnOrder(SnapshotFault fault) { return {fault, {{R(kX), W(kY)}, {W(kX)}, {R(kX), R(kY)}}}; }

TEST(SnapshotModel, WhatCommitsHasASerialOrder) {
  ExpectNone("a reader of a pair", ReaderOfPair(SnapshotFault::kNone));
  ExpectNone("a reader of two pairs", ReaderOfTwoPairs(SnapshotFault::kNone));
  ExpectNone("skew", Skew(SnapshotFault::kNone));
  ExpectNone("two writers", TwoWriters(SnapshotFault::kNone));
  ExpectNone("a reader of an order", ReaderOfAnOrder(SnapshotFault::kNone));
}
TEST(SnapshotModel, ADrawThatIsNotAnnouncedIsFound) { ExpectNoSerialOrder(ReaderOfPair(SnapshotFault::kNotAnnounced)); }
TEST(SnapshotModel, ADrawTakenForALaterEndIsFound) {
  ExpectNoSerialOrder(ReaderOfPair(SnapshotFault::kDrawingIsLater));
}
TEST(SnapshotModel, ADrawBeforeTheLocksIsFound) { ExpectNoSerialOrder(ReaderOfPair(SnapshotFault::kDrawBeforeLocks)); }
TEST(SnapshotModel, ADrawAfterTheRecheckIsFound) {
  ExpectNoSerialOrder(ReaderOfAnOrder(SnapshotFault::kDrawAfterRecheck));
}
TEST(SnapshotModel, ATupleThatIsOverwrittenUnmarkedIsFound) {
  ExpectNoSerialOrder(ReaderOfPair(SnapshotFault::kNotMarked));
}
TEST(SnapshotModel, AnEndTakenBackBeforeTheLocksIsFound) {
  ExpectNoSerialOrder(ReaderOfPair(SnapshotFault::kSlotBeforeRows));
}
TEST(SnapshotModel, ALockedRowThatPassesIsFound) { ExpectNoSerialOrder(Skew(SnapshotFault::kLockedReadsPass)); }
TEST(SnapshotModel, AnOldVersionThatPassesIsFound) { ExpectNoSerialOrder(Skew(SnapshotFault::kOldReadsPass)); }
TEST(SnapshotModel, AVersionBeforeItsTupleIsFound) { ExpectNoSerialOrder(ReaderOfPair(SnapshotFault::kUnlockFirst)); }

// ---- the watermark ----

enum class WatermarkFault {
  kNone,
  kPublishedLate,      // a reader says which snapshot it may have after it has chosen it
  kPublishedBuffered,  // ... before, but others may see it later
  kCounterAfterSlots,  // the watermark is made of a counter loaded after the slots
};

// A version of which a writer makes an old one; a reader that needs it if it began before; a collector whose watermark
// may be older than what it frees.
struct WatermarkModel {
  static constexpr size_t kLast = 0, kSlot = 1, kEnded = 2, kFreed = 3, kCells = 4;
  static constexpr size_t kBufferedMax = 2;
  static constexpr size_t kThreads = 3;
  struct Locals {
    uint8_t pc, low, begin, counter, slot;
  };
  WatermarkFault fault;

  void Initial(Machine<WatermarkModel>& machine) const { machine.memory[kSlot] = kNever; }
  bool IsEnd(const Machine<WatermarkModel>& machine) const {
    return machine.locals[0].pc == 5 && machine.locals[1].pc == 2 && machine.BuffersAreEmpty();
  }
  static std::string CellName(size_t cell) {
    constexpr const char* kNames[] = {"the counter", "the slot", "the version's end", "freed"};
    return kNames[cell];
  }
  static std::string ThreadName(size_t thread) {
    constexpr const char* kNames[] = {"the reader", "the writer", "the collector"};
    return kNames[thread];
  }

  void Step(Core<WatermarkModel>& core) const {
    Locals& my = core.locals();
    const uint8_t pc = my.pc++;
    if (core.thread() == 0) {
      StepReader(core, fault == WatermarkFault::kPublishedLate && pc > 0 && pc < 3 ? 3 - pc : pc);
    } else if (core.thread() == 1) {
      StepWriter(core, pc);
    } else {
      StepCollector(core, pc);
    }
  }
  void StepReader(Core<WatermarkModel>& core, int pc) const {
    Locals& my = core.locals();
    if (pc == 0) {
      my.low = core.Load(kLast);
    } else if (pc == 1) {
      if (fault == WatermarkFault::kPublishedBuffered) return core.Store(kSlot, my.low, Order::kRelease);
      (void)core.Exchange(kSlot, my.low);
    } else if (pc == 2) {
      my.begin = core.Load(kLast);
    } else if (pc == 3) {
      if (my.begin < 1 && core.Load(kFreed) != 0) core.Fail("a version is read that was freed");
    } else if (pc == 4) {
      core.Store(kSlot, kNever, Order::kRelease);
    } else {
      core.Block();
    }
  }
  static void StepWriter(Core<WatermarkModel>& core, int pc) {
    if (pc == 0) {
      (void)core.FetchAdd(kLast, 1);
    } else if (pc == 1) {
      core.Store(kEnded, 1, Order::kRelease);
    } else {
      core.Block();
    }
  }
  void StepCollector(Core<WatermarkModel>& core, int pc) const {
    Locals& my = core.locals();
    const bool slots_first = fault == WatermarkFault::kCounterAfterSlots;
    if (pc == (slots_first ? 1 : 0)) {
      my.counter = core.Load(kLast);
    } else if (pc == (slots_first ? 0 : 1)) {
      my.slot = core.Load(kSlot);
    } else if (pc == 2) {
      const uint8_t ended = core.Load(kEnded);
      if (ended != 0 && ended <= std::min(my.counter, my.slot)) core.Ghost(kFreed) = 1;
    } else {
      my = {};
    }
  }
};

TEST(WatermarkModel, NobodyReadsWhatWasFreed) { ExpectNone("a watermark", WatermarkModel{WatermarkFault::kNone}); }
TEST(WatermarkModel, ASnapshotThatIsPublishedLateIsFound) {
  ExpectFound(WatermarkModel{WatermarkFault::kPublishedLate}, "a version is read that was freed");
}
TEST(WatermarkModel, ASnapshotThatOthersSeeLateIsFound) {
  ExpectFound(WatermarkModel{WatermarkFault::kPublishedBuffered}, "a version is read that was freed");
}
TEST(WatermarkModel, ACounterThatIsLoadedAfterTheSlotsIsFound) {
  ExpectFound(WatermarkModel{WatermarkFault::kCounterAfterSlots}, "a version is read that was freed");
}

}  // namespace
}  // namespace dbx::models
