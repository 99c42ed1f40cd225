// The run side of differential logging: which records a transaction leaves, in which order, and what they say.
#include "logging/differential/differential_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

using format::RecordKind;
using Log = DifferentialLog<DataPayload>;
using Engine = Harness<NoWaitRows<Log>, Log>;

struct Seen {
  RecordKind kind;
  format::RecordHeader header;
  std::vector<std::byte> body;

  TxnId txn() const { return *FieldOf<TxnId>(body); }
  format::ChangeBody change() const { return *FieldOf<format::ChangeBody>(body); }
  uint64_t Word(size_t at) const { return *FieldOf<uint64_t>(body, at); }
};

template <class Engine>
class RecordsTest : public ::testing::Test {
 protected:
  explicit RecordsTest(const EngineOptions& options = {.logs = 1}) : h_(options) {
    for (const Key key : {1, 2, 3}) h_.LoadRow(key, key * 100);
  }

  // The records in log `log`, in order.
  std::vector<Seen> Records(uint32_t log = 0) {
    const LogStream& stream = h_.logs().stream(log);
    std::vector<Seen> records;
    for (Lsn at; at < stream.reserved_until();) {
      Seen seen{};
      const std::byte* const from = stream.at({at, 0});
      std::memcpy(&seen.header, from, sizeof seen.header);
      EXPECT_EQ(seen.header.lsn, at.value());
      seen.kind = static_cast<RecordKind>(seen.header.kind);
      seen.body.assign(from + sizeof seen.header, from + seen.header.length);
      records.push_back(seen);
      at += seen.header.length;
    }
    return records;
  }
  std::vector<RecordKind> Kinds(uint32_t log = 0) {
    std::vector<RecordKind> kinds;
    for (const Seen& seen : Records(log)) kinds.push_back(seen.kind);
    return kinds;
  }
  CallResult RollBack(uint32_t worker, Key key, uint64_t value) {
    return h_.Run(worker, [&](TestContext& ctx) {
      EXPECT_EQ(ctx.Update(h_.table(), key, [&](TestTuple& t) { t.SetAt<uint64_t>(0, value); }), Outcome::kOk);
      return Outcome::kRollback;
    });
  }
  CheckpointClock& checkpoints() { return h_.database().checkpoints(); }
  PageSpace& pages() { return *h_.table().pages(); }
  std::vector<std::byte> Images() {
    std::vector<std::byte> all;
    for (uint32_t page = 0; page < pages().page_count(); ++page) {
      const size_t at = all.size();
      all.resize(at + pages().PageImageBytes());
      pages().CopyImages(page, all.data() + at);
    }
    return all;
  }

  Engine h_;
};

using DifferentialLogTest = RecordsTest<Engine>;

TEST_F(DifferentialLogTest, AnUpdateLeavesTheXorOfItsTupleAndACommit) {
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  const std::vector<Seen> records = Records();
  ASSERT_EQ(records.size(), 2u);
  const Seen& change = records[0];
  ASSERT_EQ(change.kind, RecordKind::kChange);
  EXPECT_EQ(change.txn(), h_.id(0));
  EXPECT_EQ(change.header.flags, format::kChangeFirst);
  EXPECT_EQ(change.header.lv_mask, h_.table().id().value());
  const PageSpace::Place at = pages().PlaceOf(h_.table().Find(2));
  EXPECT_EQ(change.change().page, at.page);
  EXPECT_EQ(change.header.procedure, at.slot);
  EXPECT_EQ(change.change().number, 0u);
  EXPECT_EQ(change.Word(sizeof(format::ChangeBody)), 200u ^ 77u);
  EXPECT_EQ(change.body.size(), sizeof(format::ChangeBody) + sizeof(Tuple));
  ASSERT_EQ(records[1].kind, RecordKind::kCommit);
  EXPECT_EQ(records[1].txn(), h_.id(0));
  EXPECT_EQ(records[1].header.length, 40u);
}

