// A Log Store on a file system that crashes, without a network: what is sent is kept, and messages are handed over by
// the test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "multi_master/log/log_store.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::mm {

class ProbeNetwork final : public Network {
 public:
  struct Sent {
    NodeId to;
    MessageType type;
    std::vector<std::byte> body;
  };

  explicit ProbeNetwork(NodeId self) : self_(self) {}
  NodeId self() const override { return self_; }
  void Start(Receiver&) override {}
  void Stop() override {}
  void Send(NodeId to, MessageType type, std::span<const std::byte> body) override {
    const std::lock_guard lock(mutex_);
    sent_.push_back({to, type, {body.begin(), body.end()}});
    changed_.notify_all();
  }
  // The next message that was sent; nothing: none within `time`.
  std::optional<Sent> Next(std::chrono::milliseconds time = std::chrono::seconds(10)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, time, [&] { return taken_ < sent_.size(); })) return std::nullopt;
    return sent_[taken_++];
  }

 private:
  const NodeId self_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Sent> sent_;
  size_t taken_ = 0;
};

inline constexpr NodeId kWriter{Role::kMaster, 1};
inline constexpr NodeId kReader{Role::kMaster, 2};
inline constexpr NodeId kFencer{Role::kLocks, 0};
inline const StoreSet kSet{StoreSetNumber(1), {0, 1, 2}};

// A block of the log.
inline std::vector<std::byte> Block(int value) {
  return std::vector<std::byte>(format::kBlockBytes, static_cast<std::byte>(value));
}

struct StoreProbe {
  explicit StoreProbe(FaultyFileSystem& files, uint8_t index = 0) : network({Role::kLogStore, index}) {
    LogStoreOptions options;
    options.cluster = ClusterId(7);
    options.directory = "/d";
    if (files.KindOf("/d") != FileSystem::Entry::kDirectory) files.MakeDirectory("/d"), files.SyncDirectory("/");
    store = std::make_unique<LogStore>(network, files, options);
    store->Start();
  }
  static LogMessage Message(uint32_t epoch, uint64_t block = 0) {
    LogMessage message;
    message.log = MasterId(1);
    message.epoch = ClusterEpoch(epoch);
    message.set = kSet;
    message.at = Lsn(block * format::kBlockBytes);
    return message;
  }
  bool Say(NodeId from, MessageType type, const LogMessage& message) {
    return store->OnMessage(from, type, EncodeLog(message));
  }
  bool Append(uint32_t epoch, uint64_t block, int value, uint64_t complete_blocks = 0) {
    const std::vector<std::byte> bytes = Block(value);
    LogMessage message = Message(epoch, block);
    message.bytes = bytes;
    message.length = static_cast<uint32_t>(bytes.size());
    message.complete = Lsn(complete_blocks * format::kBlockBytes);
    return Say(kWriter, kLogAppend, message);
  }
  bool Read(uint64_t block) {
    LogMessage read = Message(0, block);
    read.length = 1 << 20;
    return Say(kReader, kLogRead, read);
  }
  // The next answer as text: "appended 2", "state 2 of epoch 1", "stale of epoch 2", "data 0: 11 12".
  std::string Answer(std::chrono::milliseconds time = std::chrono::seconds(10)) {
    const auto sent = network.Next(time);
    if (!sent) return "";
    const LogMessage message = *DecodeLog(sent->body);
    const std::string at = std::to_string(message.at.value() / format::kBlockBytes);
    const std::string epoch = " of epoch " + std::to_string(message.epoch.value());
    if (sent->type == kLogAppended) return "appended " + at;
    if (sent->type == kLogState) return "state " + at + epoch;
    if (sent->type == kLogStale) return "stale" + epoch;
    if (sent->type != kLogData) return "type " + std::to_string(sent->type.value());
    std::string text = "data " + at + ":";
    for (size_t i = 0; i < message.bytes.size(); i += format::kBlockBytes) {
      text += " " + std::to_string(static_cast<int>(message.bytes[i]));
    }
    return text;
  }
  // Nothing is sent, as far as one can tell by waiting.
  bool IsSilent() { return Answer(std::chrono::milliseconds(50)).empty(); }
  void Open(uint32_t epoch, uint64_t block = 0) {
    ASSERT_TRUE(Say(kWriter, kLogOpen, Message(epoch, block)));
    ASSERT_TRUE(Answer().starts_with("state"));
  }

  ProbeNetwork network;
  std::unique_ptr<LogStore> store;
};

}  // namespace dbx::mm
