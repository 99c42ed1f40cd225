// Replay progress (logging/replay_lanes.h, lane_recovery.h, taurus_recovery.cpp) as a model.
//
// Log 0 has up to three batches over two lanes, in turns, and ends at 3. A lane of log 1 holds one transaction that
// depends on log 0 up to `needed`. A reader pushes the batches of log 0, and each lane has a worker: lanes change
// hands under a lock, which orders all that only their holder touches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/models/explorer.h"

namespace dbx::models {
namespace {

enum class ReplayFault {
  kNone,
  kInFlightNotCounted,  // a taken batch counts as replayed (trap 8)
  kPositionFirst,       // the reader's position is published before the batch is pushed (trap 9)
  kQueueFirst,          // a lane looks at its queue before it reads the position
  kRelaxedProgress,     // progress may become visible before the rows
  kEmptySaysNothing,    // a lane with nothing queued publishes no progress (trap 34)
  kEndIsInfinity,       // an ended log counts as replayed for ever (trap 7)
  kTakenTooEarly,       // a slot of the queue is given back before it is copied
  kEndedFirst,          // the end is announced before the last batch is pushed
};

enum : uint8_t {
  kPosition,
  kEnded,
  kProgress,  // of lanes 0 and 1
  kPushed = kProgress + 2,
  kTaken = kPushed + 2,
  kSlotOf = kTaken + 2,  // a queue has room for one batch: its number + 1
  kRow = kSlotOf + 2,    // 1: transaction n has been replayed
  kCellCount = kRow + 3
};

// A batch holds the transactions at positions [first, end), or a VOID of length 1.
struct Batch {
  uint8_t first, end, is_void;
};
struct BatchedLog {
  uint8_t count;
  Batch batches[3];
};
constexpr BatchedLog kTwoInABatch = {2, {{0, 2, 0}, {2, 3, 0}}};
constexpr BatchedLog kVoidBetween = {3, {{0, 1, 0}, {1, 2, 1}, {2, 3, 0}}};

struct ReplayModel {
  static constexpr size_t kCells = kCellCount;
  static constexpr size_t kThreads = 4;
  static constexpr size_t kBufferedMax = 2;
  static constexpr uint8_t kDependent = 2;  // the lane of log 1
  static constexpr uint8_t kReader = 3;
  static constexpr uint8_t kEnd = 3;  // of log 0
  struct Locals {
    uint8_t pc, hand, taken, ended, position, batch, least;  // hand: the next transaction + 1, 0: none
  };
  ReplayFault fault;
  BatchedLog log;
  uint8_t needed = kEnd;

  void Initial(Machine<ReplayModel>& machine) const { machine.locals[kDependent].pc = kLeast0; }
  bool IsEnd(const Machine<ReplayModel>& machine) const {
    for (const uint8_t lane : {0, 1, 2}) {
      if (machine.locals[lane].pc != kLaneDone) return false;
    }
    return true;
  }
  static std::string CellName(size_t cell) {
    static const char* const kNames[kCellCount] = {"position",  "ended",    "progress[0]", "progress[1]", "pushed[0]",
                                                   "pushed[1]", "taken[0]", "taken[1]",    "queue[0]",    "queue[1]",
                                                   "row 0",     "row 1",    "row 2"};
    return kNames[cell];
  }
  static std::string ThreadName(size_t thread) {
    return thread == kReader ? "the reader" : thread == kDependent ? "log 1" : "lane " + std::to_string(thread);
  }

  void Step(Core<ReplayModel>& core) const {
    if (core.thread() == kReader) return StepReader(core);
    if (core.locals().pc == kLaneDone) return core.Block();
    core.thread() == kDependent ? StepDependent(core) : StepLane(core);
  }

  // --- ReplayLanes::CutBatches ---
  static uint8_t LaneOf(uint8_t batch) { return batch % 2; }
  enum ReaderPc : uint8_t { kSpace, kSlot, kPush, kPublish, kSayEnded, kReaderDone };

