// The parts of the time to acknowledgement: each follows the one before, and they make up the whole.
#include "system/transaction/commit_probe.h"

#include <gtest/gtest.h>

namespace dbx {
namespace {

class CommitProbeTest : public ::testing::Test {
 protected:
  CommitTimes* DrawNext() {
    for (int i = 0; i < 1000; ++i) {
      if (CommitTimes* times = probe_.Draw()) return times;
    }
    return nullptr;
  }
  double MeanNanos(size_t part) { return probe_.parts().nanos[part] / static_cast<double>(probe_.parts().samples); }
  static double Nanos(uint64_t ticks) { return static_cast<double>(Clock::ToNanos(ticks)); }

  static constexpr TxnId kTxn{7}, kOther{8};
  static constexpr uint64_t kTick = 1'000'000;  // long against rounding
  CommitProbe probe_{true};
  DurableVector durable_;
};

TEST_F(CommitProbeTest, ThePartsFollowEachOther) {
  CommitTimes* times = DrawNext();
  ASSERT_NE(times, nullptr);
  *times = {1 * kTick, 3 * kTick, 4 * kTick};
  LsnPerLog ends{};
  ends[1] = Lsn(100);
  probe_.Follow(kTxn, ends);
  probe_.Look(durable_, 5 * kTick);
  durable_.lsn[1] = 100;
  probe_.Look(durable_, 9 * kTick);
  probe_.Look(durable_, 10 * kTick);
  probe_.Acknowledged(kTxn, 20 * kTick);
  ASSERT_EQ(probe_.parts().samples, 1u);
  EXPECT_NEAR(MeanNanos(0), Nanos(2 * kTick), 2);
  EXPECT_NEAR(MeanNanos(1), Nanos(1 * kTick), 2);
  EXPECT_NEAR(MeanNanos(2), Nanos(5 * kTick), 2);
  EXPECT_NEAR(MeanNanos(3), Nanos(11 * kTick), 2);
}

TEST_F(CommitProbeTest, OneTransactionIsFollowedAtATime) {
  ASSERT_NE(DrawNext(), nullptr);
  probe_.Follow(kTxn, {});
  EXPECT_EQ(DrawNext(), nullptr);
  probe_.Acknowledged(kOther, 5);
  EXPECT_EQ(DrawNext(), nullptr);
  probe_.Acknowledged(kTxn, 6);
  EXPECT_NE(DrawNext(), nullptr);
}

TEST_F(CommitProbeTest, ADrawThatDoesNotCommitIsForgotten) {
  ASSERT_NE(DrawNext(), nullptr);
  EXPECT_NE(DrawNext(), nullptr);
  EXPECT_EQ(probe_.parts().samples, 0u);
}

TEST_F(CommitProbeTest, SwitchedOffItDrawsNothing) {
  CommitProbe off(false);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(off.Draw(), nullptr);
}

}  // namespace
}  // namespace dbx
