// Redo by one recovery worker of a record that is ready: runs the command again, single-version or multi-version, or
// puts the images.
//
// It looks ahead in the record's batch. Some records ahead, arguments are validated and index buckets prefetched; a few
// ahead, rows. Everything in a record is bounds-checked before it is used: a checksum shows that the bytes are those
// that were written, not that a sane engine of the same schema wrote them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/workload.h"
#include "logging/log_reader.h"
#include "logging/replay_lanes.h"
#include "logging/write_entries.h"
#include "storage/database.h"
#include "system/replay/replay_transaction.h"
#include "system/replay/row_change_fault.h"
#include "system/replay/versioned_replay.h"

namespace dbx {

// Images are replayed in one version per row, under any concurrency control, and their records have no commit
// timestamps: only a read can need an older version, and putting an image reads nothing. Writers of a row reserve while
// they hold its lock, in the order of their timestamps, so each row ends with the last recovered image; and a record's
// dependencies are recovered with it. So the newest versions are those that multi-version replay would end with, and no
// snapshot survives a crash that could need any of the others.
enum class ReplayMode : uint8_t {
  kInOrder,       // one version per row, in the order of the log
  kNewestWins,    // last writer wins: in any order, the version with the largest stamp stays
  kManyVersions,  // commands with timestamps, each over the versions that it saw
};

template <Workload W, ReplayMode kMode>
class Replayer {
 public:
  using Txn = std::conditional_t<kMode == ReplayMode::kManyVersions, VersionedReplayTransaction, ReplayTransaction>;

  // `recovered` collects the ids of the replayed transactions, if it is not null. The rest is for Txn.
  Replayer(Database& db, W& workload, std::vector<TxnId>* recovered, auto&&... of_txn)
      : db_(db), workload_(workload), txn_(of_txn...), recovered_(recovered) {}

  // Throws Error (kCorrupt) for a record that no transaction can have left. `source` is its log.
  void Replay(TxnRecord& record, const LogSource& source) {
    LookAhead(record, source);
    if (IsCommand(record)) {
      if (RunAgain(record) != Outcome::kOk) Refuse(record, source, "record does not replay");
    } else if constexpr (kMode != ReplayMode::kManyVersions) {
      record.kind == format::RecordKind::kRowChanges ? PutChanges(record, source) : PutImages(record);
    }
    if (recovered_ != nullptr && record.counts) recovered_->push_back(record.txn_id);
  }

  // kManyVersions: garbage collection; no record that is being replayed, or will be, reads below the watermark.
  void Collect(Timestamp watermark) { txn_.Collect(watermark); }

 private:
  static constexpr size_t kBucketsAhead = 8;
  static constexpr size_t kRowsAhead = 4;
  static constexpr size_t kImageBytesMax = 1024;
  // The version that a row had is kept.
  static constexpr WrittenRows kWrittenRows =
      kMode == ReplayMode::kManyVersions ? WrittenRows::kWhole : WrittenRows::kTouched;

  static bool IsCommand(const TxnRecord& record) {
    return record.kind == format::RecordKind::kCommand || record.kind == format::RecordKind::kVersionedCommand;
  }
  static Call CallOf(const TxnRecord& record) { return {record.procedure, record.payload}; }

  void LookAhead(TxnRecord& record, const LogSource& source) {
    // Usually one record; several at the start of a batch.
    TxnRecord* ahead = &record + std::min<size_t>(record.behind, kBucketsAhead);
    for (; !ahead->inspected; --ahead) {
      Inspect(*ahead, source);
      if (ahead == &record) break;
    }
    if (record.behind >= kRowsAhead) PrefetchRows((&record)[kRowsAhead]);
  }

  Outcome RunAgain(const TxnRecord& record) {
    if constexpr (kMode == ReplayMode::kManyVersions) txn_.Begin(record.read_timestamp, TimestampOf(record.stamp));
    return workload_.Run(txn_, record.procedure, record.payload);
  }

