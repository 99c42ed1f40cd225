// Ends the log of a dead master, or of one whose lease is over: fence, re-replicate, seal (multi_master.md, section 6).
//
//   kFence --> all stores     two answer: no older epoch writes there any more, so none writes at two
//   end = the larger of their ends                 all that two stores had is below
//   kCopy  --> the shorter of the two              now both have it
//   kSeal at `end` --> both                        what any store has behind it is cut off, now or when it comes back
//
// If the fencing process dies within it, the next one, with a later epoch, begins anew.
// Threads: Run by one; OnMessage by the network's.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "base/host.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/network.h"

namespace dbx::mm {

class LogFence {
 public:
  // `epoch`: the first that may write afterwards. `set` is the newest, durable.
  LogFence(Network& network, MasterId log, ClusterEpoch epoch, const StoreSet& set)
      : network_(network), log_(log), epoch_(epoch), set_(set) {}

  // Where the log ends for ever. Nothing: two stores did not answer in time, or one knows of a later epoch or set.
  std::optional<Lsn> Run(std::chrono::nanoseconds time);
  // A store knows of a later epoch or set: Run never succeeds.
  bool IsStale();
  // kLogState, kLogStale of this log. False: it is malformed.
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body);

 private:
  struct State {
    Lsn end, sealed;
  };

  void Send(uint8_t store, MessageType type, Lsn at, uint8_t peer = 0);

  Network& network_;
  const MasterId log_;
  const ClusterEpoch epoch_;
  const StoreSet set_;

  Mutex mutex_;  // of the rest
  ConditionVariable came_;
  std::map<uint8_t, State> states_;  // of the stores that are fenced
  bool is_stale_ = false;
};

}  // namespace dbx::mm
