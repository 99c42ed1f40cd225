#include "system/runs/row_anchor.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/refusal.h"

namespace dbx {
namespace {

using format::RowAnchorFile;

constexpr uint64_t kSequenceMax = uint64_t{1} << TxnId::kSequenceBits;
constexpr uint64_t kWorkersMax = uint64_t{1} << (64 - TxnId::kSequenceBits);

// Without the padding.
uint64_t BytesOf(uint64_t workers) { return sizeof(RowAnchorFile) + workers * sizeof(uint64_t); }

uint32_t CrcOf(std::span<const std::byte> bytes) { return Crc32cOfSealed(bytes, offsetof(RowAnchorFile, crc)); }

// The struct that leads the file, whose count of workers is that of the file's size.
RowAnchorFile Opened(std::span<const std::byte> bytes, const Refusal& refuse) {
  RowAnchorFile file{};
  refuse.Unless(bytes.size() >= sizeof file && bytes.size() % format::kBlockBytes == 0, 0, "the file has another size");
  std::memcpy(&file, bytes.data(), sizeof file);
  refuse.Unless(std::memcmp(file.magic, format::kRowAnchorMagic, sizeof file.magic) == 0, 0, "wrong magic bytes");
  refuse.Unless(file.crc == CrcOf(bytes), offsetof(RowAnchorFile, crc), "the checksum does not match");
  refuse.Unless(file.version == format::kVersion, offsetof(RowAnchorFile, version), "its version is not known",
                ExitStatus::kMismatch);
  refuse.Unless(file.bytes == BytesOf(file.worker_count) && bytes.size() == RoundUp(file.bytes, format::kBlockBytes),
                offsetof(RowAnchorFile, bytes), "it counts another number of workers than it holds");
  return file;
}

void CheckCounts(const RowAnchorFile& file, const Refusal& refuse) {
  refuse.Unless((file.number == 0) == (file.part_count == 0), offsetof(RowAnchorFile, number),
                "a checkpoint without a number, or without parts");
  refuse.Unless(file.copy < RowAnchor::kCopies, offsetof(RowAnchorFile, copy), "impossible copy of the checkpoint");
  refuse.Unless(file.truncates <= 1, offsetof(RowAnchorFile, truncates), "neither with whole logs nor without");
  refuse.Unless(file.part_count <= format::kMaxCheckpointParts, offsetof(RowAnchorFile, part_count),
                "impossible number of parts");
  refuse.Unless(file.log_count >= 1 && file.log_count <= format::kMaxLogs, offsetof(RowAnchorFile, log_count),
                "impossible number of logs");
  refuse.Unless(file.worker_count <= kWorkersMax, offsetof(RowAnchorFile, worker_count),
                "impossible number of workers");
}

void TakePositions(const RowAnchorFile& file, const Refusal& refuse, RowAnchor& anchor) {
  for (uint32_t log = 0; log < file.log_count; ++log) {
    const size_t start = offsetof(RowAnchorFile, start) + log * sizeof(uint64_t);
    const size_t end = offsetof(RowAnchorFile, end) + log * sizeof(uint64_t);
    refuse.Unless(file.end[log] <= format::kLsnMax, end, "impossible LSN");
    refuse.Unless(file.start[log] <= file.end[log], start, "replay begins behind what is durable");
    refuse.Unless(file.number != 0 || file.start[log] == file.end[log], start,
                  "rows up to a position, and no checkpoint");
    refuse.Unless(file.start[log] % format::kRecordAlignment == 0, start, "an LSN at which no record starts");
    anchor.start.emplace_back(file.start[log]);
    anchor.end.emplace_back(file.end[log]);
  }
}

}  // namespace

std::vector<std::byte> EncodeRowAnchor(const RowAnchor& anchor) {
  const size_t logs = anchor.start.size();
  CHECK(logs >= 1 && logs <= format::kMaxLogs && anchor.end.size() == logs);
  CHECK(anchor.parts.empty() == (anchor.number == 0) && anchor.parts.size() <= format::kMaxCheckpointParts);
  RowAnchorFile file{};
  std::memcpy(file.magic, format::kRowAnchorMagic, sizeof file.magic);
  file.version = format::kVersion;
  file.database_id = anchor.database_id;
  file.run_id = anchor.run_id;
  file.number = anchor.number;
  file.copy = static_cast<uint16_t>(anchor.copy);
  file.truncates = anchor.truncates ? 1 : 0;
  file.part_count = static_cast<uint32_t>(anchor.parts.size());
  file.log_count = static_cast<uint32_t>(logs);
  file.worker_count = static_cast<uint32_t>(anchor.sequences.size());
  file.bytes = BytesOf(anchor.sequences.size());
  std::ranges::transform(anchor.start, file.start, &Lsn::value);
  std::ranges::transform(anchor.end, file.end, &Lsn::value);
  std::ranges::copy(anchor.parts, file.parts);

  std::vector<std::byte> bytes(RoundUp(file.bytes, format::kBlockBytes));
  std::memcpy(bytes.data(), &file, sizeof file);
  std::ranges::copy(std::as_bytes(std::span(anchor.sequences)), bytes.begin() + sizeof file);
  const uint32_t crc = CrcOf(bytes);
  std::memcpy(bytes.data() + offsetof(RowAnchorFile, crc), &crc, sizeof crc);
  return bytes;
}

RowAnchor DecodeRowAnchor(std::span<const std::byte> bytes, const std::string& path) {
  const Refusal refuse(path);
  const RowAnchorFile file = Opened(bytes, refuse);
  CheckCounts(file, refuse);
  RowAnchor anchor;
  anchor.database_id = file.database_id;
  anchor.run_id = file.run_id;
  anchor.number = file.number;
  anchor.copy = file.copy;
  anchor.truncates = file.truncates != 0;
  anchor.parts.assign(file.parts, file.parts + file.part_count);
  TakePositions(file, refuse, anchor);
  size_t at = sizeof file;
  for (uint32_t worker = 0; worker < file.worker_count; ++worker, at += sizeof(uint64_t)) {
    uint64_t sequence;
    std::memcpy(&sequence, bytes.data() + at, sizeof sequence);
    refuse.Unless(sequence <= kSequenceMax, at, "impossible sequence number");
    anchor.sequences.push_back(sequence);
  }
  refuse.Unless(std::ranges::equal(EncodeRowAnchor(anchor), bytes), 0, "something stands where nothing belongs");
  return anchor;
}

}  // namespace dbx
