// A breakdown of the time from commit to acknowledgement, for one transaction in kSampled of a worker (TIME_ENABLE).
//
//   order        from the end of its accesses until its place in the log is reserved: locking the write set, waiting
//                for ring space (back-pressure), and under data logging validation
//   append       until its record is complete; under command logging with validation
//   flush        until its own record is durable
//   dependency   until all that it depends on is durable too, and it is acknowledged
//
// One transaction at a time is followed; the next one is drawn when it has been acknowledged. Its worker checks it
// whenever it polls for acknowledgements, so flush and dependency are known to within one transaction's time. Owned by
// one worker. Other transactions cost one test of a pointer at each stage.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/types.h"
#include "logging/log_set.h"
#include "logging/lsn_per_log.h"
#include "system/result.h"

namespace dbx {

// When a commit passed its stages, in ticks.
struct CommitTimes {
  uint64_t begin = 0;
  uint64_t placed = 0;
  uint64_t complete = 0;
};

class CommitProbe {
 public:
  explicit CommitProbe(bool enabled) : enabled_(enabled) {}

  // To be filled in by the next transaction, or nullptr.
  CommitTimes* Draw() {
    if (!enabled_ || following_ || ++drawn_ % kSampled != 0) return nullptr;
    return &times_;
  }

  // The drawn transaction has pre-committed; log j must be durable up to ends[j] for its own records.
  void Follow(TxnId id, const LsnPerLog& ends) {
    following_ = id;
    ends_ = ends;
    hardened_ = 0;
  }

  // At `now`, before acknowledgements are given.
  void Look(const DurableVector& durable, uint64_t now) {
    if (!following_ || hardened_ != 0) return;
    for (size_t j = 0; j < format::kMaxLogs; ++j) {
      if (durable.Load(j) < ends_[j]) return;
    }
    hardened_ = now;
  }

  // `counts`: its sample belongs to the measured interval.
  void Acknowledged(TxnId id, uint64_t now, bool counts = true) {
    if (following_ != id) return;
    following_.reset();
    if (!counts) return;
    const uint64_t hardened = hardened_ != 0 ? hardened_ : now;
    const uint64_t until[] = {times_.placed, times_.complete, hardened, now};
    uint64_t from = times_.begin;
    for (size_t part = 0; part < std::size(until); ++part) {
      parts_.nanos[part] += Clock::ToNanos(until[part] - std::min(from, until[part]));
      from = until[part];
    }
    ++parts_.samples;
  }

  // Of all acknowledged samples.
  const CommitParts& parts() const { return parts_; }
  void Reset() { parts_ = {}; }

 private:
  static constexpr uint64_t kSampled = 64;

  const bool enabled_;
  uint64_t drawn_ = 0;
  std::optional<TxnId> following_;
  CommitTimes times_;
  LsnPerLog ends_;
  uint64_t hardened_ = 0;  // when its own records were seen durable
  CommitParts parts_;
};

}  // namespace dbx
