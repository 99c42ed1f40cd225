// The channel that emulated devices share: what it claims, to the nanosecond.
#include "logging/device/emulated_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "logging/device/emulated_device.h"

namespace dbx {
namespace {

constexpr uint64_t kMega = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMilli = 1'000'000;

// Devices on one channel, each of which is asked for one file in sequence.
class Devices {
 public:
  Devices(const std::vector<uint64_t>& rates, uint64_t channel_rate, uint64_t flush_nanos = 0,
          uint64_t seek_nanos = 0) {
    const auto channel = channel_rate == 0 ? nullptr : std::make_shared<EmulatedChannel>(channel_rate);
    for (const uint64_t rate : rates) {
      const DeviceProfile profile{"test", rate, flush_nanos, seek_nanos, 4, channel_rate};
      devices_.push_back(std::make_unique<EmulatedDevice>(profile, channel));
    }
    ends_.resize(rates.size());
    readers_.resize(rates.size());
  }
  uint64_t Write(size_t device, uint64_t bytes, uint64_t now = 0) {
    return devices_[device]->Write(0, Advance(device, bytes), bytes, true, now);
  }
  uint64_t Read(size_t device, uint64_t bytes, uint64_t now) {
    return devices_[device]->Read(0, readers_[device], Advance(device, bytes), bytes, now);
  }
  void SkipBytes(size_t device, uint64_t bytes) { ends_[device] += bytes; }

 private:
  uint64_t Advance(size_t device, uint64_t bytes) { return std::exchange(ends_[device], ends_[device] + bytes); }

  std::vector<std::unique_ptr<EmulatedDevice>> devices_;
  std::vector<uint64_t> ends_;
  std::vector<EmulatedDevice::Reader> readers_;
};

TEST(EmulatedChannelTest, ATransferAloneTakesTheLongerOfTheTwoTimes) {
  for (const auto& [rate, channel_rate, nanos] : {std::tuple(100 * kMega, 160 * kMega, 10 * kMilli),
                                                  {100 * kMega, 100 * kMega, 10 * kMilli},
                                                  {400 * kMega, 160 * kMega, uint64_t{6'250'000}},
                                                  {0 * kMega, 160 * kMega, uint64_t{6'250'000}}}) {
    Devices devices({rate}, channel_rate, 5 * kMilli);
    EXPECT_EQ(devices.Write(0, kMega, 7), 7 + nanos + 5 * kMilli) << rate << " over " << channel_rate;
    EXPECT_EQ(devices.Write(0, kMega, 7), 7 + 2 * nanos + 5 * kMilli) << "and so does the next one";
  }
}

TEST(EmulatedChannelTest, TwoAtOnceAreDoneWhenTheChannelHasCarriedBoth) {
  Devices devices({100 * kMega, 100 * kMega}, 160 * kMega);
  for (uint64_t round = 1; round <= 10; ++round) {
    const uint64_t now = (round - 1) * 12'500'000;
    EXPECT_EQ(devices.Write(0, kMega, now), now + 10 * kMilli) << "requested first";
    EXPECT_EQ(devices.Write(1, kMega, now), round * 12'500'000) << "behind 2 MB at 160 MB/s";
  }
}

TEST(EmulatedChannelTest, EightDisksOfTheProfileFillTheChannelOfTheirMachine) {
  Devices devices(std::vector<uint64_t>(8, 29 * kMega), 160 * kMega);
  for (uint64_t round = 1; round <= 10; ++round) {
    uint64_t done = 0;
    for (size_t i = 0; i < 8; ++i) done = std::max(done, devices.Write(i, 2'900'000, (round - 1) * 145 * kMilli));
    EXPECT_EQ(done, round * 145 * kMilli) << "instead of 100 ms by the disks";
  }
}

TEST(EmulatedChannelTest, QueuedTransfersFillItToo) {
  Devices devices(std::vector<uint64_t>(8, 29 * kMega), 160 * kMega);
  uint64_t done = 0;
  for (uint64_t i = 0; i < 80; ++i) done = std::max(done, devices.Write(i % 8, 2'900'000));
  EXPECT_EQ(done, 1450 * kMilli);
}

TEST(EmulatedChannelTest, WhatWaitsInADevicesQueueHoldsNoOtherDeviceUp) {
  Devices devices({100 * kMega, 100 * kMega}, 200 * kMega);
  for (uint64_t i = 1; i <= 8; ++i) EXPECT_EQ(devices.Write(0, kMega), i * 10 * kMilli);
  for (uint64_t i = 1; i <= 8; ++i) EXPECT_EQ(devices.Write(1, kMega), i * 10 * kMilli);
}

// The same requests, at random, with a channel and without.
TEST(EmulatedChannelTest, AboveTheSumItChangesNothing) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<uint64_t> rates(1 + random() % 8);
  for (uint64_t& rate : rates) rate = kMega + random() % (200 * kMega);
  const uint64_t sum = std::reduce(rates.begin(), rates.end());
  Devices with(rates, sum + random() % 2, kMilli, kMilli), without(rates, 0, kMilli, kMilli);
  uint64_t now = 0;
  for (int i = 0; i < 5000; ++i) {
    const size_t device = random() % rates.size();
    const uint64_t bytes = random() % (random() % 8 == 0 ? kMega : 5000), skip = random() % 4 == 0 ? 1 : 0;
    now += random() % (random() % 100 == 0 ? kSecond / 10 : kMilli / 10);
    with.SkipBytes(device, skip), without.SkipBytes(device, skip);
    if (random() % 4 == 0) {
      ASSERT_EQ(with.Read(device, bytes, now), without.Read(device, bytes, now)) << i;
    } else {
      ASSERT_EQ(with.Write(device, bytes, now), without.Write(device, bytes, now)) << i;
    }
  }
}

// Devices that are never idle, each with its own sizes. Of what they transfer at any time at most one part of each is
// unfinished.
TEST(EmulatedChannelTest, DevicesThatAreFasterTogetherUseAllOfItAndNotMore) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<uint64_t> rates = {29 * kMega, 40 * kMega, 51'234'567};
  constexpr uint64_t kRate = 100'123'457;
  Devices devices(rates, kRate);
  std::vector<uint64_t> ends(rates.size()), parts(rates.size()), bytes(rates.size());
  for (int i = 0; i < 5000; ++i) {
    const size_t device = static_cast<size_t>(std::min_element(ends.begin(), ends.end()) - ends.begin());
    bytes[device] += parts[device];
    parts[device] = 1 + random() % 100'000;
    const uint64_t now = ends[device];  // the last part of this one is done, and no part of another since
    ends[device] = devices.Write(device, parts[device], now);
    const double done = static_cast<double>(std::reduce(bytes.begin(), bytes.end()));
    const double carried = static_cast<double>(now) * 1e-9 * kRate;
    ASSERT_LE(done, carried + 1);
    ASSERT_GE(done + static_cast<double>(std::reduce(parts.begin(), parts.end())), carried - 1);
  }
}