  void StepReader(Core<ReplayModel>& core) const {
    Locals& my = core.locals();
    const uint8_t lane = LaneOf(my.batch);
    const auto pushed = static_cast<uint8_t>(my.batch / 2);
    const bool position_first = fault == ReplayFault::kPositionFirst;
    switch (my.pc) {
      case kSpace:
        if (my.batch == 1 && fault == ReplayFault::kEndedFirst && core.Ghost(kEnded) == 0) {
          return core.Store(kEnded, 1, Order::kSeqCst);
        }
        if (pushed - core.Load(kTaken + lane) < 1) my.pc = kSlot;
        return;
      case kSlot:
        core.Store(kSlotOf + lane, static_cast<uint8_t>(my.batch + 1), Order::kRelaxed);
        my.pc = position_first ? kPublish : kPush;
        return;
      case kPush:
        core.Store(kPushed + lane, static_cast<uint8_t>(pushed + 1), Order::kRelease);
        my.pc = kPublish;
        return position_first ? NextBatch(my) : void();
      case kPublish:
        core.Store(kPosition, log.batches[my.batch].end, Order::kRelease);
        my.pc = kPush;
        return position_first ? void() : NextBatch(my);
      case kSayEnded:
        core.Store(kEnded, 1, Order::kRelease);
        my.pc = kReaderDone;
        return;
      default:
        core.Block();
    }
  }
  void NextBatch(Locals& my) const { my.pc = ++my.batch == log.count ? kSayEnded : kSpace; }

  enum LanePc : uint8_t {
    kTakeEnded,
    kTakePosition,
    kTakePushed,
    kSayIdle,
    kCopy,
    kSayTaken,
    kSayFirst,
    kReplay,
    kPop,
    kLeast0,
    kLeast1,
    kRows,
    kMissing,
    kMissingEnd,
    kLaneDone
  };

  // ReplayLanes::TakeBatch, and the worker's replay.
  void StepLane(Core<ReplayModel>& core) const {
    Locals& my = core.locals();
    const uint8_t lane = core.thread();
    uint8_t& hand = my.hand;
    switch (my.pc) {
      case kTakeEnded:
        my.ended = core.Load(kEnded);
        my.pc = fault == ReplayFault::kQueueFirst ? kTakePushed : kTakePosition;
        return;
      case kTakePosition:
        my.position = core.Load(kPosition);
        my.pc = fault == ReplayFault::kQueueFirst ? kSayIdle : kTakePushed;
        return;
      case kTakePushed:
        if (core.Load(kPushed + lane) != my.taken) {
          my.pc = fault == ReplayFault::kTakenTooEarly ? kSayTaken : kCopy;
        } else {
          my.pc = fault == ReplayFault::kQueueFirst ? kTakePosition : kSayIdle;
        }
        return;
      case kSayIdle: {
        if (fault == ReplayFault::kEndIsInfinity && my.ended != 0) my.position = 255;
        if (fault != ReplayFault::kEmptySaysNothing && core.Load(kProgress + lane) != my.position) {
          core.Store(kProgress + lane, my.position, Order::kRelease);
        }
        my.pc = my.ended != 0 ? kLaneDone : kTakeEnded;
        my.ended = my.position = 0;
        return;
      }
      case kCopy:
        my.batch = static_cast<uint8_t>(core.Load(kSlotOf + lane) - 1);
        my.pc = fault == ReplayFault::kTakenTooEarly ? kSayFirst : kSayTaken;
        return;
      case kSayTaken:
        core.Store(kTaken + lane, ++my.taken, Order::kRelease);
        my.pc = fault == ReplayFault::kTakenTooEarly ? kCopy : kSayFirst;
        return;
      case kSayFirst:  // Unpack; a VOID leaves nothing to replay
        my.pc = kTakeEnded;
        my.ended = my.position = 0;
        if (const Batch& batch = log.batches[my.batch]; !batch.is_void) {
          my.hand = static_cast<uint8_t>(batch.first + 1);
          const bool forgets = fault == ReplayFault::kInFlightNotCounted;
          core.Store(kProgress + lane, forgets ? batch.end : batch.first, Order::kRelease);
          my.pc = kReplay;
        }
        my.batch = 0;
        return;
      case kReplay:
        if (core.Load(kRow + hand - 1) != 0) return core.Fail("a transaction is replayed twice");
        core.Store(kRow + hand - 1, 1, Order::kRelaxed);
        my.pc = kPop;
        return;
      default:  // kPop
        hand = hand == 1 && log.batches[0].end == 2 ? 2 : 0;
        my.pc = hand == 0 ? kTakeEnded : kReplay;
        if (hand == 0 || fault == ReplayFault::kInFlightNotCounted) return;
        core.Store(kProgress + lane, static_cast<uint8_t>(hand - 1),
                   fault == ReplayFault::kRelaxedProgress ? Order::kRelaxed : Order::kRelease);
    }
  }

