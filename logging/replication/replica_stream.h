// The run's side of a replica: frames (frame.h) in their order, sent by a thread of their own.
//
// A frame is made under the stream's lock, so that of two that hold the same bytes the later one holds the newer. A run
// that is faster than the connection waits for it once kQueuedBytesMax are to be sent.
//
// After a failure, of the connection or of the replica, every call throws the same Error where replication is
// synchronous; where it is asynchronous the run goes on without a replica, and `lost` says why.
//
// A replica that has not answered for kSilentSeconds, while an answer is waited for, is lost.
//
// Threads: any, but for End.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/host.h"
#include "logging/replication/channel.h"
#include "logging/replication/frame.h"

namespace dbx {

// Of the connection; 0: as it is.
struct LinkEmulation {
  uint64_t round_trip_nanos = 0;  // of a frame and its answer: both ways together
  uint64_t bytes_per_second = 0;
};

class ReplicaStream {
 public:
  struct Counts {
    uint64_t frames = 0;
    uint64_t bytes = 0;
  };

  static constexpr uint64_t kHello = 0;  // the number of the first frame, which is to be confirmed

  // `place` is for errors: "the replica at HOST:PORT". The replica has said nothing yet. `log_directories`: as many as
  // the run has. `on_loss` is called once, by any thread, with why a replica is lost.
  ReplicaStream(std::unique_ptr<ReplicaChannel> channel, std::string place, bool synchronous, const LinkEmulation& link,
                uint32_t log_directories, std::function<void(const std::string&)> on_loss = nullptr);
  // Breaks the connection, unless it has ended.
  ~ReplicaStream();
  ReplicaStream(const ReplicaStream&) = delete;
  ReplicaStream& operator=(const ReplicaStream&) = delete;

  bool is_synchronous() const { return synchronous_; }
  static constexpr uint64_t kNotSent = UINT64_MAX;
  // A frame that `fill` completes; `confirm`: an answer will be waited for. Returns its number, or kNotSent where the
  // run goes on without a replica. Throws Error (kIo).
  uint64_t Put(FrameKind kind, uint32_t file, bool confirm, const std::function<void(Frame&)>& fill);
  // The same of a change that no acknowledgement waits for: a replica that is lost is told by a later call.
  void Tell(FrameKind kind, uint32_t file, const std::function<void(Frame&)>& fill) noexcept;
  // Returns once the replica has applied the frame, which was to be confirmed, and all before it, or, where replication
  // is asynchronous, once it is lost. Throws Error (kIo).
  void AwaitApplied(uint64_t number);
  // Of a synchronous replica that is lost. Throws Error (kIo).
  void ThrowIfLost() const;
  // All frames below this number are applied.
  uint64_t applied() const { return applied_.load(std::memory_order_acquire); }
  // The run has ended, and no thread uses a file of it: returns once the replica has everything. Throws Error (kIo).
  void End();

  Counts counts() const;
  std::optional<std::string> lost() const;

 private:
  static constexpr size_t kQueuedBytesMax = 64 << 20;
  static constexpr size_t kSendBytesMax = 1 << 20;  // at once, of several frames
  static constexpr int kSilentSeconds = 120;

  struct Queued {
    Frame frame;
    uint64_t nanos;  // when it was put
  };

  void SendAll();
  void ReceiveAll();
  bool has_emulated_link() const { return link_.round_trip_nanos != 0 || link_.bytes_per_second != 0; }
  // Waits for the emulated link, which carries one frame after the other.
  void AwaitLink(uint64_t put_nanos, size_t bytes);
  void Fail(const std::string& why);
  void ThrowIfLostLocked() const;  // with mutex_

  const std::unique_ptr<ReplicaChannel> channel_;
  const std::string place_;
  const bool synchronous_;
  const LinkEmulation link_;
  const std::function<void(const std::string&)> on_loss_;
  uint64_t link_free_nanos_ = 0;  // of the thread that sends
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Queued> queue_;  // guarded by mutex_, as are all to `stop_`
  size_t queued_bytes_ = 0;
  uint64_t next_number_ = 0;
  uint64_t sent_frames_ = 0, sent_bytes_ = 0;
  std::optional<std::string> lost_;
  bool ended_ = false;  // the last frame has been put
  bool stop_ = false;
  Atomic<uint64_t> applied_{0};
  Thread receiver_, sender_;  // last: they use the others
};

}  // namespace dbx
