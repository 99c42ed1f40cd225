// What only TicToc does: timestamps computed from what is read and written, and an order of commits that is not that of
// the clock on the wall. Words of rows are looked at and, to save thousands of transactions, set by hand.
#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

using Word = TicTocWord;

constexpr Key kX = 1, kY = 2, kHot = 3;

template <class Cc, class Log>
class Bench : public Harness<Cc, Log> {
 public:
  explicit Bench(uint32_t logs = 1) : Harness<Cc, Log>(logs) {
    for (const Key key : {kX, kY, kHot}) this->LoadRow(key, 10 * key);
  }

  Row& row(Key key) { return *this->table().Find(key); }
  uint64_t word(Key key) { return row(key).control.load(); }
  uint64_t wts(Key key) { return Word::Wts(word(key)).value(); }
  uint64_t rts(Key key) { return Word::Rts(word(key)).value(); }
  void WrittenAt(Key key, uint64_t timestamp) { row(key).control.store(Word::WrittenAt(Timestamp(timestamp))); }

  Outcome ReadIn(TestContext& ctx, Key key) {
    return ctx.Read(this->table(), key, [](const TestTuple&) {});
  }
  Outcome WriteIn(TestContext& ctx, Key key) {
    return ctx.Update(this->table(), key, [](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, 99); });
  }
  // Reads the row of `key`, present or not, at `timestamp`: its rts is at least that afterwards.
  void ReadAt(uint64_t timestamp, Key key) {
    WrittenAt(kHot, timestamp);
    const auto body = [&](TestContext& ctx) {
      EXPECT_EQ(ReadIn(ctx, kHot), Outcome::kOk);
      EXPECT_NE(ReadIn(ctx, key), Outcome::kConflict);
      return Outcome::kOk;
    };
    EXPECT_EQ(this->Run(1, body).outcome, Outcome::kOk);
  }
  // Worker 1 unlinks what it has queued.
  void Age() {
    for (int i = 0; i < 5; ++i) this->epochs().Advance();
    for (int i = 0; i < 300; ++i) (void)this->Run(1, [](TestContext&) { return Outcome::kOk; });
  }

  // Worker 0 reads X; then `meanwhile`; then it writes Y, if it `writes`, and commits.
  CallResult ReadXThen(auto meanwhile, bool writes) {
    return this->Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(ReadIn(ctx, kX), Outcome::kOk);
      meanwhile();
      return writes ? WriteIn(ctx, kY) : Outcome::kOk;
    });
  }
};
using TicTocBench = Bench<TicToc<NoLog>, NoLog>;
using SiloBench = Bench<Silo<NoLog>, NoLog>;

TEST(TicTocWord, AnRtsWithinDeltaLeavesTheVersionAlone) {
  const uint64_t control = Word::WrittenAt(Timestamp(7)) | Row::kAbsent | Row::kQueued;
  const uint64_t raised = Word::RaisedTo(Timestamp(7 + Word::kDeltaMax), control);
  EXPECT_EQ(Word::Wts(raised), Timestamp(7));
  EXPECT_EQ(Word::Rts(raised), Timestamp(7 + Word::kDeltaMax));
  EXPECT_EQ(raised & ~Word::kDeltaMask, control);
}

TEST(TicTocWord, AnRtsBeyondDeltaMovesWtsAndKeepsTheFlags) {
  const uint64_t control = Word::WrittenAt(Timestamp(7)) | Row::kAbsent | Row::kQueued;
  for (const uint64_t beyond : {1u, 2u, 40000u, 1u << 31}) {
    const uint64_t raised = Word::RaisedTo(Timestamp(7 + Word::kDeltaMax + beyond), control);
    EXPECT_EQ(Word::Rts(raised), Timestamp(7 + Word::kDeltaMax + beyond));
    EXPECT_GT(Word::Wts(raised), Timestamp(7));
    EXPECT_EQ(raised % (1 << Row::kSharedBits), control % (1 << Row::kSharedBits));
  }
}

TEST(TicTocOrder, AReaderCommitsBelowTheWriterThatReplacedWhatItRead) {
  TicTocBench h;
  EXPECT_EQ(h.ReadXThen([&] { EXPECT_TRUE(h.Write(1, kX, 11).wrote); }, false).outcome, Outcome::kOk);
  SiloBench silo;
  EXPECT_EQ(silo.ReadXThen([&] { EXPECT_TRUE(silo.Write(1, kX, 11).wrote); }, false).outcome, Outcome::kConflict);
}

