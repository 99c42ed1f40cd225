// The contract between concurrency control and logging, for every pair: what a scheme learns of rows read, written,
// missed, inserted and deleted. Transactions of several workers are interleaved by hand.
#include <gtest/gtest.h>

#include "concurrency_control/controls.h"
#include "tests/concurrency_control/harness.h"
#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

TEST(Pairs, EveryControlIsTestedWithAndWithoutALog) {
  for (const ControlInfo& control : kControls) {
    for (const bool logs : {false, true}) {
      bool found = false;
      for (const TestPair* pair : PairsWhere([](const TestPair&) { return true; })) {
        found = found || (pair->cc.name == control.name && pair->log.logs == logs);
      }
      EXPECT_TRUE(found) << control.name;
    }
  }
}

class EveryPair : public PairTest {};
INSTANTIATE_TEST_SUITE_P(With, EveryPair, In(PairsWhere([](const TestPair& pair) {
                           return pair.log.logs && pair.isolation == Isolation::kSerializable;
                         })),
                         NameOfPair);

TEST_P(EveryPair, AWriteIsSeenAndAnAbortLeavesNothing) {
  h_.LoadRow(1, 10);
  EXPECT_EQ(h_.Write(0, 1, 11).outcome, Outcome::kOk);
  EXPECT_EQ(h_.ValueOf(1), 11u);
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Update(h_.table(), 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, 99); }), Outcome::kOk);
    return Outcome::kRollback;
  });
  EXPECT_EQ(result.outcome, Outcome::kRollback);
  EXPECT_EQ(h_.ValueOf(1), 11u);
}

TEST_P(EveryPair, ATransactionSeesItsOwnWrites) {
  h_.LoadRow(1, 10);
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    Table& table = h_.table();
    uint64_t seen = 0;
    EXPECT_EQ(ctx.Read(table, 1, [&](const TestTuple& t) { seen = t.GetAt<uint64_t>(0); }), Outcome::kOk);
    EXPECT_EQ(ctx.Update(table, 1, [&](TestTuple& t) { t.SetAt<uint64_t>(0, seen + 1); }), Outcome::kOk);
    EXPECT_EQ(ctx.Update(table, 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, t.GetAt<uint64_t>(0) * 2); }), Outcome::kOk);
    EXPECT_EQ(ctx.Read(table, 1, [&](const TestTuple& t) { seen = t.GetAt<uint64_t>(0); }), Outcome::kOk);
    EXPECT_EQ(seen, 22u);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(h_.ValueOf(1), 22u);
}

TEST_P(EveryPair, InsertDeleteAndReinsertWithinOneTransaction) {
  h_.LoadRow(1, 10);
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    Table& table = h_.table();
    const Tuple tuple{5, {}};
    const auto bytes = std::as_bytes(std::span(&tuple, 1));
    EXPECT_EQ(ctx.Insert(table, 1, bytes), Outcome::kExists);
    EXPECT_EQ(ctx.Delete(table, 1), Outcome::kOk);
    EXPECT_EQ(ctx.Read(table, 1, [](const TestTuple&) {}), Outcome::kNotFound);
    EXPECT_EQ(ctx.Insert(table, 1, bytes), Outcome::kOk);
    EXPECT_EQ(ctx.Insert(table, 2, bytes), Outcome::kOk);
    EXPECT_EQ(ctx.Delete(table, 2), Outcome::kOk);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(h_.ValueOf(1), 5u);
  EXPECT_EQ(h_.ValueOf(2), TestEngine::kMissing);
}

TEST_P(EveryPair, AnAbortBringsBackADeletedAndReinsertedRow) {
  h_.LoadRow(1, 10);
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    const Tuple tuple{5, {1, 2, 3}};
    EXPECT_EQ(ctx.Delete(h_.table(), 1), Outcome::kOk);
    EXPECT_EQ(ctx.Insert(h_.table(), 1, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    return Outcome::kRollback;
  });
  EXPECT_EQ(result.outcome, Outcome::kRollback);
  EXPECT_EQ(h_.ValueOf(1), 10u);
}

