// The messages between the processes of a cluster, as one of them sees it.
//
// Models: TcpNetwork (tcp_network.h), DelayedNetwork around another one (delayed_network.h), and the simulation's
// SimNetwork, which delays, reorders between links, duplicates connections and cuts them (tests/simulation).
//
// A link joins two processes. What one sends over it arrives in this order, once, or not at all: after a break both
// sides hear OnLinkDown, and nothing that was sent before it arrives afterwards. A link is made anew by the next Send.
//
// Threads: Send by any. A receiver is called by the network's threads, for one peer by one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "multi_master/names.h"

namespace dbx::mm {

enum class Role : uint8_t { kMaster = 1, kLocks = 2, kLogStore = 3, kPageStore = 4, kLast = kPageStore };

// A process of the cluster.
struct NodeId {
  Role role = Role::kMaster;
  uint8_t index = 0;

  friend constexpr auto operator<=>(const NodeId&, const NodeId&) = default;
};
// As messages name it: "master 2", "lock process", "log store 0", "page store 1".
std::string NameOf(NodeId node);

// Each folder of multi_master/ numbers its own, from its base on (message.h).
using MessageType = StrongInt<struct MessageTypeTag, uint16_t>;

class Network {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // `body` is valid during the call, which does not wait for an answer of any peer. False: the body is not one of
    // this type; the link is closed and nothing else happens.
    virtual bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) = 0;
    virtual void OnLinkDown(NodeId peer) = 0;
  };

  virtual ~Network() = default;

  virtual NodeId self() const = 0;
  // Messages are received from now on.
  virtual void Start(Receiver& receiver) = 0;
  // Never waits for the peer. A message to a process that cannot be reached is lost, and OnLinkDown follows.
  virtual void Send(NodeId to, MessageType type, std::span<const std::byte> body) = 0;
  // Closes all links; no call of the receiver is running or follows when it returns.
  virtual void Stop() = 0;
};

}  // namespace dbx::mm

template <>
struct std::hash<dbx::mm::NodeId> {
  size_t operator()(dbx::mm::NodeId node) const {
    return std::hash<uint32_t>()(static_cast<uint32_t>(node.role) << 8 | node.index);
  }
};
