// Leases: how the lock process tells a master that lives from one that may be dead, and how a master learns that it may
// be taken for dead (multi_master.md, section 6).
//
//   master        |-- sent --------------------- may use its locks -----------------| use_nanos after the sending
//   lock process        |-- arrived ------------------------ takes it for alive ------------------| dead_nanos
//
// Both count from the same request, and neither clock is compared with the other: as a request arrives after it was
// sent, and use_nanos is less than dead_nanos, a master stops before its pages are given to others, however long the
// answer takes. The difference is for clocks that run at different speeds, and for what a thread that has looked at its
// lease still does.
//
// Nothing of this keeps a dead master's changes out: that is the fence of its log (log/log_fence.h). The lease is for
// what leaves no record: a transaction that has only read is acknowledged if the lease was valid after its last read.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/host.h"
#include "multi_master/lock/lock_messages.h"
#include "multi_master/names.h"

namespace dbx::mm {

struct LeaseTerms {
  uint64_t request_nanos = 250'000'000;
  uint64_t use_nanos = 1'000'000'000;   // from the sending of a request that was granted
  uint64_t dead_nanos = 2'000'000'000;  // from the arrival of the last request
  // From the lock process' start to the first request. Its masters prepare their workloads before it.
  uint64_t start_nanos = 60'000'000'000;
};

// A master's own. It has no lock before the first grant: that answers a request which was sent before any for a page.
//
// Threads: any.
class Lease {
 public:
  explicit Lease(const LeaseTerms& terms) : terms_(terms) {}

  // Nothing: none is due.
  std::optional<LeaseRequest> NextRequest(uint64_t now_nanos);
  // The last request.
  LeaseRequest Leave(uint64_t now_nanos);
  void OnGrant(const LeaseGrant& grant);

  bool IsOver(uint64_t now_nanos) const { return now_nanos >= until_nanos_.load(std::memory_order_acquire); }
  bool HasLeft() const { return has_left_.load(std::memory_order_acquire); }

 private:
  LeaseRequest Request(uint64_t now_nanos, bool leaves);

  const LeaseTerms terms_;
  // Release and acquire: a thread that finds the lease valid has done before what it did under its locks.
  Atomic<uint64_t> until_nanos_{UINT64_MAX};
  Atomic<bool> has_left_{false};

  Mutex latch_;                                         // of the rest
  std::deque<std::pair<LeaseNumber, uint64_t>> asked_;  // not granted yet, and when each was sent
  LeaseNumber last_;
  uint64_t last_sent_nanos_ = 0;
  LeaseNumber leaving_;  // 0: none
};

// The lock process' view of all masters.
//
//   kSilent -> kLiving     the first request;  kLiving -> kLiving: a further one
//   kLiving -> kCut        its link broke: a lock message may be lost, and the master ends; no request counts
//   kSilent, kLiving -> kLeft   it has ended in order
//   any but kLeft -> kDead      the lease is over, no request came in time after the start, or the process is gone
//
// Not thread-safe: its owner's latch protects it.
class Leases {
 public:
  Leases(uint32_t masters, const LeaseTerms& terms, uint64_t start_nanos)
      : terms_(terms), members_(masters, {State::kSilent, start_nanos}) {}

  // False: the request is not granted.
  bool OnRequest(MasterId master, const LeaseRequest& request, uint64_t now_nanos);
  void OnLinkDown(MasterId master);
  // False: it is known as dead, or has left.
  bool MarkDead(MasterId master);

  // The masters whose leases are over, or that have never asked, and that are not marked as dead.
  std::vector<MasterId> Expired(uint64_t now_nanos) const;
  // The first master that may be given work. Nothing: there is none.
  std::optional<MasterId> FirstLiving() const;
  bool IsDead(MasterId master) const { return members_[master.value()].state == State::kDead; }
  bool AllAreDead() const;

 private:
  enum class State : uint8_t { kSilent, kLiving, kCut, kLeft, kDead };
  struct Member {
    State state = State::kSilent;
    uint64_t last_nanos = 0;  // when its last request arrived; kSilent: of the start
  };

  const LeaseTerms terms_;
  std::vector<Member> members_;
};

}  // namespace dbx::mm
