// The bytes of a log file. The grammar is in logging/README.md; this header is its C++ side: plain
// structs, sizes asserted, all integers little-endian. Written by LogStream and file_header.h's users, read by
// LogReader; the reference replay in system/reference has a parser of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace dbx::format {

inline constexpr uint32_t kVersion = 1;
inline constexpr char kMagic[8] = {'D', 'B', 'X', 'L', 'O', 'G', '\r', '\n'};
// Flushes start and end on multiples of this, from the start of the stream.
inline constexpr size_t kBlockBytes = 4096;
// The last start of a block up to `at`.
constexpr Lsn BlockBelow(Lsn at) { return Lsn(at.value() / kBlockBytes * kBlockBytes); }
// Two copies of the file header, a block each; the stream starts behind them.
inline constexpr size_t kHeaderCopyBytes = kBlockBytes;
inline constexpr size_t kStreamOffset = 2 * kHeaderCopyBytes;
inline constexpr size_t kMaxLogs = 16;
// LSNs stay far below 2^63, as vector instructions compare them as signed.
inline constexpr uint64_t kLsnMax = uint64_t{1} << 62;
// The largest timestamp of a transaction; a row's control word has room for no more.
inline constexpr uint64_t kTimestampMax = (uint64_t{1} << 49) - 1;

// FileHeader::required_features: the run continues another one, from whose state its records are replayed; its stream
// starts at start_lsn, and parent_run_id and parent_run name the other.
inline constexpr uint32_t kFeatureContinues = 1;
// The file is a stripe of the run's one log: unit u of stripe_bytes of the stream lies in stripe u mod log_count.
inline constexpr uint32_t kFeatureStriped = 2;
// The run has a `row-anchor`, without which it cannot be recovered.
inline constexpr uint32_t kFeatureRowCheckpoints = 4;

// Named in logging/schemes.h.
enum class Scheme : uint8_t {
  kNone = 0,
  kSerial = 1,
  kTaurus = 2,
  kPlover = 3,
  kSiloR = 4,
  kEleda = 5,
  kDifferential = 6,
  kWriteBehind = 7,
  kInstant = 8,
  kLast = kInstant,
};
// kVersionedCommand: the log has multi-version replay, and all its transactions are kVersionedCommand.
// How a run's changes are logged and recovered (Lee, Kim, Cha: Differential Logging, ICDE 2001, sections 3 and 5):
// differential records and one pass; the same and two passes; before and after images and two passes. Named in
// logging/differential_methods.h.
enum class DiffMethod : uint16_t { kDl1p = 0, kDl2p = 1, kPl2p = 2, kLast = kPl2p };
enum class Payload : uint8_t { kNone = 0, kData = 1, kCommand = 2, kVersionedCommand = 3, kLast = kVersionedCommand };

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_crc;         // CRC32C of the whole 4096-byte copy with this field zero
  uint64_t database_id;        // random, the same for all runs over one database
  uint64_t run_id;             // random, the same for all logs of one run
  uint32_t required_features;  // a reader that does not know a bit refuses the file
  uint16_t log_index;
  uint16_t log_count;
  uint64_t start_lsn;    // of the first byte of the stream; whole blocks; 0 unless the run continues another
  uint64_t ring_bytes;   // a record at LSN q proves that everything below q - ring_bytes had been durable
  uint64_t schema_hash;  // of every table's name, columns and sizes
  uint8_t scheme;        // Scheme
  uint8_t payload;       // Payload
  uint8_t unused[2];
  uint32_t config_bytes;  // length of `config`
  // "NAME=value\n" lines: every switch that the meaning of the log depends on (workload, sizes, seed, CC, ...).
  char config[kHeaderCopyBytes - 88];
  uint64_t parent_run_id;  // kFeatureContinues; else 0
  uint32_t parent_run;     // its number
  uint32_t stripe_bytes;   // kFeatureStriped; else 0
};
static_assert(sizeof(FileHeader) == kHeaderCopyBytes);

