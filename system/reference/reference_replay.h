// The reference recovery: reads the logs of a run as logging/README.md describes them, decides which transactions
// survive and in which serial order they ran, and replays them into a freshly loaded database.
//
// What checks the engine must not be the engine: nothing here includes logging/ or shares its parser or checksum.
// It is single-threaded and naive on purpose. rundb --verify and the tests call it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/epoch.h"
#include "base/error.h"
#include "benchmarks/txn_context.h"
#include "storage/database.h"
#include "storage/tuple.h"

namespace dbx::reference {

using Bytes = std::span<const std::byte>;
inline constexpr uint64_t kStreamOffset = 8192;  // the start of the stream within its file
using LsnVector = std::array<uint64_t, 16>;      // one LSN for each log

enum class Kind : uint8_t {
  kCommand = 1,
  kData = 2,
  kVoid = 3,
  kPad = 4,
  kAnchor = 5,
  kRunEnd = 6,
  kStamped = 7,
  kMark = 8,
  kVersionedCommand = 9,
  kWatermark = 10,
  kChange = 11,
  kCommit = 12,
  kAbort = 13,
  kCheckpointBegin = 14,
  kCheckpointEnd = 15,
  kRowChanges = 16
};

struct Record {
  Kind kind{};
  uint16_t procedure = 0;  // of a command; kChange: the slot
  uint16_t table = 0;      // kChange
  uint16_t flags = 0;      // kChange, kCommit, kAbort
  uint32_t log = 0;
  uint64_t lsn = 0;
  uint64_t end = 0;          // the position behind the record
  uint64_t txn_id = 0;       // of a transaction; kChange, kAbort
  uint64_t stamp = 0;        // kStamped, kMark; kVersionedCommand: the timestamp at which it committed
  uint64_t read = 0;         // kVersionedCommand: the timestamp at which it read; kWatermark
  uint64_t parts = 0;        // kStamped: bit j: the transaction has a part in log j
  uint64_t durable_lsn = 0;  // kPad, kRunEnd; kMark: the stamp up to which every log was durable
  uint32_t page = 0;         // kChange
  uint32_t number = 0;       // of a checkpoint: kChange, kCheckpointBegin, kCheckpointEnd
  LsnVector lv{};            // kCommand, kData, kVersionedCommand, kCommit: decompressed; kAnchor: its elements
  // A command: arguments without transaction id; kData, kStamped: row images; kChange: the key, if there is one, and
  // the difference, or the images before and after; kRowChanges: the changes of its rows; kCheckpointEnd: the ids of
  // active transactions; else the body.
  Bytes payload;

  bool IsCommand() const { return kind == Kind::kCommand || kind == Kind::kVersionedCommand; }
  bool IsTxn() const {
    return IsCommand() || kind == Kind::kData || kind == Kind::kStamped || kind == Kind::kCommit ||
           kind == Kind::kRowChanges;
  }
  // Not so a further part of a transaction that has one in a log before this one.
  bool IsFirstPart() const { return parts == 0 || static_cast<uint32_t>(std::countr_zero(parts)) == log; }
};

enum class Verdict {
  kWhole,    // RUN_END, or nothing but zeros behind the valid prefix
  kTorn,     // something that is no record follows, and nothing shows that it had been durable
  kDamaged,  // what had been durable is not there any more; recovery refuses
};

struct Log {
  std::string path;
  Bytes stream;        // what follows the two headers
  uint64_t start = 0;  // LSN of its first byte
  uint64_t first = 0;  // where reading begins: the start, or where an anchor says
  uint64_t end = 0;    // of the valid prefix
  Verdict verdict = Verdict::kWhole;
  std::string reason;       // why the valid prefix ends; kDamaged: and how that is known
  uint64_t tail_bytes = 0;  // behind the valid prefix, up to the last byte that is not zero
  uint64_t txn_count = 0;   // transactions in the valid prefix
  bool run_end = false;

  std::vector<std::byte> joined;  // the stream of a striped log, of which `path` is the first stripe

  bool is_cut() const { return first > start; }
  uint64_t OffsetOf(uint64_t lsn) const { return kStreamOffset + (lsn - start); }
  Bytes From(uint64_t lsn) const { return stream.subspan(lsn - start); }

  // One line that names the file, the place `lsn` of the damage, and why it is one.
  std::string Complaint(uint64_t lsn, const std::string& why) const {
    return "damaged log " + path + "@" + std::to_string(OffsetOf(lsn)) + ": " + why;
  }
};

struct ReferenceLogs {
  std::vector<std::byte> common_header;  // the header less what is each log's own: its index and its checksum
  uint64_t run_id = 0;
  uint64_t start_lsn = 0;
  uint64_t ring_bytes = 0;
  uint64_t stripe_bytes = 0;  // not 0: the files are stripes of one log
  uint64_t scheme = 0;
  bool by_partition() const { return scheme == 3; }
  bool newest_wins() const { return scheme == 4; }
  bool by_changes() const { return scheme == 6; }
  bool many_versions = false;                                  // its transactions are kVersionedCommand
  uint64_t stamp_end = UINT64_MAX;                             // transactions with larger stamps are dropped
  uint64_t durable_stamp = 0;                                  // up to which every log was durable, as their marks say
  std::vector<Log> logs;                                       // in the order of their index
  std::optional<std::pair<uint64_t, uint64_t>> frozen_digest;  // of what was recovered when the run was continued
  // Of logs that are read from an anchor on, by worker: what ended with a lower sequence is in the backup or the rows.
  std::vector<uint64_t> ended_below;
  std::vector<std::shared_ptr<const void>> owners;  // of the bytes behind Log::stream
};

// A file's bytes, wherever they are, and whatever must live as long as they are looked at.
struct FileImage {
  std::string path;
  Bytes bytes;
  std::shared_ptr<const void> owner;
};

// Reads the logs of one run, given in any order. Bad headers and logs that do not belong together throw Error
// (kCorrupt, kMismatch); damage behind a header is a verdict.
// `frontier`, if not null: where recovery ends each log, and must be able to. `needed`, if not null: where it begins.
ReferenceLogs ReadLogs(std::vector<FileImage> files, const std::vector<uint64_t>* frontier = nullptr,
                       const std::vector<uint64_t>* needed = nullptr);
ReferenceLogs ReadLogs(const std::vector<std::vector<std::byte>>& files);  // named "file 0", "file 1", ...

// Walks the valid prefix of one log; record() is decompressed by the anchors passed on the way.
class Cursor {
 public:
  Cursor(const ReferenceLogs& logs, uint32_t log) : logs_(&logs), log_(log) { Load(logs.logs[log].first); }
  bool AtEnd() const { return position_ >= logs_->logs[log_].end; }
  const Record& record() const { return record_; }
  void Next() { Load(record_.end); }

