// The channel between the emulated devices of a run and the host, as one SCSI channel connects all disks of a server:
// arithmetic on a time line that limits what the devices transfer together.
//
// A device transfers at its own rate, into or out of a buffer of its own; the channel carries what is in the buffers.
// A transfer takes as much of the bandwidth as it can use of what the transfers requested before it have left. So
//   - one alone ends after the longer of its device's time and the channel's;
//   - the channel delays no transfer of devices whose rates add up to its bandwidth or less;
//   - it is used in full while devices transfer whose rates add up to more.
//
// Times are nanoseconds of the caller's clock; nothing here waits. Rejected: a time line of one transfer at a time, as
// EmulatedDevice has. A transfer's time is computed when it is requested, which with a deep queue is long before it
// begins; one that waits in the queue of its own device would hold up all other devices until it is done.
//
// Threads: any; a mutex, taken once per transfer, within that of its device.
#pragma once

#include <cstdint>
#include <map>

#include "base/host.h"

namespace dbx {

// Bytes x nanoseconds per second: over a rate in bytes per second, nanoseconds.
using ByteNanos = unsigned __int128;

class EmulatedChannel {
 public:
  // A transfer's end. What is left does not fill a nanosecond, and goes with the device's next transfer.
  struct Carried {
    uint64_t end_nanos;
    ByteNanos left;
  };
  // How long the past stays known. A request may come that much later than it was made (a reader that was read ahead
  // for, a thread that was not scheduled) and find the channel as busy as it was; before that it is idle.
  static constexpr uint64_t kKnownNanos = 1'000'000'000;

  explicit EmulatedChannel(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // Requested at `now`: `amount`, which the device begins to transfer at `begin` and transfers at `device_rate` bytes
  // per second, in whole nanoseconds; 0: at once.
  Carried Carry(uint64_t now, uint64_t begin, ByteNanos amount, uint64_t device_rate);

 private:
  using Steps = std::map<uint64_t, uint64_t>;

  // Of the bandwidth at a time: how much is free, and until when it stays so.
  struct Rest {
    uint64_t bytes_per_second;
    uint64_t end_nanos;
  };

  Rest RestAt(uint64_t nanos) const;
  // REQUIRES: the rest stays the same in between, and is at least `rate`.
  void Take(uint64_t from, uint64_t to, uint64_t rate);
  Steps::iterator SplitAt(uint64_t nanos);
  void JoinAt(Steps::iterator step);
  void ForgetUntil(uint64_t nanos);

  const uint64_t bytes_per_second_;
  Mutex mutex_;
  // Bytes per second that transfers have taken, from a time on until the next one; the last is 0, as is the time before
  // the first. Neighbours differ.
  Steps taken_;
};

}  // namespace dbx
