#include "tests/simulation/sim_network.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/host.h"
#include "tests/simulation/scheduler.h"

namespace dbx::sim {

using mm::MessageType;
using mm::NodeId;

class SimNetwork::Endpoint final : public mm::Network {
 public:
  static constexpr uint32_t kFibres = 2;

  Endpoint(SimNetwork& net, NodeId node) : net_(net), node_(node) {}

  NodeId self() const override { return node_; }
  void Start(Receiver& receiver) override {
    receiver_ = &receiver;
    for (uint32_t i = 0; i < kFibres; ++i) {
      threads_.push_back(Thread([this] { Deliver(); }));
    }
  }
  void Send(NodeId to, MessageType type, std::span<const std::byte> body) override {
    CHECK(to != node_);
    if (is_alive) net_.Send(node_, to, type, body);
  }
  void Stop() override {
    if (is_alive) net_.Forget(node_);
    WakeAll(this);
    for (Thread& thread : threads_) thread.join();
    threads_.clear();
  }
  bool is_alive = true;

 private:
  // Of the messages that have come, from peers of which none is being handled, the first.
  void Deliver() {
    while (is_alive) {
      Direction* first = nullptr;
      NodeId from;
      for (auto& [pair, direction] : net_.directions_) {
        if (pair.second != node_ || direction.items.empty() || busy_.contains(pair.first)) continue;
        if (first == nullptr || direction.items.front().due < first->items.front().due) {
          first = &direction;
          from = pair.first;
        }
      }
      const uint64_t now = NowNanos();
      if (first == nullptr || first->items.front().due > now) {
        BlockOn(this, first == nullptr ? kForever : first->items.front().due - now);
        continue;
      }
      const Item item = std::move(first->items.front());
      first->items.pop_front();
      Hand(from, item);
    }
  }

  void Hand(NodeId from, const Item& item) {
    busy_.insert(from);
    if (item.is_down) {
      receiver_->OnLinkDown(from);
    } else if (!receiver_->OnMessage(from, item.type, item.body)) {
      ++net_.refusals_;
      net_.Break(from, node_);
    }
    busy_.erase(from);
    WakeAll(this);
  }

  SimNetwork& net_;
  const NodeId node_;
  Receiver* receiver_ = nullptr;
  std::set<NodeId> busy_;
  std::vector<Thread> threads_;
};

SimNetwork::SimNetwork(LinkSpeed speed) : speed_(speed) {}
SimNetwork::~SimNetwork() = default;

mm::Network& SimNetwork::Join(NodeId node) {
  CHECK(Find(node) == nullptr);
  endpoints_.push_back(std::make_unique<Endpoint>(*this, node));
  return *endpoints_.back();
}

SimNetwork::Endpoint* SimNetwork::Find(NodeId node) {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->is_alive && endpoint->self() == node) return endpoint.get();
  }
  return nullptr;
}

void SimNetwork::Forget(NodeId node) {
  Endpoint* const endpoint = Find(node);
  if (endpoint == nullptr) return;
  std::vector<NodeId> peers;
  for (const auto& [pair, is_used] : is_used_) {
    if (is_used && pair.first == node) peers.push_back(pair.second);
    if (is_used && pair.second == node) peers.push_back(pair.first);
  }
  for (const NodeId peer : peers) Break(node, peer);
  endpoint->is_alive = false;
  for (auto& [pair, direction] : directions_) {
    if (pair.second == node) direction.items.clear();
  }
}

LinkSpeed SimNetwork::SpeedOf(NodeId a, NodeId b) const {
  const auto found = speeds_.find(PairOf(a, b));
  return found == speeds_.end() ? speed_ : found->second;
}
void SimNetwork::SetSpeed(NodeId a, NodeId b, LinkSpeed speed) { speeds_[PairOf(a, b)] = speed; }

void SimNetwork::Send(NodeId from, NodeId to, MessageType type, std::span<const std::byte> body) {
  CHECK(body.size() <= mm::kMessageBodyBytesMax);
  ++messages_;
  bytes_ += sizeof(mm::MessageHeader) + body.size();
  if (Find(to) == nullptr || cuts_[PairOf(from, to)]) return TellDown(from, to);
  is_used_[PairOf(from, to)] = true;
  Push(from, to, {0, false, type, {body.begin(), body.end()}});
}

void SimNetwork::TellDown(NodeId node, NodeId peer) {
  // Once for all that is lost meanwhile.
  const Direction& direction = directions_[{peer, node}];
  if (!direction.items.empty() && direction.items.back().is_down) return;
  if (Find(node) != nullptr) Push(peer, node, {0, true, {}, {}});
}

void SimNetwork::Push(NodeId from, NodeId to, Item item) {
  const LinkSpeed speed = SpeedOf(from, to);
  Direction& direction = directions_[{from, to}];
  const uint64_t spread = std::max<uint64_t>(speed.nanos_max - speed.nanos_min, 1);
  const uint64_t taken =
      speed.nanos_min + Random() % spread + speed.nanos_per_kib * (sizeof(mm::MessageHeader) + item.body.size()) / 1024;
  item.due = direction.last_due = std::max(NowNanos() + taken, direction.last_due);
  direction.items.push_back(std::move(item));
  WakeAll(Find(to));
}

void SimNetwork::Break(NodeId a, NodeId b) {
  // Of an earlier break a side may not have heard yet.
  const auto is_message = [](const Item& item) { return !item.is_down; };
  std::erase_if(directions_[{a, b}].items, is_message);
  std::erase_if(directions_[{b, a}].items, is_message);
  if (!std::exchange(is_used_[PairOf(a, b)], false)) return;
  TellDown(a, b);
  TellDown(b, a);
}

void SimNetwork::Cut(NodeId a, NodeId b) {
  cuts_[PairOf(a, b)] = true;
  Break(a, b);
}
void SimNetwork::Mend(NodeId a, NodeId b) { cuts_[PairOf(a, b)] = false; }
void SimNetwork::CutOff(NodeId node) {
  for (const auto& endpoint : endpoints_) {
    if (endpoint->is_alive && endpoint->self() != node) Cut(node, endpoint->self());
  }
}
void SimNetwork::MendAll() { cuts_.clear(); }

}  // namespace dbx::sim
