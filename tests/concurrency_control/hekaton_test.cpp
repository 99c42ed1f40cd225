// What only versions do: snapshots that stay while others commit, versions in preparation, the metadata and the memory
// of versions that were superseded. A commit is also taken stage by stage, with readers between the stages.
#include "concurrency_control/hekaton.h"

#include <gtest/gtest.h>

#include <thread>

#include "logging/records/versioned_records.h"
#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

constexpr Key kX = 1, kY = 2;

template <class Cc, class Log>
class Bench : public Harness<Cc, Log> {
 public:
  explicit Bench(uint32_t logs = 1, bool ordered = false) : Harness<Cc, Log>(logs, 1 << 20, ordered) {
    for (const Key key : {kX, kY}) this->LoadRow(key, 10 * key);
  }

  Outcome ReadIn(TestContext& ctx, Key key, uint64_t& value) {
    value = this->kMissing;
    return ctx.Read(this->table(), key, [&](const TestTuple& tuple) { value = tuple.GetAt<uint64_t>(0); });
  }
  uint64_t Seen(TestContext& ctx, Key key) {
    uint64_t value = 0;
    EXPECT_NE(ReadIn(ctx, key, value), Outcome::kConflict);
    return value;
  }
  Outcome WriteIn(TestContext& ctx, Key key, uint64_t value) {
    return ctx.Update(this->table(), key, [&](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, value); });
  }
  CallResult WriteBoth(uint32_t worker, uint64_t value) {
    return this->Run(worker, [&](TestContext& ctx) {
      const Outcome outcome = WriteIn(ctx, kX, value);
      return outcome == Outcome::kOk ? WriteIn(ctx, kY, value) : outcome;
    });
  }
  // What a scan of an ordered table finds, as key * 100 + value.
  std::vector<uint64_t> Scan(TestContext& ctx, Key low, Key high, ScanOrder order = ScanOrder::kAscending) {
    std::vector<uint64_t> found;
    const auto note = [&](Key key, const TestTuple& tuple) {
      found.push_back(key * 100 + tuple.GetAt<uint64_t>(0));
      return true;
    };
    EXPECT_EQ(ctx.Scan(this->table(), low, high, order, note), Outcome::kOk);
    return found;
  }
  // Worker 0 reads X; then `rest`, in the same transaction.
  CallResult ReadXThen(auto rest) {
    return this->Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(Seen(ctx, kX), 10u);
      return rest(ctx);
    });
  }
  Row& row(Key key) { return *this->table().Find(key); }
  SnapshotClock& clock() { return this->shared().timestamps; }
  size_t waiting(uint32_t worker) { return this->shared().versions[worker].value.waiting(); }
};
using Serializable = Bench<Hekaton<NoLog>, NoLog>;
using Snapshot = Bench<HekatonSnapshot<NoLog>, NoLog>;

template <class H>
class EveryLevel : public ::testing::Test {
 protected:
  H h_;
};
using AllLevels = ::testing::Types<Serializable, Snapshot>;
TYPED_TEST_SUITE(EveryLevel, AllLevels);

TYPED_TEST(EveryLevel, ASnapshotStaysWhileAWriterCommits) {
  auto& h = this->h_;
  const CallResult reader = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.WriteBoth(1, 77).wrote);
    EXPECT_TRUE(h.WriteBoth(2, 78).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    EXPECT_EQ(h.Seen(ctx, kX), 10u);
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  EXPECT_EQ(h.ValueOf(kY), 78u);
}

