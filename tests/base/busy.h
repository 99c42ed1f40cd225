// Work that takes processor time, on a host of any speed.
#pragma once

#include <cstdint>

#include "base/host.h"

namespace dbx {

inline void UseProcessorFor(uint64_t nanos) {
  for (const uint64_t from = host::ThreadCpuNanos(); host::ThreadCpuNanos() - from < nanos;) continue;
}

}  // namespace dbx
