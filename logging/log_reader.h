// Reads one log for recovery: cuts its stream into batches of whole, checked records.
//
//     [device] -> block buffer -> check every record, in order -> batch -> a replay lane
//       ^ the next block is read in the background while one is cut
//
// Read-ahead keeps the device busy: as soon as the first record of a block is known to be whole, the read of the next
// block is started, if a buffer is free. Cut waits for a block that is still being read, or says kNotYet, so that a
// worker may turn to another log. An error of such a read is thrown by the Cut that would take the block; at the log's
// end by the last Cut, after a RUN_END too: a read error is reported even if the block turns out not to be needed. A
// log on a RAM disk is read when it is needed, by the worker that needs it: read-ahead was slower by 5 to 10 % with two
// workers on two cores.
//
// Checking is strictly sequential: a batch is handed out only when every byte of the stream below its end has
// passed (header CRC, salt, LSN, log index, kind, length within the file, body CRC). So nothing behind the
// first bad record is ever replayed, and the end of the valid prefix is exact: PADs, VOIDs and anchors
// belong to it, the size of the file never matters.
//
// A log that was truncated below some record is read from there on, in whole blocks; what is below in its block is
// passed over.
//
// Memory is bounded: a batch keeps its buffer, and with all buffers kept Cut says kNoBuffer until a lane has replayed
// enough. The start of a record that crosses the end of its buffer is moved in front of the next one's data. A buffer
// outgrows the block size only for a record whose header, checksum included, says that it is longer and whose bytes are
// all in the file. The rest of such a record is one read, without read-ahead.
//
// Threads: Cut belongs to one thread at a time (ReplayLanes locks); batches are released by any thread. The totals of
// the log are read when the log has ended.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/types.h"
#include "logging/device/background_read.h"
#include "logging/device/block_device.h"
#include "logging/format.h"
#include "logging/lsn_per_log.h"
#include "logging/records/record_type.h"

namespace dbx {

// A log file as recovery sees it: its device and some fields of its checked header.
struct LogSource {
  BlockDevice* device = nullptr;
  uint64_t run_id = 0;
  uint64_t ring_bytes = 0;
  uint32_t log_index = 0;
  uint32_t log_count = 1;
  Lsn start{};  // of the first byte of the stream
  // Where a record starts, below which the log was truncated: what is there is old records, or zeros, block by block.
  Lsn needed{};
  // Commands with timestamps, for multi-version replay; no transaction reads below the first timestamp.
  bool many_versions = false;
  Timestamp first_timestamp{};
  // The end of the frozen prefix, whatever the file holds.
  Lsn frozen_end = Lsn(UINT64_MAX);
  // The run's durable frontier, where it records one: transactions with larger stamps are dropped, and logs that end
  // earlier are damaged.
  Stamp stamp_end = Stamp(UINT64_MAX);
  Lsn durable_until{};
  const char* durable_shown_by = "frontier";  // the file that says so

  bool frozen() const { return frozen_end != Lsn(UINT64_MAX); }
  // Where reading begins.
  Lsn First() const { return std::max(start, needed); }
  bool is_cut() const { return needed > start; }
  // Up to where the log was durable when a record that ends at `end` was written: its place in the ring was free.
  Lsn DurableBefore(Lsn end) const {
    return ring_bytes == 0 ? Lsn() : Lsn(end.value() - std::min(end.value(), ring_bytes));
  }
  uint64_t OffsetOf(Lsn at) const { return format::kStreamOffset + (at - start); }
  // The LSN at the end of the file.
  Lsn FileEnd() const {
    const uint64_t bytes = device->SizeBytes();
    return start + (bytes > format::kStreamOffset ? bytes - format::kStreamOffset : 0);
  }
};

// "PATH@OFFSET", with the offset in the file of a position in the stream.
std::string PlaceOf(const LogSource& source, Lsn at);
// Error(kCorrupt) "damaged log PATH@OFFSET: why".
[[noreturn]] void ThrowDamaged(const LogSource& source, Lsn at, const std::string& why);

// Decides whether bytes at a position of a stream are a record of this run. A fault is named by a
// constant string, nullptr means none.
class RecordCheck {
 public:
  RecordCheck(const LogSource& source, Lsn stream_end)
      : salt_(format::Salt(source.run_id, source.log_index)), log_index_(source.log_index), stream_end_(stream_end) {}

  // `length` and the rest of the header may be used only after this.
  const char* HeaderFault(const format::RecordHeader& header, Lsn at) const;
  static const char* BodyFault(const format::RecordHeader& header, const std::byte* body);

  // The same for a search at every position, where nearly all that is found is none.
  bool IsHeader(const format::RecordHeader& header, Lsn at) const {
    return header.lsn == at.value() && header.salt == salt_ && HeaderFault(header, at) == nullptr;
  }

 private:
  uint32_t salt_;
  uint32_t log_index_;
  Lsn stream_end_;
};

// Block-aligned memory with room in front for the start of a record that was read with the block before.
class ReadBuffer {
 public:
  // Makes room for `carry_bytes` in front of data() and `data_bytes` behind it.
  void Reserve(size_t carry_bytes, size_t data_bytes);
  // The same room in front of the first `used_bytes` of data(), which stay, and may be moved.
  void MakeRoom(size_t carry_bytes, size_t used_bytes);
  std::byte* data() const { return memory_.get() + carry_bytes_; }

