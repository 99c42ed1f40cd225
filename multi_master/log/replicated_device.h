// The device of a master's log: three Log Stores, of which two make a write complete (models BlockDevice;
// multi_master.md, section 3, 14.4 and 14.7).
//
//   StartWrite --copy--> chunks --kAppend--> store 0, 1, 2 --kAppended--> acked[3] --second largest--> Complete
//
// The bytes are copied, as a block device's caller may change them once Complete has covered them, while the third
// store may lack them for long. Each store is sent the chunks behind its own end, in order: after a break the log is
// opened there again, and its answer says where to go on. What all three have is dropped, and beyond `kept_bytes_max`
// what two have: a store that lags further has to copy from another one first (kCopy), which OnBehind tells.
//
// Complete is told to the stores each time it moves, as they serve readers only what two have.
//
// A store that knows of a later epoch refuses for ever: the device has failed then, as any other one after an error.
// One that knows of a later set of stores takes nothing until SetStores has told this writer, too.
//
// Threads: as of any block device; the receiver's calls by the network's.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "logging/device/block_device.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/network.h"

namespace dbx::mm {

struct ReplicatedOptions {
  MasterId log;
  ClusterEpoch epoch;
  StoreSet set;
  Lsn start{};  // of the first byte that is written, at the offset kStreamOffset of the device
  uint64_t kept_bytes_max = 64 << 20;
};

class ReplicatedDevice final : public BlockDevice {
 public:
  ReplicatedDevice(Network& network, const ReplicatedOptions& options);

  // Messages kLogAppended, kLogState and kLogStale for this log, and broken links. False: it is malformed.
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body);
  void OnLinkDown(NodeId peer);

  // The set has changed: its number is durable. What the new store lacks it has copied.
  void SetStores(const StoreSet& set);
  // A store that lags too far, once each time. Called under a latch of this: it only notes. Set before Open.
  void OnBehind(std::function<void(uint8_t store)> told) { behind_ = std::move(told); }
  // Opens the log at the stores.
  void Open();
  // At a store that was behind, and has copied.
  void Reopen(uint8_t store);

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override;
  uint64_t Complete(bool wait) override;
  // Logs are read from the stores (lfb_reader.h).
  size_t Read(uint64_t offset, std::span<std::byte> to) override;
  uint64_t SizeBytes() override;
  const std::string& path() const override { return path_; }

  // It fails: nothing that was not sent is sent any more.
  void Abandon(const std::string& why);

  // Up to where two stores have the log.
  Lsn complete();

 private:
  struct Store {
    bool is_open = false;
    bool is_behind = false;
    Lsn acked;  // the store has all below
    Lsn sent;
  };
  struct Chunk {
    Lsn at;
    std::vector<std::byte> bytes;
  };
  using Bytes = std::vector<std::byte>;
  // Sent after the latch is given up: a network may be as slow as it likes.
  using Outgoing = std::vector<std::pair<uint8_t, std::pair<MessageType, Bytes>>>;

  LogMessage Message() const { return {options_.log, options_.epoch, options_.set}; }
  void OpenAt(uint8_t store, Outgoing& out);
  void SendRest(uint8_t store, Outgoing& out);
  void MoveComplete(Outgoing& out);
  void DropChunks();
  void Post(const Outgoing& out);
  void Fail(const std::string& why);
  void OnState(uint8_t store, const LogMessage& message, Outgoing& out);
  Lsn LsnOf(uint64_t offset) const;

  Network& network_;
  std::function<void(uint8_t)> behind_;
  const std::string path_;

  Mutex mutex_;  // of the rest
  ConditionVariable moved_;
  ReplicatedOptions options_;
  std::map<uint8_t, Store> stores_;
  std::deque<Chunk> chunks_;
  Lsn end_, complete_;
  std::exception_ptr error_;
  Mutex sending_;  // keeps what is posted in the order in which it was decided
};

}  // namespace dbx::mm
