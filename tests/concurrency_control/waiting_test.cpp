// Two-phase locking that waits: which transaction waits, which gives up, and that none waits for ever. Each worker has
// its thread; tests follow the steps by the rows' control words.
#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

void Until(auto&& condition) {
  while (!condition()) std::this_thread::yield();
}
// Where nothing shows that another worker has asked for a lock too: a test that is too fast only sees less.
void SleepWhileOthersAsk() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

class WaitingTest : public PairTest {
 protected:
  WaitingTest() {
    for (Key key = 1; key <= kRows; ++key) h_.LoadRow(key, 0);
    h_.LetWorkersWait();
  }

  Outcome Read(TestContext& ctx, Key key, uint64_t* value = nullptr) {
    return ctx.Read(h_.table(), key, [&](const TestTuple& tuple) {
      if (value != nullptr) *value = tuple.GetAt<uint64_t>(0);
    });
  }
  Outcome Write(TestContext& ctx, Key key, uint64_t value) {
    return ctx.Update(h_.table(), key, [&](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, value); });
  }

  // A step of a test: later ones begin when it has been reached.
  void Reach(int step) {
    Until([&] { return step_.load() == step - 1; });
    step_.store(step);
  }
  void Await(int step) {
    Until([&] { return step_.load() >= step; });
  }
  bool IsWaitedFor(Key key) { return (h_.table().Find(key)->control.load() >> 63) != 0; }
  void AwaitWaiter(Key key) {
    Until([&] { return IsWaitedFor(key); });
  }
  bool IsFree(Key key) { return h_.table().Find(key)->control.load() == 0; }
  void ExpectAllFree() {
    for (Key key = 1; key <= kRows; ++key) EXPECT_TRUE(IsFree(key)) << key;
  }

  // Each body is a worker's transaction, tried once; they run at the same time. Worker 0's begins first, and so on.
  std::vector<Outcome> RunTogether(auto... bodies) {
    std::vector<Outcome> outcomes(sizeof...(bodies));
    std::atomic<uint32_t> begun{0};
    std::vector<std::jthread> threads;
    const auto start = [&](uint32_t w, auto body) {
      threads.emplace_back([this, w, body, &outcomes, &begun] {
        Until([&] { return begun.load() == w; });
        const auto noted = [&](TestContext& ctx) {
          begun.store(w + 1);
          return body(ctx);
        };
        outcomes[w] = h_.Run(w, noted).outcome;
      });
    };
    uint32_t worker = 0;
    (start(worker++, bodies), ...);
    threads.clear();
    return outcomes;
  }

  static constexpr Key kRows = 9;
  std::atomic<int> step_{0};
};

// With locks in rows, where a test can see that a worker waits.
inline TestPairs WaitingControl(std::string_view name) {
  return ControlsWhere([&](const TestPair& pair) {
    return WaitsForLocks(pair) && LocksInRows(pair) && (name.empty() || pair.cc.name == name);
  });
}
INSTANTIATE_TEST_SUITE_P(With, WaitingTest, In(WaitingControl("")), NameOfPair);

TEST_P(WaitingTest, TheOlderWaitsAndGetsTheLock) {
  uint64_t seen = 0;
  const auto outcomes = RunTogether(
      [&](TestContext& ctx) {
        Reach(1);
        Await(2);
        return Read(ctx, 1, &seen);
      },
      [&](TestContext& ctx) {
        Await(1);
        const Outcome written = Write(ctx, 1, 7);
        Reach(2);
        AwaitWaiter(1);
        return written;
      });
  EXPECT_EQ(outcomes, (std::vector{Outcome::kOk, Outcome::kOk}));
  EXPECT_EQ(seen, 7u);
  ExpectAllFree();
}