// What is changed on a page that a checkpoint copies must have its place below the checkpoint's END (trap 1).
TEST_F(DifferentialLogTest, APlaceIsReservedBeforeTheLatchIsTaken) {
  const LogStream& stream = h_.logs().stream(0);
  const Lsn before = stream.reserved_until();
  std::optional<PageSpace::Latched> latch(std::in_place, pages(), pages().PlaceOf(h_.table().Find(2)).page);
  std::thread writer([this] { EXPECT_TRUE(h_.Write(0, 2, 77).wrote); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (stream.reserved_until() == before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_GT(stream.reserved_until(), before);
  latch.reset();
  writer.join();
}

TEST_F(DifferentialLogTest, AnInsertAndADeleteFlipThePresenceOfTheirSlot) {
  ASSERT_TRUE(h_.Insert(0, 9, 900).wrote);
  Row* const row = h_.table().Find(9);
  const PageSpace::Place at = pages().PlaceOf(row);
  EXPECT_TRUE(pages().IsPresent(at));
  ASSERT_TRUE(h_.Delete(1, 9).wrote);
  EXPECT_FALSE(pages().IsPresent(at));
  const std::vector<Seen> records = Records();
  ASSERT_EQ(records.size(), 4u);
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(records[i].header.flags, format::kChangeFirst | format::kChangePresence);
    EXPECT_EQ(records[i].Word(sizeof(format::ChangeBody)), 9u);  // the key
    EXPECT_EQ(records[i].Word(sizeof(format::ChangeBody) + 8), 900u);
  }
  // What is absent leaves zeros for the next row of the slot.
  EXPECT_EQ(TupleReader(h_.table().tuple(row)).GetAt<uint64_t>(0), 0u);
}

TEST_F(DifferentialLogTest, ARowThatIsInsertedAndDeletedAgainLeavesBothChanges) {
  const std::vector<std::byte> before = Images();
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(h_.table(), 9, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    return ctx.Delete(h_.table(), 9);
  });
  ASSERT_TRUE(result.wrote);
  EXPECT_EQ(Kinds(), (std::vector{RecordKind::kChange, RecordKind::kChange, RecordKind::kCommit}));
  EXPECT_EQ(Records()[1].header.flags, format::kChangePresence);
  EXPECT_EQ(Images(), before);
}

TEST_F(DifferentialLogTest, WithoutACheckpointAnAbortLeavesNoCompensation) {
  const std::vector<std::byte> before = Images();
  EXPECT_EQ(RollBack(0, 1, 7).outcome, Outcome::kRollback);
  EXPECT_EQ(Images(), before);
  EXPECT_EQ(Kinds(), (std::vector{RecordKind::kChange, RecordKind::kAbort}));
  EXPECT_EQ(Records()[1].txn(), h_.id(0));
}

TEST_F(DifferentialLogTest, DuringACheckpointEachUndoIsAChangeOfItsOwn) {
  const std::vector<std::byte> before = Images();
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    for (const Key key : {1, 2}) {
      EXPECT_EQ(ctx.Update(h_.table(), key, [&](TestTuple& t) { t.SetAt<uint64_t>(0, 7); }), Outcome::kOk);
    }
    checkpoints().Begin();
    checkpoints().Advance([] {});
    const uint32_t page = pages().PlaceOf(h_.table().Find(2)).page;
    PageSpace::Latched(pages(), page).SetNumber(1);
    return Outcome::kRollback;
  });
  EXPECT_EQ(result.outcome, Outcome::kRollback);
  EXPECT_EQ(Images(), before);
  const std::vector<Seen> records = Records();
  ASSERT_EQ(Kinds(), (std::vector{RecordKind::kChange, RecordKind::kChange, RecordKind::kChange, RecordKind::kChange,
                                  RecordKind::kAbort}));
  // The newest change first, with the number that its page has by then.
  EXPECT_EQ(records[2].header.flags, format::kChangeCompensation);
  EXPECT_EQ(records[2].body.size(), records[1].body.size());
  EXPECT_EQ(records[2].Word(sizeof(format::ChangeBody)), records[1].Word(sizeof(format::ChangeBody)));
  EXPECT_EQ(records[1].change().number, 0u);
  EXPECT_EQ(records[2].change().number, 1u);
}