// What each is to a reader: logging/records/record_type.h.
enum class RecordKind : uint8_t {
  kCommand = 1,  // a transaction: its procedure and arguments
  kData = 2,     // a transaction: the images of its write set
  kVoid = 3,     // reserved by a transaction that aborted; the body is undefined
  kPad = 4,      // fills up a block; records how much of this log was durable
  kAnchor = 5,   // the durable LSNs of all logs; LV compression: later LSN vectors omit elements that it covers
  kRunEnd = 6,   // a clean end; nothing follows
  kStamped = 7,  // a transaction, or its part in this log, with a stamp that orders it; images as in kData
  kMark = 8,     // no transaction with this stamp or a lower one follows in this log
  // kCommand, with the timestamps at which the transaction read and committed.
  kVersionedCommand = 9,
  // No transaction that follows in this log reads below its timestamp.
  kWatermark = 10,
  kChange = 11,           // of one slot, by a transaction that has not ended yet: the XOR of its images
  kCommit = 12,           // a transaction whose changes stand before, in the same log
  kAbort = 13,            // the end of one without effect
  kCheckpointBegin = 14,  // a fuzzy checkpoint begins
  kCheckpointEnd = 15,    // all of its pages are durable; the transactions that are active in this log
  kRowChanges = 16,       // a transaction: the changes of its write set, each with the row's previous record
  kLast = kRowChanges,
};

struct RecordHeader {
  uint32_t header_crc;  // CRC32C of the other 28 bytes
  uint32_t body_crc;    // CRC32C of the body; 0 for kVoid
  uint32_t salt;        // from run id and log index: rejects bytes of another run
  uint32_t length;      // of the record, header included; a multiple of 8
  uint64_t lsn;         // where the record starts in its stream
  uint8_t kind;         // RecordKind
  uint8_t log_index;
  uint16_t lv_mask;    // bit j: element j of the LV is stored; the last anchor has the others.
                       // kStamped: bit j: the transaction has a part in log j; 0: this record is all of it
                       // kChange: the table
  uint16_t procedure;  // kCommand, kVersionedCommand; kChange: the slot in its page
  uint16_t flags;      // kChange: kChange...; kCommit, kAbort: kEndStamped or 0; 0 in all others
};
static_assert(sizeof(RecordHeader) == 32);
inline constexpr size_t kRecordAlignment = 8;

// Body of kCommand: u64 transaction id, u64 LSN vector elements (one per bit of lv_mask, ascending), the
// arguments behind the transaction id. Body of kData: the same with WriteEntry + image for each row.
struct WriteEntry {
  uint64_t key;
  uint16_t table;
  uint8_t op;  // WriteOp
  uint8_t unused;
  uint32_t length;  // of the image that follows; padded with zeros to a multiple of 8
};
static_assert(sizeof(WriteEntry) == 16);
enum class WriteOp : uint8_t { kPut = 1, kDelete = 2 };
// Body of kStamped: u64 transaction id, u64 stamp, WriteEntry + image for each row.
// Body of kVersionedCommand: as kCommand, with Timestamps in front of the arguments.
struct Timestamps {
  uint64_t read;  // the transaction saw versions committed at or below it, and its own writes
  uint64_t end;   // its commit timestamp, at which its versions begin; larger than `read`
};
static_assert(sizeof(Timestamps) == 16);
// Body of kWatermark: u64 timestamp.

