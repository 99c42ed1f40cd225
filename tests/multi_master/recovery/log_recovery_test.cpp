// The log of a dead master is fenced, sealed and read.
#include "multi_master/recovery/log_recovery.h"

#include <gtest/gtest.h>

#include "tests/multi_master/recovery/store_nodes.h"

namespace dbx::mm {
namespace {

constexpr MasterId kDead{1};
constexpr PageId kPage{10}, kRight{20};

class LogRecoveryTest : public testing::Test, public Network::Receiver {
 protected:
  LogRecoveryTest() : fencer_(network_.Join({Role::kLocks, 0})) {
    recovery_ =
        std::make_unique<LogRecovery>(fencer_, LogRecoveryOptions{kTestCluster, kDead, ClusterEpoch(1), kTestStores});
    fencer_.Start(*this);
  }
  ~LogRecoveryTest() override { fencer_.Stop(); }

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    return recovery_->OnMessage(from, type, body);
  }
  void OnLinkDown(NodeId) override {}

  DeadLog::Result Recover() {
    std::optional<DeadLog::Result> result = recovery_->Run();
    EXPECT_TRUE(result.has_value());
    return std::move(*result);
  }
  // An END that the writer sends to store 1 alone.
  void AppendEndAtOneStore(uint64_t txn) {
    constexpr NodeId kStore1{Role::kLogStore, 1};
    writer_.network().CutFromStores({0, 2});
    const uint64_t sent = writer_.network().sent(kStore1, kLogAppend);
    writer_.End(txn);
    EXPECT_TRUE(BecomesSoon([&] { return writer_.network().sent(kStore1, kLogAppend) > sent; }));
  }

  MemoryNetwork network_;
  StoreNodes stores_{network_};
  LogNode writer_{network_, kDead};
  CutNetwork fencer_;
  std::unique_ptr<LogRecovery> recovery_;
};

TEST_F(LogRecoveryTest, ALogWithoutARecordIsEmpty) {
  const DeadLog::Result result = Recover();
  EXPECT_EQ(result.dead.log_end, VsTime());
  EXPECT_TRUE(result.losers.empty());
  EXPECT_EQ(recovery_->seal(), Lsn());
}

TEST_F(LogRecoveryTest, ItIsReadUpToTheSeal) {
  writer_.Put(1, kPage, 60);
  writer_.Split(kPage, 50, kRight);
  writer_.AwaitDurable();
  writer_.Put(2, kPage, 5);
  writer_.End(2);
  const VsTime newest = writer_.Put(3, kPage, 6);
  writer_.AwaitDurable();
  const DeadLog::Result result = Recover();
  EXPECT_EQ(result.dead.losers, (std::vector<uint64_t>{3, 1}));
  EXPECT_EQ(result.dead.steps.size(), 3u);
  ASSERT_EQ(result.dead.versions.size(), 2u);
  EXPECT_EQ(result.dead.versions[0].lsn, (PageLsn{kDead, newest}));
  EXPECT_EQ(result.dead.log_end, writer_.log().durable_until());
}

TEST_F(LogRecoveryTest, ALongLogIsReadInWhole) {
  for (uint64_t txn = 1; txn <= 20'000; ++txn) {
    writer_.Put(txn, kPage, txn);
    if (txn % 1000 != 0) writer_.End(txn);
  }
  writer_.AwaitDurable();
  EXPECT_EQ(Recover().losers.size(), 20u);
}

TEST_F(LogRecoveryTest, AnEndThatNoStoreHasIsNone) {
  writer_.Put(1, kPage, 5);
  writer_.AwaitDurable();
  writer_.network().CutFromStores({0, 1, 2});
  writer_.End(1);
  EXPECT_EQ(Recover().dead.losers, std::vector<uint64_t>{1});
}

TEST_F(LogRecoveryTest, ATailAtOneStoreCountsIfThatStoreIsFenced) {
  writer_.Put(1, kPage, 5);
  writer_.AwaitDurable();
  AppendEndAtOneStore(1);
  fencer_.CutFromStores({2});
  EXPECT_TRUE(Recover().losers.empty());
}

TEST_F(LogRecoveryTest, ATailAtOneStoreIsCutOffIfTheOthersAreFenced) {
  writer_.Put(1, kPage, 5);
  writer_.AwaitDurable();
  AppendEndAtOneStore(1);
  fencer_.CutFromStores({1});
  EXPECT_EQ(Recover().dead.losers, std::vector<uint64_t>{1});
}

TEST_F(LogRecoveryTest, AMasterThatLivesGetsNothingDurableAfterwards) {
  writer_.Put(1, kPage, 5);
  writer_.AwaitDurable();
  Recover();
  const VsTime end = writer_.End(1);
  EXPECT_THROW(writer_.log().AwaitDurable(end), Error);
  EXPECT_LT(writer_.log().durable_until().value(), end.value());
}

TEST_F(LogRecoveryTest, WithoutTwoStoresItWaitsUntilItIsStopped) {
  fencer_.CutFromStores({0, 1});
  Thread stopper([&] {
    host::SleepFor(std::chrono::milliseconds(50));
    recovery_->Stop();
  });
  EXPECT_FALSE(recovery_->Run());
}

TEST_F(LogRecoveryTest, OneThatALaterEpochHasFencedIsRefused) {
  LogMessage fence{kDead, ClusterEpoch(9), kTestStores};
  for (uint8_t i = 0; i < kLogStores; ++i)
    network_.Join({Role::kLocks, 1}).Send({Role::kLogStore, i}, kLogFence, EncodeLog(fence));
  EXPECT_THROW((void)recovery_->Run(), Error);
}

}  // namespace
}  // namespace dbx::mm
