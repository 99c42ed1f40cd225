// Follows the logs of all masters at the Log Stores, flush by flush: what a master's applier and a Page Store read.
//
// Threads: one for each log; OnMessage and OnLinkDown by the network's.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/host.h"
#include "multi_master/log/lfb_reader.h"
#include "multi_master/message.h"
#include "multi_master/page/page_change.h"

namespace dbx::mm {

// One flush of a master's log.
struct FollowedFlush {
  struct End {
    TxnName txn;
    VsTime time;
    TxnOutcome outcome;
    TxnId id;
  };
  LfbStamp lfb;
  std::vector<PageChange> changes;  // refer to `bytes`
  std::vector<End> ends;
  std::shared_ptr<const void> bytes;
};

class LogFollower {
 public:
  // Called by the thread of its log, in the log's order.
  using Take = std::function<void(FollowedFlush flush)>;
  // Called once, by the thread that met the error.
  using Fail = std::function<void(std::exception_ptr error)>;

  // All logs but `except`, which a master knows before the Log Stores do.
  LogFollower(Network& network, ClusterId cluster, const StoreSet& stores, uint32_t masters, Take take, Fail fail,
              std::optional<MasterId> except = std::nullopt);
  ~LogFollower() { Stop(); }

  void Start();
  void Stop();

  // kLogData. False: it is malformed.
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body);
  void OnLinkDown(NodeId peer);

 private:
  void Follow(MasterId log);

  const Take take_;
  const Fail fail_;
  std::vector<std::unique_ptr<LfbReader>> readers_;  // by master; null: it is not followed
  Atomic<bool> stopped_{false};
  std::vector<Thread> threads_;
};

// The records of a flush. Throws Error (kCorrupt) where a body is not one of its kind.
FollowedFlush DecodeFlush(MasterId log, std::shared_ptr<const LfbGroup> group);

}  // namespace dbx::mm
