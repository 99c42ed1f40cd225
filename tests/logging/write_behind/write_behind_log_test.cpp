#include "logging/write_behind/write_behind_log.h"

#include "tests/logging/write_behind/stepped_log.h"

namespace dbx::testing {
namespace {

// No group is committed but by CommitGroup.
class WriteBehindLogTest : public SteppedLogTest {
 protected:
  WriteBehindLogTest() : SteppedLogTest(/*drains_are_slow=*/false, /*flush_interval_us=*/uint64_t{1} << 50) {}
  void CommitGroup() { log_->WriteRunEnd({}); }
};

TEST_F(WriteBehindLogTest, ACoveredWriterThatTheRecordListsIsNotDurable) {
  const Timestamp stamp = Draw(0);
  CommitGroup();
  ASSERT_EQ(gaps_.newest()->c_p, stamp.value());
  Install(0, stamp);
  EXPECT_FALSE(log_->IsDurable(PointOf(0)));
  CommitGroup();
  EXPECT_TRUE(log_->IsDurable(PointOf(0)));
}

TEST_F(WriteBehindLogTest, AReaderWaitsForTheGroupOfWhatItMayHaveRead) {
  const Timestamp stamp = Draw(0);
  CommitGroup();
  Install(0, stamp);
  log_->SetReadOnlyPoint(states_[1], PointOf(1));
  EXPECT_FALSE(log_->IsDurable(PointOf(1))) << "c_p covers it, and the record lists what it has read";
  CommitGroup();
  EXPECT_TRUE(log_->IsDurable(PointOf(1)));
}

}  // namespace
}  // namespace dbx::testing