TYPED_TEST(EveryLevel, EachSnapshotSeesItsOwnVersion) {
  auto& h = this->h_;
  const auto nested = [&](auto& self, uint32_t worker, uint64_t value) -> void {
    const CallResult reader = h.Run(worker, [&](TestContext& ctx) {
      EXPECT_EQ(h.Seen(ctx, kX), value);
      EXPECT_TRUE(h.WriteBoth(3, value + 1).wrote);
      if (worker < 2) self(self, worker + 1, value + 1);
      EXPECT_TRUE(h.WriteBoth(3, value + 9).wrote);
      EXPECT_EQ(h.Seen(ctx, kY), value);
      return Outcome::kOk;
    });
    EXPECT_EQ(reader.outcome, Outcome::kOk);
  };
  EXPECT_TRUE(h.WriteBoth(3, 50).wrote);
  nested(nested, 0, 50);
}

TYPED_TEST(EveryLevel, ADeletedRowIsThereForOlderSnapshotsAndAnInsertedOneIsNot) {
  auto& h = this->h_;
  const CallResult reader = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    EXPECT_TRUE(h.Delete(1, kY).wrote);
    EXPECT_TRUE(h.Insert(1, 3, 30).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    EXPECT_EQ(h.Seen(ctx, 3), h.kMissing);
    EXPECT_TRUE(h.Insert(1, kY, 21).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  EXPECT_EQ(h.ValueOf(kY), 21u);
  EXPECT_EQ(h.ValueOf(3), 30u);
}

// Its chain is where older snapshots find it.
TYPED_TEST(EveryLevel, ADeletedRowIsNotUnlinkedWhileASnapshotNeedsIt) {
  auto& h = this->h_;
  const auto age = [&] {
    for (int i = 0; i < 5; ++i) h.epochs().Advance();
    for (int i = 0; i < 300; ++i) (void)h.Run(1, [](TestContext&) { return Outcome::kOk; });
  };
  const CallResult reader = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    EXPECT_TRUE(h.Delete(1, kY).wrote);
    age();
    EXPECT_NE(h.table().Find(kY), nullptr);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  age();
  EXPECT_EQ(h.table().Find(kY), nullptr);
}

TYPED_TEST(EveryLevel, AWriterOverANewerVersionIsRefusedAtOnce) {
  auto& h = this->h_;
  const CallResult result = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.WriteBoth(1, 77).wrote);
    const Outcome outcome = h.WriteIn(ctx, kY, 5);
    EXPECT_EQ(outcome, Outcome::kConflict);
    return outcome;
  });
  EXPECT_EQ(result.reason, AbortReason::kLockConflict);
  EXPECT_EQ(h.ValueOf(kY), 77u);
}

// Every way in which a transaction may end takes its timestamps back.
TYPED_TEST(EveryLevel, WhoIsDoneHoldsNoWatermarkBack) {
  auto& h = this->h_;
  const auto expect_free = [&] {
    EXPECT_EQ(h.clock().Watermark(), h.clock().Now());
    for (uint32_t w = 0; w < h.kWorkers; ++w) EXPECT_EQ(h.clock().EndOf(WorkerId(w)), SnapshotClock::kNone);
  };
  for (const Outcome end : {Outcome::kOk, Outcome::kRollback, Outcome::kConflict, Outcome::kNotFound}) {
    (void)h.Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(h.WriteIn(ctx, kX, 5), Outcome::kOk);
      EXPECT_TRUE(h.Write(1, kY, 6).wrote);
      return end;
    });
    (void)h.Run(0, [&](auto&) { return end; });
    expect_free();
  }
  EXPECT_EQ(h.Read(0, kX).outcome, Outcome::kOk);
  expect_free();
}

