// A master, three Log Stores and a reader on a simulated network, under seeds: what is durable is read, in order, once,
// whatever process dies; and what was not durable when the log was sealed does not come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "multi_master/log/flush_buffer.h"
#include "multi_master/log/lfb_reader.h"
#include "multi_master/log/log_fence.h"
#include "multi_master/log/log_store.h"
#include "multi_master/log/replicated_device.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/sim_network.h"

namespace dbx::sim {
namespace {

using namespace mm;
using std::chrono::milliseconds;

constexpr MasterId kLog{1};
constexpr NodeId kMaster{Role::kMaster, 1}, kLocks{Role::kLocks, 0}, kApplier{Role::kMaster, 2};
constexpr ClusterId kCluster{7};

// Hands messages to whatever is there.
struct Router final : Network::Receiver {
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    return !on_message || on_message(from, type, body);
  }
  void OnLinkDown(NodeId peer) override {
    if (on_down) on_down(peer);
  }
  std::function<bool(NodeId, MessageType, std::span<const std::byte>)> on_message;
  std::function<void(NodeId)> on_down;
};

// All of it but what the test itself owns is left behind when a group is killed, and so lives on the heap for ever.
class Cluster {
 public:
  Cluster() {
    for (uint8_t i = 0; i < kLogStores; ++i) {
      files_[i] = new FaultyFileSystem;
      files_[i]->MakeDirectory("/d");
      files_[i]->SyncDirectory("/");
      StartStore(i);
    }
  }
  // The fibres of stores and masters end with their groups.
  ~Cluster() {
    for (uint8_t i = 0; i < kLogStores; ++i) KillStore(i);
    KillMaster();
    net.Forget(kApplier);
    net.Forget(kLocks);
    KillGroup(20);
    KillGroup(21);
  }

  void StartStore(uint8_t i) {
    StartGroup(10 + i, [this, i] {
      LogStoreOptions options;
      options.cluster = kCluster;
      options.directory = "/d";
      auto* const store = new LogStore(net.Join({Role::kLogStore, i}), *files_[i], options);
      store->Start();
    });
  }
  void KillStore(uint8_t i) {
    KillGroup(10 + i);
    net.Forget({Role::kLogStore, i});
  }
  // On what a power failure leaves.
  void RestartStore(uint8_t i, FaultyFileSystem::Crash crash, uint64_t seed) {
    files_[i] = new FaultyFileSystem(files_[i]->CrashImage(crash, seed));
    StartStore(i);
  }

  // Appends until it is killed, `count` records at most.
  void StartMaster(uint32_t epoch, Lsn start, VsTime above, VsTime last_lfb, uint32_t count) {
    appended.clear();
    durable = {};
    StartGroup(1, [=, this] {
      auto* const clock = new VsClock(kLog);
      if (start > Lsn()) clock->Rejoin(above, {}, last_lfb);
      auto* const router = new Router;
      Network& network = net.Join(kMaster);
      ReplicatedOptions options{kLog, ClusterEpoch(epoch), set, start};
      auto owned = std::make_unique<ReplicatedDevice>(network, options);
      ReplicatedDevice* const device = owned.get();
      router->on_message = [device](auto... message) { return device->OnMessage(message...); };
      router->on_down = [device](NodeId peer) { device->OnLinkDown(peer); };
      network.Start(*router);
      device->Open();
      FlushBufferOptions of_buffer;
      of_buffer.self = kLog;
      of_buffer.salt = SaltOf(kCluster.value(), kLog);
      of_buffer.start = start;
      of_buffer.ring_bytes = 64 << 10;
      auto* const buffer = new FlushBuffer(of_buffer, *clock, std::move(owned));
      buffer->OnDurable([this](VsTime time) { durable = time; });
      Write(*buffer, epoch, count);
    });
  }
  void KillMaster() {
    KillGroup(1);
    net.Forget(kMaster);
  }

