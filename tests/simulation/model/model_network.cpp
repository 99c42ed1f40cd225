#include "tests/simulation/model/model_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tests/simulation/model/virtual_cores.h"

namespace dbx::sim {

using mm::MessageType;
using mm::NodeId;
using mm::Role;

class ModelNetwork::Endpoint final : public mm::Network {
 public:
  Endpoint(ModelNetwork& net, NodeId self) : net_(net), self_(self) {}

  NodeId self() const override { return self_; }
  void Start(Receiver& receiver) override {
    receiver_ = &receiver;
    thread_ = Thread([this] { Run(); });
  }
  void Send(NodeId to, MessageType type, std::span<const std::byte> body) override {
    CHECK(to != self_);
    CHECK(body.size() <= mm::kMessageBodyBytesMax);
    if (!is_open_) return;
    outgoing_.push_back({to, type, false, {body.begin(), body.end()}, 0});
    if (is_waiting_) WakeOne(this);
  }
  void Stop() override {
    if (!std::exchange(is_open_, false)) return;
    WakeAll(this);
    if (thread_.joinable()) thread_.join();
    for (const NodeId peer : peers_) {
      Endpoint* const other = net_.Find(peer);
      if (other != nullptr) other->Arrive({self_, {}, true, {}, NowNanos() + net_.shape_.latency_nanos});
    }
  }

 private:
  friend class ModelNetwork;

  void Run() {
    while (is_open_ || !outgoing_.empty()) {
      const bool has_sent = WriteAll();
      if (ReadBatch() || has_sent) continue;
      const uint64_t now = NowNanos();
      // Both may have got something while the clock was looked at.
      if (!outgoing_.empty() || !is_open_) continue;
      if (!incoming_.empty() && incoming_.front().due <= now) continue;
      is_waiting_ = true;
      BlockOn(this, incoming_.empty() ? kForever : incoming_.front().due - now);
      is_waiting_ = false;
    }
  }

  // One write for each peer.
  bool WriteAll() {
    if (outgoing_.empty()) return false;
    std::vector<Message> batch = std::exchange(outgoing_, {});
    std::stable_sort(batch.begin(), batch.end(), [](const Message& a, const Message& b) { return a.peer < b.peer; });
    for (size_t first = 0, last = 0; first < batch.size(); first = last) {
      uint64_t bytes = 0;
      for (; last < batch.size() && batch[last].peer == batch[first].peer; ++last) bytes += batch[last].wire_bytes();
      ChargeBatch(last - first, bytes);
      for (size_t i = first; i < last; ++i) Transmit(std::move(batch[i]));
    }
    return true;
  }

  void Transmit(Message message) {
    net_.Count(message, self_);
    const uint64_t nanos = net_.NanosOfLine(message.wire_bytes());
    line_out_free_at_ = std::max(line_out_free_at_, NowNanos()) + nanos;
    const NodeId to = std::exchange(message.peer, self_);
    Endpoint* const other = net_.Find(to);
    if (other == nullptr) {
      Arrive({to, {}, true, {}, line_out_free_at_ + net_.shape_.latency_nanos});
      return;
    }
    peers_.insert(to);
    other->peers_.insert(self_);
    other->line_in_free_at_ = std::max(other->line_in_free_at_, line_out_free_at_ + net_.shape_.latency_nanos) + nanos;
    message.due = other->line_in_free_at_;
    other->Arrive(std::move(message));
  }

  void Arrive(Message message) {
    const auto place = std::upper_bound(incoming_.begin(), incoming_.end(), message.due,
                                        [](uint64_t due, const Message& other) { return due < other.due; });
    const bool is_first = place == incoming_.begin();
    incoming_.insert(place, std::move(message));
    if (is_first && is_waiting_) WakeOne(this);
  }

  // What has come from the peer that was first, as one read would find it.
  bool ReadBatch() {
    const uint64_t now = NowNanos();
    if (!is_open_ || incoming_.empty() || incoming_.front().due > now) return false;
    const NodeId peer = incoming_.front().peer;
    std::vector<Message> batch;
    std::deque<Message> others;
    uint64_t bytes = 0;
    while (!incoming_.empty() && incoming_.front().due <= now) {
      const bool is_of_peer = incoming_.front().peer == peer && bytes < kReadBytes;
      if (is_of_peer) bytes += incoming_.front().wire_bytes();
      if (is_of_peer) {
        batch.push_back(std::move(incoming_.front()));
      } else {
        others.push_back(std::move(incoming_.front()));
      }
      incoming_.pop_front();
    }
    incoming_.insert(incoming_.begin(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
    ChargeBatch(batch.size(), bytes);
    for (const Message& message : batch) {
      if (message.is_down) {
        receiver_->OnLinkDown(peer);
      } else {
        CHECK(receiver_->OnMessage(peer, message.type, message.body));
      }
    }
    return true;
  }

  void ChargeBatch(uint64_t messages, uint64_t bytes) const {
    const NetworkShape& shape = net_.shape_;
    Charge(shape.batch_nanos + messages * shape.message_nanos + bytes * shape.kib_nanos / 1024);
  }

  static constexpr uint64_t kReadBytes = 64 << 10;

  ModelNetwork& net_;
  const NodeId self_;
  Receiver* receiver_ = nullptr;
  bool is_open_ = true;
  bool is_waiting_ = false;
  std::vector<Message> outgoing_;
  std::deque<Message> incoming_;  // by their times
  std::set<NodeId> peers_;        // that it has a link to
  uint64_t line_out_free_at_ = 0, line_in_free_at_ = 0;
  Thread thread_;
};

ModelNetwork::ModelNetwork(const NetworkShape& shape) : shape_(shape) {}
ModelNetwork::~ModelNetwork() = default;

mm::Network& ModelNetwork::Join(NodeId node) {
  CHECK(!endpoints_.contains(node));
  return *(endpoints_[node] = std::make_unique<Endpoint>(*this, node));
}

ModelNetwork::Endpoint* ModelNetwork::Find(NodeId node) const {
  const auto found = endpoints_.find(node);
  return found == endpoints_.end() || !found->second->is_open_ ? nullptr : found->second.get();
}

void ModelNetwork::Count(const Message& message, NodeId from) {
  ++messages_;
  bytes_ += message.wire_bytes();
  bytes_of_[static_cast<size_t>(from.role)] += message.wire_bytes();
  // The side that is no master, if there is one.
  ++by_role_[static_cast<size_t>(from.role == Role::kMaster ? message.peer.role : from.role)];
}

}  // namespace dbx::sim
