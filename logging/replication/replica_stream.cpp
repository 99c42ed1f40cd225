#include "logging/replication/replica_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/error.h"

namespace dbx {

ReplicaStream::ReplicaStream(std::unique_ptr<ReplicaChannel> channel, std::string place, bool synchronous,
                             const LinkEmulation& link, uint32_t log_directories,
                             std::function<void(const std::string&)> on_loss)
    : channel_(std::move(channel)),
      place_(std::move(place)),
      synchronous_(synchronous),
      link_(link),
      on_loss_(std::move(on_loss)) {
  Put(FrameKind::kHello, 0, /*confirm=*/true, [&](Frame& frame) {
    frame.Add(&kReplicationVersion, sizeof kReplicationVersion);
    frame.Add(&log_directories, sizeof log_directories);
  });
  receiver_ = Thread([this] { ReceiveAll(); });
  try {
    sender_ = Thread([this] { SendAll(); });
  } catch (...) {
    channel_->Close();  // which the other thread is to see, before it is joined
    throw;
  }
}

ReplicaStream::~ReplicaStream() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  channel_->Close();
}

uint64_t ReplicaStream::Put(FrameKind kind, uint32_t file, bool confirm, const std::function<void(Frame&)>& fill) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queued_bytes_ < kQueuedBytesMax || lost_; });
  ThrowIfLostLocked();
  if (lost_) return kNotSent;
  const uint64_t number = next_number_++;
  Frame frame(kind, file);
  fill(frame);
  frame.SetNumber(number);
  if (confirm) frame.Confirm();
  queued_bytes_ += frame.body_bytes();
  queue_.push_back({std::move(frame), host::MonotonicNanos()});
  lock.unlock();
  changed_.notify_all();
  return number;
}

void ReplicaStream::Tell(FrameKind kind, uint32_t file, const std::function<void(Frame&)>& fill) noexcept {
  try {
    Put(kind, file, /*confirm=*/false, fill);
  } catch (const std::exception& e) {
    Fail(e.what());
  }
}

void ReplicaStream::AwaitApplied(uint64_t number) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return applied_.load(std::memory_order_relaxed) > number || lost_; };
  while (!is_over()) {
    const uint64_t before = applied_.load(std::memory_order_relaxed);
    if (changed_.wait_for(lock, std::chrono::seconds(kSilentSeconds), is_over)) break;
    if (applied_.load(std::memory_order_relaxed) != before) continue;
    lock.unlock();
    Fail("it has not answered for " + std::to_string(kSilentSeconds) + " s");
    lock.lock();
  }
  if (applied_.load(std::memory_order_relaxed) <= number) ThrowIfLostLocked();
}

void ReplicaStream::End() {
  AwaitApplied(Put(FrameKind::kEnd, 0, /*confirm=*/true, [this](Frame&) { ended_ = true; }));
}

ReplicaStream::Counts ReplicaStream::counts() const {
  const std::lock_guard lock(mutex_);
  return {sent_frames_, sent_bytes_};
}

std::optional<std::string> ReplicaStream::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void ReplicaStream::SendAll() {
  host::EndSleepsOnTime();
  std::vector<std::byte> bytes;
  try {
    while (true) {
      bytes.clear();
      uint64_t put_nanos = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !queue_.empty() || stop_ || lost_; });
        if (stop_ || lost_) return;
        while (!queue_.empty() && bytes.size() < kSendBytesMax && (bytes.empty() || !has_emulated_link())) {
          const auto sealed = queue_.front().frame.Sealed();
          bytes.insert(bytes.end(), sealed.begin(), sealed.end());
          queued_bytes_ -= queue_.front().frame.body_bytes();
          put_nanos = queue_.front().nanos;
          queue_.pop_front();
          ++sent_frames_;
        }
        sent_bytes_ += bytes.size();
      }
      changed_.notify_all();
      AwaitLink(put_nanos, bytes.size());
      channel_->Send(bytes);
    }
  } catch (const std::exception& e) {
    Fail(e.what());
  }
}

void ReplicaStream::AwaitLink(uint64_t put_nanos, size_t bytes) {
  if (!has_emulated_link()) return;
  link_free_nanos_ = std::max(link_free_nanos_, put_nanos);
  if (link_.bytes_per_second != 0) link_free_nanos_ += bytes * 1'000'000'000 / link_.bytes_per_second;
  const uint64_t due = link_free_nanos_ + link_.round_trip_nanos;
  constexpr uint64_t kLateNanos = 50'000;  // by which a sleep may end too late
  for (uint64_t now = host::MonotonicNanos(); now < due; now = host::MonotonicNanos()) {
    due - now > kLateNanos ? host::SleepFor(std::chrono::nanoseconds(due - now - kLateNanos)) : host::Yield();
  }
}

void ReplicaStream::ReceiveAll() {
  try {
    ReceivedFrame answer;
    while (ReceiveFrame(*channel_, answer)) {
      if (answer.header.kind == FrameKind::kFailed) return Fail(FrameReader(answer.body).Rest());
      if (answer.header.kind != FrameKind::kApplied) return Fail("it has sent what is no answer");
      {
        const std::lock_guard lock(mutex_);
        applied_.store(answer.header.number + 1, std::memory_order_release);
      }
      changed_.notify_all();
    }
    Fail("it has closed the connection");
  } catch (const std::exception& e) {
    Fail(e.what());
  }
}

void ReplicaStream::Fail(const std::string& why) {
  const std::string lost = place_ + " is lost: " + why;
  {
    const std::lock_guard lock(mutex_);
    // Behind the last frame the replica closes the connection, and this side when it is done.
    if (lost_ || stop_ || (ended_ && applied_.load(std::memory_order_relaxed) == next_number_)) return;
    lost_ = lost;
    queue_.clear();
    queued_bytes_ = 0;
  }
  changed_.notify_all();
  channel_->Close();
  if (on_loss_) on_loss_(lost);
}

void ReplicaStream::ThrowIfLost() const {
  const std::lock_guard lock(mutex_);
  ThrowIfLostLocked();
}

void ReplicaStream::ThrowIfLostLocked() const {
  if (lost_ && synchronous_) throw Error(ExitStatus::kIo, *lost_);
}

}  // namespace dbx
