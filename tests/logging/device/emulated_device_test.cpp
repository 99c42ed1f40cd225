// The time line of an emulated device: what it claims, to the nanosecond.
#include "logging/device/emulated_device.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace dbx {
namespace {

constexpr uint64_t kMega = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMilli = 1'000'000;

DeviceProfile Profile(uint64_t bytes_per_second, uint64_t flush_nanos, uint64_t seek_nanos, uint32_t depth = 32) {
  return {"test", bytes_per_second, flush_nanos, seek_nanos, depth};
}

TEST(EmulatedDeviceTest, BytesTakeTheirTimeAndTheFlushComesOnTop) {
  EmulatedDevice device(Profile(100 * kMega, 5 * kMilli, 0));
  EXPECT_EQ(device.Write(0, 0, 10 * kMega, true, 7), 7 + 100 * kMilli + 5 * kMilli);
}

TEST(EmulatedDeviceTest, AnUnsyncedWriteIsDoneWithoutTheFlush) {
  EmulatedDevice device(Profile(100 * kMega, 5 * kMilli, 0));
  EXPECT_EQ(device.Write(0, 0, 10 * kMega, false, 0), 100 * kMilli);
}

TEST(EmulatedDeviceTest, FilesShareTheBandwidth) {
  EmulatedDevice device(Profile(100 * kMega, 0, 0));
  uint64_t done = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    for (uint32_t file = 0; file < 4; ++file) done = device.Write(file, i * kMega / 2, kMega / 2, true, 0);
  }
  EXPECT_EQ(done, kSecond);
}

TEST(EmulatedDeviceTest, NothingIsSavedUpWhileTheDeviceIsIdle) {
  EmulatedDevice device(Profile(100 * kMega, 0, 0));
  device.Write(0, 0, kMega, true, 0);
  EXPECT_EQ(device.Write(0, kMega, kMega, true, 30 * kSecond), 30 * kSecond + 10 * kMilli);
}

TEST(EmulatedDeviceTest, FlushesOverlapUpToTheQueueDepth) {
  EmulatedDevice device(Profile(0, kMilli, 0, 4));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(device.Write(0, 0, 4096, true, 0), kMilli) << i;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(device.Write(0, 0, 4096, true, 0), 2 * kMilli) << i;
}

TEST(EmulatedDeviceTest, ASeekIsPaidWhereTheLastTransferDidNotEnd) {
  EmulatedDevice device(Profile(0, 0, kMilli));
  EXPECT_EQ(device.Write(0, 0, 4096, true, 0), kMilli) << "nowhere at first";
  EXPECT_EQ(device.Write(0, 4096, 4096, true, 0), kMilli);
  EXPECT_EQ(device.Write(1, 8192, 4096, true, 0), 2 * kMilli) << "another file";
  EXPECT_EQ(device.Write(1, 4096, 4096, true, 0), 3 * kMilli) << "backwards";
  EmulatedDevice::Reader reader;
  EXPECT_EQ(device.Read(1, reader, 8192, 100, 0), 3 * kMilli) << "reads and writes share the head";
  EXPECT_EQ(device.Read(1, reader, 9000, 100, 0), 4 * kMilli);
}

TEST(EmulatedDeviceTest, SmallTransfersAddUpToTheRateWithoutRounding) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const uint64_t rate = 1 + random() % (uint64_t{1} << 40);
  EmulatedDevice device(Profile(rate, 0, 0));
  uint64_t bytes = 0, done = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t part = random() % 5000;
    done = device.Write(0, bytes, part, true, 0);
    bytes += part;
  }
  const double exact = static_cast<double>(bytes) * 1e9 / static_cast<double>(rate);
  EXPECT_NEAR(static_cast<double>(done), exact, 1 + exact * 1e-12);
}

TEST(EmulatedDeviceTest, AReaderThatComputesInBetweenFindsSomeOfTheNextBytesRead) {
  constexpr uint64_t kAhead = EmulatedDevice::kReadAheadBytes;
  EmulatedDevice device(Profile(kAhead * 1000, 0, 0));  // the window takes a millisecond
  EmulatedDevice::Reader reader;
  EXPECT_EQ(device.Read(0, reader, 0, 4 * kAhead, 0), 4 * kMilli);
  EXPECT_EQ(device.Read(0, reader, 4 * kAhead, 4 * kAhead, 4'500'000), 8 * kMilli) << "half a window was read ahead";
  EXPECT_EQ(device.Read(0, reader, 8 * kAhead, 4 * kAhead, 100 * kMilli), 103 * kMilli) << "never more than a window";
  EXPECT_EQ(device.Read(0, reader, 50 * kAhead, kAhead, 200 * kMilli), 201 * kMilli) << "nor elsewhere";
}

TEST(EmulatedDeviceTest, AFlushAloneWaitsForTheTransfersBeforeIt) {
  EmulatedDevice device(Profile(100 * kMega, kMilli, 0));
  EXPECT_EQ(device.Flush(5), 5 + kMilli);
  device.Write(0, 0, kMega, false, 0);
  EXPECT_EQ(device.Flush(0), 11 * kMilli);
}

// The clock of the host: no time is asserted but the one that must have passed.
TEST(EmulatedDeviceTest, TheHostsClockWaitsAtLeastUntilTheMoment) {
  DeviceClock clock;
  for (const uint64_t nanos : {uint64_t{0}, uint64_t{700}, uint64_t{30'000}, 2 * kMilli}) {
    const uint64_t until = clock.NowNanos() + nanos;
    clock.WaitUntil(until);
    EXPECT_GE(clock.NowNanos(), until);
  }
}

}  // namespace
}  // namespace dbx
