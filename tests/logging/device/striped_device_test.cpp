// Striping: where bytes go, and what counts as durable when some stripes are ahead of others.
#include "logging/device/striped_device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>

#include "logging/format.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using format::kBlockBytes;
constexpr uint64_t kOwn = format::kStreamOffset;

std::vector<std::byte> Pattern(uint64_t position, size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = std::byte((position + i) / 512 % 251 + 1);
  return data;
}

class StripedDeviceTest : public ::testing::Test {
 protected:
  StripedDevice Make(size_t stripes, uint64_t unit_bytes, const std::string& name = "s") {
    std::vector<std::unique_ptr<BlockDevice>> devices;
    const std::vector<std::byte> own(kOwn, std::byte{0xEE});
    for (size_t i = 0; i < stripes; ++i) {
      devices.push_back(files_.Create(name + std::to_string(i), {}));
      devices.back()->StartWrite(0, own);
      devices.back()->Complete(true);
    }
    return StripedDevice(std::move(devices), kOwn, unit_bytes);
  }
  std::byte At(const std::string& path, uint64_t offset) { return files_.Map(path).bytes[offset]; }
  FaultyFileSystem files_;
};

TEST_F(StripedDeviceTest, UnitsGoRound) {
  StripedDevice device = Make(3, kBlockBytes);
  const auto data = Pattern(0, 5 * kBlockBytes);
  device.StartWrite(kOwn, data);
  EXPECT_EQ(device.Complete(true), kOwn + 5 * kBlockBytes);
  for (size_t unit = 0; unit < 5; ++unit) {
    EXPECT_EQ(At("s" + std::to_string(unit % 3), kOwn + unit / 3 * kBlockBytes), data[unit * kBlockBytes]);
  }
  EXPECT_EQ(At("s1", 0), std::byte{0xEE}) << "each stripe keeps what is its own";
  EXPECT_EQ(device.SizeBytes(), kOwn + 5 * kBlockBytes);
}

TEST_F(StripedDeviceTest, WhatWasWrittenIsReadWhateverThePieces) {
  for (const size_t stripes : {1, 2, 5}) {
    StripedDevice device = Make(stripes, 2 * kBlockBytes, std::to_string(stripes) + "-");
    std::mt19937_64 random(stripes);
    uint64_t end = 0;
    for (int i = 0; i < 30; ++i) {
      const auto data = Pattern(end, (1 + random() % 6) * kBlockBytes);
      device.StartWrite(kOwn + end, data);
      end += data.size();
      EXPECT_EQ(device.Complete(true), kOwn + end);
    }
    for (int i = 0; i < 100; ++i) {
      const uint64_t from = random() % end, bytes = 1 + random() % (end - from);
      std::vector<std::byte> back(bytes);
      ASSERT_EQ(device.Read(kOwn + from, back), bytes);
      EXPECT_EQ(back, Pattern(from, bytes)) << stripes << " stripes, from " << from;
    }
    std::byte behind;
    EXPECT_EQ(device.Read(kOwn + end, std::span(&behind, 1)), 0u);
  }
}

// Trap 27: stripes that are ahead of a hole count for nothing.
TEST_F(StripedDeviceTest, DurableEndsAtTheFirstHole) {
  StripedDevice device = Make(2, kBlockBytes);
  files_.Stall("s1");
  const auto data = Pattern(0, 6 * kBlockBytes);
  device.StartWrite(kOwn, data);
  EXPECT_EQ(device.Complete(false), kOwn + kBlockBytes);
  files_.Resume();
  EXPECT_EQ(device.Complete(true), kOwn + 6 * kBlockBytes);
}

TEST_F(StripedDeviceTest, AStripeThatEndsEarlyReadsAsZeros) {
  StripedDevice device = Make(2, kBlockBytes);
  device.StartWrite(kOwn, Pattern(0, 4 * kBlockBytes));
  device.Complete(true);
  files_.Change("s1", [](SparseBytes& file) { file.Resize(kOwn + kBlockBytes); });
  std::vector<std::byte> back(4 * kBlockBytes);
  EXPECT_EQ(device.SizeBytes(), kOwn + 3 * kBlockBytes);
  EXPECT_EQ(device.Read(kOwn, back), 3 * kBlockBytes);
  files_.Change("s1", [](SparseBytes& file) { file.Resize(kOwn); });
  EXPECT_EQ(device.Read(kOwn, back), 3 * kBlockBytes);
  EXPECT_EQ(back[kBlockBytes], std::byte{0});
  EXPECT_NE(back[2 * kBlockBytes], std::byte{0});
}

