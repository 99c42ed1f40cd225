// The simulated network keeps what network.h promises, whatever the seed; and processes can be killed.
#include "tests/simulation/sim_network.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/host.h"
#include "tests/simulation/scheduler.h"

namespace dbx::sim {
namespace {

using mm::MessageType;
using mm::NodeId;
using mm::Role;

constexpr NodeId kA{Role::kMaster, 0}, kB{Role::kMaster, 1}, kC{Role::kMaster, 2};
constexpr MessageType kNumber{100}, kMalformed{199};

struct Log final : mm::Network::Receiver {
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    if (type == kMalformed) return false;
    uint32_t number = 0;
    std::memcpy(&number, body.data(), sizeof number);
    ++under_way;
    overlapped |= under_way > 1;
    SleepFor(1000);
    --under_way;
    heard.push_back({from, number});
    return true;
  }
  void OnLinkDown(NodeId peer) override { heard.push_back({peer, kDown}); }

  static constexpr uint32_t kDown = UINT32_MAX;
  std::vector<std::pair<NodeId, uint32_t>> heard;
  int under_way = 0;
  bool overlapped = false;
};

void SendNumber(mm::Network& network, NodeId to, uint32_t number) {
  network.Send(to, kNumber, std::as_bytes(std::span(&number, 1)));
}

// `body` under some seeds.
template <class Body>
void UnderSeeds(int seeds, Body&& body) {
  for (int seed = 1; seed <= seeds; ++seed) {
    Plan plan;
    plan.seed = static_cast<uint64_t>(seed);
    plan.policy = seed % 2 == 0 ? Policy::kRandom : Policy::kPriority;
    Simulate(plan, [&] { body(seed); });
  }
}

void AwaitHeard(const Log& log, size_t count) {
  for (int i = 0; i < 1000 && log.heard.size() < count; ++i) SleepFor(100'000);
}

TEST(SimNetworkTest, ALinkKeepsItsOrderAndLinksOvertakeEachOther) {
  std::set<std::vector<NodeId>> orders;
  bool overlapped = false;
  UnderSeeds(20, [&](int) {
    SimNetwork net;
    Log a, b, c;
    mm::Network &of_a = net.Join(kA), &of_b = net.Join(kB), &of_c = net.Join(kC);
    of_a.Start(a), of_b.Start(b), of_c.Start(c);
    for (uint32_t i = 0; i < 5; ++i) SendNumber(of_a, kC, i), SendNumber(of_b, kC, i);
    AwaitHeard(c, 10);
    std::vector<NodeId> order;
    uint32_t next_of_a = 0, next_of_b = 0;
    for (const auto& [from, number] : c.heard) {
      order.push_back(from);
      EXPECT_EQ(number, from == kA ? next_of_a++ : next_of_b++);
    }
    EXPECT_EQ(order.size(), 10u);
    orders.insert(order);
    overlapped |= c.overlapped;
    of_a.Stop(), of_b.Stop(), of_c.Stop();
  });
  EXPECT_GT(orders.size(), 5u);
  EXPECT_TRUE(overlapped);
}

TEST(SimNetworkTest, AfterABreakNothingOlderArrives) {
  UnderSeeds(20, [&](int) {
    SimNetwork net;
    Log a, b;
    mm::Network &of_a = net.Join(kA), &of_b = net.Join(kB);
    of_a.Start(a), of_b.Start(b);
    for (uint32_t i = 0; i < 20; ++i) SendNumber(of_a, kB, i);
    SleepFor(100'000);
    net.Break(kA, kB);
    SendNumber(of_a, kB, 100);
    AwaitHeard(a, 1);
    for (int i = 0; i < 100 && (b.heard.empty() || b.heard.back().second != 100); ++i) SleepFor(100'000);
    EXPECT_EQ(a.heard, (std::vector<std::pair<NodeId, uint32_t>>{{kB, Log::kDown}}));
    ASSERT_GE(b.heard.size(), 2u);
    for (uint32_t i = 0; i + 2 < b.heard.size(); ++i) EXPECT_EQ(b.heard[i].second, i);
    EXPECT_EQ(b.heard[b.heard.size() - 2].second, Log::kDown);
    EXPECT_EQ(b.heard.back().second, 100u);
    of_a.Stop(), of_b.Stop();
  });
}

TEST(SimNetworkTest, ASecondBreakTakesNoNoticeOfTheFirstOneBack) {
  UnderSeeds(5, [&](int) {
    SimNetwork net;
    Log a, b;
    mm::Network &of_a = net.Join(kA), &of_b = net.Join(kB);
    of_a.Start(a), of_b.Start(b);
    SendNumber(of_a, kB, 1);
    net.Break(kA, kB);
    net.Break(kA, kB);
    AwaitHeard(a, 1);
    AwaitHeard(b, 1);
    EXPECT_EQ(a.heard, (std::vector<std::pair<NodeId, uint32_t>>{{kB, Log::kDown}}));
    EXPECT_EQ(b.heard, (std::vector<std::pair<NodeId, uint32_t>>{{kA, Log::kDown}}));
    of_a.Stop(), of_b.Stop();
  });
}

TEST(SimNetworkTest, OverACutLinkNothingArrivesUntilItIsMended) {
  UnderSeeds(5, [&](int) {
    SimNetwork net;
    Log a, b;
    mm::Network &of_a = net.Join(kA), &of_b = net.Join(kB);
    of_a.Start(a), of_b.Start(b);
    net.Cut(kA, kB);
    SendNumber(of_a, kB, 1);
    AwaitHeard(a, 1);
    EXPECT_EQ(a.heard.size(), 1u);
    EXPECT_TRUE(b.heard.empty());
    net.Mend(kA, kB);
    SendNumber(of_a, kB, 2);
    AwaitHeard(b, 1);
    EXPECT_EQ(b.heard, (std::vector<std::pair<NodeId, uint32_t>>{{kA, 2}}));
    of_a.Stop(), of_b.Stop();
  });
}

TEST(SimNetworkTest, AMalformedMessageBreaksItsLink) {
  UnderSeeds(5, [&](int) {
    SimNetwork net;
    Log a, b;
    mm::Network &of_a = net.Join(kA), &of_b = net.Join(kB);
    of_a.Start(a), of_b.Start(b);
    of_a.Send(kB, kMalformed, {});
    AwaitHeard(a, 1);
    AwaitHeard(b, 1);
    EXPECT_EQ(a.heard.back().second, Log::kDown);
    EXPECT_EQ(b.heard.back().second, Log::kDown);
    EXPECT_EQ(net.refusals(), 1u);
    of_a.Stop(), of_b.Stop();
  });
}

TEST(KillGroupTest, FibresOfAKilledProcessGoNoFurtherAndOthersDo) {
  UnderSeeds(20, [&](int) {
    auto& steps = *new Atomic<uint64_t>(0);  // the killed fibres' stacks refer to it
    const FibreId first = StartGroup(1, [&] {
      Mutex mutex;
      const auto work = [&] {
        for (;;) {
          const std::lock_guard lock(mutex);
          steps.fetch_add(1);
        }
      };
      Thread other(work);
      work();
    });
    SleepFor(1'000'000);
    KillGroup(1);
    const uint64_t then = steps.load();
    EXPECT_GT(then, 0u);
    JoinFibre(first);
    SleepFor(1'000'000);
    EXPECT_EQ(steps.load(), then);
  });
}

TEST(KillGroupTest, AProcessMayBeKilledBetweenAnyTwoSteps) {
  UnderSeeds(50, [&](int seed) {
    auto& counter = *new Atomic<uint64_t>(0);
    StartGroup(1, [&] {
      while (true) counter.fetch_add(1);
    });
    bool is_over = false;
    AfterSteps(static_cast<uint64_t>(100 + seed), [&] {
      KillGroup(1);
      is_over = true;
    });
    while (!is_over) SleepFor(10'000);
    const uint64_t then = counter.load();
    SleepFor(1'000'000);
    EXPECT_EQ(counter.load(), then);
  });
}

TEST(KillGroupTest, APeerOfAKilledProcessHearsThatTheLinkIsDownAndMeetsItAnew) {
  UnderSeeds(10, [&](int) {
    SimNetwork net;
    Log a;
    auto& b = *new Log;
    mm::Network& of_a = net.Join(kA);
    of_a.Start(a);
    StartGroup(1, [&] {
      mm::Network& of_b = net.Join(kB);
      of_b.Start(b);
      SendNumber(of_b, kA, 1);
    });
    AwaitHeard(a, 1);
    KillGroup(1);
    net.Forget(kB);
    AwaitHeard(a, 2);
    EXPECT_EQ(a.heard.back(), (std::pair<NodeId, uint32_t>{kB, Log::kDown}));
    Log again;
    mm::Network& of_b = net.Join(kB);
    of_b.Start(again);
    SendNumber(of_a, kB, 7);
    AwaitHeard(again, 1);
    EXPECT_EQ(again.heard, (std::vector<std::pair<NodeId, uint32_t>>{{kA, 7}}));
    of_a.Stop(), of_b.Stop();
  });
}

}  // namespace
}  // namespace dbx::sim
