#include "logging/write_behind/commit_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "logging/payload.h"
#include "logging/write_behind/write_behind_log.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Log = WriteBehindLog<DataPayload>;

constexpr uint64_t kHeap = 77;

// Of memory with slow drains. One worker, which never commits.
class CommitThreadTest : public ::testing::Test {
 protected:
  CommitThreadTest() {
    files_.drains_are_slow = true;
    gaps_.Append(FirstRecordOf(kHeap, 1));
    HeapOptions options;
    options.heap = memory_.get();
    options.gaps = &gaps_;
    options.workers = 1;
    options.flush_interval_us = 100;
    log_.emplace(options);
    log_->InitWorker(state_, WorkerId(0));
  }

  GroupPoint Write() {
    log_->Announce(state_);
    const Timestamp stamp(log_->clock().fetch_add(1) + 1);
    log_->Drawn(state_, stamp);
    auto* const slot = reinterpret_cast<HeapSlot*>(memory_->bytes().data());
    slot->begin.store(stamp.value());
    log_->Installed(state_, slot, sizeof(HeapSlot));
    log_->SetCommitPoint(state_, GroupPoint(point_));
    return GroupPoint(point_);
  }
  static void Await(auto&& condition) {
    while (!condition()) host::SleepFor(std::chrono::microseconds(100));
  }

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("heap.pm", {.create_bytes = 4096});
  const std::unique_ptr<PersistentMemory> log_memory_ =
      files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes});
  GapLog gaps_{*log_memory_, kHeap};
  std::optional<Log> log_;
  Log::TxnState state_;
  uint64_t point_[GroupPoint::kWords] = {};
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
}  // namespace dbx