  void Inspect(TxnRecord& record, const LogSource& source) {
    record.inspected = true;
    if ((record.kind == format::RecordKind::kVersionedCommand) != (kMode == ReplayMode::kManyVersions)) {
      Refuse(record, source, "a transaction with timestamps in a log without, or the other way round");
    }
    if (IsCommand(record)) {
      if (record.payload.size() % 8 != 0 || !workload_.ValidArgs(record.procedure, record.payload)) {
        Refuse(record, source, "malformed arguments of a procedure");
      }
      workload_.PrefetchBuckets(CallOf(record));
      return;
    }
    if (record.kind == format::RecordKind::kRowChanges) return InspectChanges(record, source);
    WriteEntries entries(record.payload);
    WriteImage write;
    while (entries.Next(write)) {
      if (write.table.value() >= db_.table_count()) Refuse(record, source, "image of an unknown table");
      const Table& table = db_.table(write.table);
      if (write.op == format::WriteOp::kPut && write.image.size() != table.tuple_bytes()) {
        Refuse(record, source, "image of another length than its table's rows");
      }
      table.PrefetchBucket(write.key);
    }
    if (entries.malformed()) Refuse(record, source, "malformed images");
  }

  void InspectChanges(const TxnRecord& record, const LogSource& source) {
    if constexpr (kMode != ReplayMode::kInOrder) Refuse(record, source, "changes of rows in a log of whole rows");
    if (const char* const why = FaultOfChanges(record, db_)) Refuse(record, source, why);
    RowChanges changes(record.payload);
    for (RowChange change; changes.Next(change);) db_.table(change.table).PrefetchBucket(change.key);
  }

  void PrefetchRows(const TxnRecord& record) const {
    if (IsCommand(record)) return workload_.PrefetchRows(CallOf(record), kWrittenRows);
    if (record.kind == format::RecordKind::kRowChanges) {
      RowChanges changes(record.payload);
      for (RowChange change; changes.Next(change);) {
        db_.table(change.table).PrefetchRow(change.key, std::clamp<size_t>(change.bytes.size(), 1, kImageBytesMax));
      }
      return;
    }
    WriteEntries entries(record.payload);
    for (WriteImage write; entries.Next(write);) {
      const size_t bytes = std::clamp<size_t>(write.image.size(), 1, kImageBytesMax);
      db_.table(write.table).PrefetchRow(write.key, bytes);
    }
  }

  void PutImages(const TxnRecord& record) {
    WriteEntries entries(record.payload);
    for (WriteImage write; entries.Next(write);) {
      Table& table = db_.table(write.table);
      if constexpr (kMode == ReplayMode::kNewestWins) {
        txn_.PutNewest(table, write.key, write.image, record.stamp);
      } else if (write.op == format::WriteOp::kPut) {
        txn_.Put(table, write.key, write.image, /*may_exist=*/true);
      } else {
        // A row that the transaction had inserted itself may never have been there.
        txn_.Delete(table, write.key);
      }
    }
  }

  void PutChanges(const TxnRecord& record, const LogSource& source) {
    if constexpr (kMode == ReplayMode::kInOrder) {
      RowChanges changes(record.payload);
      for (RowChange change; changes.Next(change);) {
        Table& table = db_.table(change.table);
        if (change.op == format::RowChangeOp::kInsert) {
          // As in a walk of its chain, whatever was there.
          txn_.Put(table, change.key, change.bytes, /*may_exist=*/true);
        } else if (change.op == format::RowChangeOp::kDelete) {
          // As in PutImages.
          txn_.Delete(table, change.key);
        } else if (!txn_.Change(table, change)) {
          Refuse(record, source, "it changes a row that is not there");
        }
      }
    }
  }

  [[noreturn]] static void Refuse(const TxnRecord& record, const LogSource& source, const char* why) {
    ThrowDamaged(source, record.lsn, why);
  }

  Database& db_;
  W& workload_;
  Txn txn_;
  std::vector<TxnId>* recovered_;
};

}  // namespace dbx
