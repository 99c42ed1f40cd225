// The thread of the checkpoints: when they begin, how they end, and what is counted.
#include "logging/backup/checkpointer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/logging/backup/checkpointed_database.h"
#include "tests/logging/caught.h"

namespace dbx {
namespace {

using Operation = FaultyFileSystem::Operation;

class CheckpointerTest : public ::testing::Test {
 protected:
  CheckpointerTest() { db_.Begin(); }
  std::unique_ptr<Checkpointer> Make(CheckpointOptions options) {
    return std::make_unique<Checkpointer>(db_.log, db_.OptionsOf(options));
  }
  // False if it takes too long.
  static bool Await(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  bool AwaitAnchor(uint32_t number) {
    return Await([&] { return db_.Durable().anchor.number >= number; });
  }

  CheckpointedDatabase db_;
  std::string what_;
};

TEST_F(CheckpointerTest, WithoutAnIntervalThereAreNone) {
  const auto checkpointer = Make({});
  checkpointer->Start();
  db_.log.reserved_bytes.store(uint64_t{1} << 40);
  checkpointer->Stop();
  EXPECT_EQ(checkpointer->counters().checkpoints, 0u);
  EXPECT_TRUE(db_.log.calls.empty());
}

TEST_F(CheckpointerTest, TheyFollowEachOtherInTime) {
  const auto checkpointer = Make({.interval_ms = 1});
  checkpointer->Start();
  EXPECT_TRUE(AwaitAnchor(3));
  checkpointer->Stop();
  const Checkpointer::Counters counters = checkpointer->counters();
  EXPECT_EQ(counters.checkpoints, db_.Durable().anchor.number);
  EXPECT_EQ(counters.failed, 0u);
  EXPECT_EQ(counters.pages, db_.page_count()) << "those of the empty copy, as nothing changes";
  EXPECT_EQ(counters.bytes, counters.pages * db_.backup->shape().FrameBytes(0));
  EXPECT_GT(counters.seconds, 0);
  EXPECT_EQ(counters.latches.count(), counters.pages);
  EXPECT_TRUE(db_.Durable().images == db_.Images());
  checkpointer->ThrowIfFailed();
}

TEST_F(CheckpointerTest, TheyFollowWhatWasLogged) {
  const auto checkpointer = Make({.interval_bytes = 1000});
  db_.log.reserved_bytes.store(500);
  checkpointer->Start();
  for (uint32_t number = 1; number <= 3; ++number) {
    db_.log.reserved_bytes.store(500 + 1000 * number - 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(db_.Durable().anchor.number, number - 1);
    db_.log.reserved_bytes.store(500 + 1000 * number);
    EXPECT_TRUE(AwaitAnchor(number));
  }
  checkpointer->Stop();
  EXPECT_EQ(checkpointer->counters().checkpoints, 3u);
}

TEST_F(CheckpointerTest, ALongIntervalEndsWithTheRun) {
  const auto checkpointer = Make({.interval_ms = 3'600'000, .interval_bytes = uint64_t{1} << 40});
  checkpointer->Start();
  checkpointer->Stop();
  EXPECT_EQ(checkpointer->counters().checkpoints, 0u);
}

TEST_F(CheckpointerTest, LackOfSpaceIsCountedAndNoticedOnce) {
  ::testing::internal::CaptureStderr();
  const auto checkpointer = Make({.interval_ms = 1});
  db_.files.Fail(Operation::kWrite, 1, ENOSPC, /*for_good=*/true, "backup-b");
  checkpointer->Start();
  EXPECT_TRUE(Await([&] { return db_.log.begun_number.load() >= 4; }));
  checkpointer->Stop();
  const std::string notices = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(notices.starts_with("notice: no space for a checkpoint, "));
  EXPECT_EQ(std::ranges::count(notices, '\n'), 1);
  checkpointer->ThrowIfFailed();
  EXPECT_EQ(checkpointer->counters().checkpoints, 0u);
  EXPECT_GE(checkpointer->counters().failed, 3u);
  EXPECT_EQ(db_.Durable().anchor, db_.anchor);
}

TEST_F(CheckpointerTest, ADeviceThatFailsFailsTheRun) {
  const auto checkpointer = Make({.interval_ms = 1});
  db_.files.Fail(Operation::kSync, 1, EIO, /*for_good=*/false, "backup-b");
  checkpointer->Start();
  const auto failed = [&] { return Caught([&] { checkpointer->ThrowIfFailed(); }, what_) == ExitStatus::kIo; };
  EXPECT_TRUE(Await(failed)) << what_;
  EXPECT_TRUE(what_.starts_with("cannot sync ")) << what_;
  checkpointer->Stop();
  EXPECT_TRUE(failed());
  EXPECT_EQ(checkpointer->counters().checkpoints + checkpointer->counters().failed, 0u);
}

// As a log's wait does when its writers are stopped.
TEST_F(CheckpointerTest, OneThatIsInProgressIsGivenUpAtTheEnd) {
  Atomic<bool> waiting{false}, stopping{false};
  db_.log.on_call = [&](const std::string& call) {
    if (call != "durable") return;
    waiting.store(true);
    while (!stopping.load()) std::this_thread::yield();
    throw Error(ExitStatus::kInternal, "the run ends");
  };
  const auto checkpointer = Make({.interval_ms = 1});
  checkpointer->Start();
  EXPECT_TRUE(Await([&] { return waiting.load(); }));
  stopping.store(true);
  checkpointer->Stop();
  checkpointer->ThrowIfFailed();
  EXPECT_EQ(checkpointer->counters().checkpoints, 0u);
  EXPECT_EQ(checkpointer->counters().pages, db_.page_count());
  EXPECT_EQ(db_.Durable().anchor, db_.anchor);
}

}  // namespace
}  // namespace dbx
