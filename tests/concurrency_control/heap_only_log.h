// A log scheme that logs nothing, over rows whose versions lie in a persistent heap: for tests of the concurrency
// control's side of write-behind logging.
#pragma once

#include "logging/none/no_log.h"

namespace dbx::testing {

class HeapOnlyLog : public LogDefaults {
 public:
  static constexpr LogTraits kTraits = [] {
    LogTraits traits = NoLog::kTraits;
    traits.name = "HEAP_ONLY";
    traits.version_heap = true;
    return traits;
  }();
  struct TxnState {};

  Timestamp durable_until() const { return durable_until_; }
  void SetDurableUntil(Timestamp stamp) { durable_until_ = stamp; }

 private:
  Timestamp durable_until_{~uint64_t{0}};
};

}  // namespace dbx::testing
