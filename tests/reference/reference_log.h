// The reference reader: log files as logging/README.md describes them, parsed a second time.
//
// What checks the engine must not be the engine: nothing here includes logging/ or shares its checksum. It is
// single-threaded and as plain as it can be. rundb --verify and the tests use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace dbx::reference {

inline constexpr size_t kMaxLogs = 16;
inline constexpr uint64_t kStreamOffset = 8192;  // LSN 0 within its file

enum class Scheme : uint8_t { kSerial = 1, kTaurus = 2 };
enum class Kind : uint8_t { kCommand = 1, kData = 2, kVoid = 3, kPad = 4, kAnchor = 5, kRunEnd = 6 };

struct Record {
  Kind kind{};
  uint32_t log = 0;
  uint64_t lsn = 0;
  uint64_t end = 0;                     // the position behind the record
  uint64_t txn_id = 0;                  // kCommand, kData
  uint16_t procedure = 0;               // kCommand
  std::array<uint64_t, kMaxLogs> lv{};  // kCommand, kData: decompressed; kAnchor: its elements
  uint64_t durable_lsn = 0;             // kPad, kRunEnd
  std::span<const std::byte> payload;   // arguments without transaction id, row images, RunEndBody

  bool IsTxn() const { return kind == Kind::kCommand || kind == Kind::kData; }
};

// Where something is wrong, and what. `offset` counts from the start of the file.
struct Damage {
  std::string path;
  uint64_t offset = 0;
  std::string reason;

  std::string Text() const { return "damaged log " + path + "@" + std::to_string(offset) + ": " + reason; }
};

enum class Verdict {
  kWhole,    // RUN_END, or nothing but zeros behind the valid prefix
  kTorn,     // something that is no record follows, and nothing shows that it had been durable
  kDamaged,  // what had been durable is not there any more
};

struct Log {
  std::string path;
  std::span<const std::byte> stream;  // what follows the two headers
  uint64_t end = 0;                   // of the valid prefix
  Verdict verdict = Verdict::kWhole;
  Damage damage;            // kDamaged
  std::string stop_reason;  // why the valid prefix ends; empty behind RUN_END and at the end of the file
  uint64_t tail_bytes = 0;  // behind the valid prefix, up to the last byte that is not zero
  uint64_t txn_count = 0;   // transactions in the valid prefix
  bool run_end = false;
  bool has_digest = false;
  std::array<uint64_t, 2> digest{};
};

// What the headers of all logs of one run say alike.
struct RunInfo {
  uint64_t database_id = 0, run_id = 0, ring_bytes = 0, schema_hash = 0;
  uint32_t log_count = 0;
  Scheme scheme = Scheme::kSerial;
  uint8_t payload = 0;  // 1 data, 2 command
  std::string config;

  bool operator==(const RunInfo&) const = default;
};

struct ReferenceLogs {
  RunInfo run;
  std::vector<Log> logs;                            // in the order of their index
  std::vector<std::shared_ptr<const void>> owners;  // of the bytes behind Log::stream
};

// Reads the logs of one run, given in any order. Bad headers and logs that do not belong together throw Error
// (kCorrupt, kMismatch; kIo for a file that cannot be read); damage behind a header is a verdict.
ReferenceLogs ReadLogs(const std::vector<std::string>& paths);
ReferenceLogs ReadLogs(const std::vector<std::vector<std::byte>>& files);  // named "log 0", "log 1", ...

// Walks the valid prefix of one log; record() is decompressed by the anchors passed on the way.
class Cursor {
 public:
  Cursor(const ReferenceLogs& logs, uint32_t log);
  bool AtEnd() const { return position_ >= logs_->logs[log_].end; }
  const Record& record() const { return record_; }
  void Next();

 private:
  void Load();

  const ReferenceLogs* logs_;
  uint32_t log_;
  uint64_t position_ = 0;
  std::array<uint64_t, kMaxLogs> anchor_{};
  Record record_;
};

// The record at `lsn` within the valid prefix; elements of its LSN vector that are not stored are `anchor`'s.
Record DecodeRecord(const ReferenceLogs& logs, uint32_t log, uint64_t lsn,
                    const std::array<uint64_t, kMaxLogs>& anchor = {});

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);  // `crc` continues an earlier one

}  // namespace dbx::reference
