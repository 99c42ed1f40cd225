// The ring of a log (logging/log_stream.h) as a model: workers that reserve, fill and submit places of one byte, a
// writer that appends an anchor, flushes what is ready and goes to sleep. Mirrored functions stand beside the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/models/expectations.h"
#include "tests/models/explorer.h"

namespace dbx::models {
namespace {

enum class RingFault {
  kNone,
  kBoundAfterFetchAdd,  // no bound before the place is taken: the place itself is the first
  kSlotsFirst,          // the writer reads the slots, then reserved_until
  kIdleIsZero,          // a worker that writes nothing says 0
  kRelaxedFinish,       // the end of the fill is no release
  kStaleBound,          // the end of the last place stays the bound, also while the worker waits for space
  kEndForPlace,         // the end of the place is stored in place of its start
  kRisingReady,         // the writer takes for granted that what it finds ready never decreases
  kEarlyPersistent,     // persistent is raised before the flush
  kQuietSleeper,        // writer_asleep is stored without sequential consistency
};

// Cells. A byte of the ring holds 1 + the position that was filled last.
enum : uint8_t { kReserved, kPersistent, kAsleep, kWoken, kMutex, kSlot0, kSlot1, kSlot2, kRing };

struct RingModel {
  static constexpr size_t kWorkers = 3;  // the third one never writes
  static constexpr size_t kRingMax = 3;
  static constexpr size_t kCells = kRing + kRingMax;
  static constexpr size_t kThreads = kWorkers;  // the third one needs no thread: the writer is number 2
  static constexpr size_t kBufferedMax = 4;
  static constexpr uint8_t kWriter = 2;
  struct Locals {
    uint8_t pc, left, last_end, place, free_until, woken;       // a worker's
    uint8_t started, ready, slot, flushing, has_anchor, found;  // the writer's
  };
  RingFault fault = RingFault::kNone;
  uint8_t ring = 2;
  uint8_t records[2] = {2, 1};

  uint8_t Idle() const { return fault == RingFault::kIdleIsZero ? 0 : 255; }
  void Initial(Machine<RingModel>& machine) const {
    for (size_t w = 0; w < kWorkers; ++w) machine.memory[kSlot0 + w] = Idle();
    for (size_t w = 0; w < 2; ++w) machine.locals[w].left = records[w], machine.locals[w].free_until = ring;
  }
  bool IsEnd(const Machine<RingModel>& machine) const {
    const uint8_t reserved = machine.memory[kReserved];
    return machine.locals[0].left == 0 && machine.locals[1].left == 0 && machine.memory[kPersistent] == reserved;
  }
  static std::string CellName(size_t cell) {
    static const char* const kNames[] = {"reserved_until", "persistent",      "writer_asleep",   "woken",
                                         "mutex",          "filling_from[0]", "filling_from[1]", "filling_from[2]"};
    return cell < kRing ? kNames[cell] : "ring[" + std::to_string(cell - kRing) + "]";
  }
  static std::string ThreadName(size_t thread) {
    return thread == kWriter ? "the writer" : "worker " + std::to_string(thread);
  }
  uint8_t CellOf(uint8_t position) const { return static_cast<uint8_t>(kRing + position % ring); }

  void Step(Core<RingModel>& core) const { core.thread() == kWriter ? StepWriter(core) : StepWorker(core); }

  enum WorkerPc : uint8_t { kBound, kTake, kStorePlace, kWait, kWaitWake, kFill, kFinish, kIsAsleep, kWake };