 private:
  void Load(uint64_t position);

  const ReferenceLogs* logs_;
  uint32_t log_;
  uint64_t position_ = 0;
  LsnVector anchor_{};
  Record record_;
};

// The record at `lsn` of a valid prefix; elements of its LSN vector that are not stored are `anchor`'s.
Record DecodeRecord(const ReferenceLogs& logs, uint32_t log, uint64_t lsn, const LsnVector& anchor = {});

struct TxnRef {
  uint64_t log : 8;
  uint64_t lsn : 56;
};

// A transaction that is whole in its log, while what it depends on is not: log `lost_log` ends before `needed_lsn`.
struct DroppedTxn {
  TxnId id;
  TxnRef at;
  uint32_t lost_log;
  uint64_t needed_lsn;
};

struct RecoveredSet {
  std::string damage;              // why recovery refuses; the rest says nothing then. Empty: it does not refuse
  std::vector<uint64_t> frontier;  // the end of the valid prefix of each log (ELV)
  std::vector<TxnRef> order;       // a serial order in which to replay
  std::vector<uint64_t> txn_ids;   // of `order`, ascending
  std::vector<DroppedTxn> dropped;
  uint64_t voids = 0;
};

// Serial: the valid prefix. Taurus, and logs of changes, where kCommit is the transaction (reference_pages.h has their
// state): { T valid and T.LV <= ELV }, transaction by transaction. Plover: { T.GSN <= the
// least of the last GSNs of the logs }. Silo-R: { T.TID <= the durable frontier }. In many versions the order is that
// of ends.
RecoveredSet Recover(const ReferenceLogs& logs);
// For stamped logs (reference_stamps.cpp).
RecoveredSet RecoverStamped(const ReferenceLogs& logs);

// A stored procedure's view of a database in which nothing else happens. Undo puts back what the procedure
// wrote, newest first, when it ends without effect. Forget takes what it deleted out of ordered tables: their scans
// would meet it for ever.
class ReferenceContext {
 public:
  Outcome Read(Table& table, Key key, auto&& visit) {
    Row* row = FindPresent(table, key);
    if (row == nullptr) return Outcome::kNotFound;
    visit(TupleReader(table.tuple(row)));
    return Outcome::kOk;
  }
  Outcome Update(Table& table, Key key, auto&& change) {
    Row* row = FindPresent(table, key);
    if (row == nullptr) return Outcome::kNotFound;
    Save(table, row);
    TupleWriter<ReferenceContext> writer(table.tuple(row), *this);
    change(writer);
    return Outcome::kOk;
  }
  Outcome Insert(Table& table, Key key, Bytes tuple);
  Outcome Delete(Table& table, Key key);
  Outcome Scan(Table& table, Key low, Key high, ScanOrder order, auto&& visit) {
    ScanEntries(table.tree(), low, high, order, [&](const BTreeEntry& entry) {
      const bool absent = (entry.row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0;
      return absent || visit(entry.key, TupleReader(table.tuple(entry.row)));
    });
    return Outcome::kOk;
  }

  void Put(Table& table, Key key, Bytes tuple);  // writes a whole row, present before or not
  // The tuple of a row, whose bytes may be changed; nullptr: there is none.
  std::byte* Change(Table& table, Key key);
  void Undo();
  void Forget();
  void BeforeChange(std::byte*, size_t) {}  // Update has saved the whole tuple

 private:
  struct Saved {
    Table* table;
    Row* row;
    uint64_t control;
    std::vector<std::byte> tuple;
  };
  static Row* FindPresent(Table& table, Key key);
  void Save(Table& table, Row* row);

  std::vector<Saved> saved_;
  EpochClock stopped_clock_{1};
};

struct ReplayResult {
  uint64_t applied = 0;
  // Commands that a log holds and that end without effect: they do not read what they had read.
  std::vector<TxnId> without_effect;
};

// Applies the images of a kData record. Throws Error (kCorrupt) for images that do not fit the database.
void ApplyImages(const Log& log, const Record& record, ReferenceContext& context, Database& database);

// By table and key: `previous` as a record that follows must have it.
using LastRecords = std::map<std::pair<uint64_t, Key>, uint64_t>;
// Applies a kRowChanges record. Throws Error (kCorrupt) for changes that do not fit the database, and for one that does
// not name its row's previous record.
void ApplyChanges(const Log& log, const Record& record, ReferenceContext& context, Database& database,
                  LastRecords& last);

// The CRC of some bytes, given that of the bytes before them.
uint32_t Crc32c(Bytes bytes, uint32_t crc = 0);

}  // namespace dbx::reference
