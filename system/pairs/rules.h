// The rules for supported pairs: one per line, over the traits of the two sides. A refused pair stops the compiler in
// system/pairs/pair.cpp with the rule's sentence, and is listed with it by --list.
#pragma once

#include <string_view>

#include "concurrency_control/contract.h"
#include "logging/contract.h"

namespace dbx::rules {

// The lock table holds locks, so there must be some.
constexpr bool NeedsLocksForTable(bool use_locktable, const CcTraits& cc) {
  return use_locktable && !cc.reads_are_locked;
}
inline constexpr std::string_view kNeedsLocksForTable =
    "this concurrency control keeps versions in the rows and has no locks to put in a table: set USE_LOCKTABLE 0";

// Single-version replay is in the order of the log, which is the physical one. In multi-version replay the order of
// reads is that of timestamps.
constexpr bool NeedsPhysicalOrder(const CcTraits& cc, const LogTraits& log) {
  return log.payload == PayloadKind::kCommand && cc.commit_order == CommitOrder::kLogical && !cc.multi_version;
}
inline constexpr std::string_view kNeedsPhysicalOrder =
    "commands are replayed in the order of the log, but this concurrency control commits in a logical order: "
    "set LOG_TYPE LOG_DATA";

// Replay by partition, or last writer wins, or in any order, needs rows.
constexpr bool NeedsRows(const LogTraits& log) {
  return log.payload == PayloadKind::kCommand &&
         (log.replay_order == ReplayOrder::kPerPartition || log.replay_order == ReplayOrder::kNewestWins ||
          log.replay_order == ReplayOrder::kAny || log.row_chains);
}
inline constexpr std::string_view kNeedsRows =
    "this log scheme replays rows, by partition, newest first, in any order or one by one, and a command record holds "
    "none: set LOG_TYPE LOG_DATA";

// The metadata of a row that is not locked leaves a lock table; the link to its last record must stay.
constexpr bool NeedsLinksInRows(bool use_locktable, const LogTraits& log) { return use_locktable && log.row_chains; }
inline constexpr std::string_view kNeedsLinksInRows =
    "this log scheme keeps the place of each row's last record as long as the run lasts, and a lock table keeps "
    "metadata of active rows only: set USE_LOCKTABLE 0";

// Records that only their transactions' TIDs order.
constexpr bool NeedsEpochTids(const CcTraits& cc, const LogTraits& log) {
  return log.needs_epochs && cc.commit_version != CommitVersion::kEpochTid;
}
inline constexpr std::string_view kNeedsEpochTids =
    "this log scheme orders records by epochs and TIDs, which this concurrency control does not give: set CC_ALG SILO";

// A command may have read versions that were overwritten before it committed, under ISOLATION_LEVEL SNAPSHOT and in the
// order of the log under SERIALIZABLE too: run again over the newest versions it would read others. So it is replayed
// over the versions that it saw, whose timestamp is in its record. Single-version concurrency control has no such
// timestamp to log.
constexpr bool NeedsTimestamps(const CcTraits& cc, const LogTraits& log) {
  return log.payload == PayloadKind::kCommand && cc.multi_version != log.needs_multi_version;
}
inline constexpr std::string_view kNeedsTimestamps =
    "a concurrency control that keeps many versions, and no other, needs timestamps in its commands, which this log "
    "scheme does not log: set LOG_TYPE LOG_DATA";

// A version in a heap is freed for other keys when it is superseded: a reader's snapshot keeps it, or a reader's lock.
// Optimistic readers of single versions have neither. And a command has no version.
constexpr bool NeedsVersions(const CcTraits& cc, const LogTraits& log) {
  return log.version_heap && (!(cc.multi_version || cc.reads_are_locked) || log.payload == PayloadKind::kCommand);
}
inline constexpr std::string_view kNeedsVersions =
    "this log scheme keeps versions of rows in a persistent heap, for concurrency controls that keep many or that lock "
    "what they read: set CC_ALG HEKATON or NO_WAIT, and LOG_TYPE LOG_DATA";

// A rule that is checked at run time: a snapshot requires old versions.
constexpr std::string_view IsolationRefusal(Isolation isolation, const CcTraits& cc) {
  if (isolation == Isolation::kSnapshot && !cc.multi_version) {
    return "ISOLATION_LEVEL SNAPSHOT needs versions, and this concurrency control keeps one of each row: set CC_ALG "
           "HEKATON";
  }
  return {};
}

// Why a pair is refused; empty if it is not.
constexpr std::string_view Refusal(bool use_locktable, const CcTraits& cc, const LogTraits& log) {
  if (NeedsLocksForTable(use_locktable, cc)) return kNeedsLocksForTable;
  if (NeedsPhysicalOrder(cc, log)) return kNeedsPhysicalOrder;
  if (NeedsRows(log)) return kNeedsRows;
  if (NeedsEpochTids(cc, log)) return kNeedsEpochTids;
  if (NeedsTimestamps(cc, log)) return kNeedsTimestamps;
  if (NeedsVersions(cc, log)) return kNeedsVersions;
  if (NeedsLinksInRows(use_locktable, log)) return kNeedsLinksInRows;
  return {};
}

}  // namespace dbx::rules
