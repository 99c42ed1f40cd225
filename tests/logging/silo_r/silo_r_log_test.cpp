// Silo-R's run side: chunks that no other worker writes to, and epochs that are persistent only when everything is.
#include "logging/silo_r/silo_r_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

using SiloR = SiloRLog<DataPayload>;

class SiloRTest : public ::testing::Test {
 protected:
  SiloRTest() {
    for (Key key = 1; key <= 4; ++key) h_.LoadRow(key, 0);
  }
  // All workers have seen the new epoch.
  void NextEpoch() {
    h_.epochs().Advance();
    for (uint32_t w = 0; w < H::kWorkers; ++w) h_.epochs().Refresh(WorkerId(w));
  }
  bool BecomesDurable(uint32_t worker) {
    for (int i = 0; i < 5000 && !h_.IsDurable(worker); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return h_.IsDurable(worker);
  }
  static constexpr auto kALittle = std::chrono::milliseconds(20);

  using H = Harness<Silo<SiloR>, SiloR>;
  H h_{2};
};

TEST_F(SiloRTest, TransactionsOfAWorkerShareAPlace) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  const Lsn reserved = h_.logs().stream(0).reserved_until();
  ASSERT_TRUE(h_.Write(0, 2, 6).wrote);
  EXPECT_EQ(h_.logs().stream(0).reserved_until(), reserved);
  EXPECT_EQ(h_.logs().stream(0).ReadyUntil(), Lsn(0)) << "an open chunk belongs to its worker alone";
}

TEST_F(SiloRTest, AnIdleWorkerHandsItsChunkOver) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  h_.log().Idle(h_.state(0));
  EXPECT_EQ(h_.logs().stream(0).ReadyUntil(), h_.logs().stream(0).reserved_until());
  EXPECT_EQ(h_.logs().stream(0).txn_count(), 1u);
}

TEST_F(SiloRTest, ANewEpochHandsTheChunkOver) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  NextEpoch();
  ASSERT_EQ(h_.Read(0, 2).outcome, Outcome::kOk);
  EXPECT_EQ(h_.logs().stream(0).ReadyUntil(), h_.logs().stream(0).reserved_until());
}

// A record that leaves too little of the chunk for a VOID takes a place of its own.
TEST_F(SiloRTest, AFullChunkIsFollowedByAnother) {
  for (uint64_t i = 0; i < 5000; ++i) ASSERT_TRUE(h_.Write(0, 1 + i % 4, i).wrote);
  h_.log().Idle(h_.state(0));
  const LogStream& stream = h_.logs().stream(0);
  Lsn at;
  uint64_t txns = 0;
  while (at < stream.reserved_until()) {
    format::RecordHeader header;
    std::memcpy(&header, stream.at({at, 0}), sizeof header);
    ASSERT_EQ(header.lsn, at.value());
    ASSERT_GE(header.length, sizeof header);
    txns += header.kind == static_cast<uint8_t>(format::RecordKind::kStamped);
    at += header.length;
  }
  EXPECT_EQ(at, stream.reserved_until());
  EXPECT_EQ(txns, 5000u);
}

TEST_F(SiloRTest, WithMoreLogsThanWorkersChunksGoToThemInTurns) {
  H many(2 * H::kWorkers + 1);
  many.LoadRow(1, 0);
  for (uint64_t i = 0; i < 5000; ++i) ASSERT_TRUE(many.Write(0, 1, i).wrote);
  many.log().Idle(many.state(0));
  for (uint32_t j = 0; j < many.logs().count(); ++j) {
    EXPECT_EQ(many.logs().stream(j).txn_count() > 500, j % H::kWorkers == 0) << "log " << j;
  }
}

TEST_F(SiloRTest, AnEpochIsPersistentOnlyWhenItIsOverAndDurableEverywhere) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  ASSERT_TRUE(h_.Write(1, 2, 5).wrote);
  for (uint32_t w : {0, 1}) h_.log().Idle(h_.state(w));
  h_.FlushAll();
  std::this_thread::sleep_for(kALittle);
  EXPECT_FALSE(h_.IsDurable(0)) << "the epoch goes on";
  ASSERT_TRUE(h_.Write(1, 2, 6).wrote);
  h_.log().Idle(h_.state(1));
  NextEpoch();
  h_.Flush(0);
  std::this_thread::sleep_for(kALittle);
  EXPECT_FALSE(h_.IsDurable(0)) << "log 1 is not durable up to the end of the epoch";
  h_.Flush(1);
  EXPECT_TRUE(BecomesDurable(0));
  EXPECT_TRUE(BecomesDurable(1));
}

// Trap 23: a worker that is still in an epoch may add to it.
TEST_F(SiloRTest, AWorkerThatHasNotSeenTheNewEpochHoldsTheOldOneOpen) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  h_.log().Idle(h_.state(0));
  h_.FlushAll();
  h_.epochs().Advance();
  for (uint32_t w : {0, 1, 2}) h_.epochs().Refresh(WorkerId(w));
  std::this_thread::sleep_for(kALittle);
  EXPECT_FALSE(h_.IsDurable(0));
  h_.epochs().Leave(WorkerId(3));
  EXPECT_TRUE(BecomesDurable(0)) << "an idle worker adds nothing";
}

// What a chunk holds was reserved before the frontier's last step, but is of a later epoch than that.
TEST_F(SiloRTest, AnEpochIsWrittenThoughItsPlacesWereTakenBeforeTheLastStep) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  const uint64_t first = h_.point(0)[0];
  h_.log().Idle(h_.state(0));
  h_.epochs().Advance();
  for (uint32_t w : {1, 2, 3}) h_.epochs().Refresh(WorkerId(w));
  ASSERT_TRUE(h_.Write(1, 2, 5).wrote);  // of the new epoch, while worker 0 is still in the old one
  h_.log().Idle(h_.state(1));
  h_.epochs().Refresh(WorkerId(0));
  h_.FlushAll();
  EXPECT_TRUE(BecomesDurable(0));
  EXPECT_FALSE(h_.IsDurable(1));
  NextEpoch();
  EXPECT_TRUE(BecomesDurable(1));
  EXPECT_GT(h_.point(1)[0], first);
  EXPECT_EQ(h_.frontier_stamp(), StampOf(EpochTid::Last(Epoch(h_.point(1)[0]))));
}

TEST_F(SiloRTest, AReaderWaitsForItsEpoch) {
  ASSERT_TRUE(h_.Write(0, 1, 5).wrote);
  ASSERT_EQ(h_.Read(1, 1).outcome, Outcome::kOk);
  EXPECT_GE(h_.point(1)[0], h_.point(0)[0]);
  EXPECT_FALSE(h_.IsDurable(1));
}

TEST_F(SiloRTest, AnIdleSystemWritesNoFrontier) {
  for (int i = 0; i < 5; ++i) NextEpoch();
  ASSERT_EQ(h_.Read(1, 1).outcome, Outcome::kOk);
  NextEpoch();
  EXPECT_TRUE(BecomesDurable(1));
  EXPECT_EQ(h_.frontier_bytes(), 0u);
}

}  // namespace
}  // namespace dbx::testing
