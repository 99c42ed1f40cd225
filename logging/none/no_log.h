// No logging: the null scheme, and the upper bound of every comparison. Nothing survives a crash.
#pragma once

#include "logging/contract.h"

namespace dbx {

class NoLog : public LogDefaults {
 public:
  static constexpr LogTraits kTraits = {.name = "LOG_NO",
                                        .scheme = format::Scheme::kNone,
                                        .payload = PayloadKind::kNone,
                                        .logs = false,
                                        .fixed_bytes = 0,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = false,
                                        .replay_order = ReplayOrder::kNone};
  struct TxnState {};
};

}  // namespace dbx