  void StepWorker(Core<RingModel>& core) const {
    Locals& my = core.locals();
    const auto slot = static_cast<uint8_t>(kSlot0 + core.thread());
    switch (my.pc) {
      case kBound:  // Reserve
        if (my.left == 0) return core.Block();
        if (fault == RingFault::kBoundAfterFetchAdd) return TakePlace(core);
        core.Store(slot, my.last_end, Order::kRelease);
        my.pc = kTake;
        return;
      case kTake:
        return TakePlace(core);
      case kStorePlace:
        core.Store(slot, fault == RingFault::kEndForPlace ? my.last_end : my.place, Order::kRelease);
        my.pc = AfterPlace(my);
        return;
      case kWait:
        my.free_until = static_cast<uint8_t>(core.Load(kPersistent) + ring);
        my.pc = my.place + 1 <= my.free_until ? kFill : my.woken ? kWait : kWaitWake;
        return;
      case kWaitWake:
        my.woken = 1;
        my.pc = kWait;
        return Wake(core);
      case kFill:  // SealRecord, in place
        core.Store(CellOf(my.place), static_cast<uint8_t>(my.place + 1), Order::kRelaxed);
        my.pc = kFinish;
        return;
      case kFinish:  // Finish
        core.Store(slot, Idle(), fault == RingFault::kRelaxedFinish ? Order::kRelaxed : Order::kRelease);
        my.pc = kIsAsleep;
        return;
      case kIsAsleep:
        --my.left;
        my.woken = my.place = 0;
        my.pc = core.Load(kAsleep) != 0 ? kWake : kBound;
        return;
      default:
        my.pc = kBound;
        return Wake(core);
    }
  }
  void TakePlace(Core<RingModel>& core) const {
    Locals& my = core.locals();
    my.place = core.FetchAdd(kReserved, 1);
    my.last_end = static_cast<uint8_t>(my.place + 1);
    my.pc = fault == RingFault::kStaleBound ? AfterPlace(my) : kStorePlace;
  }
  static WorkerPc AfterPlace(const Locals& my) { return my.place + 1 > my.free_until ? kWait : kFill; }
  // WriterSignal::Wake: lock, set, unlock, notify.
  static void Wake(Core<RingModel>& core) {
    if (core.Ghost(kMutex) != 0) return core.Block();
    core.Exchange(kWoken, 1);
  }

  enum WriterPc : uint8_t {
    kReady,
    kSlots,
    kLastReserved,
    kAnchor,
    kFillAnchor,
    kFlush,
    kPublish,
    kEarly,
    kUnflushed,
    kLock,
    kAnnounce,
    kLookAgain,
    kUnlock,
    kSleep,
    kAwake,
    kForget,
    kUnlockAgain
  };

  void StepWriter(Core<RingModel>& core) const {
    Locals& my = core.locals();
    switch (my.pc) {
      case kReady:  // ReadyUntil, for HasFlushable and again for StartFlush
        my.ready = 255;
        my.slot = 0;
        if (fault != RingFault::kSlotsFirst) my.ready = core.Load(kReserved);
        my.pc = kSlots;
        return;
      case kSlots:
        my.ready = std::min(my.ready, core.Load(kSlot0 + my.slot));
        if (++my.slot < kWorkers) return;
        if (fault == RingFault::kSlotsFirst) {
          my.pc = kLastReserved;
          return;
        }
        return Judge(my);
      case kLastReserved:
        my.ready = std::min(my.ready, core.Load(kReserved));
        return Judge(my);
      case kAnchor: {  // AppendOwn
        my.found = core.Load(kReserved);
        my.pc = my.found + 1 > my.started + ring ? kReady : kFillAnchor;
        if (my.pc == kReady) my.has_anchor = 1;
        return;
      }
      case kFillAnchor: {
        if (!core.CompareExchange(kReserved, my.found, static_cast<uint8_t>(my.found + 1))) {
          my.pc = kAnchor;
          return;
        }
        my.has_anchor = 1;
        my.place = my.found;
        my.pc = kReady;
        core.Ghost(CellOf(my.place)) = static_cast<uint8_t>(my.place + 1);  // no other thread reads the ring
        my.found = my.place = 0;
        return;
      }
      default:
        return StepFlushOrSleep(core);
    }
  }
  void Judge(Locals& my) const {
    const bool flushable = fault == RingFault::kRisingReady ? my.ready != my.started : my.ready > my.started;
    if (!flushable) {
      my.flushing = 0;
      my.pc = kUnflushed;
    } else if (my.flushing == 0) {  // Round: an anchor first, and then StartFlush looks anew
      my.flushing = 1;
      my.pc = my.has_anchor ? kReady : kAnchor;
    } else {
      my.flushing = 0;
      my.pc = fault == RingFault::kEarlyPersistent ? kEarly : kFlush;
    }
    my.slot = 0;
  }

