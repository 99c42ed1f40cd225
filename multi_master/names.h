// The names of what a cluster has: masters, transactions, pages and page locks.
//
// Taurus MM (Depoutovitch et al., PVLDB 16(12), 2023): several masters change one database that lies on pages; a lock
// process grants page locks, Log Stores keep each master's log, Page Stores apply the logs to pages.
#pragma once

#include <cstdint>
#include <functional>

#include "base/types.h"

namespace dbx::mm {

using MasterId = StrongInt<struct MasterIdTag, uint8_t>;
inline constexpr uint32_t kMastersMax = 16;

// What results call page locks that carry row locks, and the log of which each master has one.
inline constexpr const char* kControlName = "HYBRID";
inline constexpr const char* kLogName = "LOG_TAURUS_MM";

// A page of the database. 0 names none.
using PageId = StrongInt<struct PageIdTag>;
inline constexpr size_t kPageBytes = 16 * 1024;

// How often a master has begun to wait for the lock of a page: a message about an earlier one of its locks is told from
// one about the lock that it holds.
using Generation = StrongInt<struct GenerationTag>;

// Grows with each change of the cluster's members; a message of an older one is refused.
using ClusterEpoch = StrongInt<struct ClusterEpochTag, uint32_t>;

enum class LockMode : uint8_t { kShared = 1, kExclusive = 2 };
constexpr bool Conflict(LockMode a, LockMode b) { return a == LockMode::kExclusive || b == LockMode::kExclusive; }
// A holder of `held` may do what `needed` allows.
constexpr bool Suffices(LockMode held, LockMode needed) { return held >= needed; }

// A transaction of a master. The epoch is that of the master's start: a master that comes back has other names.
struct TxnName {
  MasterId master;
  ClusterEpoch epoch;
  uint64_t sequence = 0;

  friend constexpr auto operator<=>(const TxnName&, const TxnName&) = default;
};

}  // namespace dbx::mm

template <>
struct std::hash<dbx::mm::TxnName> {
  size_t operator()(const dbx::mm::TxnName& name) const {
    const uint64_t member = uint64_t{name.epoch.value()} << 8 | name.master.value();
    return std::hash<uint64_t>()(name.sequence ^ member << 32 ^ member >> 32);
  }
};