// Body of kChange: ChangeBody, u64 key if kChangePresence, then the XOR of the tuple before and after the change, an
// absent tuple being zeros: all of it, or its runs if kChangeRuns; filled up with zeros to a multiple of 8. If
// kChangeImages, the tuple before and the tuple after instead, each filled up.
struct ChangeBody {
  uint64_t txn_id;
  uint32_t page;    // in the table
  uint32_t number;  // the checkpoint that had reached the page: the change is in backup g if and only if number < g
};
static_assert(sizeof(ChangeBody) == 16);
inline constexpr uint16_t kChangeFirst = 1;         // no earlier change of the transaction's attempt, in any log
inline constexpr uint16_t kChangePresence = 2;      // the slot was absent before or is absent after it
inline constexpr uint16_t kChangeCompensation = 4;  // takes back an earlier change
inline constexpr uint16_t kChangeRuns = 8;
inline constexpr uint16_t kChangeImages = 16;  // DiffMethod::kPl2p
inline constexpr uint16_t kChangeErases = 32;  // with kChangePresence and kChangeImages: the slot is absent after it
// A run of changed words of 4 bytes, which follow it; runs ascend and have gaps between them.
struct ChangeRun {
  uint16_t word;  // the first, from the tuple's start
  uint16_t words;
};
static_assert(sizeof(ChangeRun) == 4);
// Body of kCommit: u64 transaction id, u64 LSN vector elements (one per bit of lv_mask, ascending). Body of kAbort: u64
// transaction id. If kEndStamped, both have vector elements and then a u64 stamp, which orders the ends of all logs.
inline constexpr uint16_t kEndStamped = 1;  // DiffMethod::kPl2p

// Body of kRowChanges: u64 transaction id, RowChangeEntry and what it holds for each row. An insert holds the tuple, a
// delete nothing, an update ByteRun and bytes for each run of changed bytes, each filled up with zeros to a multiple of
// 8.
enum class RowChangeOp : uint8_t { kInsert = 1, kDelete = 2, kUpdate = 3, kLast = kUpdate };
struct RowChangeEntry {
  uint64_t key;
  uint64_t previous;  // the LSN of the row's previous record in this log, with bit 0 set; 0: there is none
  uint16_t table;
  uint8_t op;  // RowChangeOp
  uint8_t unused;
  uint32_t length;  // of what follows; padded with zeros to a multiple of 8
};
static_assert(sizeof(RowChangeEntry) == 24);
// A run of changed bytes, which follow it; runs ascend.
struct ByteRun {
  uint32_t offset;  // from the tuple's start
  uint32_t bytes;
};
static_assert(sizeof(ByteRun) == 8);

// Body of kCheckpointBegin.
struct CheckpointBeginBody {
  uint32_t number;
  uint32_t unused;
};
// Body of kCheckpointEnd: this, then u64 transaction id of each active transaction.
struct CheckpointEndBody {
  uint32_t number;
  uint32_t active;  // transactions
};

// Body of kMark.
struct MarkBody {
  uint64_t stamp;
  uint64_t durable_stamp;  // up to this stamp every log had been durable
};

// Body of kPad, then zeros up to the record's length.
struct PadBody {
  uint64_t durable_lsn;
};
// Body of kAnchor: u64 durable LSN of log 0, 1, ... log_count - 1.

// Body of kRunEnd.
struct RunEndBody {
  uint64_t durable_lsn;  // everything below; equals the record's own LSN or less
  uint64_t txn_count;    // transactions (kCommand, kData, kStamped, kVersionedCommand, kCommit) in this log
  uint64_t has_digest;   // 1: digest holds the digest of the final state
  uint64_t digest[2];
};
static_assert(sizeof(RunEndBody) == 40);

// `frozen` of a run: the frozen prefix that its first continuation recovered, as every later recovery does.
inline constexpr char kFrozenMagic[8] = {'D', 'B', 'X', 'F', 'R', 'Z', '\r', '\n'};
struct FrozenFile {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of all 4096 bytes with this field zero
  uint64_t database_id;
  uint64_t run_id;
  uint32_t log_count;
  uint32_t has_digest;  // 1: digest holds that of the recovered state
  uint64_t digest[2];
  uint64_t next_sequence;       // above that of every transaction in the logs, dropped ones included
  uint64_t highest_lsn;         // the logs hold nothing behind it
  uint64_t frontier[kMaxLogs];  // the LSN at which recovery ends each log
  uint64_t highest_stamp;       // no stamp in the logs is larger
  uint64_t stamp_end;           // no transaction with a larger stamp was recovered
  char unused[kBlockBytes - 88 - 8 * kMaxLogs];
};
static_assert(sizeof(FrozenFile) == kBlockBytes);

