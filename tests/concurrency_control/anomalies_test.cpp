// The anomalies that isolation levels are told apart by (A. Adya, "Weak consistency", 1999; H. Berenson et al., SIGMOD
// 1995), tried on every concurrency control at every level that it claims. Transactions are interleaved by hand, in one
// thread: a wait ends at once, with a conflict. The tests ask which histories must not occur, not which of two
// transactions gives way.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

constexpr Key kX = 1, kY = 2, kNone = 5, kNothing = 6;

class Anomalies : public PairTest {
 protected:
  void SetUp() override {
    h_.LoadRow(kX, 10);
    h_.LoadRow(kY, 20);
  }

  Outcome Read(TestContext& ctx, Key key, uint64_t& value) {
    value = TestEngine::kMissing;
    return ctx.Read(h_.table(), key, [&](const TestTuple& t) { value = t.GetAt<uint64_t>(0); });
  }
  Outcome Write(TestContext& ctx, Key key, uint64_t value) {
    return ctx.Update(h_.table(), key, [&](TestTuple& t) { t.SetAt<uint64_t>(0, value); });
  }
  Outcome Insert(TestContext& ctx, Key key) {
    const Tuple tuple{1, {}};
    return ctx.Insert(h_.table(), key, std::as_bytes(std::span(&tuple, 1)));
  }
  // Runs steps in turn, to the first that is not kOk.
  static Outcome InTurn(auto... steps) {
    Outcome outcome = Outcome::kOk;
    ((outcome = outcome == Outcome::kOk ? steps() : outcome), ...);
    return outcome;
  }
  // Each of the two does `act(ctx, side, meanwhile)`; worker 1's comes while worker 0's is at `meanwhile`.
  bool BothCommit(auto act) {
    bool inner = false;
    const bool outer = Commits(0, [&](TestContext& ctx) {
      return act(ctx, 0, [&] { inner = Commits(1, [&](TestContext& other) { return act(other, 1, [] {}); }); });
    });
    return outer && inner;
  }
  // Reads both rows and writes one.
  auto SkewOfRows() {
    return [this](TestContext& ctx, int side, auto meanwhile) {
      uint64_t x = 0, y = 0;
      return InTurn([&] { return Read(ctx, kX, x); }, [&] { return Read(ctx, kY, y); },
                    [&] {
                      meanwhile();
                      return Write(ctx, side == 0 ? kX : kY, 0);
                    });
    };
  }
  // Misses one row and inserts the other.
  auto SkewOfMisses() {
    return [this](TestContext& ctx, int side, auto meanwhile) {
      uint64_t value = 0;
      const Outcome outcome = Read(ctx, side == 0 ? kNone : kNothing, value);
      meanwhile();
      return outcome == Outcome::kNotFound ? Insert(ctx, side == 0 ? kNothing : kNone) : outcome;
    };
  }
  bool Commits(uint32_t worker, auto body) { return h_.Run(worker, body).outcome == Outcome::kOk; }

  void Move(uint32_t worker, Key from, Key to) {
    if (from == to) return;
    const auto add = [](uint64_t amount) {
      return [amount](TestTuple& t) { t.SetAt<uint64_t>(0, t.GetAt<uint64_t>(0) + amount); };
    };
    (void)Commits(worker, [&](TestContext& ctx) {
      return InTurn([&] { return ctx.Update(h_.table(), from, add(-uint64_t{1})); },
                    [&] { return ctx.Update(h_.table(), to, add(1)); });
    });
  }
  Outcome AddUp(TestContext& ctx, Key first, uint64_t rows, uint64_t& sum) {
    sum = 0;
    for (Key key = first; key < first + rows; ++key) {
      uint64_t value = 0;
      const Outcome outcome = Read(ctx, key, value);
      if (outcome != Outcome::kOk) return outcome;
      sum += value;
    }
    return Outcome::kOk;
  }
};
class SerializableAnomalies : public Anomalies {};