TEST(TicTocOrder, AWriterCommitsBelowTheWriterThatReplacedWhatItRead) {
  TicTocBench h;
  h.ReadAt(10, kX);
  EXPECT_EQ(h.ReadXThen([&] { EXPECT_TRUE(h.Write(1, kX, 11).wrote); }, true).outcome, Outcome::kOk);
  EXPECT_EQ(h.word(kX), Word::WrittenAt(Timestamp(11)));
  EXPECT_EQ(h.word(kY), Word::WrittenAt(Timestamp(1)));
  SiloBench silo;
  EXPECT_EQ(silo.ReadXThen([&] { EXPECT_TRUE(silo.Write(1, kX, 11).wrote); }, true).outcome, Outcome::kConflict);
}

TEST(TicTocOrder, WhatWasReplacedIsNotReadAboveItsTime) {
  TicTocBench h;
  h.ReadAt(10, kX);
  h.ReadAt(10, kY);
  const CallResult result = h.ReadXThen([&] { EXPECT_TRUE(h.Write(1, kX, 11).wrote); }, true);
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(result.reason, AbortReason::kValidation);
}

TEST(TicTocOrder, AWriterCommitsAboveAllWhoRead) {
  TicTocBench h;
  h.ReadAt(10, kX);
  h.ReadAt(7, kX);
  EXPECT_EQ(h.wts(kX), 0u);
  EXPECT_EQ(h.rts(kX), 10u);
  EXPECT_TRUE(h.Write(0, kX, 11).wrote);
  EXPECT_EQ(h.word(kX), Word::WrittenAt(Timestamp(11)));
}

TEST(TicTocOrder, AReaderThatRaisesNothingLeavesNoTrace) {
  TicTocBench h;
  h.ReadAt(10, kX);
  const uint64_t before = h.word(kX);
  EXPECT_EQ(h.Read(0, kX).outcome, Outcome::kOk);
  EXPECT_EQ(h.word(kX), before);
}

TEST(TicTocOrder, ARowThatAnotherHasLockedIsNotRaised) {
  TicTocBench h;
  const CallResult result = h.ReadXThen([&] { h.row(kX).control.fetch_or(Row::kLocked); }, true);
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(h.word(kX), Word::WrittenAt(Timestamp(0)) | Row::kLocked);
  EXPECT_EQ(h.word(kY), Word::WrittenAt(Timestamp(0)));
}

TEST(TicTocOrder, ARowThatAnotherHasLockedHoldsUpToItsRts) {
  TicTocBench h;
  h.ReadAt(10, kX);
  EXPECT_EQ(h.ReadXThen([&] { h.row(kX).control.fetch_or(Row::kLocked); }, true).outcome, Outcome::kOk);
  EXPECT_EQ(h.word(kY), Word::WrittenAt(Timestamp(1)));
}

// The reader saw the row before it was raised: what it needs may be there already.
TEST(TicTocOrder, ARaiseByAnotherReaderCounts) {
  TicTocBench h;
  const auto meanwhile = [&] {
    h.ReadAt(10, kX);
    h.row(kX).control.fetch_or(Row::kLocked);
  };
  EXPECT_EQ(h.ReadXThen(meanwhile, true).outcome, Outcome::kOk);
}

TEST(TicTocOrder, ALostUpdateIsRefused) {
  TicTocBench h;
  const auto body = [&](TestContext& ctx) {
    EXPECT_EQ(h.WriteIn(ctx, kX), Outcome::kOk);
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    return Outcome::kOk;
  };
  EXPECT_EQ(h.Run(0, body).outcome, Outcome::kConflict);
  EXPECT_EQ(h.ValueOf(kX), 11u);
}

TEST(TicTocOrder, ARowThatIsReadAndWrittenMustBeOfOneVersion) {
  TicTocBench h;
  const auto body = [&](TestContext& ctx) {
    EXPECT_EQ(h.ReadIn(ctx, kX), Outcome::kOk);
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    return h.WriteIn(ctx, kX);
  };
  EXPECT_EQ(h.Run(0, body).outcome, Outcome::kConflict);
  EXPECT_EQ(h.Run(0,
                  [&](TestContext& ctx) {
                    EXPECT_EQ(h.ReadIn(ctx, kX), Outcome::kOk);
                    return h.WriteIn(ctx, kX);
                  })
                .outcome,
            Outcome::kOk);
}

