// What a concurrency control (CC) is, to the transaction that drives it.
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
#include <string_view>

#include "base/types.h"
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
  bool reads_are_locked;  // of a transaction that scans nothing the re-check cannot fail
  bool copies_writes;     // who is to write a row copies all of it first
  bool lock_table;        // locks and log metadata lie in a table of active rows, not in the rows
};

// One written row at commit.
struct WriteRef {
  Table* table;
  Key key;
  bool deleted;
  const std::byte* image;  // the whole tuple as written; meaningless if deleted
  std::byte* meta;         // the row's log metadata
};

}  // namespace dbx
