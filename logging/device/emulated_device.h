// A device of a DeviceProfile: arithmetic on a time line that gives the time at which a write or read would be done.
//
// Shared by all files of one directory. One request is transferred at a time, at the profile's rate: the time line is a
// token bucket that never saves up. The flushes behind the transfers overlap, up to the queue depth. Errors do not add
// up, as each request begins where the one before ended, not when a thread woke up. A channel that the device shares
// with others may make a transfer longer.
//
// Times are nanoseconds of the caller's clock; nothing here waits. Rejected: a sleep within each request, which makes
// the device slower by the lateness of each sleep (50 us on most hosts, as long as a whole flush).
//
// Threads: any; a mutex, taken once per request, never per transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/host.h"
#include "logging/device/device_profile.h"
#include "logging/device/emulated_channel.h"

namespace dbx {

// The clock of emulated files. Here the host's; tests have one that jumps.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual uint64_t NowNanos() { return host::MonotonicNanos(); }
  // Sleeps, which yields the processor as waiting for a device does, and may return late. The last microseconds, less
  // than a switch of threads takes, it spins: no sleep is that short.
  virtual void WaitUntil(uint64_t nanos);

  // Two switches of threads: shorter waits spin.
  static constexpr uint64_t kSpinNanosMax = 10'000;
};

class EmulatedDevice {
 public:
  // Where a file's last read ended. Guarded by the device.
  struct Reader {
    uint64_t end = UINT64_MAX;
  };
  // The kernel reads this far ahead of a sequential reader (posix_fadvise doubles its 128 KiB): so much of a read may
  // have been transferred while the reader was busy with the one before.
  static constexpr uint64_t kReadAheadBytes = 256 << 10;

  // `channel`: the profile's, shared by all devices of the run. Null: there is none.
  explicit EmulatedDevice(const DeviceProfile& profile, std::shared_ptr<EmulatedChannel> channel = nullptr)
      : profile_(profile),
        channel_(std::move(channel)),
        in_flight_(profile.queue_depth == 0 ? 1 : profile.queue_depth) {}

  const DeviceProfile& profile() const { return profile_; }

  // Requested at `now`: the time at which they are done. `file` tells the device's files apart. Without `durable`
  // nothing is flushed.
  uint64_t Write(uint32_t file, uint64_t offset, uint64_t bytes, bool durable, uint64_t now);
  uint64_t Read(uint32_t file, Reader& reader, uint64_t offset, uint64_t bytes, uint64_t now);
  // A flush without a transfer.
  uint64_t Flush(uint64_t now);

 private:
  struct Position {
    uint64_t file = UINT64_MAX;
    uint64_t offset = 0;
    bool operator==(const Position&) const = default;
  };

  uint64_t Transfer(Position from, uint64_t bytes, uint64_t flush_nanos, uint64_t now);
  // When a transfer that begins at `begin` ends; exact over many: the fraction of a nanosecond goes with the next one.
  uint64_t TransferEnd(uint64_t bytes, uint64_t begin, uint64_t now);

  const DeviceProfile profile_;
  const std::shared_ptr<EmulatedChannel> channel_;
  Mutex mutex_;
  std::vector<uint64_t> in_flight_;  // when the requests, at most so many, are done
  uint64_t transferred_nanos_ = 0;   // when the last transfer ends
  ByteNanos byte_nanos_left_ = 0;    // of a nanosecond of the device, and of one of the channel
  Position head_;                    // behind the last transfer; nowhere at first
};

}  // namespace dbx