INSTANTIATE_TEST_SUITE_P(With, Anomalies, In(ControlsWhere([](const TestPair&) { return true; })), NameOfPair);
INSTANTIATE_TEST_SUITE_P(With, SerializableAnomalies, In(ControlsWhere(&IsSerializable)), NameOfPair);

TEST_P(Anomalies, G0TwoWritersDoNotInterleave) {
  bool inner = false;
  const bool outer = Commits(0, [&](TestContext& ctx) {
    return InTurn([&] { return Write(ctx, kX, 1); },
                  [&] {
                    inner = Commits(1, [&](TestContext& other) {
                      return InTurn([&] { return Write(other, kX, 2); }, [&] { return Write(other, kY, 2); });
                    });
                    return Write(ctx, kY, 1);
                  });
  });
  ASSERT_TRUE(outer || inner);
  EXPECT_EQ(h_.ValueOf(kX), h_.ValueOf(kY));
}

TEST_P(Anomalies, G1aNobodyReadsWhatIsAborted) {
  uint64_t seen = 10;
  bool inner = false;
  EXPECT_FALSE(Commits(0, [&](TestContext& ctx) {
    EXPECT_EQ(Write(ctx, kX, 99), Outcome::kOk);
    inner = Commits(1, [&](TestContext& other) { return Read(other, kX, seen); });
    return Outcome::kRollback;
  }));
  if (inner) {
    EXPECT_EQ(seen, 10u);
  }
  EXPECT_EQ(h_.ValueOf(kX), 10u);
}

TEST_P(Anomalies, G1bNobodyReadsWhatIsWrittenOverByItsWriter) {
  uint64_t seen = 10;
  bool inner = false;
  (void)Commits(0, [&](TestContext& ctx) {
    EXPECT_EQ(Write(ctx, kX, 98), Outcome::kOk);
    inner = Commits(1, [&](TestContext& other) { return Read(other, kX, seen); });
    return Write(ctx, kX, 99);
  });
  if (inner) {
    EXPECT_EQ(seen, 10u);
  }
}

TEST_P(Anomalies, G1cTwoDoNotReadFromEachOther) {
  uint64_t outer_sees = 0, inner_sees = 0;
  bool inner = false;
  const bool outer = Commits(0, [&](TestContext& ctx) {
    EXPECT_EQ(Write(ctx, kX, 1), Outcome::kOk);
    inner = Commits(1, [&](TestContext& other) {
      return InTurn([&] { return Write(other, kY, 2); }, [&] { return Read(other, kX, inner_sees); });
    });
    return Read(ctx, kY, outer_sees);
  });
  EXPECT_FALSE(outer && inner && outer_sees == 2 && inner_sees == 1);
}

TEST_P(Anomalies, NoUpdateIsLost) {
  const auto increment = [&](TestContext& ctx, auto meanwhile) {
    uint64_t seen = 0;
    return InTurn([&] { return Read(ctx, kX, seen); },
                  [&] {
                    meanwhile();
                    return Write(ctx, kX, seen + 1);
                  });
  };
  bool inner = false;
  const bool outer = Commits(0, [&](TestContext& ctx) {
    return increment(ctx, [&] { inner = Commits(1, [&](TestContext& other) { return increment(other, [] {}); }); });
  });
  EXPECT_EQ(h_.ValueOf(kX), 10u + outer + inner);
}

TEST_P(Anomalies, GSingleReadsAreOfOneMoment) {
  uint64_t x = 0, y = 0;
  bool inner = false;
  const bool outer = Commits(0, [&](TestContext& ctx) {
    return InTurn([&] { return Read(ctx, kX, x); },
                  [&] {
                    inner = Commits(1, [&](TestContext& other) {
                      return InTurn([&] { return Write(other, kX, 1); }, [&] { return Write(other, kY, 1); });
                    });
                    return Read(ctx, kY, y);
                  });
  });
  if (outer) {
    EXPECT_EQ(y, x == 10 ? 20u : 1u) << inner;
  }
}

