// What one recovery worker does with a record whose turn has come: runs the command again, or puts the images.
//
// It looks ahead in the record's batch. Some records ahead, arguments are validated and index buckets
// fetched; a few ahead, rows. Everything in a record is bounds-checked before it is used: a checksum shows
// that the bytes are those that were written, not that a sane engine of the same schema wrote them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/workload.h"
#include "logging/log_reader.h"
#include "logging/replay_lanes.h"
#include "logging/write_entries.h"
#include "storage/database.h"
#include "system/replay_transaction.h"

namespace dbx {

// kNewestWins: the versions of a row come in any order, and the one with the largest stamp stays.
template <Workload W, bool kNewestWins = false>
class Replayer {
 public:
  // `recovered` collects the names of the replayed transactions, if it is not null.
  Replayer(Database& db, W& workload, WorkerId worker, std::vector<TxnId>* recovered)
      : db_(db), workload_(workload), txn_(worker), recovered_(recovered) {}

  // Throws Error (kCorrupt) for a record that cannot be what a transaction left. `source` is its log.
  void Replay(TxnRecord& record, const LogSource& source) {
    LookAhead(record, source);
    if (record.kind == format::RecordKind::kCommand) {
      if (workload_.Run(txn_, record.procedure, record.payload) != Outcome::kOk)
        Refuse(record, source, "record does not replay");
    } else {
      PutImages(record);
    }
    if (recovered_ != nullptr && record.counts) recovered_->push_back(record.txn_id);
  }

 private:
  static constexpr size_t kBucketsAhead = 8;
  static constexpr size_t kRowsAhead = 4;
  static constexpr int kImageLinesMax = 16;

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

  void Inspect(TxnRecord& record, const LogSource& source) {
    record.inspected = true;
    if (record.kind == format::RecordKind::kCommand) {
      if (record.payload.size() % 8 != 0 || !workload_.ValidArgs(record.procedure, record.payload)) {
        Refuse(record, source, "malformed arguments of a procedure");
      }
      workload_.PrefetchBuckets(CallOf(record));
      return;
    }
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

  void PrefetchRows(const TxnRecord& record) const {
    if (record.kind == format::RecordKind::kCommand) return workload_.PrefetchRows(CallOf(record));
    WriteEntries entries(record.payload);
    for (WriteImage write; entries.Next(write);) {
      const int lines = static_cast<int>(write.image.size() / 64) + 1;
      db_.table(write.table).PrefetchRow(write.key, std::min(lines, kImageLinesMax));
    }
  }

  void PutImages(const TxnRecord& record) {
    WriteEntries entries(record.payload);
    for (WriteImage write; entries.Next(write);) {
      Table& table = db_.table(write.table);
      if constexpr (kNewestWins) {
        txn_.PutNewest(table, write.key, write.image, record.stamp);
      } else if (write.op == format::WriteOp::kPut) {
        txn_.Put(table, write.key, write.image, /*may_exist=*/true);
      } else {
        // A row that the transaction had inserted itself may never have been there.
        txn_.Delete(table, write.key);
      }
    }
  }

  [[noreturn]] static void Refuse(const TxnRecord& record, const LogSource& source, const char* why) {
    ThrowDamaged(source, record.lsn, why);
  }

  Database& db_;
  W& workload_;
  ReplayTransaction txn_;
  std::vector<TxnId>* recovered_;
};

}  // namespace dbx