// A commit, stage by stage: a transaction that began before the draw sees the old version at each, one that began later
// waits in vain from the draw to the release.
TYPED_TEST(EveryLevel, WhatAReaderSeesAtEachStageOfACommit) {
  auto& h = this->h_;
  using Cc = std::conditional_t<std::is_same_v<TypeParam, Snapshot>, HekatonSnapshot<NoLog>, Hekaton<NoLog>>;
  Cc writer(h.shared(), h.state(1), WorkerId(1));
  const auto expect_younger = [&](Outcome outcome, uint64_t value) {
    uint64_t seen = value;
    EXPECT_EQ(h.Read(2, kX, &seen).outcome, outcome);
    if (outcome == Outcome::kOk) {
      EXPECT_EQ(seen, value);
    }
  };
  const CallResult older = h.Run(0, [&](TestContext& ctx) {
    writer.Begin(TxnId{1});
    TestContextOf context(writer);
    EXPECT_EQ(h.WriteIn(context, kX, 11), Outcome::kOk);
    EXPECT_TRUE(writer.LockWrites());
    expect_younger(Outcome::kOk, 10);
    EXPECT_EQ(h.Seen(ctx, kX), 10u);
    EXPECT_TRUE(writer.Recheck());
    expect_younger(Outcome::kConflict, 0);
    EXPECT_EQ(h.Seen(ctx, kX), 10u);
    writer.Install();
    expect_younger(Outcome::kConflict, 0);
    EXPECT_EQ(h.Seen(ctx, kX), 10u);
    writer.Release();
    expect_younger(Outcome::kOk, 11);
    return Outcome::kOk;
  });
  EXPECT_EQ(older.outcome, Outcome::kOk);
}

// Between the announcement and the draw the writer's end may be at or below any transaction's begin.
TYPED_TEST(EveryLevel, AWriterThatIsDrawingKeepsReadersWaiting) {
  auto& h = this->h_;
  h.row(kX).control.fetch_or(HekatonWord::LockedBy(WorkerId(1)));
  EXPECT_EQ(h.Read(0, kX).outcome, Outcome::kOk);
  const Timestamp end = h.clock().Draw(WorkerId(1));
  EXPECT_EQ(h.Read(0, kX).outcome, Outcome::kConflict);
  EXPECT_EQ(h.clock().EndOf(WorkerId(1)), end);
  h.row(kX).control.store(HekatonWord::WrittenAt(end));
  h.clock().EndWriting(WorkerId(1));
  EXPECT_EQ(h.Read(0, kX).outcome, Outcome::kOk);
}

TYPED_TEST(EveryLevel, AReaderWaitsForTheVersionInPreparation) {
  auto& h = this->h_;
  h.row(kX).control.fetch_or(HekatonWord::LockedBy(WorkerId(1)));
  const Timestamp end = h.clock().Draw(WorkerId(1));
  uint64_t seen = 0;
  std::jthread reader([&] {
    const auto body = [&](TestContext& ctx) { return h.ReadIn(ctx, kX, seen); };
    while (h.Run(0, body).outcome == Outcome::kConflict) std::this_thread::yield();
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  RacyCopy(h.table().tuple(&h.row(kX)), &end, sizeof end);
  h.row(kX).control.store(HekatonWord::WrittenAt(end));
  h.clock().EndWriting(WorkerId(1));
  reader.join();
  EXPECT_EQ(Timestamp(seen), end);
}

// A reader that lasts keeps what it may need, and no longer than it lasts.
TYPED_TEST(EveryLevel, VersionMemoryIsBoundedOnceALongReaderEnds) {
  auto& h = this->h_;
  constexpr int kWrites = 5000;
  const auto write = [&](int times) {
    for (int i = 0; i < times; ++i) EXPECT_TRUE(h.Write(1, kX, 10).wrote);
  };
  size_t bytes = 0;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(h.ReadXThen([&](TestContext& ctx) {
                 write(kWrites);
                 EXPECT_GE(h.waiting(1), size_t{kWrites});
                 EXPECT_EQ(h.Seen(ctx, kX), 10u);
                 return Outcome::kOk;
               }).outcome,
              Outcome::kOk);
    write(200);
    EXPECT_LT(h.waiting(1), 50u);
    if (round > 0) {
      EXPECT_EQ(h.shared().memory_bytes(), bytes);
    }
    bytes = h.shared().memory_bytes();
  }
}

TYPED_TEST(EveryLevel, WithoutOldReadersAFewVersionsServeForEver) {
  auto& h = this->h_;
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(h.Write(1, kX, i).wrote);
  EXPECT_LT(h.waiting(1), 50u);
  EXPECT_LE(h.shared().memory_bytes(), size_t{64} << 10);
}

TYPED_TEST(EveryLevel, AScanIsOfItsSnapshot) {
  TypeParam h(1, /*ordered=*/true);
  const CallResult reader = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    EXPECT_TRUE(h.Delete(1, kY).wrote);
    EXPECT_TRUE(h.Insert(1, 3, 30).wrote);
    EXPECT_EQ(h.Scan(ctx, 0, 9), (std::vector<uint64_t>{110, 220}));
    EXPECT_EQ(h.Scan(ctx, 0, 9, ScanOrder::kDescending), (std::vector<uint64_t>{220, 110}));
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  (void)h.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(h.Scan(ctx, 0, 9), (std::vector<uint64_t>{111, 330}));
    return Outcome::kOk;
  });
}

