#include "logging/write_behind/write_behind_log.h"

#include <gtest/gtest.h>

#include "logging/payload.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Log = WriteBehindLog<DataPayload>;

constexpr uint64_t kHeap = 77;
constexpr uint32_t kWorkers = 2;

// A transaction's steps, by hand; no group is committed but by CommitGroup.
class WriteBehindLogTest : public ::testing::Test {
 protected:
  WriteBehindLogTest() {
    gaps_.Append(FirstRecordOf(kHeap, kWorkers));
    HeapOptions options;
    options.heap = memory_.get();
    options.gaps = &gaps_;
    options.workers = kWorkers;
    options.flush_interval_us = uint64_t{1} << 50;
    log_.emplace(options);
    for (uint32_t i = 0; i < kWorkers; ++i) log_->InitWorker(states_[i], WorkerId(i));
  }

  Timestamp Draw(uint32_t worker) {
    log_->Announce(states_[worker]);
    const Timestamp stamp(log_->clock().fetch_add(1) + 1);
    log_->Drawn(states_[worker], stamp);
    return stamp;
  }
  void Install(uint32_t worker, Timestamp stamp) {
    auto* const slot = reinterpret_cast<HeapSlot*>(memory_->bytes().data()) + worker;
    slot->begin.store(stamp.value());
    log_->Installed(states_[worker], slot, sizeof(HeapSlot));
    log_->SetCommitPoint(states_[worker], PointOf(worker));
  }
  GroupPoint PointOf(uint32_t worker) { return GroupPoint(points_[worker]); }
  void CommitGroup() { log_->WriteRunEnd({}); }

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("heap.pm", {.create_bytes = 4096});
  const std::unique_ptr<PersistentMemory> log_memory_ =
      files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes});
  GapLog gaps_{*log_memory_, kHeap};
  std::optional<Log> log_;
  Log::TxnState states_[kWorkers];
  uint64_t points_[kWorkers][GroupPoint::kWords] = {};
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
}  // namespace dbx
