// A log scheme that logs nothing, over rows whose versions lie in a persistent heap: for tests of the concurrency
// control's side of write-behind logging.
#pragma once

#include "logging/contract.h"

namespace dbx::testing {

class HeapOnlyLog : public LogDefaults {
 public:
  static constexpr LogTraits kTraits = {.name = "HEAP_ONLY",
                                        .scheme = format::Scheme::kNone,
                                        .payload = PayloadKind::kNone,
                                        .logs = false,
                                        .fixed_bytes = 0,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = false,
                                        .version_heap = true,
                                        .replay_order = ReplayOrder::kNone};
  struct TxnState {};

  Timestamp durable_until() const { return durable_until_; }
  void SetDurableUntil(Timestamp stamp) { durable_until_ = stamp; }

 private:
  Timestamp durable_until_{~uint64_t{0}};
};

}  // namespace dbx::testing
