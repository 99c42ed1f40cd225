#include "logging/device/memory_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

namespace dbx {
namespace {

using Crash = MemoryDevice::Crash;
constexpr size_t kSector = MemoryDevice::kSectorBytes;

std::vector<std::byte> Filled(size_t bytes, int value) { return std::vector<std::byte>(bytes, std::byte(value)); }

TEST(MemoryDeviceTest, WhatWasNotSyncedIsLost) {
  MemoryDevice device("m");
  device.StartWrite(0, Filled(4096, 1));
  EXPECT_TRUE(device.CrashImage(Crash::kDurableOnly).empty());
  EXPECT_EQ(device.Complete(true), 4096u);
  device.StartWrite(4096, Filled(4096, 2));
  EXPECT_EQ(device.CrashImage(Crash::kDurableOnly), Filled(4096, 1));
  EXPECT_EQ(device.SizeBytes(), 8192u);
}

TEST(MemoryDeviceTest, ReadSeesPendingWritesAndEndsWithTheFile) {
  MemoryDevice device("m", Filled(1000, 9));
  device.StartWrite(1000, Filled(24, 2));
  std::vector<std::byte> to(100);
  EXPECT_EQ(device.Read(990, to), 34u);
  EXPECT_EQ(to[9], std::byte{9});
  EXPECT_EQ(to[10], std::byte{2});
  EXPECT_EQ(device.Read(1024, to), 0u);
}

TEST(MemoryDeviceTest, PollingCompletesOneWriteAtATime) {
  MemoryDevice device("m");
  for (uint64_t i = 0; i < 3; ++i) device.StartWrite(4096 * i, Filled(4096, 1));
  EXPECT_EQ(device.Complete(false), 4096u);
  EXPECT_EQ(device.CrashImage(Crash::kDurableOnly).size(), 4096u);
  EXPECT_EQ(device.Complete(true), 3 * 4096u);
  EXPECT_EQ(device.sync_count(), 2u);
}

TEST(MemoryDeviceTest, ATornImageKeepsWhatIsDurableAndMixesPendingSectors) {
  MemoryDevice device("m", Filled(64 * kSector, 7));
  device.StartWrite(0, Filled(8 * kSector, 1));
  device.Complete(true);
  device.StartWrite(8 * kSector, Filled(56 * kSector, 2));
  std::set<int> fates;
  const std::vector<std::byte> image = device.CrashImage(Crash::kTorn, 42);
  ASSERT_EQ(image.size(), 64 * kSector);
  EXPECT_TRUE(std::all_of(image.begin(), image.begin() + 8 * kSector, [](std::byte b) { return b == std::byte{1}; }));
  for (size_t sector = 8; sector < 64; ++sector) {
    const auto begin = image.begin() + static_cast<ptrdiff_t>(sector * kSector);
    const bool uniform = std::all_of(begin, begin + kSector, [&](std::byte b) { return b == *begin; });
    fates.insert(uniform ? static_cast<int>(*begin) : 255);
  }
  EXPECT_EQ(fates, (std::set<int>{0, 2, 7, 255}));  // zeroed, new, old, garbage
}

TEST(MemoryDeviceTest, TheSameSeedGivesTheSameTornImage) {
  MemoryDevice device("m");
  device.StartWrite(0, Filled(64 * kSector, 2));
  EXPECT_EQ(device.CrashImage(Crash::kTorn, 1), device.CrashImage(Crash::kTorn, 1));
  EXPECT_NE(device.CrashImage(Crash::kTorn, 1), device.CrashImage(Crash::kTorn, 2));
}

TEST(MemoryDeviceTest, AFailedSyncMakesNothingDurableAndIsFinal) {
  MemoryDevice device("m");
  device.FailSync(2, EIO);
  device.StartWrite(0, Filled(512, 1));
  EXPECT_EQ(device.Complete(true), 512u);
  device.StartWrite(512, Filled(512, 1));
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      device.Complete(true);
      FAIL() << "attempt " << attempt;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::kIo);
      EXPECT_STREQ(error.what(), "cannot sync m@512: Input/output error");
    }
  }
  EXPECT_EQ(device.CrashImage(Crash::kDurableOnly).size(), 512u);
  EXPECT_EQ(device.sync_count(), 2u);
}

TEST(MemoryDeviceTest, TheNthWriteFailsForLackOfSpaceAndMayBeTorn) {
  MemoryDevice device("m");
  device.FailWrite(2, ENOSPC);
  device.StartWrite(0, Filled(512, 1));
  try {
    device.StartWrite(512, Filled(64 * kSector, 2));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kNoSpace);
  }
  EXPECT_THROW(device.Complete(true), Error);
  EXPECT_TRUE(device.CrashImage(Crash::kDurableOnly).empty());
  EXPECT_GT(device.CrashImage(Crash::kTorn, 3).size(), 512u);
}

TEST(MemoryDeviceTest, ImagesTakenDuringARunHoldEverythingThatWasComplete) {
  MemoryDevice device("m");
  std::atomic<uint64_t> complete{0};
  std::thread writer([&] {
    for (uint64_t i = 0; i < 500; ++i) {
      device.StartWrite(i * 4096, Filled(4096, 3));
      complete.store(device.Complete(true));
    }
  });
  for (uint64_t seed = 0; complete.load() < 500 * 4096; ++seed) {
    const uint64_t before = complete.load();
    const std::vector<std::byte> image = device.CrashImage(Crash::kTorn, seed);
    ASSERT_GE(image.size(), before);
    ASSERT_TRUE(before == 0 || image[before - 1] == std::byte{3});
  }
  writer.join();
}

}  // namespace
}  // namespace dbx