TEST_F(DifferentialLogTest, AnAttemptWithoutChangesLeavesNoRecord) {
  EXPECT_EQ(h_.Run(0,
                   [&](TestContext& ctx) {
                     EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kOk);
                     EXPECT_EQ(ctx.Delete(h_.table(), 50), Outcome::kNotFound);
                     return Outcome::kRollback;
                   })
                .outcome,
            Outcome::kRollback);
  EXPECT_TRUE(Records().empty());
}

TEST_F(DifferentialLogTest, AChangeMakesItsPageDirtyForBothCopies) {
  const uint32_t page = pages().PlaceOf(h_.table().Find(1)).page;
  for (const int copy : {0, 1}) PageSpace::Latched(pages(), page).SetClean(copy);
  ASSERT_TRUE(h_.Write(0, 1, 7).wrote);
  for (const int copy : {0, 1}) EXPECT_TRUE(PageSpace::Latched(pages(), page).IsDirty(copy));
}

// As in a transaction that has seen a whole checkpoint: both copies may have its change.
TEST_F(DifferentialLogTest, AnUndoWithoutARecordMakesItsPageDirtyForBothCopies) {
  const uint32_t page = pages().PlaceOf(h_.table().Find(1)).page;
  const CallResult result = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(ctx.Update(h_.table(), 1, [&](TestTuple& t) { t.SetAt<uint64_t>(0, 7); }), Outcome::kOk);
    for (const int copy : {0, 1}) PageSpace::Latched(pages(), page).SetClean(copy);
    return Outcome::kRollback;
  });
  EXPECT_EQ(result.outcome, Outcome::kRollback);
  ASSERT_EQ(Kinds(), (std::vector{RecordKind::kChange, RecordKind::kAbort}));
  for (const int copy : {0, 1}) EXPECT_TRUE(PageSpace::Latched(pages(), page).IsDirty(copy));
}

// A slot is free for another key only once its delete is durable, in a tree as in a hash index.
template <class Engine>
void ExpectThatADeletedRowStaysUntilThatIsDurable() {
  for (const bool ordered : {false, true}) {
    Engine h({.logs = 1, .ordered = ordered});
    h.LoadRow(1, 100);
    ASSERT_TRUE(h.Delete(0, 1).wrote);
    h.Sweep(0);
    EXPECT_NE(h.table().Find(1), nullptr) << "ordered: " << ordered;
    h.HardenAll();
    h.Sweep(0);
    EXPECT_EQ(h.table().Find(1), nullptr) << "ordered: " << ordered;
  }
}

TEST(DifferentialLogSlots, ADeletedRowStaysUntilThatIsDurable) {
  ExpectThatADeletedRowStaysUntilThatIsDurable<Engine>();
}

class RunsDifferentialLogTest : public DifferentialLogTest {
 protected:
  RunsDifferentialLogTest() : DifferentialLogTest({.logs = 1, .change_image = ChangeImage::kRuns}) {}
};

TEST_F(RunsDifferentialLogTest, RunsHoldTheWordsThatChanged) {
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  const Seen change = Records()[0];
  EXPECT_EQ(change.header.flags, format::kChangeFirst | format::kChangeRuns);
  const auto run = *FieldOf<format::ChangeRun>(change.body, sizeof(format::ChangeBody));
  EXPECT_EQ(run.word, 0u);
  EXPECT_EQ(run.words, 1u);
  EXPECT_EQ(*FieldOf<uint32_t>(change.body, sizeof(format::ChangeBody) + sizeof run), 200u ^ 77u);
}

class TwoPassDifferentialLogTest : public DifferentialLogTest {
 protected:
  TwoPassDifferentialLogTest() : DifferentialLogTest({.logs = 1, .diff_method = DiffMethod::kDl2p}) {}
};