// ---- the levels apart ----

// Even if all else that it read holds: it has read too much to look at it again and move up.
TEST(HekatonSerializable, WhoReadAnOldVersionWritesNothing) {
  Serializable h;
  for (Key key = 100; key < 120; ++key) h.LoadRow(key, 1);
  const CallResult result = h.Run(0, [&](TestContext& ctx) {
    for (Key key = 100; key < 120; ++key) EXPECT_EQ(h.Seen(ctx, key), 1u);
    EXPECT_TRUE(h.Write(1, kY, 77).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    return h.WriteIn(ctx, kX, 5);
  });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
}

TEST(HekatonSerializable, WhoHasWrittenReadsNoOldVersion) {
  Serializable h;
  const CallResult result = h.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(h.WriteIn(ctx, kX, 5), Outcome::kOk);
    EXPECT_TRUE(h.WriteBoth(1, 77).wrote);
    uint64_t value = 0;
    return h.ReadIn(ctx, kY, value);
  });
  EXPECT_EQ(result.reason, AbortReason::kLockConflict);
}

TEST(HekatonSerializable, ATransactionMovesUpToANewerVersionIfAllItReadHolds) {
  Serializable h;
  const CallResult result = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kY, 77).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 77u);
    EXPECT_TRUE(h.Write(1, kY, 78).wrote);
    return h.WriteIn(ctx, kX, 5);
  });
  EXPECT_EQ(result.outcome, Outcome::kConflict);
  EXPECT_EQ(h.ReadXThen([&](TestContext& ctx) {
               EXPECT_TRUE(h.Write(1, kY, 79).wrote);
               return h.WriteIn(ctx, kY, 80);
             }).outcome,
            Outcome::kOk);
  EXPECT_EQ(h.ValueOf(kY), 80u);
}

// The writer that has locked it may have chosen an end below the timestamp that the transaction would move up to.
TEST(HekatonSerializable, ATransactionDoesNotMoveUpOverALockedRow) {
  Serializable h;
  const CallResult result = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kY, 77).wrote);
    h.row(kX).control.fetch_or(HekatonWord::LockedBy(WorkerId(2)));
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    h.row(kX).control.fetch_and(~HekatonWord::LockedBy(WorkerId(2)));
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
}

TEST(HekatonSerializable, AReadRowThatAnotherHasLockedFailsTheRecheck) {
  Serializable h;
  const CallResult result = h.ReadXThen([&](TestContext& ctx) {
    h.row(kX).control.fetch_or(HekatonWord::LockedBy(WorkerId(2)));
    return h.WriteIn(ctx, kY, 5);
  });
  EXPECT_EQ(result.reason, AbortReason::kValidation);
}

