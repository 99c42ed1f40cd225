// The times of drains of emulated memory, on a clock that jumps.
#include <gtest/gtest.h>

#include <memory>

#include "logging/device/emulated_file_system.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/jumping_clock.h"

namespace dbx {
namespace {

class EmulatedMemoryTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 1 << 20;

  void Map(const DeviceProfile& profile) {
    files_ = std::make_unique<EmulatedFileSystem>(memory_, profile, std::vector<std::string>{"a"}, &clock_);
    mapped_ = files_->MapPersistent("a/heap", {.create_bytes = kBytes});
    writer_ = mapped_->NewWriter();
  }
  static DeviceProfile Lines() {
    DeviceProfile profile{"pm", 1'000'000'000, 600, 0, 32};
    profile.block_bytes = 64;
    return profile;
  }
  uint64_t NanosOfDrain() {
    const uint64_t from = clock_.now_nanos;
    writer_->Drain();
    return clock_.now_nanos - from;
  }
  void WriteBack(size_t at, size_t bytes) { writer_->WriteBack(mapped_->bytes().data() + at, bytes); }

  FaultyFileSystem memory_{FaultyFileSystem::Image{{"a"}, {}}};
  JumpingClock clock_;
  std::unique_ptr<EmulatedFileSystem> files_;
  std::unique_ptr<PersistentMemory> mapped_;
  std::unique_ptr<PersistentWriter> writer_;
};

TEST_F(EmulatedMemoryTest, ADrainTakesItsLinesAndOneFlush) {
  Map(Lines());
  WriteBack(100, 1000);  // 17 lines, from 64 to 1152
  WriteBack(100, 1000);  // once
  WriteBack(640'000, 1);
  EXPECT_EQ(NanosOfDrain(), 18 * 64 + 600u);
  EXPECT_EQ(NanosOfDrain(), 0u) << "nothing was written back since";
  EXPECT_EQ(mapped_->kind(), "emulated over faulty memory");
}

TEST_F(EmulatedMemoryTest, WritersShareTheBandwidthAndNotTheirFlushes) {
  Map(Lines());
  const auto other = mapped_->NewWriter();
  other->WriteBack(mapped_->bytes().data(), 6400);
  WriteBack(12'800, 6400);
  const uint64_t from = clock_.now_nanos;
  other->Drain();
  clock_.now_nanos = from;  // both at once
  EXPECT_EQ(NanosOfDrain(), 2 * 6400 + 600u);
}

TEST_F(EmulatedMemoryTest, ADiskWritesWholeBlocksAndSeeksToEachRun) {
  Map({"disk", 1'000'000'000, 5'000'000, 1'000'000, 32});
  WriteBack(100, 8);
  WriteBack(4096, 8);     // adjacent to the block before
  WriteBack(500'000, 8);  // elsewhere
  EXPECT_EQ(NanosOfDrain(), 3 * 4096 + 2 * 1'000'000 + 5'000'000u);
}

TEST_F(EmulatedMemoryTest, WhatWasDrainedIsDurable) {
  Map(Lines());
  mapped_->bytes()[3] = std::byte{1};
  WriteBack(3, 1);
  writer_->Drain();
  std::byte read{};
  memory_.CrashImage(FaultyFileSystem::Crash::kDurableOnly).files.at("a/heap").Read(3, {&read, 1});
  EXPECT_EQ(read, std::byte{1});
}

TEST_F(EmulatedMemoryTest, APrivateCopyAndAFileElsewhereTakeNoTime) {
  Map(Lines());
  for (const bool elsewhere : {false, true}) {
    mapped_ = elsewhere ? files_->MapPersistent("b", {.create_bytes = kBytes})
                        : files_->MapPersistent("a/heap", {.copy_on_write = true});
    writer_ = mapped_->NewWriter();
    WriteBack(0, 1000);
    EXPECT_EQ(NanosOfDrain(), 0u);
  }
}

}  // namespace
}  // namespace dbx
