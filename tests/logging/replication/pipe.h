// A connection between two threads of one process that a test can break (models ReplicaChannel).
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/host.h"
#include "logging/replication/channel.h"

namespace dbx::testing {

// Both directions.
class Pipe {
 public:
  class End;

  // The two ends of it, which outlive it if need be.
  static std::pair<std::unique_ptr<ReplicaChannel>, std::unique_ptr<ReplicaChannel>> Make(
      const std::shared_ptr<Pipe>& pipe);

  // From now on both ends fail. What was sent and not received is lost.
  void Cut() {
    {
      const std::lock_guard lock(mutex_);
      for (std::deque<std::byte>& bytes : bytes_) bytes.clear();
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  // What was sent before is received.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  void Send(size_t direction, std::span<const std::byte> bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) throw Error(ExitStatus::kIo, "the pipe is closed");
      bytes_[direction].insert(bytes_[direction].end(), bytes.begin(), bytes.end());
    }
    changed_.notify_all();
  }
  bool Receive(size_t direction, std::span<std::byte> to) {
    std::unique_lock lock(mutex_);
    std::deque<std::byte>& bytes = bytes_[direction];
    changed_.wait(lock, [&] { return bytes.size() >= to.size() || closed_; });
    if (bytes.size() < to.size()) {
      if (bytes.empty()) return false;
      throw Error(ExitStatus::kIo, "the pipe was closed within a frame");
    }
    std::copy_n(bytes.begin(), to.size(), to.begin());
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(to.size()));
    return true;
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::byte> bytes_[2];  // by direction; guarded by mutex_
  bool closed_ = false;             // guarded by mutex_
};

class Pipe::End final : public ReplicaChannel {
 public:
  End(std::shared_ptr<Pipe> pipe, size_t sends) : pipe_(std::move(pipe)), sends_(sends) {}
  ~End() override { pipe_->Close(); }

  void Send(std::span<const std::byte> bytes) override { pipe_->Send(sends_, bytes); }
  bool Receive(std::span<std::byte> to) override { return pipe_->Receive(1 - sends_, to); }
  void Close() override { pipe_->Close(); }

 private:
  const std::shared_ptr<Pipe> pipe_;
  const size_t sends_;  // the direction in which this end sends
};

inline std::pair<std::unique_ptr<ReplicaChannel>, std::unique_ptr<ReplicaChannel>> Pipe::Make(
    const std::shared_ptr<Pipe>& pipe) {
  return {std::make_unique<End>(pipe, 0), std::make_unique<End>(pipe, 1)};
}

}  // namespace dbx::testing
