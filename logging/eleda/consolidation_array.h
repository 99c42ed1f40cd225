// Aether's consolidation array (Johnson et al., PVLDB 3(1), 2010, and VLDB Journal 21(2), 2012), a competitor of ELEDA:
// threads that find the lock of the log taken join a group instead of queueing for it. The first member, the leader,
// takes the lock and reserves for all; then all copy in parallel.
//
// A group, in the order of its states:
//   open, empty    joined == 0
//   open           joined == bytes of its members so far; the first one is the leader and waits for the lock
//   closed         joined == kClosed; the leader has the lock and reserves
//   filling        base is known; the last member to finish marks the group's place as filled, and opens it again
//
// Aether releases groups in the order of their LSNs, each waiting for its predecessor or delegating its release to it.
// Here a group is one filler to the stream, with a bound of its own, so the stream's writer does that without a wait.
//
// Threads: any worker; a worker is in one group at a time.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "logging/log_stream.h"

namespace dbx {

class ConsolidationArray {
 public:
  // The stream gets a slot for each group.
  ConsolidationArray(LogStream& stream, uint32_t workers);

  // Throws the device's Error once the log has failed.
  LogPlace Reserve(uint32_t worker, uint32_t bytes);
  void Finish(uint32_t worker, const LogPlace& place);

 private:
  static constexpr uint32_t kGroups = 4;
  // Workers that try the same group first: enough to meet there, not so many that its word becomes the bottleneck.
  static constexpr uint32_t kWorkersPerGroup = 8;
  static constexpr uint32_t kAlone = UINT32_MAX;
  static constexpr uint64_t kClosed = UINT64_MAX;
  // Values of Group::base.
  static constexpr uint64_t kUnknown = UINT64_MAX;
  static constexpr uint64_t kFailed = UINT64_MAX - 1;

  struct alignas(kNoSharingBytes) Group {
    Atomic<uint64_t> joined{0};
    Atomic<uint64_t> base{kUnknown};  // where its place starts
    Atomic<uint64_t> unfilled{0};     // bytes
  };
  struct alignas(kNoSharingBytes) Member {
    uint32_t group = kAlone;
  };

  LogPlace ReserveAlone(uint32_t worker, uint32_t bytes, std::unique_lock<Mutex> lock);
  LogPlace ReserveJoined(uint32_t worker, uint32_t group, uint64_t offset, uint32_t bytes);
  void Lead(uint32_t group);

  LogStream& stream_;
  const uint32_t first_slot_;
  // A group's place must fit into the ring.
  const uint64_t group_bytes_max_;
  std::vector<Group> groups_;
  std::vector<Member> members_;  // one per worker
  Mutex mutex_;
};

}  // namespace dbx