TEST(TicTocOrder, AnInsertThatFindsItsRowReadsIt) {
  TicTocBench h;
  h.ReadAt(10, kY);
  const auto body = [&](TestContext& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(h.table(), kX, std::as_bytes(std::span(&tuple, 1))), Outcome::kExists);
    return h.WriteIn(ctx, kY);
  };
  EXPECT_EQ(h.Run(0, body).outcome, Outcome::kOk);
  EXPECT_EQ(h.wts(kY), 11u);
  EXPECT_EQ(h.wts(kX), 0u);
  EXPECT_EQ(h.rts(kX), 11u);
}

TEST(TicTocDelta, WhoeverReadsLongAfterTheLastWriteMovesTheVersion) {
  TicTocBench h;
  h.ReadAt(3 * (Word::kDeltaMax + 1) + 5, kX);
  EXPECT_EQ(h.wts(kX), 3 * (Word::kDeltaMax + 1));
  EXPECT_EQ(h.rts(kX), 3 * (Word::kDeltaMax + 1) + 5);
  EXPECT_TRUE(h.Write(0, kX, 11).wrote);
  EXPECT_EQ(h.word(kX), Word::WrittenAt(Timestamp(3 * (Word::kDeltaMax + 1) + 6)));
}

TEST(TicTocDelta, AVersionThatMovedServesWhoNeedsNoMoreThanItSaw) {
  TicTocBench h;
  EXPECT_EQ(h.ReadXThen([&] { h.ReadAt(1'000'000, kX); }, true).outcome, Outcome::kConflict);
  h.WrittenAt(kX, 0);
  h.ReadAt(10, kX);
  EXPECT_EQ(h.ReadXThen([&] { h.ReadAt(1'000'000, kX); }, true).outcome, Outcome::kOk);
  EXPECT_EQ(h.word(kY), Word::WrittenAt(Timestamp(1)));
}

TEST(TicTocAbsent, AnInsertCommitsAboveWhoeverMissedTheRow) {
  TicTocBench h;
  h.ReadAt(10, 5);
  EXPECT_TRUE(h.Insert(0, 5, 1).wrote);
  EXPECT_EQ(h.wts(5), 11u);
}

TEST(TicTocAbsent, AnInsertCommitsAboveWhoeverMissedARowThatIsForgotten) {
  TicTocBench h;
  h.ReadAt(10, 5);
  h.Age();
  ASSERT_EQ(h.table().Find(5), nullptr);
  EXPECT_TRUE(h.Insert(0, 5, 1).wrote);
  EXPECT_EQ(h.wts(5), 11u);
}

TEST(TicTocAbsent, AMissOfARowThatIsForgottenHoldsUpToItsRtsAndNoFurther) {
  for (const uint64_t timestamp : {10, 11}) {
    TicTocBench h;
    h.ReadAt(10, 5);
    h.ReadAt(timestamp - 1, kY);
    const CallResult result = h.Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(h.ReadIn(ctx, 5), Outcome::kNotFound);
      h.Age();
      EXPECT_TRUE(h.Insert(2, 5, 1).wrote);
      return h.WriteIn(ctx, kY);
    });
    EXPECT_EQ(result.outcome, timestamp == 10 ? Outcome::kOk : Outcome::kConflict);
    EXPECT_EQ(h.wts(5), 11u);
  }
}

TEST(TicTocLog, AFailedRecheckReservesNothing) {
  Bench<TicToc<SerialLog<DataPayload>>, SerialLog<DataPayload>> h;
  const Lsn before = h.logs().stream(0).reserved_until();
  const auto lock_x = [&] { h.row(kX).control.fetch_or(Row::kLocked); };
  EXPECT_EQ(h.ReadXThen(lock_x, true).outcome, Outcome::kConflict);
  EXPECT_EQ(h.logs().stream(0).reserved_until(), before);
}

// Worker 0 writes to log 0, worker 1 to log 1: the reader waits for the version that it read, not for the later one.
TEST(TicTocLog, AReaderWaitsForWhatItReadAndNotForWhatReplacedIt) {
  Bench<TicToc<TaurusLog<DataPayload>>, TaurusLog<DataPayload>> h(2);
  ASSERT_TRUE(h.Write(0, kX, 11).wrote);
  const auto body = [&](TestContext& ctx) {
    EXPECT_EQ(h.ReadIn(ctx, kX), Outcome::kOk);
    EXPECT_TRUE(h.Write(1, kX, 12).wrote);
    return Outcome::kOk;
  };
  ASSERT_EQ(h.Run(2, body).outcome, Outcome::kOk);
  EXPECT_FALSE(h.IsDurable(2));
  h.Flush(0);
  EXPECT_TRUE(h.IsDurable(2));
  EXPECT_FALSE(h.IsDurable(1));
}

}  // namespace
}  // namespace dbx::testing