TEST_F(TwoPassDifferentialLogTest, AnAbortLeavesCompensationsWithoutACheckpointToo) {
  const std::vector<std::byte> before = Images();
  EXPECT_EQ(RollBack(0, 1, 7).outcome, Outcome::kRollback);
  EXPECT_EQ(Images(), before);
  EXPECT_EQ(Kinds(), (std::vector{RecordKind::kChange, RecordKind::kChange, RecordKind::kAbort}));
  EXPECT_EQ(Records()[1].header.flags, format::kChangeCompensation);
  EXPECT_EQ(Records()[2].header.length, 40u);
}

class PhysicalLogTest : public DifferentialLogTest {
 protected:
  explicit PhysicalLogTest(uint32_t logs = 1) : DifferentialLogTest({.logs = logs, .diff_method = DiffMethod::kPl2p}) {}
  // The first words of the images before and after.
  static std::pair<uint64_t, uint64_t> ImagesOf(const Seen& change) {
    const size_t key = (change.header.flags & format::kChangePresence) != 0 ? sizeof(Key) : 0;
    const size_t at = sizeof(format::ChangeBody) + key;
    EXPECT_EQ(change.body.size(), at + 2 * sizeof(Tuple));
    return {change.Word(at), change.Word(at + sizeof(Tuple))};
  }
};

TEST_F(PhysicalLogTest, RecordsHoldTheImagesBeforeAndAfter) {
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  ASSERT_TRUE(h_.Insert(0, 9, 900).wrote);
  ASSERT_TRUE(h_.Delete(0, 9).wrote);
  const std::vector<Seen> records = Records();
  ASSERT_EQ(records.size(), 6u);
  constexpr uint16_t kFirst = format::kChangeFirst | format::kChangeImages;
  EXPECT_EQ(records[0].header.flags, kFirst);
  EXPECT_EQ(ImagesOf(records[0]), std::pair(uint64_t{200}, uint64_t{77}));
  EXPECT_EQ(records[2].header.flags, kFirst | format::kChangePresence);
  EXPECT_EQ(ImagesOf(records[2]), std::pair(uint64_t{0}, uint64_t{900}));
  EXPECT_EQ(records[4].header.flags, kFirst | format::kChangePresence | format::kChangeErases);
  EXPECT_EQ(ImagesOf(records[4]), std::pair(uint64_t{900}, uint64_t{0}));
}

TEST_F(PhysicalLogTest, EndsHaveAscendingStamps) {
  ASSERT_TRUE(h_.Write(0, 2, 77).wrote);
  EXPECT_EQ(RollBack(0, 2, 78).outcome, Outcome::kRollback);
  ASSERT_TRUE(h_.Write(0, 2, 79).wrote);
  uint64_t last = 0;
  size_t ends = 0;
  for (const Seen& record : Records()) {
    if (record.kind == RecordKind::kChange) continue;
    EXPECT_EQ(record.header.flags, format::kEndStamped);
    // The first depends on nothing, the others on a COMMIT that is not durable.
    EXPECT_EQ(record.header.length, ++ends == 1 ? 48u : 56u);
    EXPECT_EQ(StampOfEnd(record.body), ++last);
  }
  EXPECT_EQ(ends, 3u);
}

TEST_F(PhysicalLogTest, ACompensationHoldsTheImageThatItPutsBack) {
  const std::vector<std::byte> before = Images();
  EXPECT_EQ(RollBack(0, 1, 7).outcome, Outcome::kRollback);
  EXPECT_EQ(Images(), before);
  const std::vector<Seen> records = Records();
  ASSERT_EQ(Kinds(), (std::vector{RecordKind::kChange, RecordKind::kChange, RecordKind::kAbort}));
  EXPECT_EQ(records[1].header.flags, format::kChangeCompensation | format::kChangeImages);
  EXPECT_EQ(ImagesOf(records[1]), std::pair(uint64_t{7}, uint64_t{100}));
}

class TwoPhysicalLogsTest : public PhysicalLogTest {
 protected:
  TwoPhysicalLogsTest() : PhysicalLogTest(2) {}
};

