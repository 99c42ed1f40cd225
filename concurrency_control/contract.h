// The contract of a concurrency control (CC): the calls that a transaction makes of it. `ConcurrencyControl` below is
// the contract as a concept; `AssertConcurrencyControl<C>()` names what is missing.
//
// A CC is a class template over a LogObserver, to which it reports reads and writes; one object serves one worker,
// transaction after transaction. CC::Shared holds the state that all workers of a run share; it is told when the run
// ends, after which nothing waits for a lock.
//
//   Begin(TxnId)      starts an attempt; a repeated id is a retry of the aborted transaction
//   Read / Update / Insert / Delete / Scan     as in benchmarks/txn_context.h
//   LockWrites()      locks the write set (Silo's phase 1); false: abort
//   ForEachRead(f)    f(Meta) for the read set: every row read and not written, misses too, and every leaf scanned
//   Recheck()         validates the read set (Silo's phase 2): unchanged, and stays so up to Release or is ordered by
//                     its version; false: abort. Under locking, only a phantom in a scanned range can fail it
//   Install()         the write set becomes the current versions, still locked (Silo's phase 3). After the log has its
//                     record, or before, where it appends the changes one by one (log_observer.h). May throw where rows
//                     have versions in a persistent heap: it is full, or its log has failed
//   ForEachWrite(f)   f(const WriteRef&) for every row of the write set, once each
//   ForEachChange(ranges, f)   (where the log has row_chains) between Recheck and Install: f(const WriteRef&,
//                     was_present) for every row of the write set, was_present before the transaction; `ranges`, a
//                     vector, then has the changed bytes of its tuple, ascending. Bytes outside of them are unchanged
//   read_timestamp(), end_timestamp()   (multi_version) after Recheck, of a transaction that has written: its reads
//                     hold at the first, its writes take effect at the second
//   Release()         unlocks; the transaction is committed
//   Abort()           undoes everything; at any time before Install
//
// Duties towards the log, on which the log schemes rely when they interpret metadata:
//  1. OnRead(row): if the transaction commits, row.meta belonged to the version that it read (locking: the lock is
//     held; optimistic: loaded between two equal reads of the version).
//  2. What PublishRead puts into a row is visible before any later writer of that row reaches OnWrite (locking: before
//     release; optimistic: before validation, sequentially consistent against the writer's lock).
//  3. Absence has metadata too: a miss creates an absent row (a placeholder; a deleted row is a tombstone), which is
//     read, locked and published like any other; insert and delete are writes of it. It keeps its metadata until the
//     log says that it is forgettable. The gaps between rows have metadata in their leaf: a scan is a read of it. A row
//     that is created there begins with the leaf's metadata, and a row that is unlinked merges its own into the leaf's,
//     both with the leaf locked.
//  4. OnWrite(row) is called with the row locked, before Reserve. Nothing waits for a lock after Reserve.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/outcome.h"
#include "base/types.h"
#include "storage/byte_range.h"
#include "storage/scan_order.h"
#include "storage/table.h"

