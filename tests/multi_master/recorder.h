// A receiver that keeps what it hears, for tests of networks with threads of their own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "multi_master/network.h"

namespace dbx::mm {

class Recorder final : public Network::Receiver {
 public:
  static constexpr MessageType kText{100};
  static constexpr MessageType kMalformed{199};  // is refused

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    if (on_message) on_message(from, type, body);
    if (type == kMalformed) return false;
    Add(NameOf(from) + ": " + std::string(reinterpret_cast<const char*>(body.data()), body.size()));
    return true;
  }
  void OnLinkDown(NodeId peer) override { Add(NameOf(peer) + " down"); }

  // False if that does not come about.
  bool Await(const std::function<bool(const std::vector<std::string>&)>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return holds(heard_); });
  }
  bool AwaitCount(size_t count) {
    return Await([&](const auto& heard) { return heard.size() >= count; });
  }
  bool AwaitLast(const std::string& line) {
    return Await([&](const auto& heard) { return !heard.empty() && heard.back() == line; });
  }
  std::vector<std::string> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  void Add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    heard_.push_back(line);
    changed_.notify_all();
  }

  std::function<void(NodeId, MessageType, std::span<const std::byte>)> on_message;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
};

inline void SendText(Network& network, NodeId to, const std::string& text) {
  network.Send(to, Recorder::kText, std::as_bytes(std::span(text)));
}

}  // namespace dbx::mm