TEST(HekatonSerializable, AWriterIsRefusedIfSomethingAppearedWhereItHadScanned) {
  Serializable h(1, /*ordered=*/true);
  const auto scan_and_write = [&](TestContext& ctx, auto meanwhile) {
    EXPECT_TRUE(h.Scan(ctx, 5, 9).empty());
    meanwhile();
    return h.WriteIn(ctx, kX, 11);
  };
  EXPECT_TRUE(h.Run(0, [&](TestContext& ctx) { return scan_and_write(ctx, [] {}); }).wrote);
  const auto insert = [&] { EXPECT_TRUE(h.Insert(1, 7, 70).wrote); };
  EXPECT_EQ(h.Run(0, [&](TestContext& ctx) { return scan_and_write(ctx, insert); }).reason, AbortReason::kValidation);
}

TEST(HekatonSerializable, ATransactionDoesNotMoveUpOverWhatAppearedWhereItHadScanned) {
  Serializable h(1, /*ordered=*/true);
  const CallResult result = h.Run(0, [&](TestContext& ctx) {
    EXPECT_TRUE(h.Scan(ctx, 5, 9).empty());
    EXPECT_TRUE(h.Insert(1, 7, 70).wrote);
    EXPECT_TRUE(h.Write(1, kY, 77).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    EXPECT_TRUE(h.Scan(ctx, 5, 9).empty());
    return Outcome::kOk;
  });
  EXPECT_EQ(result.outcome, Outcome::kOk);
}

TEST(HekatonSnapshot, ReadsDoNotMoveUp) {
  Snapshot h;
  const CallResult result = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kY, 77).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 20u);
    return h.WriteIn(ctx, kX, 5);
  });
  EXPECT_TRUE(result.wrote);
}

TEST(HekatonSnapshot, TheSecondOfTwoWritersOfARowAborts) {
  Snapshot h;
  const CallResult result = h.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(h.WriteIn(ctx, kX, 5), Outcome::kOk);
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    return Outcome::kOk;
  });
  EXPECT_EQ(result.reason, AbortReason::kValidation);
  EXPECT_EQ(h.ValueOf(kX), 11u);
}

// ---- with a log ----

// Workers 0 and 1 write to logs 0 and 1.
template <class Pair>
class OldVersionsInLog : public ::testing::Test {};
template <class CcT, class LogT>
struct PairOf {
  using Cc = CcT;
  using Log = LogT;
};
template <template <class> class Cc, class Payload>
using TaurusPair = PairOf<Cc<TaurusLog<Payload>>, TaurusLog<Payload>>;
using AllPairs =
    ::testing::Types<TaurusPair<Hekaton, DataPayload>, TaurusPair<Hekaton, VersionedCommandPayload>,
                     TaurusPair<HekatonSnapshot, DataPayload>, TaurusPair<HekatonSnapshot, VersionedCommandPayload>>;
TYPED_TEST_SUITE(OldVersionsInLog, AllPairs);

TYPED_TEST(OldVersionsInLog, AReaderWaitsForTheVersionThatItReadAndForNoLaterOne) {
  Bench<typename TypeParam::Cc, typename TypeParam::Log> h(2);
  ASSERT_TRUE(h.WriteBoth(0, 10).wrote);
  const CallResult reader = h.Run(2, [&](TestContext& ctx) {
    EXPECT_EQ(h.Seen(ctx, kX), 10u);
    EXPECT_TRUE(h.WriteBoth(1, 77).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), 10u);
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(h.point(0), h.point(2), 2));
  EXPECT_EQ(h.point(2)[1], 0u);
  h.Flush(0);
  EXPECT_TRUE(h.IsDurable(2));
  EXPECT_FALSE(h.IsDurable(1));
}