  // Held by its reader while it cuts from it and by every batch; observed free (acquire) by the reader before it
  // overwrites bytes that a lane read before its release.
  bool IsFree() const { return holders_.load(std::memory_order_acquire) == 0; }
  void Hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void Release() { holders_.fetch_sub(1, std::memory_order_release); }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t carry_bytes_ = 0;
  size_t data_bytes_ = 0;
  Atomic<uint32_t> holders_{0};
};

// Whole records, checked, from `first` up to `end`. Its holder releases `buffer` once.
struct RecordBatch {
  ReadBuffer* buffer = nullptr;
  std::byte* bytes = nullptr;
  Lsn first;
  Lsn end;
  LsnPerLog anchor{};     // in force at `first`
  Timestamp watermark{};  // the same: no transaction from here on in this log reads below it
};

// Evidence that a log was durable up to some LSN: the record `what` at `at` in log `shown_in`.
struct DurabilityProof {
  Lsn until;
  const char* what = "";
  uint32_t shown_in = 0;
  Lsn at;

  void Raise(const DurabilityProof& other) {
    if (other.until > until) *this = other;
  }
};
using ProofPerLog = std::array<DurabilityProof, format::kMaxLogs>;

// What a record of `source` at `at` proves about the logs of its run.
void RaiseProofs(const LogSource& source, const RecordType& type, const RecordFacts& facts, Lsn at,
                 ProofPerLog& proofs);

// What the records of a part of a log state, together.
struct LogTotals {
  uint64_t voids = 0;
  uint64_t txns = 0;
  uint64_t next_sequence = 0;  // above that of every transaction that a record states (RecordFacts::next_sequence)
  ProofPerLog proofs;          // what anchors and others prove about all logs
  // Of stamped records and marks: the largest stamp, and up to which one every log had been durable. A transaction with
  // timestamps has its end timestamp as stamp.
  Stamp stamp;
  Stamp durable_stamp;

  void Count(const RecordType& type) {
    txns += type.role == RecordRole::kTransaction;
    voids += type.role == RecordRole::kVoid;
  }
  // Of a record of `source` at `at`. Returns why it makes no sense there, or nullptr.
  const char* Take(const LogSource& source, const RecordType& type, const RecordFacts& facts, Lsn at);
  // Error(kCorrupt): `run_end`, which is at `at` behind these records, counts others.
  void CheckCount(const LogSource& source, const format::RunEndBody& run_end, Lsn at) const;
};

class LogReader {
 public:
  // A batch ends with the record that reaches one of these.
  static constexpr size_t kBatchBytes = 32 << 10;
  static constexpr size_t kBatchRecords = 32;

  enum class Result {
    kBatch,
    kNoBuffer,
    kNotYet,  // the device has not answered
    kEnded
  };

  // Reads blocks of about `block_bytes` (of each disk of the device), at most `buffer_count` buffers ahead of the
  // replay.
  LogReader(const LogSource& source, size_t block_bytes, uint32_t buffer_count);

  // Reads on, if need be, and hands over the next batch. Without `wait` it returns kNotYet instead of waiting for the
  // device. Throws Error: kIo from the device, kCorrupt for a record that is whole but malformed.
  Result Cut(RecordBatch& batch, bool wait = true);

  const LogSource& source() const { return source_; }
  // Everything below has been handed over.
  Lsn position() const { return position_; }
  // The end was found, and no read is in flight.
  bool ended() const { return ended_ && !read_.started(); }

  // Once ended: why the valid prefix ends at position() (ELV); the log's RUN_END, if any.
  const char* end_reason() const { return end_reason_; }
  const std::optional<format::RunEndBody>& run_end() const { return run_end_; }
  const LogTotals& totals() const { return totals_; }
  // A place up to `at` where a record of the prefix starts, not far before it: one of each block is known.
  Lsn RecordStartUpTo(Lsn at) const;
  // These places, ascending: the first is where reading began; one may be there twice, and the last be position().
  std::span<const Lsn> block_starts() const { return block_starts_; }

  // No transaction behind position() reads below this.
  Timestamp watermark() const { return watermark_; }

 private:
  enum class Look { kRecord, kIncomplete, kBad };

  void Start(RecordBatch& batch) const;
  Look LookAtRecord();
  void Take();
  void Follow(const RecordType& type, const RecordView& record);
  void End(const format::RunEndBody& run_end);
  [[noreturn]] void Refuse(const std::string& why) const;
  ReadBuffer* FreeBuffer() const;
  void ReadAhead();
  bool StartReading(size_t carry_bytes, size_t needed_bytes);
  void TakeBlock();
  size_t available() const { return loaded_until_ > position_ ? static_cast<size_t>(loaded_until_ - position_) : 0; }

  LogSource source_;
  size_t block_bytes_;
  Lsn stream_end_;  // of the file; a bound for lengths, no frontier
  RecordCheck check_;
  const bool is_memory_;  // the device
  std::vector<std::unique_ptr<ReadBuffer>> buffers_;

  ReadBuffer* buffer_ = nullptr;
  std::byte* cursor_ = nullptr;  // the record at position_, in *buffer_
  Lsn position_;
  std::vector<Lsn> block_starts_;  // of the first record of each block, ascending
  Lsn loaded_until_;               // *buffer_ holds the stream from position_ up to here; at first, its block's start
  size_t needed_ = 0;              // bytes from position_ on that the next step needs
  LsnPerLog anchor_{};

  // The read of the block at loaded_until_, if one is started.
  ReadBuffer* next_buffer_ = nullptr;
  size_t next_bytes_ = 0;  // requested
  BackgroundRead read_;    // behind the buffers, which it must not outlive

  bool ended_ = false;
  const char* end_reason_ = "";
  std::optional<format::RunEndBody> run_end_;
  LogTotals totals_;  // so far
  Timestamp watermark_;
};

}  // namespace dbx