  void StepFlushOrSleep(Core<RingModel>& core) const {
    Locals& my = core.locals();
    switch (my.pc) {
      case kEarly:
        core.Store(kPersistent, my.ready, Order::kRelease);
        my.pc = kFlush;
        return;
      case kFlush:  // StartFlush, CompleteFlush: the device reads the ring
        if (core.Load(CellOf(my.started)) != my.started + 1) return core.Fail("a place is flushed that is not filled");
        if (++my.started == my.ready) my.pc = kPublish;
        return;
      case kPublish:
        core.Store(kPersistent, my.started, Order::kRelease);
        my.pc = kReady;
        return;
      case kUnflushed:  // SleepUntilDue
        my.pc = core.Load(kReserved) > my.started ? kReady : kAnnounce;
        return;
      case kAnnounce:
        core.Store(kAsleep, 1, fault == RingFault::kQuietSleeper ? Order::kRelease : Order::kSeqCst);
        my.pc = kLookAgain;
        return;
      case kLookAgain:
        my.pc = core.Load(kReserved) > my.started ? kAwake : kLock;
        return;
      case kLock:  // WriterSignal::Sleep
        core.Exchange(kMutex, 1);
        my.pc = kUnlock;
        return;
      case kUnlock:  // wake_.wait
        core.Exchange(kMutex, 0);
        my.pc = kSleep;
        return;
      case kSleep:
        if (core.Ghost(kWoken) == 0) return core.Block();
        core.Exchange(kMutex, 1);
        my.pc = kForget;
        return;
      case kForget:
        core.Exchange(kWoken, 0);
        my.pc = kUnlockAgain;
        return;
      case kUnlockAgain:
        core.Exchange(kMutex, 0);
        my.pc = kAwake;
        return;
      default:  // kAwake
        core.Store(kAsleep, 0, Order::kSeqCst);
        my.pc = kReady;
    }
  }
};

TEST(RingModel, NoFlushCoversAnUnfilledPlaceAndTheWriterGetsOn) {
  for (const uint8_t ring : {1, 2, 3}) {
    const Findings found = Explore(RingModel{RingFault::kNone, ring});
    EXPECT_EQ(found.fault, "") << found.Text();
    std::printf("ring of %d: %zu states\n", ring, found.states);
  }
}
TEST(RingModel, ABoundStoredAfterTheFetchAddIsFound) {
  ExpectFound(RingModel{RingFault::kBoundAfterFetchAdd}, "a place is flushed that is not filled");
}
TEST(RingModel, AWriterThatReadsTheSlotsFirstIsFound) {
  ExpectFound(RingModel{RingFault::kSlotsFirst}, "a place is flushed that is not filled");
}
TEST(RingModel, AnIdleValueOfZeroPinsTheLog) {
  ExpectFound(RingModel{RingFault::kIdleIsZero}, "no end can be reached any more");
}
TEST(RingModel, AFillThatIsNotReleasedIsFound) {
  ExpectFound(RingModel{RingFault::kRelaxedFinish}, "a place is flushed that is not filled");
}
TEST(RingModel, AnOldBoundOfAWorkerThatWaitsForSpacePinsTheLog) {
  ExpectFound(RingModel{RingFault::kStaleBound}, "no end can be reached any more");
}
TEST(RingModel, AnEndThatIsStoredForThePlaceIsFound) {
  ExpectFound(RingModel{RingFault::kEndForPlace}, "a place is flushed that is not filled");
}
// A bound may be far below what the writer has started already: that of a worker whose last place is long ago.
TEST(RingModel, AWriterThatReliesOnARisingReadyPositionIsFound) {
  ExpectFound(RingModel{RingFault::kRisingReady}, "a place is flushed that is not filled");
}
TEST(RingModel, SpaceGivenBackBeforeTheFlushIsFound) {
  ExpectFound(RingModel{RingFault::kEarlyPersistent}, "a place is flushed that is not filled");
}
TEST(RingModel, ASleeperThatAnnouncesItselfTooLateIsFound) {
  ExpectFound(RingModel{RingFault::kQuietSleeper}, "no end can be reached any more");
}

}  // namespace
}  // namespace dbx::models
