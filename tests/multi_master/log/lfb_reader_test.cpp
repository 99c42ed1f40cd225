// Which Log Store a reader asks. (What it makes of the bytes: tests/simulation/multi_master/log_cluster_test.cpp.)
#include "multi_master/log/lfb_reader.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/multi_master/log/store_probe.h"

namespace dbx::mm {
namespace {

using std::chrono::milliseconds;

struct LfbReaderTest : testing::Test {
  LfbReader& Reader(milliseconds shunned) {
    LfbReaderOptions options;
    options.log = MasterId(1);
    options.set = kSet;
    options.patience = milliseconds(1);
    options.shunned = shunned;
    reader_ = std::make_unique<LfbReader>(network_, options);
    return *reader_;
  }
  // The stores that it asks within `time`, as none has anything.
  std::set<int> AskedWithin(milliseconds time) {
    EXPECT_FALSE(reader_->Next(time).has_value());
    std::set<int> asked;
    while (const auto sent = network_.Next(milliseconds(0))) asked.insert(sent->to.index);
    return asked;
  }
  static constexpr NodeId Store(uint8_t index) { return {Role::kLogStore, index}; }

  ProbeNetwork network_{kReader};
  std::unique_ptr<LfbReader> reader_;
};

TEST_F(LfbReaderTest, EachStoreIsAskedInTurnWhileNoneHasAnything) {
  Reader(milliseconds(1000));
  EXPECT_EQ(AskedWithin(milliseconds(100)), (std::set{0, 1, 2}));
}

TEST_F(LfbReaderTest, TheFirstStoreIsTheOneThatItsOwnerChose) {
  for (uint32_t store = 0; store < kLogStores; ++store) {
    LfbReaderOptions options;
    options.set = kSet;
    options.first_store = store;
    reader_ = std::make_unique<LfbReader>(network_, options);
    EXPECT_EQ(AskedWithin(milliseconds(1)), (std::set{static_cast<int>(store)}));
  }
}

TEST_F(LfbReaderTest, AStoreWhoseLinkHasBrokenIsPassedOver) {
  Reader(milliseconds(60'000));
  AskedWithin(milliseconds(1));
  reader_->OnLinkDown(Store(0));
  EXPECT_EQ(AskedWithin(milliseconds(100)), (std::set{1, 2}));
  reader_->OnLinkDown(Store(2));
  EXPECT_EQ(AskedWithin(milliseconds(100)), (std::set{1}));
}

TEST_F(LfbReaderTest, AStoreThatWasPassedOverIsAskedAgain) {
  Reader(milliseconds(5));
  AskedWithin(milliseconds(1));
  reader_->OnLinkDown(Store(0));
  EXPECT_TRUE(AskedWithin(milliseconds(100)).contains(0));
}

TEST_F(LfbReaderTest, WhereAllLinksHaveBrokenAStoreIsStillAsked) {
  Reader(milliseconds(60'000));
  for (uint8_t i = 0; i < 3; ++i) reader_->OnLinkDown(Store(i));
  EXPECT_FALSE(AskedWithin(milliseconds(20)).empty());
}

}  // namespace
}  // namespace dbx::mm