TYPED_TEST(OldVersionsInLog, AMissInASnapshotWaitsForTheDeleteThatMadeIt) {
  Bench<typename TypeParam::Cc, typename TypeParam::Log> h(2);
  ASSERT_TRUE(h.Delete(0, kY).wrote);
  const CallResult reader = h.Run(2, [&](TestContext& ctx) {
    EXPECT_EQ(h.Seen(ctx, kX), 10u);
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    EXPECT_TRUE(h.Insert(1, kY, 21).wrote);
    EXPECT_EQ(h.Seen(ctx, kY), h.kMissing);
    return Outcome::kOk;
  });
  EXPECT_EQ(reader.outcome, Outcome::kOk);
  EXPECT_TRUE(lv::CoveredBy(h.point(0), h.point(2), 2));
  EXPECT_EQ(h.point(2)[1], 0u);
}

// --- what a log is told that is replayed in many versions ---
template <template <class> class Cc, class Log = TaurusLog<VersionedCommandPayload>>
using Logged = Bench<Cc<Log>, Log>;

// Of the worker's last transaction.
format::Timestamps TimestampsOfRecord(auto& h, uint32_t worker) {
  const std::byte* const at = h.logs().stream(h.state(worker).log).at(h.state(worker).place);
  format::RecordHeader header;
  std::memcpy(&header, at, sizeof header);
  EXPECT_EQ(header.kind, static_cast<uint8_t>(format::RecordKind::kVersionedCommand));
  const std::span body(at + sizeof header, header.length - sizeof header);
  return records::TimestampsOf(header, body).value_or(format::Timestamps{});
}

// Worker 0 reads X, worker 1 commits, worker 0 writes X: the third transaction's timestamps.
template <class Bench>
format::Timestamps OfAWriterBesideAnother(Bench& h) {
  EXPECT_TRUE(h.Write(2, kX, 10).wrote);  // ends at 1
  const CallResult writer = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kY, 21).wrote);  // at 2
    return h.WriteIn(ctx, kX, 11);
  });
  EXPECT_TRUE(writer.wrote);
  return TimestampsOfRecord(h, 0);
}

TEST(HekatonInLog, UnderSnapshotARecordSaysWhenItsTransactionBegan) {
  Logged<HekatonSnapshot> h(2);
  const format::Timestamps timestamps = OfAWriterBesideAnother(h);
  EXPECT_EQ(timestamps.read, 1u);
  EXPECT_EQ(timestamps.end, 3u);
}

TEST(HekatonInLog, UnderSerializableARecordSaysThatItsReadsHoldUpToItsEnd) {
  Logged<Hekaton> h(2);
  const format::Timestamps timestamps = OfAWriterBesideAnother(h);
  EXPECT_EQ(timestamps.read, 2u);
  EXPECT_EQ(timestamps.end, 3u);
}

// Each overwrites what the other has read: both records say that they read before the first one ended.
TEST(HekatonInLog, AWriteSkewIsInTheRecords) {
  Logged<HekatonSnapshot> h(2);
  const CallResult first = h.ReadXThen([&](TestContext& ctx) {
    const CallResult second = h.Run(1, [&](TestContext& other) {
      EXPECT_EQ(h.Seen(other, kY), 20u);
      return h.WriteIn(other, kX, 12);
    });
    EXPECT_TRUE(second.wrote);
    return h.WriteIn(ctx, kY, 21);
  });
  EXPECT_TRUE(first.wrote);
  EXPECT_EQ(TimestampsOfRecord(h, 0).read, 0u);
  EXPECT_EQ(TimestampsOfRecord(h, 1).read, 0u);
  EXPECT_EQ(h.point(0)[1], 0u);  // and neither waits for the other
  EXPECT_EQ(h.point(1)[0], 0u);
}

TEST(HekatonInLog, ARowKeepsTheVectorOfItsWriterAlone) {
  EXPECT_EQ(TaurusLog<VersionedCommandPayload>::meta_bytes(5), TaurusLog<DataPayload>::meta_bytes(5));
  EXPECT_EQ(TaurusLog<CommandPayload>::meta_bytes(5), 2 * TaurusLog<DataPayload>::meta_bytes(5));
}

