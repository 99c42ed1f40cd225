// The lock process: GlobalLocks behind a network, and what follows the death of a master (multi_master.md, section 6).
//
//   lease over, or OnProcessGone -> OnLeaseOver          at once: its messages do nothing, its pages stay held
//   recovery thread              -> fence, seal, read    its log at the Log Stores (recovery/log_recovery.h)
//                                -> OnMasterDead, FreePages
//                                -> UndoLoser            to a living master; if that one dies, to another one once
//                                                        its log is sealed, too
//   EndedTxns of that master     -> the losers' row locks go
//
// Several may be dead at a time: their logs are read one after the other, in the order in which the deaths were
// noticed, and while they are, all other pages are granted as ever. With the last master the cluster ends.
//
// Threads: the network's, one that looks at leases, one that recovers.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/host.h"
#include "multi_master/lock/global_locks.h"
#include "multi_master/lock/lease.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/message.h"
#include "multi_master/network.h"
#include "multi_master/recovery/log_recovery.h"
#include "multi_master/recovery/loser_table.h"

namespace dbx::mm {

struct LockProcessOptions {
  uint32_t masters = 1;  // 0 to masters - 1
  LeaseTerms lease;
  // Of the masters' logs.
  ClusterId cluster{};
  ClusterEpoch epoch{1};
  StoreSet log_stores{StoreSetNumber(1), {0, 1, 2}};
};

// A master's death, by the lock process' clock. 0: not yet.
struct MasterDeath {
  MasterId master;
  uint64_t noticed_nanos = 0;
  uint64_t freed_nanos = 0;   // its pages could be granted
  uint64_t undone_nanos = 0;  // its losers' ENDs were known as durable
  uint64_t losers = 0;
  uint64_t log_bytes = 0;
};

class LockProcess final : public Network::Receiver, private GlobalLocks::Link {
 public:
  LockProcess(Network& network, const LockProcessOptions& options);
  ~LockProcess() override { Stop(); }

  void Start();
  void Stop();
  // Throws the error that ended recovery: a log is damaged, or all masters are dead.
  void ThrowIfFailed();

  // The master's process has ended, however it did. Not one that has left in order, and is known for that.
  void OnProcessGone(MasterId master);

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override;
  void OnLinkDown(NodeId peer) override;

  // Calls use(GlobalLocks&).
  auto With(auto&& use) {
    const std::lock_guard latch(latch_);
    return use(locks_);
  }
  // In the order in which they were noticed.
  std::vector<MasterDeath> deaths();
  size_t losers_left();

 private:
  void Send(MasterId to, MessageType type, std::vector<std::byte> body) override;
  template <class Message>
  void SendTo(MasterId to, const Message& message) {
    Send(to, Message::kType, EncodeBody(message));
  }

  bool OnLeaseRequest(MasterId from, std::span<const std::byte> body);
  void OnEnded(const EndedTxns& news);
  // The following run under the latch.
  void Bury(MasterId master);
  void GiveLosers();
  MasterDeath& DeathOf(MasterId master);
  void WatchLeases();
  void RecoverDead();
  void Recover(std::unique_lock<Mutex>& latch);

  Network& network_;
  const LockProcessOptions options_;

  Mutex latch_;  // of the rest
  GlobalLocks locks_;
  Leases leases_;
  LoserTable losers_;
  std::vector<MasterDeath> deaths_;
  std::deque<MasterId> to_recover_;
  std::shared_ptr<LogRecovery> recovery_;  // under way
  std::exception_ptr error_;
  bool stopped_ = false;
  ConditionVariable stopping_;  // for the thread that looks at leases
  ConditionVariable died_;      // for the one that recovers
  Thread watcher_, recoverer_;
};

}  // namespace dbx::mm
