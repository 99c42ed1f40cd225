// The explorer finds what x86-TSO allows, and nothing else: the litmus tests of its papers.
#include "tests/models/explorer.h"

#include <gtest/gtest.h>

namespace dbx::models {
namespace {

// Two threads of two accesses each to x (cell 0) and y (cell 1).
struct Litmus {
  static constexpr size_t kCells = 2;
  static constexpr size_t kBufferedMax = 2;
  static constexpr size_t kThreads = 2;
  struct Locals {
    uint8_t pc, seen[2];
  };
  enum Kind { kStoreBuffering, kMessagePassing, kHandshake } kind;
  Order order;

  void Initial(Machine<Litmus>&) const {}
  bool IsEnd(const Machine<Litmus>& machine) const { return machine.locals[0].pc == 2 && machine.locals[1].pc == 2; }
  static std::string CellName(size_t cell) { return cell == 0 ? "x" : "y"; }
  static std::string ThreadName(size_t thread) { return thread == 0 ? "left" : "right"; }

  void Step(Core<Litmus>& core) const {
    Locals& my = core.locals();
    const size_t me = core.thread();
    if (my.pc == 2) return core.Block();
    const bool first = my.pc++ == 0;
    if (kind == kStoreBuffering) {
      first ? core.Store(me, 1, order) : void(my.seen[0] = core.Load(1 - me));
    } else if (me == 0) {
      core.Store(first ? 0 : 1, 1, first ? Order::kRelaxed : order);
    } else {
      my.seen[first ? 0 : 1] = core.Load(first ? 1 : 0);
      if (kind == kHandshake && first && my.seen[0] == 0) core.Block();
    }
    if (kind != kStoreBuffering && me == 1 && !first && my.seen[0] == 1 && my.seen[1] == 0) core.Fail("stale");
    if (kind == kStoreBuffering && !first && core.Ghost(me) == 0 && my.seen[0] == 0) Both(core);
  }
  // The other one has read 0 too, or still may.
  static void Both(Core<Litmus>& core) {
    if (core.Ghost(1 - core.thread()) == 0) core.Fail("both may read 0");
  }
};

// Waits for a store that no thread makes.
struct Stuck {
  static constexpr size_t kCells = 1;
  static constexpr size_t kBufferedMax = 2;
  static constexpr size_t kThreads = 1;
  struct Locals {
    uint8_t seen;
  };
  void Initial(Machine<Stuck>&) const {}
  bool IsEnd(const Machine<Stuck>& machine) const { return machine.locals[0].seen == 1; }
  static std::string CellName(size_t) { return "x"; }
  static std::string ThreadName(size_t) { return "thread"; }
  void Step(Core<Stuck>& core) const { core.locals().seen = core.Load(0); }
};

TEST(Explorer, StoresWaitInTheirBufferWhileLaterLoadsGoAhead) {
  EXPECT_EQ(Explore(Litmus{Litmus::kStoreBuffering, Order::kRelease}).fault, "both may read 0");
  EXPECT_EQ(Explore(Litmus{Litmus::kStoreBuffering, Order::kSeqCst}).fault, "");
}

TEST(Explorer, AReleaseStoreStaysBehindOlderOnesAndARelaxedOneNeedNot) {
  EXPECT_EQ(Explore(Litmus{Litmus::kMessagePassing, Order::kRelease}).fault, "");
  EXPECT_EQ(Explore(Litmus{Litmus::kMessagePassing, Order::kRelaxed}).fault, "stale");
}

TEST(Explorer, TheTraceOfAFaultIsAShortestOne) {
  const Findings found = Explore(Litmus{Litmus::kMessagePassing, Order::kRelaxed});
  EXPECT_EQ(found.trace.size(), 5u) << found.Text();  // two stores, one of which drains, two loads
  EXPECT_EQ(found.trace.back(), "right reads x = 0");
}

TEST(Explorer, AWaitThatNobodyEndsIsFound) {
  EXPECT_EQ(Explore(Litmus{Litmus::kHandshake, Order::kRelease}).fault, "");
  EXPECT_EQ(Explore(Stuck{}).fault, "no end can be reached any more");
}

}  // namespace
}  // namespace dbx::models
