// A lease that a host under load does not let run out.
#pragma once

#include "multi_master/lock/lease.h"

namespace dbx::mm {

inline LeaseTerms LongLease() {
  constexpr uint64_t kSecond = 1'000'000'000;
  return {.request_nanos = kSecond / 4, .use_nanos = 60 * kSecond, .dead_nanos = 120 * kSecond};
}

}  // namespace dbx::mm
