// A network that takes longer: every message to a peer is handed to another network after a delay, with jitter, and no
// faster than a bandwidth (models Network). Each process delays what it sends; results name the three numbers.
//
// Messages to one peer keep their order. When a link breaks, what waits for it is dropped before OnLinkDown is passed
// on.
//
// Threads: one of its own hands the messages over; the receiver is called by the other network's.
#pragma once

#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "base/host.h"
#include "multi_master/network.h"

namespace dbx::mm {

struct NetworkDelay {
  uint64_t delay_nanos = 0;
  uint64_t jitter_nanos = 0;      // a message takes up to so much longer
  uint64_t bytes_per_second = 0;  // of all that the process sends; 0: no limit
};

class DelayedNetwork final : public Network, private Network::Receiver {
 public:
  // `below` outlives this, and is started and stopped by it.
  DelayedNetwork(Network& below, const NetworkDelay& delay);
  ~DelayedNetwork() override;

  NodeId self() const override { return below_.self(); }
  void Start(Network::Receiver& receiver) override;
  void Send(NodeId to, MessageType type, std::span<const std::byte> body) override;
  void Stop() override;

 private:
  struct Waiting {
    uint64_t due = 0;
    uint64_t number = 0;  // of the message: those of the same due keep their order
    uint64_t breaks = 0;  // of the link, when it was sent
    NodeId to;
    MessageType type;
    std::vector<std::byte> body;
  };
  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
  };
  struct Link {
    uint64_t last_due = 0;
    uint64_t breaks = 0;
  };

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override;
  void OnLinkDown(NodeId peer) override;
  void Loop();

  Network& below_;
  const NetworkDelay delay_;
  Network::Receiver* receiver_ = nullptr;

  Mutex mutex_;  // of the rest
  ConditionVariable sent_;
  std::priority_queue<Waiting, std::vector<Waiting>, Later> waiting_;
  std::map<NodeId, Link> links_;
  uint64_t free_from_ = 0;  // the wire: when all that was sent has passed
  uint64_t number_ = 0;
  uint64_t random_ = 1;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace dbx::mm