// `successor` of a run that is continued: which run continues it. Durable before that run is committed, so that the
// loss of that run is detected.
inline constexpr char kSuccessorMagic[8] = {'D', 'B', 'X', 'S', 'U', 'C', '\r', '\n'};
struct SuccessorFile {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of all 4096 bytes with this field zero
  uint64_t database_id;
  uint64_t run_id;        // of the run that is continued
  uint64_t child_run_id;  // of the one that continues it
  uint32_t child_run;     // its number
  uint32_t unused_after_child;
  char unused[kBlockBytes - 48];
};
static_assert(sizeof(SuccessorFile) == kBlockBytes);

// A block of `frontier`, of a run whose transactions become durable by stamps.
inline constexpr char kFrontierMagic[8] = {'D', 'B', 'X', 'D', 'U', 'R', '\r', '\n'};
struct FrontierBlock {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of all 4096 bytes with this field zero
  uint64_t run_id;
  uint64_t number;  // of the block in its file
  uint64_t stamp;   // every transaction with this stamp or a lower one is durable
  uint32_t log_count;
  uint32_t unused_after_count;
  uint64_t lsns[kMaxLogs];  // how far each log was durable
  char unused[kBlockBytes - 48 - 8 * kMaxLogs];
};
static_assert(sizeof(FrontierBlock) == kBlockBytes);

// `manifest` of a run that continues another: the creation record that commits the run.
inline constexpr char kManifestMagic[8] = {'D', 'B', 'X', 'M', 'A', 'N', '\r', '\n'};
inline constexpr size_t kMaxCheckpointParts = 64;
struct CheckpointPart {
  uint64_t bytes;  // of the file
  uint64_t rows;
  uint32_t crc;  // CRC32C of the file
  uint32_t unused;
};
struct ManifestFile {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of all 4096 bytes with this field zero
  uint64_t database_id;
  uint64_t run_id;
  uint64_t parent_run_id;
  uint32_t parent_run;
  uint32_t part_count;      // 0: no checkpoint; recovery replays the ancestors
  uint64_t start_lsn;       // as in the headers
  uint64_t first_sequence;  // of each worker's transactions
  CheckpointPart parts[kMaxCheckpointParts];
  uint32_t has_digest;  // 1: digest holds that of the state from which the checkpoint was written
  uint32_t unused_before_digest;
  uint64_t digest[2];
  uint64_t first_stamp;  // the stamps of the run's transactions are larger
  char unused[kBlockBytes - 96 - 24 * kMaxCheckpointParts];
};
static_assert(sizeof(ManifestFile) == kBlockBytes);

// A checkpoint's part: this header in a block of its own, then CheckpointBlocks, each from the start of a block on and
// filled up with zeros.
inline constexpr char kCheckpointMagic[8] = {'D', 'B', 'X', 'C', 'K', 'P', '\r', '\n'};
struct CheckpointHeader {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of the header with this field zero
  uint64_t database_id;
  uint64_t run_id;  // of the run that starts from the checkpoint
  uint64_t schema_hash;
  uint32_t part;
  uint32_t part_count;
};
static_assert(sizeof(CheckpointHeader) == 48);
inline constexpr uint32_t kCheckpointRows = 1;  // CheckpointBlock::kind: WriteEntry image zero_padding, for each row
inline constexpr uint32_t kCheckpointEnd = 2;   // CheckpointEnd; nothing follows
inline constexpr size_t kCheckpointBlockBytesMax = size_t{4} << 20;
struct CheckpointBlock {
  uint32_t crc;    // CRC32C of the rest of the block
  uint32_t bytes;  // of the block, with this header, without the zeros behind it
  uint32_t kind;
  uint32_t rows;
};
static_assert(sizeof(CheckpointBlock) == 16);
struct CheckpointEnd {
  uint64_t rows;    // in this part
  uint64_t digest;  // CRC32C of the blocks' `crc` fields in their order
};