  // The times of all records, LFB by LFB, from the log's beginning, until there is none of `until` or later for long.
  struct Read {
    std::vector<uint64_t> times;
    std::vector<uint32_t> epochs;
    VsTime last_lfb;
  };
  Read ReadAll(VsTime until) {
    Read read;
    Router router;
    Network& network = net.Join(kApplier);
    LfbReaderOptions options;
    options.log = kLog;
    options.salt = SaltOf(kCluster.value(), kLog);
    options.set = set;
    LfbReader reader(network, options);
    router.on_message = [&](auto... message) { return reader.OnMessage(message...); };
    router.on_down = [&](NodeId peer) { reader.OnLinkDown(peer); };
    network.Start(router);
    for (int tries = 0; tries < 8 && read.last_lfb.value() < until.value();) {
      const auto group = reader.Next(milliseconds(60));
      if (!group) {
        ++tries;
        continue;
      }
      tries = 0;
      read.last_lfb = group->lfb.time();
      for (const LogRecord& record : group->records) {
        const PagesRecord pages = *DecodePagesRecord(group->BodyOf(record));
        read.times.push_back(pages.first.value());
        read.epochs.push_back(static_cast<uint32_t>(pages.body[0]));
      }
    }
    network.Stop();
    return read;
  }

  std::optional<Lsn> Fence(uint32_t epoch) {
    Router router;
    Network& network = net.Join(kLocks);
    LogFence fence(network, kLog, ClusterEpoch(epoch), set);
    router.on_message = [&](auto... message) { return fence.OnMessage(message...); };
    network.Start(router);
    const auto end = fence.Run(milliseconds(2000));
    network.Stop();
    return end;
  }

  // Until this much is durable, or `time` is over.
  bool AwaitDurable(size_t records, milliseconds time = milliseconds(1000)) {
    const auto is_there = [&] { return appended.size() >= records && durable.value() >= appended[records - 1]; };
    for (int64_t i = 0; i < time.count() && !is_there(); ++i) SleepFor(1'000'000);
    return is_there();
  }

  SimNetwork net;
  StoreSet set{StoreSetNumber(1), {0, 1, 2}};
  std::vector<uint64_t> appended;  // times of this master's records
  VsTime durable;

 private:
  void Write(FlushBuffer& buffer, uint32_t epoch, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      try {
        const VsTime time = buffer.AppendPages(1 + i % 3, 100 + i * 37 % 900, [&](VsTime, std::span<std::byte> to) {
          std::fill(to.begin(), to.end(), static_cast<std::byte>(epoch));
        });
        appended.push_back(time.value());
        if (i % 8 == 0) buffer.WaitDurable(time);
      } catch (const Error& error) {
        why = error.what();
        failed = true;
        break;
      }
    }
    for (;;) SleepFor(1'000'000'000);
  }

  std::array<FaultyFileSystem*, kLogStores> files_{};

 public:
  bool failed = false;
  std::string why;  // the master failed
};

void UnderSeeds(int seeds, const std::function<void(Cluster&, std::mt19937_64&)>& body) {
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Plan plan;
    plan.seed = static_cast<uint64_t>(seed);
    plan.policy = seed % 3 == 0 ? Policy::kPriority : Policy::kRandom;
    Simulate(plan, [&] {
      std::mt19937_64 random(static_cast<uint64_t>(seed));
      Cluster cluster;
      body(cluster, random);
    });
  }
}

// All that was durable is there, once and in order.
void ExpectHolds(const Cluster::Read& read, const std::vector<uint64_t>& appended, VsTime durable) {
  EXPECT_TRUE(std::is_sorted(read.times.begin(), read.times.end()));
  EXPECT_EQ(std::adjacent_find(read.times.begin(), read.times.end()), read.times.end());
  for (const uint64_t time : appended) {
    if (time <= durable.value()) EXPECT_TRUE(std::binary_search(read.times.begin(), read.times.end(), time)) << time;
  }
}

TEST(LogClusterTest, WhatIsDurableIsRead) {
  UnderSeeds(10, [](Cluster& cluster, auto&) {
    cluster.StartMaster(1, {}, {}, {}, 60);
    ASSERT_TRUE(cluster.AwaitDurable(60));
    const auto read = cluster.ReadAll(cluster.durable);
    EXPECT_EQ(read.times, cluster.appended);
  });
}

TEST(LogClusterTest, OneStoreMayBeLostAndComeBack) {
  UnderSeeds(10, [](Cluster& cluster, auto& random) {
    cluster.StartMaster(1, {}, {}, {}, 80);
    ASSERT_TRUE(cluster.AwaitDurable(10));
    const auto lost = static_cast<uint8_t>(random() % 3);
    cluster.KillStore(lost);
    ASSERT_TRUE(cluster.AwaitDurable(40));
    cluster.RestartStore(lost, FaultyFileSystem::Crash::kTorn, random());
    ASSERT_TRUE(cluster.AwaitDurable(60));
    cluster.KillStore(static_cast<uint8_t>((lost + 1) % 3));
    ASSERT_TRUE(cluster.AwaitDurable(80));
    EXPECT_EQ(cluster.ReadAll(cluster.durable).times, cluster.appended);
  });
}