// A reader that leaves no record must wait for the writer it read from.
TEST_P(EveryPair, AReaderIsNotDurableBeforeWhatItRead) {
  h_.LoadRow(1, 10);
  ASSERT_TRUE(h_.Write(0, 1, 11).wrote);
  ASSERT_EQ(h_.Read(1, 1).outcome, Outcome::kOk);
  EXPECT_FALSE(h_.IsDurable(0));
  EXPECT_FALSE(h_.IsDurable(1));
  h_.HardenAll();
  EXPECT_TRUE(h_.IsDurable(0));
  EXPECT_TRUE(h_.IsDurable(1));
}

// With data logging too: otherwise the row comes back after a crash, though a client was told that it is deleted.
TEST_P(EveryPair, AMissIsNotDurableBeforeTheDeleteThatMadeIt) {
  h_.LoadRow(1, 10);
  ASSERT_TRUE(h_.Delete(0, 1).wrote);
  uint64_t value = 0;
  ASSERT_EQ(h_.Read(1, 1, &value).outcome, Outcome::kOk);
  EXPECT_EQ(value, TestEngine::kMissing);
  EXPECT_FALSE(h_.IsDurable(1));
  h_.HardenAll();
  EXPECT_TRUE(h_.IsDurable(1));
}

// An update of a row that is absent, or an insert of one that is present, has read it, though it looked in order to
// write.
TEST_P(EveryPair, AChangeInVainIsNotDurableBeforeWhatItSaw) {
  h_.LoadRow(1, 10);
  const auto update_in_vain = [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Update(h_.table(), 1, [](TestTuple&) {}), Outcome::kNotFound);
    return Outcome::kOk;
  };
  const auto insert_in_vain = [&](TestContext& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(h_.table(), 2, std::as_bytes(std::span(&tuple, 1))), Outcome::kExists);
    return Outcome::kOk;
  };
  const auto expect_to_wait = [&](auto body) {
    const CallResult result = h_.Run(1, body);
    ASSERT_EQ(result.outcome, Outcome::kOk);
    EXPECT_FALSE(result.wrote);
    EXPECT_FALSE(h_.IsDurable(1));
    h_.HardenAll();
    EXPECT_TRUE(h_.IsDurable(1));
  };
  ASSERT_TRUE(h_.Delete(0, 1).wrote);
  expect_to_wait(update_in_vain);
  ASSERT_TRUE(h_.Insert(0, 2, 7).wrote);
  expect_to_wait(insert_in_vain);
}

// A pending insert is in the index but reads as missing or as a conflict, never as a row.
TEST_P(EveryPair, AnInsertIsInvisibleBeforeItCommits) {
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(h_.table(), 1, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    uint64_t value = TestEngine::kMissing;
    const CallResult inner = h_.Read(1, 1, &value);
    EXPECT_TRUE(inner.outcome == Outcome::kConflict || value == TestEngine::kMissing);
    return Outcome::kOk;
  });
  EXPECT_TRUE(outer.outcome == Outcome::kOk || outer.outcome == Outcome::kConflict);
}

TEST_P(EveryPair, TwoInsertsOfOneKeyDoNotBothCommit) {
  CallResult inner{};
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    const Tuple tuple{5, {}};
    const Outcome outcome = ctx.Insert(h_.table(), 1, std::as_bytes(std::span(&tuple, 1)));
    inner = h_.Insert(1, 1, 6);
    return outcome;
  });
  EXPECT_NE(outer.outcome == Outcome::kOk, inner.outcome == Outcome::kOk);
  EXPECT_EQ(h_.ValueOf(1), outer.outcome == Outcome::kOk ? 5u : 6u);
}

// Write skew: each reads what the other writes.
TEST_P(EveryPair, WriteSkewIsRefused) {
  h_.LoadRow(1, 1);
  h_.LoadRow(2, 1);
  CallResult inner{};
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    const Outcome read = ctx.Read(h_.table(), 2, [](const TestTuple&) {});
    if (read != Outcome::kOk) return read;
    inner = h_.Run(1, [&](TestContext& other) {
      const Outcome other_read = other.Read(h_.table(), 1, [](const TestTuple&) {});
      if (other_read != Outcome::kOk) return other_read;
      return other.Update(h_.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 0); });
    });
    return ctx.Update(h_.table(), 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, 0); });
  });
  EXPECT_FALSE(outer.outcome == Outcome::kOk && inner.outcome == Outcome::kOk);
}

