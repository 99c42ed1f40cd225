// The contract between concurrency control and logging, for every pair: what a scheme learns of rows read, written,
// missed, inserted and deleted. Transactions of several workers are interleaved by hand.
#include <gtest/gtest.h>

#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

template <class P>
class EveryPair : public ::testing::Test {
 protected:
  using H = Harness<typename P::Cc, typename P::Log>;
  static constexpr uint32_t kLogs = P::Log::kTraits.single_stream ? 1 : 2;
  H h_{kLogs};
};
TYPED_TEST_SUITE(EveryPair, AllPairs);

TYPED_TEST(EveryPair, AWriteIsSeenAndAnAbortLeavesNothing) {
  this->h_.LoadRow(1, 10);
  EXPECT_EQ(this->h_.Write(0, 1, 11).outcome, Outcome::kOk);
  EXPECT_EQ(this->h_.ValueOf(1), 11u);
  const CallResult result = this->h_.Run(0, [&](auto& ctx) {
    EXPECT_EQ(ctx.Update(this->h_.table(), 1, [](auto& t) { t.template SetAt<uint64_t>(0, 99); }), Outcome::kOk);
    return Outcome::kRollback;
  });
  EXPECT_EQ(result.outcome, Outcome::kRollback);
  EXPECT_EQ(this->h_.ValueOf(1), 11u);
}

