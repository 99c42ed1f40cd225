// Messages take as long as they should, and keep their order.
#include "multi_master/delayed_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "multi_master/tcp_network.h"
#include "tests/multi_master/recorder.h"

namespace dbx::mm {
namespace {

constexpr NodeId kA{Role::kMaster, 0}, kB{Role::kMaster, 1};

TcpOptions OptionsOf(NodeId self) {
  TcpOptions options;
  options.terms = {ClusterId(1), ClusterEpoch(1), self};
  return options;
}

struct DelayedNetworkTest : testing::Test {
  // Nanoseconds until `count` messages of `bytes` have come.
  uint64_t TimeOf(size_t count, size_t bytes, const NetworkDelay& delay) {
    DelayedNetwork slow(a, delay);
    a.SetAddress(kB, "127.0.0.1", b.port());
    b.Start(of_b);
    slow.Start(of_a);
    const uint64_t begin = host::MonotonicNanos();
    for (size_t i = 0; i < count; ++i) SendText(slow, kB, std::to_string(i) + std::string(bytes, ' '));
    EXPECT_TRUE(of_b.AwaitCount(count));
    const uint64_t nanos = host::MonotonicNanos() - begin;
    slow.Stop();
    return nanos;
  }

  // Before the networks, whose threads call them until they are destroyed.
  Recorder of_a, of_b;
  TcpNetwork a{OptionsOf(kA)}, b{OptionsOf(kB)};
};

TEST_F(DelayedNetworkTest, AMessageTakesTheDelay) {
  EXPECT_GE(TimeOf(1, 10, {.delay_nanos = 30'000'000}), 30'000'000u);
}

TEST_F(DelayedNetworkTest, MessagesAreDelayedTogetherNotOneAfterTheOther) {
  EXPECT_LT(TimeOf(100, 10, {.delay_nanos = 100'000'000}), 10'000'000'000u);
}

TEST_F(DelayedNetworkTest, BandwidthHoldsMessagesBack) {
  EXPECT_GE(TimeOf(10, 10'000, {.bytes_per_second = 1'000'000}), 100'000'000u);
}

TEST_F(DelayedNetworkTest, JitterKeepsTheOrder) {
  TimeOf(200, 0, {.delay_nanos = 100'000, .jitter_nanos = 5'000'000});
  const std::vector<std::string> heard = of_b.heard();
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(heard[i], "master 0: " + std::to_string(i));
}

TEST_F(DelayedNetworkTest, WhatWaitsForABrokenLinkIsDropped) {
  DelayedNetwork slow(a, {.delay_nanos = 50'000'000});
  slow.Start(of_a);
  b.SetAddress(kA, "127.0.0.1", a.port());
  b.Start(of_b);
  SendText(b, kA, "x");
  ASSERT_TRUE(of_a.AwaitCount(1));
  SendText(slow, kB, "lost");
  b.Stop();
  ASSERT_TRUE(of_a.AwaitLast("master 1 down"));
  host::SleepFor(std::chrono::milliseconds(80));
  // A message that is handed to the network below now would be lost there, with another OnLinkDown.
  EXPECT_EQ(of_a.heard().size(), 2u);
  slow.Stop();
}

}  // namespace
}  // namespace dbx::mm