// The reader that comes last is compatible with the holder, and waits behind the writer all the same.
TEST_P(WaitingTest, AReaderDoesNotOvertakeAWriterThatWaits) {
  uint64_t seen = 0;
  const auto outcomes = RunTogether(
      [&](TestContext& ctx) {
        Await(2);
        return Read(ctx, 1, &seen);
      },
      [&](TestContext& ctx) {
        Await(1);
        return Write(ctx, 1, 7);
      },
      [&](TestContext& ctx) {
        EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
        Reach(1);
        AwaitWaiter(1);
        Reach(2);
        SleepWhileOthersAsk();
        return Outcome::kOk;
      });
  EXPECT_EQ(outcomes, (std::vector{Outcome::kOk, Outcome::kOk, Outcome::kOk}));
  EXPECT_EQ(seen, 7u);
  ExpectAllFree();
}

TEST_P(WaitingTest, AnUpgradeWaitsForOtherReadersAndPassesThoseWhoWait) {
  uint64_t seen = 0;
  const auto outcomes = RunTogether(
      [&](TestContext& ctx) {
        Await(3);
        EXPECT_EQ(Read(ctx, 1, &seen), Outcome::kOk);
        return Write(ctx, 1, seen + 1);
      },
      [&](TestContext& ctx) {
        EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
        Reach(1);
        Await(2);
        return Write(ctx, 1, 7);
      },
      [&](TestContext& ctx) {
        Await(1);
        EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
        Reach(2);
        AwaitWaiter(1);
        Reach(3);
        SleepWhileOthersAsk();
        return Outcome::kOk;
      });
  EXPECT_EQ(outcomes, (std::vector{Outcome::kOk, Outcome::kOk, Outcome::kOk}));
  EXPECT_EQ(seen, 7u);
  EXPECT_EQ(h_.ValueOf(1), 8u);
}

// Its holder met a failed device, say.
TEST_P(WaitingTest, WaitingEndsWhenTheRunStops) {
  const auto outcomes = RunTogether(
      [&](TestContext& ctx) {
        Reach(1);
        Await(2);
        return Read(ctx, 1);
      },
      [&](TestContext& ctx) {
        Await(1);
        const Outcome written = Write(ctx, 1, 7);
        Reach(2);
        AwaitWaiter(1);
        h_.Stop();
        Until([&] { return !IsWaitedFor(1); });
        return written;
      });
  EXPECT_EQ(outcomes, (std::vector{Outcome::kConflict, Outcome::kOk}));
  ExpectAllFree();
}

// ---- WAIT_DIE ----

class WaitDieTest : public WaitingTest {};
INSTANTIATE_TEST_SUITE_P(With, WaitDieTest, In(WaitingControl("WAIT_DIE")), NameOfPair);

TEST_P(WaitDieTest, TheYoungerDiesAtOnce) {
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Write(ctx, 1, 7), Outcome::kOk);
    EXPECT_EQ(h_.Read(1, 1).outcome, Outcome::kConflict);
    EXPECT_EQ(h_.Write(1, 1, 8).outcome, Outcome::kConflict);
    return Outcome::kOk;
  });
  EXPECT_EQ(outer.outcome, Outcome::kOk);
  ExpectAllFree();
}

TEST_P(WaitDieTest, AYoungerUpgradeDiesAtOnce) {
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
    const CallResult inner = h_.Run(1, [&](TestContext& other) {
      return Read(other, 1) == Outcome::kOk ? Write(other, 1, 8) : Outcome::kRollback;
    });
    EXPECT_EQ(inner.outcome, Outcome::kConflict);
    return Write(ctx, 1, 9);
  });
  EXPECT_EQ(outer.outcome, Outcome::kOk);
  ExpectAllFree();
}

// A transaction that was aborted is older than what has begun since; a new one of the same worker is not.
TEST_P(WaitDieTest, AnAgeIsKeptOverRetries) {
  EXPECT_EQ(h_.Run(0, [](TestContext&) { return Outcome::kConflict; }).outcome, Outcome::kConflict);
  uint64_t seen = 0;
  std::jthread retry;
  const auto read = [&](TestContext& ctx) { return Read(ctx, 1, &seen); };
  const CallResult holder = h_.Run(1, [&](TestContext& ctx) {
    const Outcome written = Write(ctx, 1, 7);
    retry = std::jthread([&] {
      EXPECT_EQ(h_.RunAgain(0, read).outcome, Outcome::kOk);
      EXPECT_EQ(seen, 7u);
    });
    AwaitWaiter(1);
    return written;
  });
  retry.join();
  EXPECT_EQ(holder.outcome, Outcome::kOk);
  EXPECT_EQ(h_.Run(1,
                   [&](TestContext& ctx) {
                     EXPECT_EQ(Write(ctx, 1, 8), Outcome::kOk);
                     return h_.Run(0, read).outcome;
                   })
                .outcome,
            Outcome::kConflict);
}