TYPED_TEST(EveryPair, ATransactionSeesItsOwnWrites) {
  this->h_.LoadRow(1, 10);
  const CallResult result = this->h_.Run(0, [&](auto& ctx) {
    Table& table = this->h_.table();
    uint64_t seen = 0;
    EXPECT_EQ(ctx.Read(table, 1, [&](const auto& t) { seen = t.template GetAt<uint64_t>(0); }), Outcome::kOk);
    EXPECT_EQ(ctx.Update(table, 1, [&](auto& t) { t.template SetAt<uint64_t>(0, seen + 1); }), Outcome::kOk);
    EXPECT_EQ(ctx.Update(table, 1, [](auto& t) { t.template SetAt<uint64_t>(0, t.template GetAt<uint64_t>(0) * 2); }),
              Outcome::kOk);
    EXPECT_EQ(ctx.Read(table, 1, [&](const auto& t) { seen = t.template GetAt<uint64_t>(0); }), Outcome::kOk);
    EXPECT_EQ(seen, 22u);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(this->h_.ValueOf(1), 22u);
}

TYPED_TEST(EveryPair, InsertDeleteAndReinsertWithinOneTransaction) {
  this->h_.LoadRow(1, 10);
  const CallResult result = this->h_.Run(0, [&](auto& ctx) {
    Table& table = this->h_.table();
    const Tuple tuple{5, {}};
    const auto bytes = std::as_bytes(std::span(&tuple, 1));
    EXPECT_EQ(ctx.Insert(table, 1, bytes), Outcome::kExists);
    EXPECT_EQ(ctx.Delete(table, 1), Outcome::kOk);
    EXPECT_EQ(ctx.Read(table, 1, [](const auto&) {}), Outcome::kNotFound);
    EXPECT_EQ(ctx.Insert(table, 1, bytes), Outcome::kOk);
    EXPECT_EQ(ctx.Insert(table, 2, bytes), Outcome::kOk);
    EXPECT_EQ(ctx.Delete(table, 2), Outcome::kOk);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(this->h_.ValueOf(1), 5u);
  EXPECT_EQ(this->h_.ValueOf(2), TestFixture::H::kMissing);
}

TYPED_TEST(EveryPair, AnAbortBringsBackADeletedAndReinsertedRow) {
  this->h_.LoadRow(1, 10);
  const CallResult result = this->h_.Run(0, [&](auto& ctx) {
    const Tuple tuple{5, {1, 2, 3}};
    EXPECT_EQ(ctx.Delete(this->h_.table(), 1), Outcome::kOk);
    EXPECT_EQ(ctx.Insert(this->h_.table(), 1, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    return Outcome::kRollback;
  });
  EXPECT_EQ(result.outcome, Outcome::kRollback);
  EXPECT_EQ(this->h_.ValueOf(1), 10u);
}

// A reader that leaves no record must wait for the writer it read from.
TYPED_TEST(EveryPair, AReaderIsNotDurableBeforeWhatItRead) {
  this->h_.LoadRow(1, 10);
  ASSERT_TRUE(this->h_.Write(0, 1, 11).wrote);
  ASSERT_EQ(this->h_.Read(1, 1).outcome, Outcome::kOk);
  EXPECT_FALSE(this->h_.IsDurable(0));
  EXPECT_FALSE(this->h_.IsDurable(1));
  this->h_.HardenAll();
  EXPECT_TRUE(this->h_.IsDurable(0));
  EXPECT_TRUE(this->h_.IsDurable(1));
}

// With data logging too: otherwise the row comes back after a crash, though somebody was told that it is gone.
TYPED_TEST(EveryPair, AMissIsNotDurableBeforeTheDeleteThatMadeIt) {
  this->h_.LoadRow(1, 10);
  ASSERT_TRUE(this->h_.Delete(0, 1).wrote);
  uint64_t value = 0;
  ASSERT_EQ(this->h_.Read(1, 1, &value).outcome, Outcome::kOk);
  EXPECT_EQ(value, TestFixture::H::kMissing);
  EXPECT_FALSE(this->h_.IsDurable(1));
  this->h_.HardenAll();
  EXPECT_TRUE(this->h_.IsDurable(1));
}

// Who updates what is not there, or inserts what is, has read it, though it looked in order to write.
TYPED_TEST(EveryPair, AChangeInVainIsNotDurableBeforeWhatItSaw) {
  this->h_.LoadRow(1, 10);
  const auto update_in_vain = [&](auto& ctx) {
    EXPECT_EQ(ctx.Update(this->h_.table(), 1, [](auto&) {}), Outcome::kNotFound);
    return Outcome::kOk;
  };
  const auto insert_in_vain = [&](auto& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(this->h_.table(), 2, std::as_bytes(std::span(&tuple, 1))), Outcome::kExists);
    return Outcome::kOk;
  };
  const auto expect_to_wait = [&](auto body) {
    const CallResult result = this->h_.Run(1, body);
    ASSERT_EQ(result.outcome, Outcome::kOk);
    EXPECT_FALSE(result.wrote);
    EXPECT_FALSE(this->h_.IsDurable(1));
    this->h_.HardenAll();
    EXPECT_TRUE(this->h_.IsDurable(1));
  };
  ASSERT_TRUE(this->h_.Delete(0, 1).wrote);
  expect_to_wait(update_in_vain);
  ASSERT_TRUE(this->h_.Insert(0, 2, 7).wrote);
  expect_to_wait(insert_in_vain);
}

// A pending insert is in the index but reads as missing or as a conflict, never as a row.
TYPED_TEST(EveryPair, AnInsertIsInvisibleBeforeItCommits) {
  const CallResult outer = this->h_.Run(0, [&](auto& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(this->h_.table(), 1, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    uint64_t value = TestFixture::H::kMissing;
    const CallResult inner = this->h_.Read(1, 1, &value);
    EXPECT_TRUE(inner.outcome == Outcome::kConflict || value == TestFixture::H::kMissing);
    return Outcome::kOk;
  });
  EXPECT_TRUE(outer.outcome == Outcome::kOk || outer.outcome == Outcome::kConflict);
}

TYPED_TEST(EveryPair, TwoInsertsOfOneKeyDoNotBothCommit) {
  CallResult inner{};
  const CallResult outer = this->h_.Run(0, [&](auto& ctx) {
    const Tuple tuple{5, {}};
    const Outcome outcome = ctx.Insert(this->h_.table(), 1, std::as_bytes(std::span(&tuple, 1)));
    inner = this->h_.Insert(1, 1, 6);
    return outcome;
  });
  EXPECT_NE(outer.outcome == Outcome::kOk, inner.outcome == Outcome::kOk);
  EXPECT_EQ(this->h_.ValueOf(1), outer.outcome == Outcome::kOk ? 5u : 6u);
}

// Write skew: each reads what the other writes.
TYPED_TEST(EveryPair, WriteSkewIsRefused) {
  this->h_.LoadRow(1, 1);
  this->h_.LoadRow(2, 1);
  CallResult inner{};
  const CallResult outer = this->h_.Run(0, [&](auto& ctx) {
    const Outcome read = ctx.Read(this->h_.table(), 2, [](const auto&) {});
    if (read != Outcome::kOk) return read;
    inner = this->h_.Run(1, [&](auto& other) {
      const Outcome other_read = other.Read(this->h_.table(), 1, [](const auto&) {});
      if (other_read != Outcome::kOk) return other_read;
      return other.Update(this->h_.table(), 2, [](auto& t) { t.template SetAt<uint64_t>(0, 0); });
    });
    return ctx.Update(this->h_.table(), 1, [](auto& t) { t.template SetAt<uint64_t>(0, 0); });
  });
  EXPECT_FALSE(outer.outcome == Outcome::kOk && inner.outcome == Outcome::kOk);
}

// A miss is a read: an insert of the missed key by another before the commit is a conflict.
TYPED_TEST(EveryPair, AMissIsProtectedAgainstAnInsert) {
  this->h_.LoadRow(2, 1);
  CallResult inner{};
  const CallResult outer = this->h_.Run(0, [&](auto& ctx) {
    EXPECT_EQ(ctx.Read(this->h_.table(), 1, [](const auto&) {}), Outcome::kNotFound);
    inner = this->h_.Insert(1, 1, 5);
    return ctx.Update(this->h_.table(), 2, [](auto& t) { t.template SetAt<uint64_t>(0, 9); });
  });
  EXPECT_FALSE(outer.outcome == Outcome::kOk && inner.outcome == Outcome::kOk);
}

// What was deleted, missed or inserted in vain leaves the index once its metadata is durable, and not before.
TYPED_TEST(EveryPair, AbsentRowsLeaveTheIndexOnceForgettable) {
  this->h_.LoadRow(1, 10);
  ASSERT_EQ(this->h_.Delete(0, 1).outcome, Outcome::kOk);
  this->h_.Sweep(0);
  if (TypeParam::Log::kTraits.replay_order == ReplayOrder::kPartial) {
    EXPECT_NE(this->h_.table().Find(1), nullptr);
  }
  this->h_.FlushAll();
  this->h_.Sweep(0);
  EXPECT_EQ(this->h_.table().Find(1), nullptr);
}

template <class P>
class TaurusPairs : public EveryPair<P> {};
TYPED_TEST_SUITE(TaurusPairs, AllTaurusPairs);

// Workers 0 and 1 write to logs 0 and 1. A commit point covers that of everything it depends on.
TYPED_TEST(TaurusPairs, AWriterDependsOnTheLastWriter) {
  this->h_.LoadRow(1, 10);
  ASSERT_EQ(this->h_.Write(0, 1, 11).outcome, Outcome::kOk);
  ASSERT_EQ(this->h_.Write(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(this->h_.point(0), this->h_.point(1), 2));
}

TYPED_TEST(TaurusPairs, AReinsertDependsOnTheDelete) {
  this->h_.LoadRow(1, 10);
  ASSERT_EQ(this->h_.Delete(0, 1).outcome, Outcome::kOk);
  ASSERT_EQ(this->h_.Insert(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(this->h_.point(0), this->h_.point(1), 2));
}

// Even after the deleted row has left the index, and its metadata with it.
TYPED_TEST(TaurusPairs, AReinsertDependsOnAForgottenDelete) {
  this->h_.LoadRow(1, 10);
  ASSERT_EQ(this->h_.Delete(0, 1).outcome, Outcome::kOk);
  this->h_.FlushAll();
  for (int i = 0; i < 5; ++i) this->h_.epochs().Advance();
  for (int i = 0; i < 300; ++i) (void)this->h_.Run(0, [](auto&) { return Outcome::kOk; });
  ASSERT_EQ(this->h_.table().Find(1), nullptr);
  const uint64_t deleted_at = this->h_.logs().stream(0).txn_count();
  ASSERT_EQ(deleted_at, 1u);
  ASSERT_EQ(this->h_.Insert(1, 1, 12).outcome, Outcome::kOk);
  // The delete's record lies in log 0, below what was durable.
  EXPECT_GT(this->h_.point(1)[0], 0u);
}

template <class P>
class CommandPairs : public EveryPair<P> {};
TYPED_TEST_SUITE(CommandPairs, AllCommandPairs);

// Anti-dependency: the writer of a row comes after those who read it before, by their own LSNs (the paper's Alg. 6
// raises readLV before these exist).
TYPED_TEST(CommandPairs, AWriterDependsOnEarlierReaders) {
  this->h_.LoadRow(1, 10);
  this->h_.LoadRow(2, 20);
  const CallResult reader = this->h_.Run(0, [&](auto& ctx) {
    const Outcome read = ctx.Read(this->h_.table(), 1, [](const auto&) {});
    if (read != Outcome::kOk) return read;
    return ctx.Update(this->h_.table(), 2, [](auto& t) { t.template SetAt<uint64_t>(0, 9); });
  });
  ASSERT_TRUE(reader.wrote);
  ASSERT_EQ(this->h_.Write(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(this->h_.point(0), this->h_.point(1), 2));
  EXPECT_GT(this->h_.point(1)[0], 0u);
}

// The same for what was missed: the insert comes after the transaction that saw nothing there.
TYPED_TEST(CommandPairs, AnInsertDependsOnEarlierMisses) {
  this->h_.LoadRow(2, 20);
  const CallResult reader = this->h_.Run(0, [&](auto& ctx) {
    EXPECT_EQ(ctx.Read(this->h_.table(), 1, [](const auto&) {}), Outcome::kNotFound);
    return ctx.Update(this->h_.table(), 2, [](auto& t) { t.template SetAt<uint64_t>(0, 9); });
  });
  ASSERT_TRUE(reader.wrote);
  ASSERT_EQ(this->h_.Insert(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(this->h_.point(0), this->h_.point(1), 2));
}

TYPED_TEST(CommandPairs, ADependencyIsInTheRecordBeforeItsPlaceIsTaken) {
  this->h_.LoadRow(1, 10);
  ASSERT_EQ(this->h_.Write(0, 1, 11).outcome, Outcome::kOk);
  const Lsn before = this->h_.logs().stream(0).reserved_until();
  ASSERT_EQ(this->h_.Write(1, 1, 12).outcome, Outcome::kOk);
  EXPECT_LE(Lsn(this->h_.state(1).own_dependency), this->h_.state(1).place.lsn);
  EXPECT_EQ(Lsn(this->h_.point(1)[0]), before);
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
  Harness<Silo<SerialLog<CommandPayload>>, SerialLog<CommandPayload>> h(1);
  h.LoadRow(1, 10);
  h.LoadRow(2, 20);
  const CallResult result = h.Run(0, [&](auto& ctx) {
    const Outcome read = ctx.Read(h.table(), 1, [](const auto&) {});
    EXPECT_EQ(h.Write(1, 1, 11).outcome, Outcome::kOk);  // invalidates the read
    if (read != Outcome::kOk) return read;
    return ctx.Update(h.table(), 2, [](auto& t) { t.template SetAt<uint64_t>(0, 9); });
  });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(result.reason, AbortReason::kValidation);
  EXPECT_GT(h.logs().stream(0).slot(0).void_bytes, 0u);
  EXPECT_EQ(h.logs().stream(0).ReadyUntil(), h.logs().stream(0).reserved_until());
}

TEST(SiloData, AFailedRecheckReservesNothing) {
  Harness<Silo<SerialLog<DataPayload>>, SerialLog<DataPayload>> h(1);
  h.LoadRow(1, 10);
  h.LoadRow(2, 20);
  (void)h.Run(0, [&](auto& ctx) {
    const Outcome read = ctx.Read(h.table(), 1, [](const auto&) {});
    EXPECT_EQ(h.Write(1, 1, 11).outcome, Outcome::kOk);
    if (read != Outcome::kOk) return read;
    return ctx.Update(h.table(), 2, [](auto& t) { t.template SetAt<uint64_t>(0, 9); });
  });
  EXPECT_EQ(h.logs().stream(0).slot(0).void_bytes, 0u);
}

template <class Cc>
class UpgradeTest : public ::testing::Test {
 protected:
  Harness<Cc, NoLog> h_{1};
};
using AllRowLocks = ::testing::Types<NoWaitRows<NoLog>, WaitDieRows<NoLog>, DlDetectRows<NoLog>>;
TYPED_TEST_SUITE(UpgradeTest, AllRowLocks);

TYPED_TEST(UpgradeTest, DuplicatedSharesBecomeOneLock) {
  auto& h = this->h_;
  h.LoadRow(1, 10);
  const CallResult result = h.Run(0, [&](auto& ctx) {
    EXPECT_EQ(ctx.Read(h.table(), 1, [](const auto&) {}), Outcome::kOk);
    EXPECT_EQ(ctx.Read(h.table(), 1, [](const auto&) {}), Outcome::kOk);
    EXPECT_EQ(ctx.Update(h.table(), 1, [](auto& t) { t.template SetAt<uint64_t>(0, 11); }), Outcome::kOk);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
  EXPECT_EQ(h.table().Find(1)->control.load(), 0u);
  EXPECT_EQ(h.ValueOf(1), 11u);
}

TYPED_TEST(UpgradeTest, AnotherReaderConflicts) {
  auto& h = this->h_;
  h.LoadRow(1, 10);
  CallResult inner{};
  const CallResult outer = h.Run(0, [&](auto& ctx) {
    EXPECT_EQ(ctx.Read(h.table(), 1, [](const auto&) {}), Outcome::kOk);
    inner = h.Run(1, [&](auto& other) {
      EXPECT_EQ(other.Read(h.table(), 1, [](const auto&) {}), Outcome::kOk);
      return other.Update(h.table(), 1, [](auto& t) { t.template SetAt<uint64_t>(0, 12); });
    });
    return Outcome::kOk;
  });
  EXPECT_EQ(inner.outcome, Outcome::kConflict);
  EXPECT_EQ(outer.outcome, Outcome::kOk);
  EXPECT_EQ(h.table().Find(1)->control.load(), 0u);
}

}  // namespace
}  // namespace dbx::testing
