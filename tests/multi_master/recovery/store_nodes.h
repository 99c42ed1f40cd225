// Log Stores, and masters that write logs at them, over a network in memory that can be cut.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/error.h"
#include "logging/device/posix_file_system.h"
#include "multi_master/log/log_store.h"
#include "multi_master/log/replicated_device.h"
#include "multi_master/master/stored_log.h"
#include "tests/logging/device/temp_dir.h"
#include "tests/multi_master/master/memory_network.h"

namespace dbx::mm {

inline constexpr ClusterId kTestCluster{77};
inline const StoreSet kTestStores{StoreSetNumber(1), {0, 1, 2}};

// A node's network, of which messages to some nodes are lost.
class CutNetwork final : public Network {
 public:
  explicit CutNetwork(Network& whole) : whole_(whole) {}

  void CutFrom(std::set<NodeId> nodes) {
    const std::lock_guard latch(latch_);
    cut_ = std::move(nodes);
  }
  void CutFromStores(const std::set<uint8_t>& stores) {
    std::set<NodeId> nodes;
    for (const uint8_t store : stores) nodes.insert({Role::kLogStore, store});
    CutFrom(std::move(nodes));
  }
  // Messages of this type that were sent to the node, and not lost.
  uint64_t sent(NodeId to, MessageType type) {
    const std::lock_guard latch(latch_);
    return sent_[{to, type}];
  }

  NodeId self() const override { return whole_.self(); }
  void Start(Receiver& receiver) override { whole_.Start(receiver); }
  void Send(NodeId to, MessageType type, std::span<const std::byte> body) override {
    {
      const std::lock_guard latch(latch_);
      if (cut_.contains(to)) return;
      ++sent_[{to, type}];
    }
    whole_.Send(to, type, body);
  }
  void Stop() override { whole_.Stop(); }

 private:
  Network& whole_;
  Mutex latch_;
  std::set<NodeId> cut_;
  std::map<std::pair<NodeId, MessageType>, uint64_t> sent_;
};

class StoreNodes {
 public:
  explicit StoreNodes(MemoryNetwork& network) {
    for (uint8_t i = 0; i < kLogStores; ++i) {
      LogStoreOptions options;
      options.cluster = kTestCluster;
      options.directory = directory_.path() + "/store-" + std::to_string(i);
      std::filesystem::create_directory(options.directory);
      stores_.push_back(std::make_unique<LogStore>(network.Join({Role::kLogStore, i}), files_, options));
      stores_.back()->Start();
    }
  }
  ~StoreNodes() {
    for (auto& store : stores_) store->Stop();
  }

 private:
  TempDir directory_;
  PosixFileSystem files_;
  std::vector<std::unique_ptr<LogStore>> stores_;
};

// A master as far as its log goes.
class LogNode final : public Network::Receiver {
 public:
  LogNode(MemoryNetwork& network, MasterId self) : self_(self), network_(network.Join({Role::kMaster, self.value()})) {
    ReplicatedOptions of_device;
    of_device.log = self;
    of_device.epoch = ClusterEpoch(1);
    of_device.set = kTestStores;
    auto device = std::make_unique<ReplicatedDevice>(network_, of_device);
    device_ = device.get();
    FlushBufferOptions of_buffer;
    of_buffer.self = self;
    of_buffer.salt = SaltOf(kTestCluster.value(), self);
    log_ = std::make_unique<StoredLog>(of_buffer, std::move(device));
    network_.Start(*this);
    device_->Open();
  }
  ~LogNode() override {
    network_.Stop();
    device_->Abandon("the test is over");
    try {
      log_->Stop();
    } catch (const Error&) {
      // As it was made to.
    }
  }

  TxnName T(uint64_t sequence) const { return {self_, ClusterEpoch(1), sequence}; }
  VsTime Put(uint64_t txn, PageId page, Key key) {
    return Append({{page, {}, {}, PutRow{key, T(txn), true, 0, 0, {}}}});
  }
  void Split(PageId left, Key separator, PageId right) {
    Append({{right, {}, {}, FormatPage{TreeId(1), 0, {}, 0, 0, {}}}, {left, {}, {}, SplitLeft{separator, right}}});
  }
  VsTime End(uint64_t txn) { return log_->AppendEnd(T(txn), EndKind::kCommitted, TxnId()); }
  void AwaitDurable() { log_->AwaitDurable(log_->last_record()); }
  StoredLog& log() { return *log_; }
  CutNetwork& network() { return network_; }

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    return from.role != Role::kLogStore || device_->OnMessage(from, type, body);
  }
  void OnLinkDown(NodeId) override {}

 private:
  VsTime Append(std::vector<PageChange> changes) {
    log_->AppendPages(changes);
    return changes.back().lsn.time;
  }

  const MasterId self_;
  CutNetwork network_;
  ReplicatedDevice* device_;
  std::unique_ptr<StoredLog> log_;
};

// True: it has become so within 20 s.
bool BecomesSoon(auto&& is_so) {
  for (int i = 0; i < 10'000; ++i) {
    if (is_so()) return true;
    host::SleepFor(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace dbx::mm