TEST_F(TwoPhysicalLogsTest, AnAbortInAnotherLogDependsOnTheWriterWhoseImageItPutsBack) {
  ASSERT_TRUE(h_.Write(0, 1, 7).wrote);
  EXPECT_EQ(RollBack(1, 1, 8).outcome, Outcome::kRollback);
  ASSERT_NE(h_.state(0).log, h_.state(1).log);
  const Seen abort = Records(h_.state(1).log).back();
  ASSERT_EQ(abort.kind, RecordKind::kAbort);
  EXPECT_EQ(abort.header.lv_mask, 1u << h_.state(0).log);
  EXPECT_EQ(abort.Word(sizeof(TxnId)), h_.state(0).place.end().value());
}

class TwoDifferentialLogsTest : public DifferentialLogTest {
 protected:
  TwoDifferentialLogsTest() : DifferentialLogTest({.logs = 2}) {}
};

TEST_F(TwoDifferentialLogsTest, AReaderInAnotherLogDependsOnTheWriterItReadFrom) {
  ASSERT_TRUE(h_.Write(0, 1, 7).wrote);
  ASSERT_TRUE(h_.Run(1, [&](TestContext& ctx) {
                  EXPECT_EQ(ctx.Read(h_.table(), 1, [](const TestTuple&) {}), Outcome::kOk);
                  return ctx.Update(h_.table(), 2, [](TestTuple& t) { t.SetAt<uint64_t>(0, 1); });
                }).wrote);
  ASSERT_NE(h_.state(0).log, h_.state(1).log);
  const std::vector<Seen> second = Records(h_.state(1).log);
  ASSERT_EQ(second.back().kind, RecordKind::kCommit);
  EXPECT_EQ(second.back().header.lv_mask, 1u << h_.state(0).log);
  EXPECT_EQ(second.back().Word(sizeof(TxnId)), h_.state(0).place.end().value());
  h_.Flush(h_.state(1).log);
  EXPECT_FALSE(h_.IsDurable(1));
  h_.Flush(h_.state(0).log);
  EXPECT_TRUE(h_.IsDurable(1));
}

TEST_F(TwoDifferentialLogsTest, AllRecordsOfAnAttemptAreInOneLog) {
  ASSERT_TRUE(h_.Run(1, [&](TestContext& ctx) {
                  for (const Key key : {1, 2, 3}) {
                    EXPECT_EQ(ctx.Update(h_.table(), key, [&](TestTuple& t) { t.SetAt<uint64_t>(0, 7); }),
                              Outcome::kOk);
                  }
                  return Outcome::kOk;
                }).wrote);
  EXPECT_EQ(Records(0).size() * Records(1).size(), 0u);
  EXPECT_EQ(Records(0).size() + Records(1).size(), 4u);
}

// A worker that has used its log for long enough turns to the one with less to flush.
TEST_F(TwoDifferentialLogsTest, TheIdlestLogIsChosen) {
  const uint32_t busy = h_.state(0).log;
  for (int i = 0; i < 31; ++i) ASSERT_TRUE(h_.Write(0, 1, i).wrote);
  EXPECT_EQ(h_.state(0).log, busy);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(h_.Write(0, 1, 50 + i).wrote);
  EXPECT_NE(h_.state(0).log, busy);
}

// Controls that change rows when a transaction commits.
template <class Engine>
using OptimisticDifferentialLogTest = RecordsTest<Engine>;
using OptimisticEngines = ::testing::Types<Harness<Silo<Log>, Log>, Harness<TicToc<Log>, Log>,
                                           Harness<Hekaton<Log>, Log>, Harness<HekatonSnapshot<Log>, Log>>;
TYPED_TEST_SUITE(OptimisticDifferentialLogTest, OptimisticEngines);

