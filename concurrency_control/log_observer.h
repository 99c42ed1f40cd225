// The part of a log scheme that a concurrency control sees: it is told of reads and writes. The schemes in logging/
// model it; neither folder includes the other.
#pragma once

#include <concepts>
#include <cstddef>

#include "storage/row.h"

namespace dbx {

template <class L>
concept LogObserver = requires(L& log, typename L::TxnState& state, const RowRef& row, Meta meta) {
  // The version that the row's metadata belongs to was read, or is about to be overwritten by the caller, which holds
  // its lock.
  log.OnRead(state, row);
  log.OnWrite(state, row);
  // The keys from `low` to `high` of an ordered table are about to be read, whether or not there are rows. OnRead is
  // called for what is found there: rows, and leaves, which have the metadata of the gaps.
  log.OnScan(state, row.table, row.key, row.key);
  // Metadata for a row that had none, no smaller than any that was ever forgotten for it.
  log.FreshMeta(meta);
  // Raises `meta` to cover another: a transaction that depends on it then depends on what the other stands for.
  // PublishRead may run concurrently.
  log.Absorb(meta, meta);
  // May the metadata be dropped and later be replaced by FreshMeta?
  { log.Forgettable(meta) } -> std::convertible_to<bool>;
  // Whole words; all zero means no dependency. A copy, word by word, is equivalent.
  { log.meta_bytes() } -> std::same_as<size_t>;
  // Called by multi-version concurrency control: no transaction has, or will have, a snapshot below the timestamp. A
  // log with multi-version replay passes it on to recovery.
  log.RaiseWatermark(Timestamp());
};

// Whether rows are changed through the log, which appends a record of each change (LogTraits::appends_changes).
template <class Log>
inline constexpr bool kAppendsChanges = [] {
  if constexpr (requires { Log::kTraits; }) return Log::kTraits.appends_changes;
  return false;
}();

// Whether rows have versions in a persistent heap instead of tuples (LogTraits::version_heap). Such a log says up to
// which stamp all transactions are durable for good:
//   log.durable_until()   Timestamp; never falls
template <class Log>
inline constexpr bool kHeapVersions = [] {
  if constexpr (requires { Log::kTraits; }) return Log::kTraits.version_heap;
  return false;
}();

// Whether the log has the changed ranges of rows (LogTraits::row_chains), and asks for them by ForEachChange.
template <class Log>
inline constexpr bool kRowChains = [] {
  if constexpr (requires { Log::kTraits; }) return Log::kTraits.row_chains;
  return false;
}();

// Whether a restart may leave rows for later, to be fetched when they are needed (storage/rows_on_demand.h).
template <class Log>
inline constexpr bool kRowsOnDemand = kHeapVersions<Log> || kRowChains<Log>;

// Whether the log owns the clock of end timestamps and must know of every draw (LogTraits::draws_stamps). A transaction
// that has locked its write set calls
//   log.clock()                    Atomic<uint64_t>&: the last timestamp that was drawn; of SnapshotClock
//   log.Announce(state)            before it draws
//   log.Drawn(state, timestamp)    behind the draw. It may wait, and throw
//   log.Installed(state, slot, bytes)   for each version, once all rows point to theirs: so many bytes from its start
//                                  are to be written back; then LogScheme::SetCommitPoint
//   log.Undrawn(state)             instead: it aborts, drawn or not
template <class Log>
inline constexpr bool kDrawsStamps = [] {
  if constexpr (requires { Log::kTraits; }) return Log::kTraits.draws_stamps;
  return false;
}();

}  // namespace dbx