  // TaurusRecovery::OrderOf for the transaction of log 1.
  void StepDependent(Core<ReplayModel>& core) const {
    Locals& my = core.locals();
    switch (my.pc) {
      case kLeast0:  // ReplayedUntil
        my.least = core.Load(kProgress);
        my.pc = kLeast1;
        return;
      case kLeast1:
        my.least = std::min(my.least, core.Load(kProgress + 1));
        my.pc = my.least >= needed ? kRows : kMissing;
        my.least = 0;
        return;
      case kRows:
        if (needed > kEnd) return core.Fail("a transaction is replayed though what it depends on is lost");
        for (uint8_t i = 0; i < log.count; ++i) {
          const Batch& batch = log.batches[i];
          for (uint8_t txn = batch.first; txn < std::min(batch.end, needed) && !batch.is_void; ++txn) {
            if (core.Load(kRow + txn) == 0) return core.Fail("a transaction is replayed before one that it depends on");
          }
        }
        my.pc = kLaneDone;
        return;
      case kMissing:  // OrderOfMissing
        my.pc = core.Load(kEnded) == 0 ? kLeast0 : kMissingEnd;
        return;
      default:
        my.pc = needed > core.Load(kPosition) ? kLaneDone : kLeast0;
        if (my.pc == kLaneDone && needed <= kEnd) core.Fail("a transaction is dropped for nothing");
    }
  }
};

void ExpectFound(const ReplayModel& model, const std::string& what) {
  const Findings found = Explore(model);
  EXPECT_EQ(found.fault, what);
  std::printf("%s", found.Text().c_str());
}
constexpr const char* kTooEarly = "a transaction is replayed before one that it depends on";
constexpr const char* kNoEnd = "no end can be reached any more";

TEST(ReplayModel, NothingIsReplayedBeforeWhatItDependsOnAndReplayEnds) {
  for (const ReplayModel& model : {ReplayModel{ReplayFault::kNone, kTwoInABatch, 1},
                                   {ReplayFault::kNone, kTwoInABatch, 3},
                                   {ReplayFault::kNone, kTwoInABatch, 4},
                                   {ReplayFault::kNone, kVoidBetween, 3}}) {
    const Findings found = Explore(model);
    EXPECT_EQ(found.fault, "") << found.Text();
    std::printf("%d batches, needs %d of 3: %zu states\n", model.log.count, model.needed, found.states);
  }
}
TEST(ReplayModel, ABatchInFlightThatDoesNotCountIsFound) {
  ExpectFound({ReplayFault::kInFlightNotCounted, kTwoInABatch}, kTooEarly);
}
TEST(ReplayModel, APositionPublishedBeforeTheBatchIsFound) {
  ExpectFound({ReplayFault::kPositionFirst, kTwoInABatch}, kTooEarly);
}
TEST(ReplayModel, AQueueReadBeforeThePositionIsFound) {
  ExpectFound({ReplayFault::kQueueFirst, kTwoInABatch}, kTooEarly);
}
TEST(ReplayModel, ProgressThatOvertakesTheRowsIsFound) {
  ExpectFound({ReplayFault::kRelaxedProgress, kTwoInABatch, 1}, kTooEarly);
}
TEST(ReplayModel, AnEmptyLaneThatPublishesNothingHangs) {
  ExpectFound({ReplayFault::kEmptySaysNothing, kVoidBetween}, kNoEnd);
}
TEST(ReplayModel, AnEndTakenForInfinityIsFound) {
  ExpectFound({ReplayFault::kEndIsInfinity, kTwoInABatch, 4},
              "a transaction is replayed though what it depends on is lost");
}
TEST(ReplayModel, AQueueSlotGivenBackTooEarlyIsFound) {
  const Findings found = Explore(ReplayModel{ReplayFault::kTakenTooEarly, kVoidBetween});
  EXPECT_NE(found.fault, "");
  std::printf("%s", found.Text().c_str());
}
TEST(ReplayModel, AnEndAnnouncedBeforeTheLastBatchIsFound) {
  ExpectFound({ReplayFault::kEndedFirst, kTwoInABatch}, "a transaction is dropped for nothing");
}

}  // namespace
}  // namespace dbx::models
