// What workers do while devices are slow.

#include "logging/replay_lanes.h"

#include <gtest/gtest.h>

#include "logging/format.h"
#include "logging/taurus/taurus_recovery.h"
#include "tests/logging/gated_device.h"

namespace dbx::recovery_test {
namespace {

using format::kBlockBytes;
using format::RecordKind;
using Decoded = ReplayLanes::Decoded;

constexpr WorkerId kWorker(0);
constexpr uint64_t kTxns = 400;  // some ten blocks

// Logs of transactions that each follow the one before, and none of another log; each on a device of its own.
struct GatedLogs {
  explicit GatedLogs(uint32_t count) {
    for (uint32_t index = 0; index < count; ++index) {
      LogImage image(index, count);
      const uint64_t key = index % 2 * (kLoadedKeys / 2);  // two logs have no row in common
      for (uint64_t id = 0; id < kTxns; ++id) {
        const std::array<uint64_t, 6> args{1, key + id % 20, key + 20, key + 21, key + 22, key + 23};
        image.Txn(RecordKind::kCommand, id * count + index, kMix, {{index, image.end()}}, args);
      }
      devices.push_back(std::make_unique<GatedDevice>("log_" + std::to_string(index), image.bytes()));
      sources.push_back({devices.back().get(), kRunId, 1 << 20, index, count});
    }
  }
  void OpenAll() {
    for (const auto& device : devices) device->LetThrough(GatedDevice::kAll);
  }
  std::vector<std::unique_ptr<GatedDevice>> devices;
  std::vector<LogSource> sources;
};

// Replays what every lane has. Returns how many records of each log that were.
std::vector<uint64_t> ReplayQueued(ReplayLanes& lanes) {
  std::vector<uint64_t> replayed(lanes.log_count());
  for (size_t i = 0; i < lanes.lanes().size(); ++i, lanes.MoveOn(kWorker)) {
    ReplayLanes::Lane& lane = *lanes.Hold(kWorker);
    while (const TxnRecord* record = lanes.Head(lane)) {
      ++replayed[record->log];
      lanes.Pop(lane);
    }
  }
  return replayed;
}

TEST(ReplayLanes, OneWorkerHasEveryDeviceRead) {
  GatedLogs logs(8);
  ReplayLanes lanes(logs.sources, 1, 1, kBlockBytes);
  EXPECT_EQ(lanes.Decode(kWorker), Decoded::kReading);
  for (const auto& device : logs.devices) EXPECT_TRUE(device->AwaitBegun(1));
  logs.OpenAll();
}

TEST(ReplayLanes, ALateDeviceKeepsNoOtherLogWaiting) {
  GatedLogs logs(2);
  ReplayLanes lanes(logs.sources, 1, 1, kBlockBytes);
  logs.devices[1]->LetThrough(GatedDevice::kAll);
  std::vector<uint64_t> replayed(2);
  for (uint32_t open = 1; open <= 2; ++open) {
    Decoded last = Decoded::kBatches;
    while (last != Decoded::kDone && !(open == 1 && last == Decoded::kReading && lanes.EndIsKnown(1))) {
      last = lanes.Decode(kWorker);
      const std::vector<uint64_t> more = ReplayQueued(lanes);
      for (size_t log : {0, 1}) replayed[log] += more[log];
    }
    EXPECT_EQ(replayed[1], kTxns);
    EXPECT_EQ(replayed[0], open == 1 ? 0 : kTxns);
    logs.OpenAll();
  }
}

// The watermark of a log counts once everything before it is replayed, and the least one of all logs is taken; with
// nothing left no transaction reads at all.
TEST(ReplayLanes, TheWatermarkIsThatOfTheLaneThatIsFarthestBehind) {
  std::vector<std::unique_ptr<ImageDevice>> devices;
  std::vector<LogSource> sources;
  for (const uint32_t index : {0, 1}) {
    LogImage image(index, 2);
    for (uint64_t id = 0; id < 100; ++id) {
      const uint64_t end = 10 + 2 * id + index;
      image.Txn(RecordKind::kVersionedCommand, 2 * id + index, kMix, {}, std::array<uint64_t, 4>{end - 1, end, 1, 7});
      image.Watermark(end);
    }
    devices.push_back(std::make_unique<ImageDevice>("log_" + std::to_string(index), image.bytes()));
    sources.push_back({devices.back().get(), kRunId, 1 << 20, index, 2});
    sources.back().first_timestamp = Timestamp(3);
  }
  ReplayLanes lanes(sources, 1, 1, kBlockBytes);
  EXPECT_EQ(lanes.Watermark(), Timestamp(3));
  uint64_t replayed[2] = {0, 0};
  while (lanes.Decode(kWorker) != Decoded::kDone) {
    for (size_t i = 0; i < 2; ++i, lanes.MoveOn(kWorker)) {
      ReplayLanes::Lane& lane = *lanes.Hold(kWorker);
      for (const TxnRecord* record = lanes.Head(lane); record != nullptr; record = lanes.Head(lane)) {
        EXPECT_LE(lanes.Watermark(), record->read_timestamp);
        ++replayed[record->log];
        lanes.Pop(lane);
      }
    }
    const uint64_t least = std::min(replayed[0], replayed[1]);
    if (least < 100 && least > 40) {
      EXPECT_GT(lanes.Watermark(), Timestamp(10));
    }
  }
  EXPECT_EQ(lanes.Watermark(), Timestamp(UINT64_MAX));
}

// A check whether all wait for each other must not take a device's silence for an answer.
TEST(ReplayLanes, WhoIsAloneWaitsForTheDevices) {
  GatedLogs logs(2);
  ReplayLanes lanes(logs.sources, 1, 1, kBlockBytes);
  EXPECT_EQ(lanes.Decode(kWorker), Decoded::kReading);
  std::jthread opener([&logs] { logs.OpenAll(); });
  bool got_some = false;
  EXPECT_TRUE(lanes.Alone(kWorker, [&] { got_some = lanes.DecodeEveryLog(); }));
  EXPECT_TRUE(got_some);
  for (const uint64_t replayed : ReplayQueued(lanes)) EXPECT_GT(replayed, 0u);
}

TEST(ReplayLanes, AReadThatFailsIsTheRecoverysErrorThoughOtherDevicesAreLate) {
  GatedLogs logs(2);
  logs.devices[0]->FailAt(format::kStreamOffset + kBlockBytes);
  std::jthread opener([&logs] {
    EXPECT_TRUE(logs.devices[1]->AwaitBegun(1));  // before the failure, which ends the recovery
    logs.devices[0]->LetThrough(GatedDevice::kAll);
    EXPECT_TRUE(logs.devices[0]->AwaitBegun(2));
    logs.devices[1]->LetThrough(GatedDevice::kAll);
  });
  EXPECT_THROW(RecoverSources<TaurusRecovery>(logs.sources, {.workers = 3}), Error);
}

// Longer silences than it takes to suspect that all wait for each other.
TEST(ReplayLanes, LateDevicesAreNoDeadlock) {
  GatedLogs logs(2);
  std::jthread opener([&logs](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      logs.devices[0]->LetThrough(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      logs.devices[1]->LetThrough(1);
    }
  });
  const Recovered recovered = RecoverSources<TaurusRecovery>(logs.sources, {.workers = 2});
  EXPECT_EQ(recovered.summary.recovered, 2 * kTxns);
}

}  // namespace
}  // namespace dbx::recovery_test