// `anchor` of a run that begins with a backup: AnchorFile, AnchorTable for each table, u64 for each worker, padded with
// zeros to whole blocks. It names the newest complete backup, without which there is no run.
inline constexpr char kAnchorMagic[8] = {'D', 'B', 'X', 'A', 'N', 'C', '\r', '\n'};
struct AnchorFile {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of the file with this field zero
  uint64_t database_id;
  uint64_t run_id;
  uint32_t number;    // of the checkpoint
  uint16_t copy;      // of the backup's two
  uint8_t method;     // DiffMethod
  uint8_t truncates;  // 1: the logs may have been truncated below `needed`
  uint32_t part_count;
  uint32_t log_count;
  uint32_t table_count;
  uint32_t worker_count;
  uint64_t bytes;             // of the file without padding
  uint64_t begin[kMaxLogs];   // of each log, where the checkpoint's BEGIN starts
  uint64_t end[kMaxLogs];     // where its END starts
  uint64_t needed[kMaxLogs];  // recovery needs nothing below; at most `begin`
};
static_assert(sizeof(AnchorFile) == 64 + 3 * 8 * kMaxLogs);
struct AnchorTable {
  uint32_t pages;  // that the checkpoint counted
  uint32_t rows_per_page;
  uint32_t tuple_bytes;
  uint32_t checksum;  // of the backup of these pages: the checksums of their frames, combined by XOR
};
static_assert(sizeof(AnchorTable) == 16);
// Behind the tables, for each worker: all of its transactions with lower sequence numbers had ended before the
// checkpoint began.

// `row-anchor` of a run with row checkpoints (system/runs/row_checkpoint.h): RowAnchorFile, u64 for each worker, padded
// with zeros to whole blocks. It names the newest complete one, whose parts are as those of a checkpoint; before there
// is any, the one with number 0 and without parts says that the run's own start holds. For each worker: all of its
// transactions with lower sequence numbers had ended before the checkpoint began.
inline constexpr char kRowAnchorMagic[8] = {'D', 'B', 'X', 'R', 'A', 'N', '\r', '\n'};
struct RowAnchorFile {
  char magic[8];
  uint32_t version;
  uint32_t crc;  // CRC32C of the file with this field zero
  uint64_t database_id;
  uint64_t run_id;
  uint32_t number;    // of the checkpoint, from 1 on; 0: there is none yet
  uint16_t copy;      // whose files they are, of two
  uint8_t truncates;  // 1: the logs may have been truncated below `start`
  uint8_t unused_after_truncates;
  uint32_t part_count;
  uint32_t log_count;
  uint32_t worker_count;
  uint32_t unused_after_workers;
  uint64_t bytes;            // of the file without padding
  uint64_t start[kMaxLogs];  // of each log, where replay begins: a record starts there
  uint64_t end[kMaxLogs];    // and how far it is durable: the rows hold nothing of a record behind it
  CheckpointPart parts[kMaxCheckpointParts];
};
static_assert(sizeof(RowAnchorFile) == 64 + 2 * 8 * kMaxLogs + 24 * kMaxCheckpointParts);

// A frame of a backup's part: this header, then the packed images of a page (storage/heap/page_space.h), filled up with
// zeros to whole blocks. Page i of a table is frame i div parts of part i mod parts.
struct BackupFrame {
  uint32_t crc;   // CRC32C of the rest of the frame
  uint32_t salt;  // Salt(run id, kBackupSalt + copy)
  uint32_t page;
  uint32_t number;  // of the checkpoint that wrote it
  uint16_t table;
  uint16_t copy;
  uint32_t rows_per_page;
  uint32_t tuple_bytes;
  uint32_t unused;
};
static_assert(sizeof(BackupFrame) == 32);
inline constexpr uint32_t kBackupSalt = 0x100;  // beyond the indexes of logs

// The salt of log `log_index` of run `run_id`.
constexpr uint32_t Salt(uint64_t run_id, uint32_t log_index) {
  uint64_t x = run_id + 0x9E3779B97F4A7C15u * (log_index + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(x ^ (x >> 31));
}

}  // namespace dbx::format
