// The contract of a log scheme: the calls that the transaction and the concurrency control make of it. `LogScheme`
// below is the contract as a concept; `AssertLogScheme<L>()` names the verb that is missing.
//
// The life of a transaction under a scheme L, with L::TxnState `state` kept by its worker:
//
//   Begin(state)
//   OnRead(state, row) / OnWrite(state, row)     as rows are accessed; row.meta is the metadata next to the row. If the
//                                                transaction commits, it belonged to the version accessed.
//   OnScan(state, table, low, high)              before a range of keys is read, with or without rows in it
//   Absorb(meta, from)                           a row's metadata covers another's, whose place in the index it takes
//   Reserve(state, txn)                          a place in the log (an LSN), which fixes the transaction's order: its
//                                                write set is locked, its dependencies final. False: the record is too
//                                                large. Reserved is not filled, and filled is not durable.
//   PublishRead(state, meta)                     (tracks_reads) later writers of the row will depend on this reader;
//                                                before the read set is validated
//   Submit(state, txn) | Void(state)             the redo record is complete, which does not make it durable | the
//                                                place becomes a VOID record
//   PublishWrite(state, meta)                    later accesses of the row will depend on this writer; row still locked
//   SetCommitPoint(state, point)                 what must be durable before the transaction may be acknowledged
//   SetReadOnlyPoint(state, point)               the same for a read-only transaction: what it read must be durable
//   IsDurable(point)                             true: the transaction may be acknowledged; the only test for that
//   Idle(state)                                  before the worker pauses: no other worker's commit may wait for it
//   RaiseWatermark(timestamp)                    (needs_multi_version) a lower bound of all current and future
//                                                snapshots; any worker
//   StartChanges(state, id)                      (appends_changes) before the transaction's first access
//   Change(state, table, row, tuple, touched)    (appends_changes) makes the row have this tuple, or none if null, and
//                                                appends a record of the change; the row is locked. `touched`, unless
//                                                null: other words are those of the row. The changes of
//                                                a transaction precede its Reserve, which then never fails: they are
//                                                made as it goes (two-phase locking) or at Install
//   TakeBack(state)                              (appends_changes) undoes the changes made as it went; the rows are
//                                                still locked
//   OwnEnds(state, ends)                         the ends of its own records, by log; 0 in a log without one
//   OwnBytes(state)                              the size of its own records in all logs
//   durable()                                    how far each log is durable
//   ThrowIfFailed()                              throws if a device or a worker has failed: pending commits may never
//                                                become durable
//
// A scheme that logs is a FlushHooks too (log_writer.h): its own records are written with the flushes of the streams.
// It derives from LogDefaults, which has every optional verb; its traits decide which verbs are required, and
// AssertLogScheme checks it.
//
// A scheme never includes a concurrency control, nor the other way round; system/transaction/transaction.h owns the
// order.
//
// Threads: a state belongs to one worker; meta is protected by the concurrency control as its duties say
// (concurrency_control/contract.h), except that PublishRead may run on several readers of a row at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/types.h"
#include "logging/backup/checkpoint_counters.h"
#include "logging/central_counters.h"
#include "logging/commit_point.h"
#include "logging/format.h"
#include "logging/log_options.h"
#include "logging/lsn_per_log.h"
#include "storage/byte_range.h"
#include "storage/table.h"
#include "storage/touched_words.h"

