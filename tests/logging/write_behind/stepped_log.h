// A write-behind log over faulty memory, and the steps of transactions by hand.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "logging/payload.h"
#include "logging/write_behind/write_behind_log.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::testing {

class SteppedLogTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kWorkers = 2;
  static constexpr uint64_t kHeap = 77;

  // With `index_lines`, the lines behind those of the workers' slots are such ones.
  SteppedLogTest(bool drains_are_slow, uint64_t flush_interval_us, uint32_t index_lines = 0) {
    gaps_.Append(FirstRecordOf(kHeap, kWorkers));
    HeapOptions options;
    options.heap = memory_.get();
    options.gaps = &gaps_;
    options.commits_are_slow = drains_are_slow;
    options.workers = kWorkers;
    options.flush_interval_us = flush_interval_us;
    options.index_lines = index_lines;
    for (uint32_t i = 0; index_lines > 0 && i < kWorkers; ++i) {
      options.lines_of_indexes.push_back({IndexLine(i, 0), IndexLine(i, 1), IndexLine(i, 2), IndexLine(i, 3)});
    }
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
    HeapSlot* const slot = SlotOf(worker);
    slot->begin.store(stamp.value());
    log_->Installed(states_[worker], slot, sizeof(HeapSlot));
    log_->SetCommitPoint(states_[worker], PointOf(worker));
  }
  HeapSlot* SlotOf(uint32_t worker) { return reinterpret_cast<HeapSlot*>(memory_->bytes().data()) + worker; }
  std::byte* IndexLine(uint32_t worker, uint32_t line) {
    return memory_->bytes().data() + (kWorkers + 4 * worker + line) * heap_format::kLineBytes;
  }
  GroupPoint PointOf(uint32_t worker) { return GroupPoint(points_[worker]); }

  using Log = WriteBehindLog<DataPayload>;

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("heap.pm", {.create_bytes = 4096});
  const std::unique_ptr<PersistentMemory> log_memory_ =
      files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes});
  GapLog gaps_{*log_memory_, kHeap};
  std::optional<Log> log_;
  Log::TxnState states_[kWorkers];

 private:
  uint64_t points_[kWorkers][GroupPoint::kWords] = {};
};

}  // namespace dbx::testing
