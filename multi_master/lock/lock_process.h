// The lock process: GlobalLocks behind a network.
//
// Threads: the network's.
#pragma once

#include <mutex>
#include <vector>

#include "base/host.h"
#include "multi_master/lock/global_locks.h"
#include "multi_master/network.h"

namespace dbx::mm {

class LockProcess final : public Network::Receiver, private GlobalLocks::Link {
 public:
  // Of a cluster with masters 0 to masters - 1.
  LockProcess(Network& network, uint32_t masters) : network_(network), locks_(*this) {
    for (uint32_t i = 0; i < masters; ++i) locks_.AddMaster(MasterId(static_cast<uint8_t>(i)));
  }

  ~LockProcess() override { Stop(); }

  void Start() { network_.Start(*this); }
  void Stop() { network_.Stop(); }

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    if (from.role != Role::kMaster) return false;
    const std::lock_guard latch(latch_);
    return locks_.On(MasterId(from.index), type, body);
  }
  void OnLinkDown(NodeId) override {}

  // Calls use(GlobalLocks&).
  auto With(auto&& use) {
    const std::lock_guard latch(latch_);
    return use(locks_);
  }

 private:
  void Send(MasterId to, MessageType type, std::vector<std::byte> body) override {
    network_.Send({Role::kMaster, to.value()}, type, body);
  }

  Network& network_;
  Mutex latch_;
  GlobalLocks locks_;
};

}  // namespace dbx::mm