namespace dbx {

// Whether a transaction may be serialized before another that has overwritten what it read and has already committed
// (kLogical). Writers of a row are always in the order of its locks, and the reader of a version is after its writer.
enum class CommitOrder : uint8_t { kPhysical, kLogical };
// The value of commit_version() after Recheck, ascending in the order of conflicts: none, or an EpochTid.
enum class CommitVersion : uint8_t { kNone, kEpochTid };

// Isolation levels. kSnapshot (snapshot isolation) is for multi-version concurrency control: all reads are of one
// moment, and of two overlapping transactions that write the same row one aborts; each may overwrite what the other
// only read (write skew).
enum class Isolation : uint8_t { kSerializable, kSnapshot };

struct CcTraits {
  std::string_view name;  // as in config.h: NO_WAIT
  bool multi_version;     // transactions may read versions that were overwritten; Isolation is a choice
  CommitOrder commit_order;
  CommitVersion commit_version = CommitVersion::kNone;
  bool reads_are_locked;           // validation cannot fail for a transaction that scans nothing
  bool copies_writes;              // writers copy the whole row before changing it
  bool lock_table;                 // locks and log metadata lie in a table of active rows, not in the rows
  bool detects_deadlocks = false;  // Shared::policy counts them (deadlock_counters.h)
};

// One written row at commit.
struct WriteRef {
  Table* table;
  Key key;
  bool deleted;
  const std::byte* image;  // the whole tuple as written; meaningless if deleted
  std::byte* meta;         // the row's log metadata
};
// Changed ranges of a tuple with no more between them are one range: an unchanged word costs less than a further range.
inline constexpr uint32_t kRangeGapBytes = 8;

// The checks of AssertConcurrencyControl.
namespace cc_contract {

struct Visitor {
  void operator()(auto&&...) const;
};
struct ScanVisitor {
  bool operator()(auto&&...) const;
};

template <class C>
concept Described = requires {
  { C::kTraits } -> std::same_as<const CcTraits&>;
  { C::kRowBytes } -> std::convertible_to<size_t>;
  typename C::Shared;
};
template <class C>
concept Accesses = requires(C& cc, TxnId id, Table& table, Key key, std::span<const std::byte> tuple) {
  cc.Begin(id);
  { cc.Read(table, key, Visitor()) } -> std::same_as<Outcome>;
  { cc.Update(table, key, Visitor()) } -> std::same_as<Outcome>;
  { cc.Insert(table, key, tuple) } -> std::same_as<Outcome>;
  { cc.Delete(table, key) } -> std::same_as<Outcome>;
  { cc.Scan(table, key, key, ScanOrder(), ScanVisitor()) } -> std::same_as<Outcome>;
};
template <class C>
concept Commits = requires(C& cc) {
  { cc.read_only() } -> std::same_as<bool>;
  { cc.LockWrites() } -> std::same_as<bool>;
  { cc.Recheck() } -> std::same_as<bool>;
  cc.ForEachRead(Visitor());
  cc.Install();
  cc.ForEachWrite(Visitor());
  cc.Release();
  cc.Abort();
};
template <class C>
concept HasTids = requires(const C& cc) {
  { cc.commit_version() } -> std::same_as<Tid>;
};
template <class C>
concept HasTimestamps = requires(const C& cc, typename C::Shared& shared) {
  { cc.read_timestamp() } -> std::same_as<Timestamp>;
  { cc.end_timestamp() } -> std::same_as<Timestamp>;
  { shared.isolation } -> std::same_as<Isolation&>;
  shared.timestamps.StartAfter(Timestamp());
};
template <class C>
concept CountsDeadlocks = requires(const typename C::Shared& shared) {
  { shared.policy.deadlocks().cycles } -> std::convertible_to<uint64_t>;
};

}  // namespace cc_contract

// Stops the compiler with one sentence for each duty that C does not meet.
template <class C>
consteval bool AssertConcurrencyControl() {
  static_assert(cc_contract::Described<C>, "a concurrency control has a CcTraits kTraits, a kRowBytes and a Shared");
  static_assert(cc_contract::Accesses<C>,
                "a concurrency control has Begin(id), Read, Update, Insert, Delete and Scan, which return "
                "an Outcome");
  static_assert(cc_contract::Commits<C>,
                "a concurrency control has read_only, LockWrites, Recheck (bool), ForEachRead, Install, "
                "ForEachWrite, Release and Abort");
  if constexpr (C::kTraits.commit_version == CommitVersion::kEpochTid) {
    static_assert(cc_contract::HasTids<C>, "a concurrency control with epoch TIDs has Tid commit_version()");
  }
  if constexpr (C::kTraits.multi_version) {
    static_assert(cc_contract::HasTimestamps<C>,
                  "a concurrency control of many versions has Timestamp read_timestamp() and "
                  "end_timestamp(), and Shared has isolation and timestamps");
  }
  if constexpr (C::kTraits.detects_deadlocks) {
    static_assert(cc_contract::CountsDeadlocks<C>,
                  "a concurrency control with detects_deadlocks has Shared::policy.deadlocks()");
  }
  return true;
}

template <class C>
concept ConcurrencyControl = cc_contract::Described<C> && AssertConcurrencyControl<C>();

}  // namespace dbx
