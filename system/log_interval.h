// The bytes that the devices under the logs took within the measured interval, log by log.
//
// Counted are bytes reserved after Begin and durable at End: records of warm-up transactions that wait in the ring at
// Begin are left out, as are their acknowledgements. Every transaction that is counted as acknowledged reserved its
// records after Begin and was found durable before End, so that its bytes are among these, log by log; there is no
// tolerance to choose. A run that claims more counts acknowledgements of records that were not durable in that time.
//
// Main's thread; Begin while no worker runs transactions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "logging/log_set.h"

namespace dbx {

class LogInterval {
 public:
  // `logs`: nullptr where nothing is logged.
  explicit LogInterval(const LogSet* logs) : logs_(logs) {}

  void Begin() {
    for (uint32_t i = 0; i < count(); ++i) begin_[i] = logs_->stream(i).reserved_bytes();
  }
  void End() { bytes_ = BytesUntilNow(); }
  uint64_t BytesUntilNow() const {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count(); ++i) {
      const uint64_t durable = logs_->stream(i).persistent_bytes();
      bytes += durable - std::min(durable, begin_[i]);
    }
    return bytes;
  }
  // At End.
  uint64_t bytes() const { return bytes_; }

 private:
  uint32_t count() const { return logs_ == nullptr ? 0 : logs_->count(); }

  const LogSet* const logs_;
  std::array<uint64_t, format::kMaxLogs> begin_{};  // reserved, by log
  uint64_t bytes_ = 0;
};

// Throws Error(kInternal) if more was acknowledged than the devices took.
inline void CheckAcknowledgedBytes(uint64_t acknowledged, uint64_t taken) {
  if (acknowledged <= taken) return;
  throw Error(ExitStatus::kInternal, "transactions with " + std::to_string(acknowledged) +
                                         " bytes of log count as acknowledged, but the devices took " +
                                         std::to_string(taken) + " within the measured interval");
}

}  // namespace dbx