TEST(HekatonInLog, AnAbortLeavesNoVoid) {
  Logged<Hekaton> h(1);
  const CallResult result = h.ReadXThen([&](TestContext& ctx) {
    EXPECT_TRUE(h.Write(1, kX, 11).wrote);
    return h.WriteIn(ctx, kY, 1);
  });
  EXPECT_EQ(result.reason, AbortReason::kValidation);
  EXPECT_EQ(h.logs().stream(0).slot(0).void_bytes, 0u);
}

// The last watermark in the ring of a log; 0 if there is none.
uint64_t LastWatermark(LogStream& stream) {
  uint64_t last = 0;
  for (Lsn at; at < stream.reserved_until();) {
    format::RecordHeader header;
    const std::byte* const record = stream.at(LogPlace{at, 0});
    std::memcpy(&header, record, sizeof header);
    if (header.kind == static_cast<uint8_t>(format::RecordKind::kWatermark)) {
      std::memcpy(&last, record + sizeof header, sizeof last);
    }
    at += header.length;
  }
  return last;
}

TEST(HekatonInLog, ALogSaysBelowWhichTimestampNobodyReads) {
  Logged<HekatonSnapshot> h(2);
  for (uint64_t i = 1; i <= 100; ++i) ASSERT_TRUE(h.Write(0, kX, i).wrote);
  h.HardenAll();
  const uint64_t before = LastWatermark(h.logs().stream(0));
  EXPECT_GT(before, 50u);
  EXPECT_LE(before, 100u);
  EXPECT_EQ(LastWatermark(h.logs().stream(1)), before);
}

// A transaction that is running holds it back.
TEST(HekatonInLog, NoWatermarkIsAboveARunningSnapshot) {
  Logged<HekatonSnapshot> h(1);
  for (uint64_t i = 1; i <= 100; ++i) ASSERT_TRUE(h.Write(0, kX, i).wrote);
  const CallResult reader = h.Run(1, [&](TestContext& ctx) {
    EXPECT_EQ(h.Seen(ctx, kX), 100u);
    for (uint64_t i = 101; i <= 200; ++i) EXPECT_TRUE(h.Write(0, kX, i).wrote);
    h.HardenAll();
    EXPECT_LE(LastWatermark(h.logs().stream(0)), 100u);
    return h.WriteIn(ctx, kY, 1);
  });
  EXPECT_TRUE(reader.wrote);
  EXPECT_EQ(TimestampsOfRecord(h, 1).read, 100u);
}

TEST(HekatonInLog, ALogThatNobodyWritesToIsToldAllTheSame) {
  Logged<HekatonSnapshot> h(2);
  for (uint64_t i = 1; i <= 3000; ++i) ASSERT_TRUE(h.Write(0, kX, i).wrote);
  EXPECT_FALSE(h.log().WantsFlush(h.logs().stream(1)));
  for (uint64_t i = 1; i <= 3000; ++i) ASSERT_TRUE(h.Write(0, kX, i).wrote);
  EXPECT_TRUE(h.log().WantsFlush(h.logs().stream(1)));
  h.log().BeforeFlush(h.logs().stream(1));
  EXPECT_FALSE(h.log().WantsFlush(h.logs().stream(1)));
}

// Timestamps of a run that continues another are above those of the other's rows.
TEST(HekatonInLog, AContinuedRunBeginsAboveWhatItFound) {
  Logged<HekatonSnapshot> h(1);
  h.row(kX).control.store(HekatonWord::WrittenAt(Timestamp(500)));
  h.clock().StartAfter(Timestamp(500));
  EXPECT_EQ(h.ValueOf(kX), 10u);
  ASSERT_TRUE(h.Write(0, kX, 11).wrote);
  EXPECT_EQ(TimestampsOfRecord(h, 0).read, 500u);
  EXPECT_EQ(TimestampsOfRecord(h, 0).end, 501u);
}

}  // namespace
}  // namespace dbx::testing
