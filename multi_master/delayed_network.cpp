#include "multi_master/delayed_network.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "multi_master/message.h"

namespace dbx::mm {

DelayedNetwork::DelayedNetwork(Network& below, const NetworkDelay& delay) : below_(below), delay_(delay) {}
DelayedNetwork::~DelayedNetwork() { Stop(); }

void DelayedNetwork::Start(Network::Receiver& receiver) {
  receiver_ = &receiver;
  thread_ = Thread([this] { Loop(); });
  below_.Start(*this);
}

void DelayedNetwork::Stop() {
  below_.Stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  sent_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DelayedNetwork::Send(NodeId to, MessageType type, std::span<const std::byte> body) {
  const std::lock_guard lock(mutex_);
  Link& link = links_[to];
  const uint64_t now = host::MonotonicNanos();
  const uint64_t bytes = sizeof(MessageHeader) + body.size();
  free_from_ = std::max(free_from_, now);
  if (delay_.bytes_per_second > 0) free_from_ += bytes * 1'000'000'000 / delay_.bytes_per_second;
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  const uint64_t jitter = delay_.jitter_nanos == 0 ? 0 : (random_ >> 33) % delay_.jitter_nanos;
  link.last_due = std::max(link.last_due, free_from_ + delay_.delay_nanos + jitter);
  waiting_.push({link.last_due, number_++, link.breaks, to, type, {body.begin(), body.end()}});
  sent_.notify_all();
}

// Hands over what is due. Under the latch, so that a break is in front of a message or behind it.
void DelayedNetwork::Loop() {
  host::EndSleepsOnTime();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      sent_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      continue;
    }
    const uint64_t due = waiting_.top().due, now = host::MonotonicNanos();
    if (due > now) {
      sent_.wait_for(lock, std::chrono::nanoseconds(due - now), [&] { return stopping_ || waiting_.top().due < due; });
      continue;
    }
    const Waiting message = waiting_.top();
    waiting_.pop();
    if (message.breaks == links_[message.to].breaks) below_.Send(message.to, message.type, message.body);
  }
}

bool DelayedNetwork::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  return receiver_->OnMessage(from, type, body);
}

void DelayedNetwork::OnLinkDown(NodeId peer) {
  {
    const std::lock_guard lock(mutex_);
    ++links_[peer].breaks;
  }
  receiver_->OnLinkDown(peer);
}

}  // namespace dbx::mm