TYPED_TEST(OptimisticDifferentialLogTest, EachRowLeavesOneChangeHoweverOftenItWasChanged) {
  const CallResult result = this->h_.Run(0, [&](TestContext& ctx) {
    for (const uint64_t value : {7, 8, 9}) {
      EXPECT_EQ(ctx.Update(this->h_.table(), 2, [&](TestTuple& t) { t.SetAt<uint64_t>(0, value); }), Outcome::kOk);
    }
    EXPECT_TRUE(this->Records().empty());
    return Outcome::kOk;
  });
  ASSERT_TRUE(result.wrote);
  ASSERT_EQ(this->Kinds(), (std::vector{RecordKind::kChange, RecordKind::kCommit}));
  EXPECT_EQ(this->Records()[0].header.flags, format::kChangeFirst);
  EXPECT_EQ(this->Records()[0].Word(sizeof(format::ChangeBody)), 200u ^ 9u);
  EXPECT_EQ(this->h_.ValueOf(2), 9u);
}

TYPED_TEST(OptimisticDifferentialLogTest, AnInsertAndADeleteFlipThePresenceOfTheirSlot) {
  ASSERT_TRUE(this->h_.Insert(0, 9, 900).wrote);
  Row* const row = this->h_.table().Find(9);
  const PageSpace::Place at = this->pages().PlaceOf(row);
  EXPECT_TRUE(this->pages().IsPresent(at));
  EXPECT_EQ(this->h_.ValueOf(9), 900u);
  ASSERT_TRUE(this->h_.Delete(1, 9).wrote);
  EXPECT_FALSE(this->pages().IsPresent(at));
  const std::vector<Seen> records = this->Records();
  ASSERT_EQ(records.size(), 4u);
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(records[i].header.flags, format::kChangeFirst | format::kChangePresence);
    EXPECT_EQ(records[i].Word(sizeof(format::ChangeBody)), 9u);
    EXPECT_EQ(records[i].Word(sizeof(format::ChangeBody) + 8), 900u);
  }
  EXPECT_EQ(TupleReader(this->h_.table().tuple(row)).template GetAt<uint64_t>(0), 0u);
}

TYPED_TEST(OptimisticDifferentialLogTest, AnAbortLeavesNoRecord) {
  const std::vector<std::byte> before = this->Images();
  EXPECT_EQ(this->RollBack(0, 1, 7).outcome, Outcome::kRollback);
  EXPECT_EQ(this->Images(), before);
  EXPECT_TRUE(this->Records().empty());
}

TYPED_TEST(OptimisticDifferentialLogTest, ARowThatIsInsertedAndDeletedAgainHasNotChanged) {
  const std::vector<std::byte> before = this->Images();
  const auto insert_and_delete = [&](TestContext& ctx) {
    const Tuple tuple{5, {}};
    EXPECT_EQ(ctx.Insert(this->h_.table(), 9, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
    return ctx.Delete(this->h_.table(), 9);
  };
  EXPECT_EQ(this->h_.Run(0, insert_and_delete).outcome, Outcome::kOk);
  EXPECT_TRUE(this->Records().empty());
  // Beside another change it still has no record, and the row can be inserted afterwards.
  ASSERT_TRUE(this->h_
                  .Run(1,
                       [&](TestContext& ctx) {
                         EXPECT_EQ(insert_and_delete(ctx), Outcome::kOk);
                         return ctx.Update(this->h_.table(), 1, [](TestTuple& t) { t.SetAt<uint64_t>(0, 100); });
                       })
                  .wrote);
  EXPECT_EQ(this->Kinds(), (std::vector{RecordKind::kChange, RecordKind::kCommit}));
  EXPECT_EQ(this->Images(), before);
  ASSERT_TRUE(this->h_.Insert(0, 9, 900).wrote);
  EXPECT_EQ(this->h_.ValueOf(9), 900u);
}

TYPED_TEST(OptimisticDifferentialLogTest, ADeletedRowStaysUntilThatIsDurable) {
  ExpectThatADeletedRowStaysUntilThatIsDurable<TypeParam>();
}

TEST(DifferentialLogSizes, ATupleThatNoRecordHoldsIsRefusedAtTheStart) {
  try {
    Engine engine({.logs = 1, .ring_bytes = 64 << 10, .tuple_bytes = 20000});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kUsage);
    EXPECT_NE(std::string(error.what()).find("MAX_LOG_ENTRY_SIZE"), std::string::npos);
  }
}

}  // namespace
}  // namespace dbx::testing
