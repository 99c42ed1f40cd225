// A network within the process: a queue and a thread for each node that has started.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/host.h"
#include "multi_master/network.h"

namespace dbx::mm {

class MemoryNetwork {
 public:
  // Owned by this.
  Network& Join(NodeId node) {
    const std::lock_guard latch(latch_);
    return *nodes_.emplace(node, std::make_unique<Node>(*this, node)).first->second;
  }
  // No receiver is called any more.
  void Stop() {
    for (auto& [name, node] : nodes_) node->Stop();
  }
  uint64_t messages() const { return messages_.load(); }

 private:
  struct Message {
    NodeId from;
    MessageType type;
    std::vector<std::byte> body;
  };

  class Node final : public Network {
   public:
    Node(MemoryNetwork& owner, NodeId self) : owner_(owner), self_(self) {}
    ~Node() override { Stop(); }

    NodeId self() const override { return self_; }
    void Start(Receiver& receiver) override {
      thread_ = Thread([this, &receiver] { Run(receiver); });
    }
    void Send(NodeId to, MessageType type, std::span<const std::byte> body) override {
      owner_.Find(to).Push({self_, type, {body.begin(), body.end()}});
    }
    void Stop() override {
      {
        const std::lock_guard latch(latch_);
        stopped_ = true;
        changed_.notify_all();
      }
      if (thread_.joinable()) thread_.join();
    }

   private:
    void Push(Message message) {
      owner_.messages_.fetch_add(1);
      const std::lock_guard latch(latch_);
      messages_.push_back(std::move(message));
      changed_.notify_all();
    }
    void Run(Receiver& receiver) {
      std::unique_lock latch(latch_);
      for (;;) {
        changed_.wait(latch, [this] { return stopped_ || !messages_.empty(); });
        if (stopped_) return;
        const Message message = std::move(messages_.front());
        messages_.pop_front();
        latch.unlock();
        CHECK(receiver.OnMessage(message.from, message.type, message.body));
        latch.lock();
      }
    }

    MemoryNetwork& owner_;
    const NodeId self_;
    Mutex latch_;
    ConditionVariable changed_;
    std::deque<Message> messages_;
    bool stopped_ = false;
    Thread thread_;
  };

  Node& Find(NodeId node) {
    const std::lock_guard latch(latch_);
    return *nodes_.at(node);
  }

  Mutex latch_;
  std::map<NodeId, std::unique_ptr<Node>> nodes_;
  Atomic<uint64_t> messages_{0};
};

}  // namespace dbx::mm
