// Ends the log of a dead master and reads what it says: fence, copy, seal (log/log_fence.h), then from the start to the
// seal.
//
// Records behind the last LFB below the seal were never durable, and are not read.
//
// Threads: Run by one; OnMessage and OnLinkDown by the network's; Stop by any.
#pragma once

#include <optional>
#include <span>

#include "base/host.h"
#include "multi_master/log/lfb_reader.h"
#include "multi_master/log/log_fence.h"
#include "multi_master/message.h"
#include "multi_master/recovery/dead_log.h"

namespace dbx::mm {

struct LogRecoveryOptions {
  ClusterId cluster;
  MasterId log;
  ClusterEpoch epoch;  // in which the master wrote
  StoreSet stores;
};

class LogRecovery {
 public:
  LogRecovery(Network& network, const LogRecoveryOptions& options);

  // Waits until two Log Stores answer. Nothing: Stop was called. Throws Error: kIo where a process with a later epoch
  // or set of stores has taken the log over, kCorrupt where it is damaged.
  std::optional<DeadLog::Result> Run();
  void Stop() { stopped_ = true; }

  // Where the log ends; 0 before it is known.
  Lsn seal() const { return Lsn(seal_.load()); }

  // Of Log Stores. False: it is malformed.
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body);
  void OnLinkDown(NodeId peer) { reader_.OnLinkDown(peer); }

 private:
  std::optional<Lsn> Fence();

  const LogRecoveryOptions options_;
  LogFence fence_;
  LfbReader reader_;
  Atomic<uint64_t> seal_{0};
  Atomic<bool> stopped_{false};
};

}  // namespace dbx::mm
