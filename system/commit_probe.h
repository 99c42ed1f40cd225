// Where the time from commit to acknowledgement goes, for one transaction in kSampled of a worker (TIME_ENABLE).
//
//   order        from the end of its accesses until it has a place in the log: write locks, waiting for ring space, and
//                with data records the re-check
//   append       until its record is complete; with command records the re-check
//   flush        until its own record is durable
//   dependency   until everything else is that it waits for, and it is acknowledged
//
// One transaction at a time is followed; the next one is drawn when it has been acknowledged. Its worker looks after it
// whenever it looks for acknowledgements, so flush and dependency are known to within one transaction's time.
// Owned by one worker. What is not followed costs one test of a pointer at each stage.
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

  // `counts`: its sample belongs to what is measured.
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

  // Of all that were acknowledged.
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
