#include "logging/backup/anchor_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/refusal.h"
#include "storage/heap/page_space.h"

namespace dbx {
namespace {

using format::AnchorFile;
using format::AnchorTable;

constexpr uint64_t kSequenceMax = uint64_t{1} << TxnId::kSequenceBits;
constexpr uint64_t kWorkersMax = uint64_t{1} << (64 - TxnId::kSequenceBits);
constexpr uint64_t kTablesMax = uint64_t{1} << 16;
// Of a page; that of any table in memory is far below.
constexpr size_t kFrameBytesMax = size_t{1} << 30;

// Without the padding.
uint64_t BytesOf(uint64_t tables, uint64_t workers) {
  return sizeof(AnchorFile) + tables * sizeof(AnchorTable) + workers * sizeof(uint64_t);
}

uint32_t CrcOf(std::span<const std::byte> bytes) { return Crc32cOfSealed(bytes, offsetof(AnchorFile, crc)); }

// The struct that leads the file, whose counts are those of the file's size.
AnchorFile Opened(std::span<const std::byte> bytes, const Refusal& refuse) {
  AnchorFile file{};
  refuse.Unless(bytes.size() >= sizeof file && bytes.size() % format::kBlockBytes == 0, 0, "the file has another size");
  std::memcpy(&file, bytes.data(), sizeof file);
  refuse.Unless(std::memcmp(file.magic, format::kAnchorMagic, sizeof file.magic) == 0, 0, "wrong magic bytes");
  refuse.Unless(file.crc == CrcOf(bytes), offsetof(AnchorFile, crc), "the checksum does not match");
  refuse.Unless(file.version == format::kVersion, offsetof(AnchorFile, version), "its version is not known",
                ExitStatus::kMismatch);
  refuse.Unless(file.bytes == BytesOf(file.table_count, file.worker_count) &&
                    bytes.size() == RoundUp(file.bytes, format::kBlockBytes),
                offsetof(AnchorFile, bytes), "it counts another number of tables or workers than it holds");
  return file;
}

void CheckCounts(const AnchorFile& file, const Refusal& refuse) {
  refuse.Unless(file.copy < BackupWriter::kCopies && (file.number != 0 || file.copy == 0), offsetof(AnchorFile, copy),
                "impossible copy of the backup");
  refuse.Unless(file.method <= static_cast<uint16_t>(DiffMethod::kLast), offsetof(AnchorFile, method),
                "its method of logging is not known", ExitStatus::kMismatch);
  refuse.Unless(file.truncates <= 1, offsetof(AnchorFile, truncates), "neither with whole logs nor without");
  refuse.Unless(file.part_count >= 1 && file.part_count <= format::kMaxCheckpointParts,
                offsetof(AnchorFile, part_count), "impossible number of parts");
  refuse.Unless(file.log_count >= 1 && file.log_count <= format::kMaxLogs, offsetof(AnchorFile, log_count),
                "impossible number of logs");
  refuse.Unless(file.table_count <= kTablesMax, offsetof(AnchorFile, table_count), "impossible number of tables");
  refuse.Unless(file.worker_count <= kWorkersMax, offsetof(AnchorFile, worker_count), "impossible number of workers");
}

void TakePositions(const AnchorFile& file, const Refusal& refuse, BackupAnchor& anchor) {
  for (uint32_t log = 0; log < file.log_count; ++log) {
    const auto check = [&](bool holds, size_t offset_of_log_0, const char* why) {
      refuse.Unless(holds, offset_of_log_0 + log * sizeof(uint64_t), why);
    };
    check(file.end[log] <= format::kLsnMax, offsetof(AnchorFile, end), "impossible LSN");
    check(file.begin[log] <= file.end[log], offsetof(AnchorFile, begin), "the checkpoint ends before it begins");
    check(file.number != 0 || file.begin[log] == file.end[log], offsetof(AnchorFile, begin),
          "a backup without a checkpoint, and an END behind its BEGIN");
    check(file.needed[log] <= file.begin[log], offsetof(AnchorFile, needed),
          "the checkpoint begins before what recovery needs");
    for (const uint64_t lsn : {file.begin[log], file.end[log], file.needed[log]}) {
      check(lsn % format::kRecordAlignment == 0, offsetof(AnchorFile, begin), "an LSN at which no record starts");
    }
    anchor.begin.emplace_back(file.begin[log]);
    anchor.end.emplace_back(file.end[log]);
    anchor.needed.emplace_back(file.needed[log]);
  }
}

void TakeTables(std::span<const std::byte> bytes, uint32_t count, const Refusal& refuse, BackupAnchor& anchor) {
  for (size_t i = 0, at = sizeof(AnchorFile); i < count; ++i, at += sizeof(AnchorTable)) {
    AnchorTable table;
    std::memcpy(&table, bytes.data() + at, sizeof table);
    refuse.Unless(table.rows_per_page >= 1 && table.rows_per_page <= PageSpace::kRowsPerPageMax,
                  at + offsetof(AnchorTable, rows_per_page), "impossible number of rows in a page");
    refuse.Unless(uint64_t{table.rows_per_page} * (sizeof(Key) + uint64_t{table.tuple_bytes}) <= kFrameBytesMax,
                  at + offsetof(AnchorTable, tuple_bytes), "impossible size of a tuple");
    anchor.tables.push_back({table.pages, table.rows_per_page, table.tuple_bytes, table.checksum});
  }
}

void TakeSequences(std::span<const std::byte> bytes, const AnchorFile& file, const Refusal& refuse,
                   BackupAnchor& anchor) {
  size_t at = BytesOf(file.table_count, 0);
  for (uint32_t worker = 0; worker < file.worker_count; ++worker, at += sizeof(uint64_t)) {
    uint64_t sequence;
    std::memcpy(&sequence, bytes.data() + at, sizeof sequence);
    refuse.Unless(sequence <= kSequenceMax, at, "impossible sequence number");
    anchor.sequences.push_back(sequence);
  }
}

}  // namespace

std::vector<std::byte> EncodeAnchor(const BackupAnchor& anchor) {
  const size_t logs = anchor.begin.size();
  CHECK(logs >= 1 && logs <= format::kMaxLogs && anchor.end.size() == logs && anchor.needed.size() == logs);
  AnchorFile file{};
  std::memcpy(file.magic, format::kAnchorMagic, sizeof file.magic);
  file.version = format::kVersion;
  file.database_id = anchor.database_id;
  file.run_id = anchor.run_id;
  file.number = anchor.number;
  file.method = static_cast<uint8_t>(anchor.method);
  CHECK(anchor.parts >= 1 && anchor.parts <= format::kMaxCheckpointParts && anchor.copy <= 1);
  file.copy = static_cast<uint16_t>(anchor.copy);
  file.truncates = anchor.truncates ? 1 : 0;
  file.part_count = anchor.parts;
  file.log_count = static_cast<uint32_t>(logs);
  file.table_count = static_cast<uint32_t>(anchor.tables.size());
  file.worker_count = static_cast<uint32_t>(anchor.sequences.size());
  file.bytes = BytesOf(anchor.tables.size(), anchor.sequences.size());
  std::ranges::transform(anchor.begin, file.begin, &Lsn::value);
  std::ranges::transform(anchor.end, file.end, &Lsn::value);
  std::ranges::transform(anchor.needed, file.needed, &Lsn::value);

  std::vector<std::byte> bytes(RoundUp(file.bytes, format::kBlockBytes));
  std::memcpy(bytes.data(), &file, sizeof file);
  std::byte* to = bytes.data() + sizeof file;
  for (const BackupAnchor::OfTable& of_table : anchor.tables) {
    const AnchorTable table{of_table.pages, of_table.rows_per_page, of_table.tuple_bytes, of_table.checksum};
    std::memcpy(to, &table, sizeof table);
    to += sizeof table;
  }
  std::ranges::copy(std::as_bytes(std::span(anchor.sequences)), to);
  const uint32_t crc = CrcOf(bytes);
  std::memcpy(bytes.data() + offsetof(AnchorFile, crc), &crc, sizeof crc);
  return bytes;
}

BackupAnchor DecodeAnchor(std::span<const std::byte> bytes, const std::string& path) {
  const Refusal refuse(path);
  const AnchorFile file = Opened(bytes, refuse);
  CheckCounts(file, refuse);
  BackupAnchor anchor;
  anchor.database_id = file.database_id;
  anchor.run_id = file.run_id;
  anchor.number = file.number;
  anchor.copy = file.copy;
  anchor.method = static_cast<DiffMethod>(file.method);
  anchor.truncates = file.truncates != 0;
  anchor.parts = file.part_count;
  TakePositions(file, refuse, anchor);
  TakeTables(bytes, file.table_count, refuse, anchor);
  TakeSequences(bytes, file, refuse, anchor);
  refuse.Unless(std::ranges::equal(EncodeAnchor(anchor), bytes), 0, "something stands where nothing belongs");
  return anchor;
}

BackupShape ShapeOf(const BackupAnchor& anchor, std::vector<std::string> directories) {
  CHECK(directories.size() == anchor.parts);
  BackupShape shape;
  shape.run_id = anchor.run_id;
  for (const BackupAnchor::OfTable& table : anchor.tables) {
    shape.tables.push_back({table.rows_per_page, table.tuple_bytes});
  }
  shape.directories = std::move(directories);
  return shape;
}

std::vector<uint32_t> PagesOf(const BackupAnchor& anchor) {
  std::vector<uint32_t> pages;
  for (const BackupAnchor::OfTable& table : anchor.tables) pages.push_back(table.pages);
  return pages;
}

}  // namespace dbx
