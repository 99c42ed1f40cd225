// The network of a simulated cluster: messages between groups of fibres (models Network).
//
// Each message takes a seeded time; messages of different links overtake each other, those of one link do not. Links
// can be slow, can be broken once, and can stay cut; a process can be killed. As everywhere (network.h), a break loses
// what is under way both ways, and both sides hear of it before anything that is sent later.
//
// A process has two fibres that call its receiver, for different peers at the same time.
//
// Messages pass through the encoding of multi_master/message.h, as over TCP, so that sizes are what they are there.
//
// Threads: fibres of one simulation. No function gives up its turn, but for Stop and for the receivers' calls.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multi_master/message.h"
#include "multi_master/network.h"

namespace dbx::sim {

struct LinkSpeed {
  uint64_t nanos_min = 20'000;  // of each message, from the sender to the receiver
  uint64_t nanos_max = 200'000;
  uint64_t nanos_per_kib = 300;  // 25 Gb/s
};

class SimNetwork {
 public:
  explicit SimNetwork(LinkSpeed speed = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // A process of the cluster, whose Start is called by a fibre of its group. A name that was killed or stopped may come
  // back. Owned by this.
  mm::Network& Join(mm::NodeId node);
  // After KillGroup: its links are broken; its receiver is not called again.
  void Forget(mm::NodeId node);

  // The link breaks, and is made anew by the next message.
  void Break(mm::NodeId a, mm::NodeId b);
  // It breaks, and no message passes until Mend.
  void Cut(mm::NodeId a, mm::NodeId b);
  void Mend(mm::NodeId a, mm::NodeId b);
  // All links of a process.
  void CutOff(mm::NodeId node);
  void MendAll();
  void SetSpeed(mm::NodeId a, mm::NodeId b, LinkSpeed speed);

  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }
  // Links that a receiver has closed, as a message was malformed.
  uint64_t refusals() const { return refusals_; }

 private:
  class Endpoint;

  using Pair = std::pair<mm::NodeId, mm::NodeId>;
  static Pair PairOf(mm::NodeId a, mm::NodeId b) { return a < b ? Pair{a, b} : Pair{b, a}; }

  struct Item {
    uint64_t due = 0;  // in virtual time
    bool is_down = false;
    mm::MessageType type;
    std::vector<std::byte> body;
  };
  struct Direction {
    std::deque<Item> items;
    uint64_t last_due = 0;
  };

  Endpoint* Find(mm::NodeId node);
  void Send(mm::NodeId from, mm::NodeId to, mm::MessageType type, std::span<const std::byte> body);
  // `node` will hear that its link to `peer` is down.
  void TellDown(mm::NodeId node, mm::NodeId peer);
  void Push(mm::NodeId from, mm::NodeId to, Item item);
  LinkSpeed SpeedOf(mm::NodeId a, mm::NodeId b) const;

  const LinkSpeed speed_;
  std::map<Pair, LinkSpeed> speeds_;
  std::map<Pair, bool> cuts_;
  std::map<Pair, Direction> directions_;              // from, to
  std::map<Pair, bool> is_used_;                      // a link exists: its end is heard
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // of all times; a process has one at most that is alive
  uint64_t messages_ = 0, bytes_ = 0, refusals_ = 0;
};

}  // namespace dbx::sim