// ---- DL_DETECT ----

class DlDetectTest : public WaitingTest {};
INSTANTIATE_TEST_SUITE_P(With, DlDetectTest, In(WaitingControl("DL_DETECT")), NameOfPair);

class DlDetectRings : public DlDetectTest {
 protected:
  // Writes `first`, and `second` once all `workers` have come as far.
  auto WriteTwo(Key first, Key second, uint32_t workers) {
    return [=, this](TestContext& ctx) {
      EXPECT_EQ(Write(ctx, first, 1), Outcome::kOk);
      ready_.fetch_add(1);
      Until([&] { return ready_.load() == workers; });
      return Write(ctx, second, 1);
    };
  }
  void ExpectOneVictim(auto... bodies) {
    ready_.store(0);
    const uint64_t found_before = h_.deadlocks_found();
    const auto outcomes = RunTogether(bodies...);
    EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kConflict), 1);
    EXPECT_GT(h_.deadlocks_found(), found_before);
  }

  std::atomic<uint32_t> ready_{0};
};
INSTANTIATE_TEST_SUITE_P(With, DlDetectRings, In(WaitingControl("DL_DETECT")), NameOfPair);

TEST_P(DlDetectRings, OfTwoThatWaitForEachOtherOneGivesUp) {
  for (int i = 0; i < 200; ++i) ExpectOneVictim(WriteTwo(1, 2, 2), WriteTwo(2, 1, 2));
  ExpectAllFree();
}

TEST_P(DlDetectRings, OfThreeThatWaitInACircleOneGivesUp) {
  for (int i = 0; i < 200; ++i) ExpectOneVictim(WriteTwo(1, 2, 3), WriteTwo(2, 3, 3), WriteTwo(3, 1, 3));
  ExpectAllFree();
}

TEST_P(DlDetectRings, OfTwoThatUpgradeTheSameRowOneGivesUp) {
  const auto body = [&](TestContext& ctx) {
    EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
    ready_.fetch_add(1);
    Until([&] { return ready_.load() == 2; });
    return Write(ctx, 1, 1);
  };
  for (int i = 0; i < 200; ++i) ExpectOneVictim(body, body);
  ExpectAllFree();
}

// Worker 0 waits for worker 2's upgrade; worker 3 upgrades later, which makes worker 0 wait for it too, and then waits
// for worker 0. Worker 3 is the oldest: it has waited before, for worker 1.
TEST_P(DlDetectTest, AWaitBehindALaterUpgradeIsPartOfTheCycle) {
  const auto outcomes = RunTogether(
      [&](TestContext& ctx) {
        Await(4);
        EXPECT_EQ(Write(ctx, 2, 1), Outcome::kOk);
        Reach(5);
        return Read(ctx, 1);
      },
      [&](TestContext& ctx) {
        EXPECT_EQ(Write(ctx, 9, 1), Outcome::kOk);
        Reach(1);
        AwaitWaiter(9);
        return Outcome::kOk;
      },
      [&](TestContext& ctx) {
        Await(2);
        EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
        Reach(3);
        return Write(ctx, 1, 2);
      },
      [&](TestContext& ctx) {
        Await(1);
        EXPECT_EQ(Write(ctx, 9, 3), Outcome::kOk);
        EXPECT_EQ(Read(ctx, 1), Outcome::kOk);
        Reach(2);
        Await(3);
        AwaitWaiter(1);
        Reach(4);
        Await(5);
        SleepWhileOthersAsk();
        EXPECT_EQ(Write(ctx, 1, 3), Outcome::kOk);
        return Write(ctx, 2, 3);
      });
  EXPECT_EQ(outcomes, (std::vector{Outcome::kConflict, Outcome::kOk, Outcome::kConflict, Outcome::kOk}));
  ExpectAllFree();
}