// A barrier for `size` threads: none goes on before the others have arrived.
class Meeting {
 public:
  explicit Meeting(size_t size) : size_(size) {}
  // False if the others do not come at all.
  bool Meet() {
    std::unique_lock lock(mutex_);
    const size_t needed = (arrived_++ / size_ + 1) * size_;
    arrival_.notify_all();
    return arrival_.wait_for(lock, std::chrono::minutes(1), [&] { return arrived_ >= needed; });
  }

 private:
  const size_t size_;
  std::mutex mutex_;
  std::condition_variable arrival_;
  size_t arrived_ = 0;
};

// A stripe whose reads meet those of the others.
class MeetingDevice : public BlockDevice {
 public:
  explicit MeetingDevice(Meeting& others) : others_(others) {}
  void StartWrite(uint64_t, std::span<const std::byte>) override {}
  uint64_t Complete(bool) override { return 0; }
  size_t Read(uint64_t, std::span<std::byte> to) override {
    if (!others_.Meet()) throw Error(ExitStatus::kIo, "a stripe is read alone");
    std::fill(to.begin(), to.end(), std::byte{1});
    return to.size();
  }
  uint64_t SizeBytes() override { return 1 << 30; }
  const std::string& path() const override { return path_; }

 private:
  Meeting& others_;
  std::string path_ = "m";
};

TEST_F(StripedDeviceTest, TheStripesAreReadAtTheSameTime) {
  constexpr uint64_t kUnit = 64 << 10;
  Meeting others(4);
  std::vector<std::unique_ptr<BlockDevice>> stripes;
  for (int i = 0; i < 4; ++i) stripes.push_back(std::make_unique<MeetingDevice>(others));
  StripedDevice device(std::move(stripes), kOwn, kUnit);
  EXPECT_EQ(device.disks(), 4u);
  for (const uint64_t from : {0 * kUnit, 3 * kUnit, 17 * kUnit}) {
    std::vector<std::byte> back(8 * kUnit);
    EXPECT_EQ(device.Read(kOwn + from, back), back.size());
    EXPECT_EQ(back, std::vector(back.size(), std::byte{1}));
  }
}

TEST_F(StripedDeviceTest, OnlyARamDiskAloneIsMemory) {
  class RamDisk final : public MeetingDevice {
   public:
    using MeetingDevice::MeetingDevice;
    bool is_memory() const override { return true; }
  };
  for (const bool mixed : {false, true}) {
    Meeting nobody(1);
    std::vector<std::unique_ptr<BlockDevice>> stripes;
    stripes.push_back(std::make_unique<RamDisk>(nobody));
    stripes.push_back(mixed ? std::make_unique<MeetingDevice>(nobody) : std::make_unique<RamDisk>(nobody));
    const StripedDevice device(std::move(stripes), kOwn, kBlockBytes);
    EXPECT_EQ(device.is_memory(), !mixed);
    EXPECT_EQ(device.disks(), mixed ? 2u : 1u);
  }
}

TEST_F(StripedDeviceTest, WhatAnyStripeThrowsALongReadThrows) {
  StripedDevice device = Make(3, kBlockBytes);
  const auto data = Pattern(0, 60 * kBlockBytes);
  device.StartWrite(kOwn, data);
  device.Complete(true);
  std::vector<std::byte> back(data.size());
  for (const char* stripe : {"s0", "s1", "s2"}) {
    files_.Fail(FaultyFileSystem::Operation::kRead, 2, EIO, false, stripe);
    std::string what;
    EXPECT_EQ(Caught([&] { device.Read(kOwn, back); }, what), ExitStatus::kIo);
    EXPECT_NE(what.find(stripe), std::string::npos) << what;
    EXPECT_EQ(device.Read(kOwn, back), data.size());
    EXPECT_EQ(back, data);
  }
}

TEST_F(StripedDeviceTest, APlaceNamesTheStripe) {
  const StripedDevice device = Make(2, kBlockBytes);
  EXPECT_EQ(device.PlaceOf(kOwn + 10), "s0@8202");
  EXPECT_EQ(device.PlaceOf(kOwn + kBlockBytes), "s1@8192");
  EXPECT_EQ(device.PlaceOf(kOwn + 2 * kBlockBytes + 1), "s0@12289");
}

}  // namespace
}  // namespace dbx
