// Records of the lower bound of all snapshots (RecordKind::kWatermark), for a log with multi-version replay: recovery
// garbage-collects a version once no later transaction can read it.
//
// Workers report a watermark, a timestamp below which no transaction has, or will have, its snapshot. A transaction
// whose place in a log is behind the record of the watermark W reads at W or later. For it reserved its place after W
// was computed, and a transaction reserves before it ends: so when W was computed it was running, and its snapshot was
// not below W, or it had not begun, and its snapshot was not going to be. This only needs W to be loaded before the
// record's place is reserved.
//
// Threads: Raise: any. The rest: the stream's writer.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/cache_line.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/log_stream.h"

namespace dbx {

class WatermarkRecords {
 public:
  explicit WatermarkRecords(uint32_t logs) : written_(logs) {}

  void Raise(Timestamp timestamp) {
    uint64_t seen = watermark_.value.load(std::memory_order_relaxed);
    // Release: the slots that the watermark was computed from were read before a thread that acquires it reserves a
    // place.
    while (Timestamp(seen) < timestamp &&
           !watermark_.value.compare_exchange_weak(seen, timestamp.value(), std::memory_order_release,
                                                   std::memory_order_relaxed)) {
      continue;
    }
  }

  // A log without transactions would keep recovery from freeing the versions of all others.
  bool IsDue(const LogStream& stream) const {
    return watermark_.value.load(std::memory_order_relaxed) >= written_[stream.index()] + kLagMax;
  }
  void Append(LogStream& stream) {
    const uint64_t watermark = watermark_.value.load(std::memory_order_acquire);
    uint64_t& written = written_[stream.index()];
    if (watermark <= written) return;
    if (stream.AppendOwn(format::RecordKind::kWatermark, {&watermark, 1})) written = watermark;
  }

 private:
  static constexpr uint64_t kLagMax = 4096;  // transactions

  CachePadded<Atomic<uint64_t>> watermark_{uint64_t{0}};
  std::vector<uint64_t> written_;  // by log
};

// In its place where records have no timestamps.
struct NoWatermarkRecords {
  explicit NoWatermarkRecords(uint32_t) {}
};
template <class Payload>
using WatermarkRecordsOf = std::conditional_t<Payload::kTimestamps, WatermarkRecords, NoWatermarkRecords>;

}  // namespace dbx