TEST(EmulatedChannelTest, SmallTransfersAddUpToItsRateWithoutRounding) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const uint64_t rate = 1 + random() % (uint64_t{1} << 40);
  Devices devices({0, 0}, rate);
  uint64_t bytes = 0, done = 0;
  for (size_t i = 0; i < 10'000; ++i) {
    const uint64_t part = random() % 5000;
    done = std::max(done, devices.Write(i % 2, part));
    bytes += part;
  }
  const double exact = static_cast<double>(bytes) * 1e9 / static_cast<double>(rate);
  EXPECT_NEAR(static_cast<double>(done), exact, 3 + exact * 1e-12);
}

TEST(EmulatedChannelTest, AReaderIsReadAheadForAtItsRate) {
  constexpr uint64_t kAhead = EmulatedDevice::kReadAheadBytes;
  Devices devices({0}, kAhead * 1000);  // the window takes a millisecond
  EXPECT_EQ(devices.Read(0, 4 * kAhead, 0), 4 * kMilli);
  EXPECT_EQ(devices.Read(0, 4 * kAhead, 4'500'000), 8 * kMilli) << "half a window was read ahead";
  EXPECT_EQ(devices.Read(0, 4 * kAhead, 100 * kMilli), 103 * kMilli) << "never more than a window";
}

TEST(EmulatedChannelTest, ALateRequestFindsTheLastSecondAsBusyAsItWas) {
  EmulatedChannel channel(100 * kMega);
  constexpr ByteNanos kAmount = ByteNanos{kMega} * kSecond;
  EXPECT_EQ(channel.Carry(0, 0, kAmount, 0).end_nanos, 10 * kMilli);
  EXPECT_EQ(channel.Carry(kSecond, kSecond, kAmount, 0).end_nanos, kSecond + 10 * kMilli);
  EXPECT_EQ(channel.Carry(5 * kMilli, 5 * kMilli, kAmount, 0).end_nanos, 20 * kMilli);
  EXPECT_EQ(channel.Carry(2 * kSecond, 2 * kSecond, kAmount, 0).end_nanos, 2 * kSecond + 10 * kMilli);
  EXPECT_EQ(channel.Carry(5 * kMilli, 5 * kMilli, kAmount, 0).end_nanos, 15 * kMilli) << "forgotten";
}

}  // namespace
}  // namespace dbx