namespace dbx {

class Database;

enum class PayloadKind : uint8_t { kNone, kData, kCommand };
enum class ReplayOrder : uint8_t { kNone, kTotal, kPartial, kPerPartition, kNewestWins, kAny };

struct LogTraits {
  std::string_view name;  // as in config.h: LOG_TAURUS
  format::Scheme scheme;  // as in a log's header
  PayloadKind payload;
  bool logs;                    // false: nothing is written and everything is "durable" at once
  uint32_t fixed_bytes;         // of a transaction's record: header, transaction id, fixed parts of scheme and payload
  bool tracks_reads;            // PublishRead matters: anti-dependencies order the replay
  bool reserve_before_recheck;  // the LSN orders reads too, so it is reserved before they are validated
  bool single_stream;           // exactly one log
  bool needs_epochs = false;    // transactions become durable by epochs, and have TIDs that contain theirs
  // Records have their transactions' read and commit timestamps, and replay is multi-version.
  bool needs_multi_version = false;
  bool appends_changes = false;  // a record per change of a row, as it is made, and one that commits them
  // Records have the rows that were written, and are replayed in their order: a checkpoint of rows (system/runs/
  // row_checkpoint.h) may stand for those below its start.
  bool row_checkpoints = false;
  bool version_heap = false;  // rows have versions in a persistent heap (storage/heap/table_versions.h), and no tuples
  bool draws_stamps = false;  // the log owns the clock of timestamps (concurrency_control/log_observer.h)
  // Each record names the previous record of each row that it changes: a restart may rebuild single rows on demand
  // (storage/rows_on_demand.h). Its payload is of ForEachChange instead of ForEachImage.
  bool row_chains = false;
  bool needs_pages = false;  // records name pages and slots: every table is paged (storage/heap/page_space.h)
  ReplayOrder replay_order;
};

// Accepts the images that a transaction wrote.
struct ImageVisitor {
  void operator()(const Table&, Key, bool deleted, const std::byte* image) const;
};

// A row of the write set as a log of changes sees it.
struct LoggedChange {
  const Table* table;
  Key key;
  bool deleted;
  bool was_present;                   // before the transaction
  const std::byte* image;             // the whole tuple as written; meaningless if deleted
  Meta meta;                          // the row's log metadata, as the row's last writer left it
  std::span<const ByteRange> ranges;  // of an update: ascending; bytes outside of them are unchanged
};

// A transaction as its log sees it: the call it runs and the images that it wrote. Where row_chains, it has the changes
// too: ForEachChange(f) calls f(const LoggedChange&) for each row of the write set.
template <class T>
concept LoggedTxn = requires(const T& txn, ImageVisitor visit) {
  { txn.procedure() } -> std::same_as<ProcedureId>;
  { txn.args() } -> std::same_as<std::span<const std::byte>>;  // the transaction id leads
  txn.ForEachImage(visit);
  { txn.commit_version() } -> std::same_as<Tid>;        // where needs_epochs
  { txn.read_timestamp() } -> std::same_as<Timestamp>;  // where needs_multi_version, from Reserve on
  { txn.end_timestamp() } -> std::same_as<Timestamp>;
};
// A minimal model, for the checks below.
struct LoggedTxnArchetype {
  ProcedureId procedure() const;
  std::span<const std::byte> args() const;
  void ForEachImage(auto&& visit) const;
  void ForEachChange(auto&& visit) const;
  Tid commit_version() const;
  Timestamp read_timestamp() const;
  Timestamp end_timestamp() const;
};
static_assert(LoggedTxn<LoggedTxnArchetype>);

// The return type of the verbs of LogDefaults; converts to true. It shows that a scheme has not declared the verb
// itself, perhaps by a misspelt name.
struct Defaulted {
  constexpr operator bool() const { return true; }
};
struct NoWords {
  constexpr operator size_t() const { return 0; }
};

// The verbs of a scheme that keeps no metadata next to rows, tracks no reads, and has nothing to wait for. No cost.
class LogDefaults {
 public:
  using CommitPoint = NoPoint;