TEST(LogClusterTest, StoresThatHaveComeBackServeReadersThoughNothingIsWritten) {
  UnderSeeds(5, [](Cluster& cluster, auto& random) {
    cluster.StartMaster(1, {}, {}, {}, 40);
    ASSERT_TRUE(cluster.AwaitDurable(40));
    for (uint8_t i = 0; i < kLogStores; ++i) {
      cluster.KillStore(i);
      cluster.RestartStore(i, FaultyFileSystem::Crash::kDurableOnly, random());
    }
    EXPECT_EQ(cluster.ReadAll(cluster.durable).times, cluster.appended);
  });
}

TEST(LogClusterTest, WithTwoStoresLostNothingIsAcknowledged) {
  UnderSeeds(5, [](Cluster& cluster, auto&) {
    cluster.StartMaster(1, {}, {}, {}, 80);
    ASSERT_TRUE(cluster.AwaitDurable(10));
    cluster.KillStore(0);
    cluster.KillStore(1);
    SleepFor(20'000'000);
    const VsTime then = cluster.durable;
    SleepFor(200'000'000);
    EXPECT_EQ(cluster.durable, then);
  });
}

TEST(LogClusterTest, AReaderCutOffFromAStoreTurnsToAnother) {
  UnderSeeds(5, [](Cluster& cluster, auto&) {
    cluster.StartMaster(1, {}, {}, {}, 40);
    ASSERT_TRUE(cluster.AwaitDurable(40));
    cluster.net.Cut(kApplier, {Role::kLogStore, 0});
    cluster.net.Cut(kApplier, {Role::kLogStore, 1});
    EXPECT_EQ(cluster.ReadAll(cluster.durable).times, cluster.appended);
  });
}

TEST(LogClusterTest, AfterADeathTheDurablePartIsReadAndTheRestNeverReturns) {
  UnderSeeds(60, [](Cluster& cluster, auto& random) {
    cluster.StartMaster(1, {}, {}, {}, 200);
    ASSERT_TRUE(cluster.AwaitDurable(5 + random() % 40));
    const auto away = static_cast<uint8_t>(random() % 3);
    if (random() % 2 == 0) cluster.net.Cut(kMaster, {Role::kLogStore, static_cast<uint8_t>((away + 1) % 3)});
    SleepFor(random() % 3'000'000);
    cluster.KillMaster();
    // A store misses the seal, and comes back with its tail.
    cluster.KillStore(away);
    const auto end = cluster.Fence(2);
    ASSERT_TRUE(end);
    const std::vector<uint64_t> appended = cluster.appended;
    const VsTime durable = cluster.durable;
    const auto first = cluster.ReadAll(VsTime(UINT64_MAX));
    ExpectHolds(first, appended, durable);
    EXPECT_GE(first.last_lfb.value(), durable.value());
    cluster.net.MendAll();
    cluster.RestartStore(away, FaultyFileSystem::Crash::kDurableOnly, random());
    cluster.StartMaster(2, *end, VsTime(1'000'000), first.last_lfb, 40);
    ASSERT_TRUE(cluster.AwaitDurable(40)) << cluster.why << " " << cluster.appended.size() << " " << end->value();
    cluster.KillStore(static_cast<uint8_t>((away + 1) % 3));
    const auto all = cluster.ReadAll(cluster.durable);
    std::vector<uint64_t> expected = first.times;
    expected.insert(expected.end(), cluster.appended.begin(), cluster.appended.end());
    EXPECT_EQ(all.times, expected);
  });
}

TEST(LogClusterTest, AMasterThatWasFencedWhileItLivesHasNothingAcknowledgedAnyMore) {
  UnderSeeds(15, [](Cluster& cluster, auto& random) {
    cluster.StartMaster(1, {}, {}, {}, 10'000);
    ASSERT_TRUE(cluster.AwaitDurable(5 + random() % 20));
    const auto end = cluster.Fence(2);
    ASSERT_TRUE(end);
    const auto read = cluster.ReadAll(VsTime(UINT64_MAX));
    SleepFor(20'000'000);
    EXPECT_TRUE(cluster.failed);
    ExpectHolds(read, cluster.appended, cluster.durable);
  });
}

}  // namespace
}  // namespace dbx::sim
