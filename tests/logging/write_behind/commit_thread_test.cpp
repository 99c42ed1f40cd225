#include "logging/write_behind/commit_thread.h"

#include <chrono>

#include "tests/logging/caught.h"
#include "tests/logging/write_behind/stepped_log.h"

namespace dbx::testing {
namespace {

// Of memory with slow drains; workers never commit.
class CommitThreadTest : public SteppedLogTest {
 protected:
  CommitThreadTest() : SteppedLogTest(/*drains_are_slow=*/true, /*flush_interval_us=*/100) {}

  GroupPoint Write() {
    Install(0, Draw(0));
    return PointOf(0);
  }
  static void Await(auto&& condition) {
    while (!condition()) host::SleepFor(std::chrono::microseconds(100));
  }

  std::string what_;
};

TEST_F(CommitThreadTest, TransactionsBecomeDurableWithoutAWorker) {
  for (int i = 0; i < 20; ++i) {
    const GroupPoint point = Write();
    Await([&] { return log_->IsDurable(point); });
  }
}

TEST_F(CommitThreadTest, ARunWithoutTransactionsWritesNoRecords) {
  const GroupPoint point = Write();
  Await([&] { return log_->IsDurable(point); });
  const uint64_t records = gaps_.newest()->sequence;
  host::SleepFor(std::chrono::milliseconds(5));
  log_->WriteRunEnd({});
  EXPECT_EQ(gaps_.newest()->sequence, records + 1);
}

TEST_F(CommitThreadTest, NoCommitFollowsTheLastRecord) {
  Write();
  log_->WriteRunEnd(std::pair<uint64_t, uint64_t>{1, 2});
  host::SleepFor(std::chrono::milliseconds(2));
  EXPECT_TRUE(gaps_.newest()->clean);
}

TEST_F(CommitThreadTest, WorkersHearOfItsFailure) {
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO, /*for_good=*/true);
  Write();
  EXPECT_EQ(Caught([&] { Await([&] { return log_->ThrowIfFailed(), false; }); }, what_), ExitStatus::kIo);
  log_.reset();
}

}  // namespace
}  // namespace dbx::testing
