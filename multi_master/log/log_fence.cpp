#include "multi_master/log/log_fence.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace dbx::mm {
namespace {

constexpr std::chrono::milliseconds kAskAgain{20};

}  // namespace

void LogFence::Send(uint8_t store, MessageType type, Lsn at, uint8_t peer) {
  LogMessage message;
  message.log = log_;
  message.epoch = epoch_;
  message.set = set_;
  message.at = at;
  message.peer = peer;
  network_.Send({Role::kLogStore, store}, type, EncodeLog(message));
}

bool LogFence::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  const std::optional<LogMessage> message = DecodeLog(body);
  if (!message || from.role != Role::kLogStore || (type != kLogState && type != kLogStale)) return false;
  const std::lock_guard lock(mutex_);
  if (message->log != log_ || !set_.Has(from.index)) return true;
  if (message->epoch > epoch_ || message->set.number > set_.number) {
    is_stale_ = true;
  } else if (type == kLogState && message->epoch == epoch_ && message->set.number == set_.number) {
    states_[from.index] = {message->at, message->part_end};
  }
  came_.notify_all();
  return true;
}

bool LogFence::IsStale() {
  const std::lock_guard lock(mutex_);
  return is_stale_;
}

std::optional<Lsn> LogFence::Run(std::chrono::nanoseconds time) {
  const uint64_t deadline = host::MonotonicNanos() + static_cast<uint64_t>(time.count());
  std::unique_lock lock(mutex_);
  states_.clear();  // of an earlier try: a store may have ended since
  std::optional<Lsn> end;
  std::vector<uint8_t> chosen;
  while (host::MonotonicNanos() < deadline && !is_stale_) {
    size_t sealed = 0;
    for (const uint8_t store : chosen) {
      const State& state = states_[store];
      if (state.end >= *end && state.sealed == *end) {
        ++sealed;
      } else if (state.end < *end) {
        const uint8_t other = chosen[store == chosen[0] ? 1 : 0];
        Send(store, kLogCopy, {}, other);
      } else {
        Send(store, kLogSeal, *end);
      }
    }
    if (chosen.size() == 2 && sealed == 2) return end;
    if (chosen.empty() && states_.size() >= 2) {
      for (const auto& [store, state] : states_) {
        if (chosen.size() < 2) chosen.push_back(store);
      }
      end = std::max(states_[chosen[0]].end, states_[chosen[1]].end);
      continue;
    }
    if (chosen.empty()) {
      for (const uint8_t store : set_.stores) Send(store, kLogFence, {});
    }
    came_.wait_for(lock, kAskAgain, [&] { return is_stale_ || (chosen.empty() && states_.size() >= 2); });
  }
  return std::nullopt;
}

}  // namespace dbx::mm
