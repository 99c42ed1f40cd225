// What a log scheme is, to the transaction that drives it and to the concurrency control that reports to it.
//
// The life of a transaction under a scheme L, with L::TxnState `state` kept by its worker:
//
//   Begin(state)
//   OnRead(state, row) / OnWrite(state, row)     as rows are accessed; row.meta is the metadata beside the row.
//                                                If the transaction commits, it belonged to the version accessed.
//   OnScan(state, table, low, high)              before what lies in a range of keys is read, rows or none
//   Absorb(meta, from)                           a row's metadata covers another's: it took the place of it
//   Reserve(state, txn)                          a place in the log, which fixes the transaction's order. Its write
//                                                locks are held, its dependencies final. False: the record is too
//                                                large.
//   PublishRead(state, meta)                     (tracks_reads) successors inherit that we read; before the re-check
//   Submit(state, txn) | Void(state)             the record is complete | the place is given back as a VOID record
//   PublishWrite(state, meta)                    successors inherit that we wrote; the row is still locked
//   CommitPoint(state, point)                    what must be durable before the transaction may be acknowledged
//   ReadOnlyPoint(state, point)                  the same for one that wrote nothing: what it read must be durable
//   IsDurable(point)                             a point is point_words() 64-bit words, kept by the ack queue
//   Idle(state)                                  the worker will not commit for a while: nothing waits for it
//   RaiseWatermark(timestamp)                    (needs_multi_version) no transaction has, or will have, a snapshot
//                                                below it; any worker
//   OwnEnds(state, ends)                         where its own records end, by log; 0 in a log without
//   OwnBytes(state)                              what its own records take in all logs
//   durable()                                    how far each log is durable
//   ThrowIfFailed()                              a device has failed, or a worker: what waits may never become durable
//
// A scheme that logs is a FlushHooks too (log_writer.h): its own records go out with the flushes of the streams.
//
// A scheme never includes a concurrency control, nor the other way round; system/transaction.h owns the order.
//
// Threads: a state belongs to one worker; meta is protected by the concurrency control as its duties say
// (concurrency_control/contract.h), except that PublishRead may run on several readers of a row at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.h"
#include "logging/format.h"
#include "logging/lsn_per_log.h"
#include "storage/table.h"

namespace dbx {

enum class PayloadKind : uint8_t { kNone, kData, kCommand };
enum class ReplayOrder : uint8_t { kNone, kTotal, kPartial, kPerPartition, kNewestWins };

struct LogTraits {
  std::string_view name;  // as in config.h: LOG_TAURUS
  format::Scheme scheme;  // as in a log's header
  PayloadKind payload;
  bool logs;                    // false: nothing is written and everything is "durable" at once
  uint32_t fixed_bytes;         // of a transaction's record: header, transaction id, what scheme and payload always add
  bool tracks_reads;            // PublishRead matters: anti-dependencies order the replay
  bool reserve_before_recheck;  // the place in the log orders reads too, so it must exist before they are re-checked
  bool single_stream;           // exactly one log
  bool needs_epochs = false;    // transactions become durable by epochs, and have TIDs that say theirs
  // Records say at which timestamps their transactions read and committed, and are replayed in many versions.
  bool needs_multi_version = false;
  ReplayOrder replay_order;
};

// What a transaction shows to its log: the call it runs and the images that it wrote.
template <class T>
concept LoggedTxn = requires(const T& txn) {
  { txn.procedure() } -> std::same_as<ProcedureId>;
  { txn.args() } -> std::same_as<std::span<const std::byte>>;  // the transaction id leads
  // ForEachImage(visit): visit(const Table&, Key, bool deleted, const std::byte* image)
  // commit_version(): the TID, where needs_epochs
  // read_timestamp(), end_timestamp(): where needs_multi_version, from Reserve on
};

}  // namespace dbx