  static constexpr size_t meta_bytes(uint32_t /*logs*/) { return 0; }
  static size_t meta_bytes() { return 0; }
  // Of a run with these tables, before any of its files is created: throws Error (kUsage) if a record that it may need
  // exceeds `max_record_bytes`.
  static void CheckTables(const Database&, const LogOptions&, uint64_t /*max_record_bytes*/) {}
  Defaulted InitWorker(auto&, WorkerId) { return {}; }
  Defaulted Begin(auto&) { return {}; }
  Defaulted OnRead(auto&, const RowRef&) { return {}; }
  Defaulted OnScan(auto&, const Table&, Key, Key) { return {}; }
  Defaulted OnWrite(auto&, const RowRef&) { return {}; }
  Defaulted FreshMeta(Meta) const { return {}; }
  Defaulted Absorb(Meta, Meta) const { return {}; }
  Defaulted Forgettable(Meta) const { return {}; }
  Defaulted Reserve(auto&, const auto&) { return {}; }
  Defaulted PublishRead(auto&, Meta) { return {}; }
  Defaulted Submit(auto&, const auto&) { return {}; }
  Defaulted Void(auto&) { return {}; }
  Defaulted PublishWrite(auto&, Meta) { return {}; }
  Defaulted Idle(auto&) { return {}; }
  Defaulted RaiseWatermark(Timestamp) { return {}; }
  Defaulted SetCommitPoint(const auto&, auto) const { return {}; }
  Defaulted SetReadOnlyPoint(const auto&, auto) const { return {}; }
  static constexpr NoWords point_words() { return {}; }
  Defaulted IsDurable(auto) const { return {}; }
  Defaulted ThrowIfFailed() const { return {}; }
  // The cost of tracking a central log's fills, once the writers have stopped.
  static std::optional<CentralCounters> central_counters() { return std::nullopt; }
  // The same of fuzzy checkpoints.
  static std::optional<CheckpointCounters> checkpoint_counters() { return std::nullopt; }
};

// The checks of AssertLogScheme. Own: the scheme declares the verb itself.
namespace log_contract {

template <class T>
concept Own = !std::same_as<std::remove_cvref_t<T>, Defaulted>;

template <class L>
concept Described = requires {
  { L::kTraits } -> std::same_as<const LogTraits&>;
  typename L::TxnState;
  typename L::CommitPoint;
};
template <class L>
concept Reserves = requires(L& log, typename L::TxnState& state, const LoggedTxnArchetype& txn) {
  { log.Reserve(state, txn) } -> std::same_as<bool>;
  { log.Submit(state, txn) } -> Own;
  { log.Void(state) } -> Own;
};
template <class L>
concept Acknowledges = requires(L& log, typename L::TxnState& state, typename L::CommitPoint point) {
  { log.SetCommitPoint(state, point) } -> Own;
  { log.SetReadOnlyPoint(state, point) } -> Own;
  { log.IsDurable(point) } -> std::same_as<bool>;
  { log.point_words() } -> std::same_as<size_t>;
};
template <class L>
concept Reports = requires(const L& log, const typename L::TxnState& state, LsnPerLog& ends) {
  { log.OwnEnds(state, ends) } -> Own;
  { log.OwnBytes(state) } -> std::same_as<uint64_t>;
  { log.durable().Load(0) } -> std::same_as<Lsn>;
  { log.ThrowIfFailed() } -> Own;
};
template <class L>
concept KeepsMetadata = requires(L& log, typename L::TxnState& state, const RowRef& row, Meta meta) {
  { log.OnRead(state, row) } -> Own;
  { log.OnWrite(state, row) } -> Own;
  { log.PublishWrite(state, meta) } -> Own;
  { log.FreshMeta(meta) } -> Own;
  { log.Absorb(meta, meta) } -> Own;
  { log.Forgettable(meta) } -> std::same_as<bool>;
};
template <class L>
concept PublishesReads = requires(L& log, typename L::TxnState& state, Meta meta) {
  { log.PublishRead(state, meta) } -> Own;
};
template <class L>
concept RaisesWatermarks = requires(L& log, Timestamp timestamp) {
  { log.RaiseWatermark(timestamp) } -> Own;
};
template <class L>
concept HandsOverWhenIdle = requires(L& log, typename L::TxnState& state) {
  { log.Begin(state) } -> Own;
  { log.Idle(state) } -> Own;
};

template <class L>
concept AppendsChanges = requires(L& log, typename L::TxnState& state, TxnId id, Table& table, Row* row,
                                  const std::byte* tuple, const TouchedWords* touched) {
  log.StartChanges(state, id);
  log.Change(state, table, row, tuple, touched);
  log.TakeBack(state);
};

}  // namespace log_contract

// Stops the compiler with one sentence for each duty that L does not meet.
template <class L>
consteval bool AssertLogScheme() {
  static_assert(log_contract::Described<L>, "a log scheme has a LogTraits kTraits, a TxnState and a CommitPoint");
  if constexpr (L::kTraits.logs) {
    static_assert(log_contract::Reserves<L>,
                  "a log scheme that logs declares bool Reserve(state, txn), Submit(state, txn) and "
                  "Void(state)");
    static_assert(log_contract::Acknowledges<L>,
                  "a log scheme that logs declares SetCommitPoint and SetReadOnlyPoint(state, point), "
                  "bool IsDurable(point) and point_words()");
    static_assert(
        log_contract::Reports<L>,
        "a log scheme that logs declares OwnEnds(state, ends), OwnBytes(state), durable() and ThrowIfFailed()");
  }
  if constexpr (L::meta_bytes(format::kMaxLogs) > 0) {
    static_assert(log_contract::KeepsMetadata<L>,
                  "a log scheme with metadata in the rows declares OnRead, OnWrite, PublishWrite, "
                  "FreshMeta, Absorb and bool Forgettable");
  }
  if constexpr (L::kTraits.tracks_reads) {
    static_assert(log_contract::PublishesReads<L>, "a log scheme with tracks_reads declares PublishRead(state, meta)");
  }
  if constexpr (L::kTraits.needs_multi_version) {
    static_assert(log_contract::RaisesWatermarks<L>,
                  "a log scheme with needs_multi_version declares RaiseWatermark(timestamp)");
  }
  if constexpr (L::kTraits.appends_changes) {
    static_assert(
        log_contract::AppendsChanges<L>,
        "a log scheme with appends_changes declares StartChanges(state, id), Change(state, table, row, tuple, "
        "touched) and TakeBack(state)");
  }
  if constexpr (L::kTraits.needs_epochs) {
    static_assert(log_contract::HandsOverWhenIdle<L>,
                  "a log scheme with needs_epochs declares Begin(state) and Idle(state)");
  }
  return true;
}

template <class L>
concept LogScheme = log_contract::Described<L> && AssertLogScheme<L>();

}  // namespace dbx