// ---- all of them, with luck ----

class WaitingStress : public PairTest {
 protected:
  WaitingStress() { h_.LetWorkersWait(); }
};
INSTANTIATE_TEST_SUITE_P(With, WaitingStress, In(ControlsWhere(&LocksRows)), NameOfPair);

// Takes 1 from a row and adds it to another: read first and then written, some twice, some deleted and inserted again.
Outcome Transfer(TestEngine& h, TestContext& ctx, uint64_t rows, uint64_t draw) {
  const Key from = draw % rows, to = (from + 1 + draw / 8 % (rows - 1)) % rows;
  uint64_t balance = 0;
  const auto add = [](uint64_t amount) {
    return [amount](TestTuple& t) { t.SetAt<uint64_t>(0, t.GetAt<uint64_t>(0) + amount); };
  };
  Outcome outcome = ctx.Read(h.table(), from, [&](const TestTuple& t) { balance = t.GetAt<uint64_t>(0); });
  if (outcome == Outcome::kOk && draw % 3 == 0) outcome = ctx.Read(h.table(), to, [](const TestTuple&) {});
  if (outcome != Outcome::kOk) return outcome;
  if (draw % 5 == 0) {
    const Tuple tuple{balance - 1, {}};
    outcome = ctx.Delete(h.table(), from);
    if (outcome == Outcome::kOk) outcome = ctx.Insert(h.table(), from, std::as_bytes(std::span(&tuple, 1)));
  } else {
    outcome = ctx.Update(h.table(), from, add(-uint64_t{1}));
  }
  return outcome == Outcome::kOk ? ctx.Update(h.table(), to, add(1)) : outcome;
}

TEST_P(WaitingStress, TransfersKeepTheSumAndEveryTransactionEnds) {
  constexpr uint64_t kRows = 6, kBalance = 10000, kTransactions = 2000;
  for (Key key = 0; key < kRows; ++key) h_.LoadRow(key, kBalance);
  std::vector<std::jthread> threads;
  for (uint32_t w = 0; w < TestEngine::kWorkers; ++w) {
    threads.emplace_back([&, w] {
      Random random(w);
      for (uint64_t n = 0; n < kTransactions; ++n) {
        h_.epochs().Refresh(WorkerId(w));
        const auto body = [&, draw = random.Next()](TestContext& ctx) { return Transfer(h_, ctx, kRows, draw); };
        Outcome outcome = h_.Run(w, body).outcome;
        for (SpinWait backoff; outcome == Outcome::kConflict; backoff.Wait()) outcome = h_.RunAgain(w, body).outcome;
        EXPECT_EQ(outcome, Outcome::kOk);
      }
    });
  }
  threads.clear();
  uint64_t sum = 0;
  for (Key key = 0; key < kRows; ++key) sum += h_.ValueOf(key);
  EXPECT_EQ(sum, kRows * kBalance);
}

// Rows are inserted and unlinked in turn: a worker that waits for one while it is unlinked finds its successor.
TEST_P(WaitingStress, InsertsAndDeletesOfOneKeyAlternate) {
  constexpr uint64_t kTransactions = 2000;
  std::array<int64_t, 4> present{};
  std::vector<std::jthread> threads;
  for (uint32_t w = 0; w < TestEngine::kWorkers; ++w) {
    threads.emplace_back([&, w] {
      for (uint64_t n = 0; n < kTransactions; ++n) {
        h_.epochs().Refresh(WorkerId(w));
        if (n % 16 == 0) h_.epochs().Advance();
        const Key key = n % 2;
        const CallResult inserted = h_.Insert(w, key, w);
        present[w] += inserted.outcome == Outcome::kOk;
        present[w] -= h_.Delete(w, key).outcome == Outcome::kOk;
      }
    });
  }
  threads.clear();
  const int64_t left = present[0] + present[1] + present[2] + present[3];
  EXPECT_EQ(left, (h_.ValueOf(0) != TestEngine::kMissing) + (h_.ValueOf(1) != TestEngine::kMissing));
}

}  // namespace
}  // namespace dbx::testing