// A miss is a read: an insert of the missed key by another before the commit is a conflict.
TEST_P(EveryPair, AMissIsProtectedAgainstAnInsert) {
  h_.LoadRow(2, 1);
  CallResult inner{};
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kNotFound);
    inner = h_.Insert(1, 1, 5);
    return ctx.Update(h_.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  EXPECT_FALSE(outer.outcome == Outcome::kOk && inner.outcome == Outcome::kOk);
}

// What was deleted, missed or inserted in vain leaves the index once its metadata is durable, and not before.
TEST_P(EveryPair, AbsentRowsLeaveTheIndexOnceForgettable) {
  h_.LoadRow(1, 10);
  ASSERT_EQ(h_.Delete(0, 1).outcome, Outcome::kOk);
  h_.Sweep(0);
  if (GetParam()->log.replay_order == ReplayOrder::kPartial) {
    EXPECT_NE(h_.table().Find(1), nullptr);
  }
  h_.FlushAll();
  h_.Sweep(0);
  EXPECT_EQ(h_.table().Find(1), nullptr);
}

class TaurusPairs : public PairTest {};
INSTANTIATE_TEST_SUITE_P(With, TaurusPairs, In(PairsWhere(&IsTaurus)), NameOfPair);

// Workers 0 and 1 write to logs 0 and 1. A commit point covers that of everything it depends on.
TEST_P(TaurusPairs, AWriterDependsOnTheLastWriter) {
  h_.LoadRow(1, 10);
  ASSERT_EQ(h_.Write(0, 1, 11).outcome, Outcome::kOk);
  ASSERT_EQ(h_.Write(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(h_.point(0), h_.point(1), 2));
}

TEST_P(TaurusPairs, AReinsertDependsOnTheDelete) {
  h_.LoadRow(1, 10);
  ASSERT_EQ(h_.Delete(0, 1).outcome, Outcome::kOk);
  ASSERT_EQ(h_.Insert(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(h_.point(0), h_.point(1), 2));
}

// Even after the deleted row has left the index, and its metadata with it.
TEST_P(TaurusPairs, AReinsertDependsOnAForgottenDelete) {
  h_.LoadRow(1, 10);
  ASSERT_EQ(h_.Delete(0, 1).outcome, Outcome::kOk);
  h_.FlushAll();
  for (int i = 0; i < 5; ++i) h_.epochs().Advance();
  for (int i = 0; i < 300; ++i) (void)h_.Run(0, [](TestContext&) { return Outcome::kOk; });
  ASSERT_EQ(h_.table().Find(1), nullptr);
  const uint64_t deleted_at = h_.logs().stream(0).txn_count();
  ASSERT_EQ(deleted_at, 1u);
  ASSERT_EQ(h_.Insert(1, 1, 12).outcome, Outcome::kOk);
  // The delete's record lies in log 0, below what was durable.
  EXPECT_GT(h_.point(1)[0], 0u);
}

class CommandPairs : public PairTest {};
INSTANTIATE_TEST_SUITE_P(With, CommandPairs, In(PairsWhere(&TracksReads)), NameOfPair);

// Anti-dependency: the writer of a row comes after the transactions that read it before, by their own LSNs (the
// paper's Alg. 6 raises readLV before these exist).
TEST_P(CommandPairs, AWriterDependsOnEarlierReaders) {
  h_.LoadRow(1, 10);
  h_.LoadRow(2, 20);
  const CallResult reader = h_.Run(0, [&](TestContext& ctx) {
    const Outcome read = ctx.Read(h_.table(), 1, [](const TestTuple&) {});
    if (read != Outcome::kOk) return read;
    return ctx.Update(h_.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  ASSERT_TRUE(reader.wrote);
  ASSERT_EQ(h_.Write(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(h_.point(0), h_.point(1), 2));
  EXPECT_GT(h_.point(1)[0], 0u);
}

// The same for what was missed: the insert comes after the transaction that saw nothing there.
TEST_P(CommandPairs, AnInsertDependsOnEarlierMisses) {
  h_.LoadRow(2, 20);
  const CallResult reader = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kNotFound);
    return ctx.Update(h_.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  ASSERT_TRUE(reader.wrote);
  ASSERT_EQ(h_.Insert(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(h_.point(0), h_.point(1), 2));
}

TEST_P(CommandPairs, ADependencyIsInTheRecordBeforeItsPlaceIsTaken) {
  h_.LoadRow(1, 10);
  ASSERT_EQ(h_.Write(0, 1, 11).outcome, Outcome::kOk);
  const Lsn before = h_.logs().stream(0).reserved_until();
  ASSERT_EQ(h_.Write(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_LE(h_.own_dependency(1), h_.place(1));
  EXPECT_EQ(Lsn(h_.point(1)[0]), before);
}

// Recycled memory may still have an entry in the lock table: its metadata is another row's.
TEST(LockTable, ARecycledRowDoesNotInheritMetadata) {
  using Log = TaurusLog<CommandPayload>;
  Harness<NoWaitTable<Log>, Log> h(1);
  h.LoadRow(1, 10);
  Row* row = h.table().Find(1);
  LockTableLocks<Log> locks(h.shared().locks);
  LockTableLocks<Log>::Handle entry = nullptr;
  ASSERT_EQ(locks.TryExclusive(row, entry), LockResult::kOk);
  locks.ReleaseExclusive(entry, row);
  const_cast<DurableVector&>(h.logs().durable()).lsn[0] = 5000;
  locks.InitFreshMeta(h.log(), *row);
  ASSERT_EQ(locks.TryExclusive(row, entry), LockResult::kOk);
  uint64_t write_lv = 0;
  std::memcpy(&write_lv, locks.meta(entry), sizeof write_lv);
  EXPECT_EQ(write_lv, 5000u);
  locks.ReleaseExclusive(entry, row);
}

TEST(SiloCommand, AFailedRecheckLeavesAVoidRecord) {
  const auto engine = EngineNamed("SILO_SERIAL_COMMAND", {.logs = 1});
  TestEngine& h = *engine;
  h.LoadRow(1, 10);
  h.LoadRow(2, 20);
  const CallResult result = h.Run(0, [&](TestContext& ctx) {
    const Outcome read = ctx.Read(h.table(), 1, [](const TestTuple&) {});
    EXPECT_EQ(h.Write(1, 1, 11).outcome, Outcome::kOk);  // invalidates the read
    if (read != Outcome::kOk) return read;
    return ctx.Update(h.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(result.reason, AbortReason::kValidation);
  EXPECT_GT(h.logs().stream(0).slot(0).void_bytes, 0u);
  EXPECT_EQ(h.logs().stream(0).ReadyUntil(), h.logs().stream(0).reserved_until());
}

TEST(SiloData, AFailedRecheckReservesNothing) {
  const auto engine = EngineNamed("SILO_SERIAL_DATA", {.logs = 1});
  TestEngine& h = *engine;
  h.LoadRow(1, 10);
  h.LoadRow(2, 20);
  (void)h.Run(0, [&](TestContext& ctx) {
    const Outcome read = ctx.Read(h.table(), 1, [](const TestTuple&) {});
    EXPECT_EQ(h.Write(1, 1, 11).outcome, Outcome::kOk);
    if (read != Outcome::kOk) return read;
    return ctx.Update(h.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 9); });
  });
  EXPECT_EQ(h.logs().stream(0).slot(0).void_bytes, 0u);
}

class UpgradeTest : public PairTest {};
INSTANTIATE_TEST_SUITE_P(With, UpgradeTest, In(ControlsWhere(&LocksInRows)), NameOfPair);

TEST_P(UpgradeTest, DuplicatedSharesBecomeOneLock) {
  h_.LoadRow(1, 10);
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kOk);
    EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kOk);
    EXPECT_EQ(ctx.Update(h_.table(), 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, 11); }), Outcome::kOk);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(h_.table().Find(1)->control.load(), 0u);
  EXPECT_EQ(h_.ValueOf(1), 11u);
}

TEST_P(UpgradeTest, AnotherReaderConflicts) {
  h_.LoadRow(1, 10);
  CallResult inner{};
  const CallResult outer = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kOk);
    inner = h_.Run(1, [&](TestContext& other) {
      EXPECT_EQ(other.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kOk);
      return other.Update(h_.table(), 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, 12); });
    });
    return Outcome::kOk;
  });
  EXPECT_EQ(inner.outcome, Outcome::kConflict);
  EXPECT_EQ(outer.outcome, Outcome::kOk);
  EXPECT_EQ(h_.table().Find(1)->control.load(), 0u);
}

}  // namespace
}  // namespace dbx::testing
