// The contract of a concurrency control (CC): what the transaction that drives it calls. `ConcurrencyControl` below is
// the contract as a concept; `AssertConcurrencyControl<C>()` names what is missing.
//
// A CC is a class template over what it reports to, a LogObserver, and one object of it serves one worker, transaction
// after transaction. Around it, CC::Shared holds what all workers of a run share; it is told of the run's end, at which
// nothing waits for a lock any more.
//
//   Begin(TxnId)      a try; the same id again: the same transaction, which was aborted
//   Read / Update / Insert / Delete / Scan     as in benchmarks/txn_context.h
//   LockWrites()      order 1: everything written is locked; false: abort
//   ForEachRead(f)    f(Meta) of every row read and not written, misses too, and of every leaf scanned
//   Recheck()         order 2: everything read is still what it was, and stays so up to Release or is ordered by its
//                     version; false: abort. Where rows are locked, only what was scanned can fail it
//   Install()         what was written becomes the current version, still locked
//   ForEachWrite(f)   f(const WriteRef&) of every row written, once each
//   read_timestamp(), end_timestamp()   (multi_version) after Recheck, of who has written: at the first it saw what it
//                     read, at the second it wrote
//   Release()         the locks go; committed
//   Abort()           nothing happened, at any time before Install
//
// Duties towards the log, which make the metadata mean what the schemes think:
//  1. OnRead(row): if the transaction commits, row.meta belonged to the version that it read (locking: the lock is
//     held; optimistic: loaded between two equal reads of the version).
//  2. What PublishRead puts into a row is visible before any later writer of that row reaches OnWrite (locking: before
//     release; optimistic: before the re-check, sequentially consistent against the writer's lock).
//  3. What is absent has metadata too: a miss creates an absent row, which is read, locked and published like any
//     other; insert and delete are writes of it. It keeps its metadata until the log says that it is forgettable. What
//     lies between rows has metadata in its leaf: a scan is a read of it. A row that is created there begins with what
//     the leaf has, and one that is unlinked leaves what it had to the leaf, both with the leaf locked.
//  4. OnWrite(row) is called with the row locked, before Reserve. Nothing waits for a lock after Reserve.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/outcome.h"
#include "base/types.h"
#include "storage/scan_order.h"
#include "storage/table.h"

namespace dbx {

// Whether a transaction may come before one that has overwritten what it read and has committed already (kLogical). The
// writers of a row always come in the order of its locks, and whoever reads a version comes after who wrote it.
enum class CommitOrder : uint8_t { kPhysical, kLogical };
// What commit_version() says of a transaction after Recheck, in the order of its conflicts: nothing, or an EpochTid.
enum class CommitVersion : uint8_t { kNone, kEpochTid };

// What a transaction may see of others. kSnapshot is for a concurrency control of many versions: all reads are of one
// moment, and of two that overlap and write the same row one aborts; each may overwrite what the other only read.
enum class Isolation : uint8_t { kSerializable, kSnapshot };

struct CcTraits {
  std::string_view name;  // as in config.h: NO_WAIT
  bool multi_version;     // transactions may read versions that were overwritten, and so have a choice of Isolation
  CommitOrder commit_order;
  CommitVersion commit_version = CommitVersion::kNone;
  bool reads_are_locked;           // of a transaction that scans nothing the re-check cannot fail
  bool copies_writes;              // who is to write a row copies all of it first
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
