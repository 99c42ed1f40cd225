// What a recovery says of the logs that it reads, and that their devices are the same to it.
#include "system/replay/read_progress.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/logging/recovery_harness.h"

namespace dbx {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSecond = 1'000'000'000;

// A large log, without its bytes.
class LargeDevice final : public recovery_test::ImageDevice {
 public:
  LargeDevice() : ImageDevice("large", {}) {}
  size_t Read(uint64_t, std::span<std::byte> to) override { return to.size(); }
  uint64_t SizeBytes() override { return format::kStreamOffset + 512 * kMiB; }
};

class ReadProgressTest : public ::testing::Test {
 protected:
  static LogSource SourceOf(BlockDevice& device) {
    LogSource source;
    source.device = &device;
    return source;
  }
  ReadProgress ProgressOf(std::vector<LogSource> logs, uint64_t times) {
    return {std::move(logs), 3, times, {[this] { return now_; }, [this](const std::string& line) { said_ += line; }}};
  }
  // The last part of the bytes is read 4 s after the beginning.
  void ReadSlowly(const LogSource& log, uint64_t bytes) {
    std::array<std::byte, kMiB> block;
    for (uint64_t read = 0; read < bytes; read += kMiB) {
      if (read + kMiB == bytes) now_ = 5 * kSecond;
      log.device->Read(format::kStreamOffset + read, block);
    }
  }

  LargeDevice first_, second_;
  uint64_t now_ = kSecond;
  std::string said_;
};

TEST_F(ReadProgressTest, ASlowRecoverySaysHowLongItMayTake) {
  const ReadProgress progress = ProgressOf({SourceOf(first_), SourceOf(second_)}, 1);
  std::array<std::byte, kMiB> block;
  progress.logs()[0].device->Read(format::kStreamOffset, block);
  EXPECT_EQ(said_, "");
  ReadSlowly(progress.logs()[1], 255 * kMiB);
  EXPECT_EQ(said_,
            "reading the logs of run-0003: 0.2 of 1.0 GiB, about 12 s left (less if a log ends before its file)\n");
}

TEST_F(ReadProgressTest, LogsThatAreReadTwiceCountTwice) {
  const ReadProgress progress = ProgressOf({SourceOf(first_), SourceOf(second_)}, 2);
  ReadSlowly(progress.logs()[0], 512 * kMiB);
  EXPECT_NE(said_.find("0.5 of 2.0 GiB, about 12 s left"), std::string::npos) << said_;
}

TEST_F(ReadProgressTest, WhatLiesBelowTheStartOfReplayIsNotExpected) {
  LogSource cut = SourceOf(first_);
  cut.needed = Lsn(256 * kMiB);
  const ReadProgress progress = ProgressOf({cut}, 1);
  ReadSlowly(progress.logs()[0], 128 * kMiB);
  EXPECT_NE(said_.find("0.1 of 0.2 GiB, about 4 s left"), std::string::npos) << said_;
}

TEST_F(ReadProgressTest, TheDevicesAreTheSameToTheReader) {
  recovery_test::ImageDevice image("image", std::vector<std::byte>(8192));
  image.FailAt(0);
  const ReadProgress progress = ProgressOf({SourceOf(image)}, 1);
  BlockDevice& device = *progress.logs()[0].device;
  EXPECT_EQ(device.path(), "image");
  EXPECT_EQ(device.PlaceOf(7), image.PlaceOf(7));
  EXPECT_EQ(device.SizeBytes(), 8192u);
  EXPECT_EQ(device.disks(), image.disks());
  EXPECT_EQ(device.is_memory(), image.is_memory());
  std::array<std::byte, 4096> bytes;
  EXPECT_THROW(device.Read(0, bytes), Error);
  EXPECT_EQ(device.Read(8182, bytes), 10u);
}

}  // namespace
}  // namespace dbx
