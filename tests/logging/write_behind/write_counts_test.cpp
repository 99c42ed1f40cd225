// What write-behind logging writes back, and how often it waits: Arulraj et al. count writes, as persistent memory
// wears out, and each wait is in the latency of a group.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "logging/write_behind/group_commit.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

struct Counts {
  uint64_t lines = 0, drains = 0;
};

// Another memory, whose write-backs and drains are counted.
class CountedMemory final : public PersistentMemory {
 public:
  explicit CountedMemory(std::unique_ptr<PersistentMemory> memory) : memory_(std::move(memory)) {}

  std::span<std::byte> bytes() const override { return memory_->bytes(); }
  std::unique_ptr<PersistentWriter> NewWriter() override {
    return std::make_unique<Writer>(counts_, memory_->NewWriter());
  }
  bool drains_are_slow() const override { return memory_->drains_are_slow(); }
  std::string kind() const override { return memory_->kind(); }

  // Since the last call.
  Counts Take() { return std::exchange(counts_, Counts{}); }

 private:
  class Writer final : public PersistentWriter {
   public:
    Writer(Counts& counts, std::unique_ptr<PersistentWriter> writer) : counts_(counts), writer_(std::move(writer)) {}
    void WriteBack(const std::byte* from, size_t bytes) override {
      const auto at = reinterpret_cast<uintptr_t>(from);
      counts_.lines += (at + bytes + 63) / 64 - at / 64;
      writer_->WriteBack(from, bytes);
    }
    void Drain() override {
      ++counts_.drains;
      writer_->Drain();
    }

   private:
    Counts& counts_;
    const std::unique_ptr<PersistentWriter> writer_;
  };

  const std::unique_ptr<PersistentMemory> memory_;
  Counts counts_;
};

constexpr uint64_t kHeap = 77;
constexpr uint32_t kWorkers = 2;
constexpr size_t kTupleBytes = 1000, kSlotBytes = 1088;  // of YCSB: 17 lines

class WriteCountsTest : public ::testing::Test {
 protected:
  WriteCountsTest() {
    gaps_.emplace(log_memory_, kHeap);
    gaps_->Append(FirstRecordOf(kHeap, kWorkers));
    clock_.store(gaps_->newest()->c_p);
    commits_.emplace(memory_, *gaps_, clock_, kWorkers);
    log_memory_.Take();
  }
  void Write(uint32_t worker, size_t number, size_t bytes) {
    auto* const slot = reinterpret_cast<HeapSlot*>(memory_.bytes().data() + number * kSlotBytes);
    commits_->Announce(WorkerId(worker));
    const uint64_t stamp = clock_.fetch_add(1) + 1;
    commits_->Drawn(WorkerId(worker), Timestamp(stamp));
    slot->begin.store(stamp);
    commits_->Installed(WorkerId(worker), slot, bytes);
    commits_->Close(WorkerId(worker), Timestamp(stamp), sequence_++);
  }

  FaultyFileSystem files_;
  CountedMemory memory_{files_.MapPersistent("heap.pm", {.create_bytes = 1 << 20})};
  CountedMemory log_memory_{files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes})};
  std::optional<GapLog> gaps_;
  Atomic<uint64_t> clock_{0};
  std::optional<GroupCommit> commits_;
  uint64_t sequence_ = 0;
};

TEST_F(WriteCountsTest, AGroupWritesItsVersionsOnceAndDrainsTwice) {
  for (size_t i = 0; i < 50; ++i) Write(i % kWorkers, i, sizeof(HeapSlot) + kTupleBytes);
  commits_->Commit();
  const Counts heap = memory_.Take(), log = log_memory_.Take();
  EXPECT_EQ(heap.lines, 50 * 17u);
  EXPECT_EQ(heap.drains, 1u);
  EXPECT_EQ(log.drains, 1u);
  EXPECT_LE(log.lines, 4u) << "a record has no more than 256 bytes";
}

TEST_F(WriteCountsTest, OfAStreamedVersionTheGroupWritesItsHeaderAlone) {
  for (size_t i = 0; i < 50; ++i) Write(i % kWorkers, i, sizeof(HeapSlot));
  commits_->Commit();
  EXPECT_EQ(memory_.Take().lines, 50u);
}

TEST_F(WriteCountsTest, WhatAWorkerHasWrittenBackItselfIsNotWrittenAgain) {
  for (size_t i = 0; i < 50; ++i) Write(0, i, sizeof(HeapSlot) + kTupleBytes);
  commits_->Flush(WorkerId(0));
  EXPECT_EQ(memory_.Take().lines, 50 * 17u);
  commits_->Commit();
  EXPECT_EQ(memory_.Take().lines, 0u);
}

TEST_F(WriteCountsTest, AGroupWithoutWritersWritesARecordAlone) {
  commits_->Commit();
  EXPECT_EQ(memory_.Take().lines, 0u);
  EXPECT_LE(log_memory_.Take().lines, 4u);
}

}  // namespace
}  // namespace dbx