// By writes: a transaction acts on an old moment.
TEST_P(Anomalies, GSingleAWriteIsNotOfALaterMomentThanItsReads) {
  uint64_t x = 0;
  bool inner = false;
  const bool outer = Commits(0, [&](TestContext& ctx) {
    return InTurn([&] { return Read(ctx, kX, x); },
                  [&] {
                    inner = Commits(1, [&](TestContext& other) {
                      return InTurn([&] { return Write(other, kX, 1); }, [&] { return Write(other, kY, 1); });
                    });
                    return Write(ctx, kY, x);
                  });
  });
  EXPECT_FALSE(outer && inner && x == 10);
}

TEST_P(SerializableAnomalies, G2ItemWriteSkewIsRefused) { EXPECT_FALSE(BothCommit(SkewOfRows())); }

TEST_P(SerializableAnomalies, G2WriteSkewOverWhatIsMissingIsRefused) { EXPECT_FALSE(BothCommit(SkewOfMisses())); }

// The level says so: else it is not what it claims to be, and costs more than it must.
class SnapshotAnomalies : public Anomalies {};
INSTANTIATE_TEST_SUITE_P(With, SnapshotAnomalies, In(ControlsWhere(&ReadsSnapshots)), NameOfPair);
TEST_P(SnapshotAnomalies, WriteSkewIsAllowed) {
  EXPECT_TRUE(BothCommit(SkewOfRows()));
  EXPECT_TRUE(BothCommit(SkewOfMisses()));
}

// A. Fekete et al., SIGMOD Record 2004: two updates that would do, and a reader that sees them in the other order.
TEST_P(SerializableAnomalies, AReaderDoesNotTellAnOrderThatCannotBe) {
  uint64_t x = 0, y = 0, seen_x = 0, seen_y = 0;
  bool deposit = false, report = false;
  const bool withdrawal = Commits(0, [&](TestContext& ctx) {
    return InTurn([&] { return Read(ctx, kX, x); }, [&] { return Read(ctx, kY, y); },
                  [&] {
                    deposit = Commits(1, [&](TestContext& other) { return Write(other, kY, 40); });
                    report = Commits(2, [&](TestContext& other) {
                      return InTurn([&] { return Read(other, kX, seen_x); }, [&] { return Read(other, kY, seen_y); });
                    });
                    return Write(ctx, kX, 0);
                  });
  });
  EXPECT_FALSE(withdrawal && deposit && report && y == 20 && seen_x == 10 && seen_y == 40);
}

// Threads move amounts between rows while others add up all of them: write skew would not show here, all else does.
TEST_P(Anomalies, WhoAddsUpAllRowsFindsNothingLostWhileThreadsMoveAmounts) {
  constexpr uint64_t kRows = 8, kEach = 1000, kTransactions = 3000;
  const uint64_t seed = std::random_device()();
  for (Key key = 100; key < 100 + kRows; ++key) h_.LoadRow(key, kEach);
  std::atomic<uint64_t> sums{0};
  const auto work = [&](uint32_t worker) {
    std::mt19937_64 random(seed * 10 + worker);
    const bool moves = worker % 2 == 0;
    // A worker that adds up may meet none but locked rows, until no worker moves any more.
    for (uint64_t n = 0; n < kTransactions || (!moves && sums == 0); ++n) {
      h_.epochs().Refresh(WorkerId(worker));
      uint64_t sum = 0;
      if (moves) {
        Move(worker, 100 + random() % kRows, 100 + random() % kRows);
      } else if (Commits(worker, [&](TestContext& ctx) { return AddUp(ctx, 100, kRows, sum); })) {
        EXPECT_EQ(sum, kRows * kEach) << "seed " << seed;
        ++sums;
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < TestEngine::kWorkers; ++w) threads.emplace_back(work, w);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(sums.load(), 0u);
}

}  // namespace
}  // namespace dbx::testing
