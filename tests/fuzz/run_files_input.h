// The inputs of the target for `frozen`, `successor`, `manifest`, `frontier`, `anchor`, `row-anchor`, checkpoints and
// backups, made whole (run_files_fuzz.cpp).
#pragma once

#include <vector>

#include "base/crc32c.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/format.h"
#include "system/runs/continuation.h"
#include "system/runs/row_anchor.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {

enum class RunFile : uint8_t { kFrozen, kManifest, kCheckpoint, kFrontier, kSuccessor, kAnchor, kBackup, kRowAnchor };
inline constexpr uint8_t kRunFiles = 8;

inline FrozenRun SomeFrozen() { return {7, 8, {Lsn(4096), Lsn(8200)}, {{3, 4}}, 55, Lsn(12288)}; }
inline RunSuccessor SomeSuccessor() { return {7, 8, 9, 2}; }
inline RunManifest SomeManifest() {
  return {7, 9, 8, 1, Lsn(12288), 55, Stamp(99), {{8192, 10, 77, 0}, {4096, 0, 78, 0}}, {{3, 4}}};
}

inline BackupAnchor SomeAnchor() {
  BackupAnchor anchor;
  anchor.database_id = 7, anchor.run_id = 8;
  anchor.number = 3, anchor.copy = 1, anchor.parts = 2;
  anchor.tables = {{5, 16, 24}, {0, 4, 1000}};
  anchor.begin = {Lsn(800), Lsn(64)};
  anchor.end = {Lsn(1600), Lsn(64)};
  anchor.needed = {Lsn(0), Lsn(64)};
  anchor.sequences = {9, 10, 0};
  return anchor;
}
inline RowAnchor SomeRowAnchor() {
  RowAnchor anchor;
  anchor.database_id = 7, anchor.run_id = 8;
  anchor.number = 3, anchor.copy = 1, anchor.truncates = true;
  anchor.parts = {{8192, 10, 77, 0}, {4096, 0, 78, 0}};
  anchor.start = {Lsn(800), Lsn(64)};
  anchor.end = {Lsn(1600), Lsn(64)};
  anchor.sequences = {9, 10, 0};
  return anchor;
}
// One part of one small table.
inline BackupShape SomeShape() { return {8, {{4, 24}}, {"d"}}; }

// Makes the checksum right: of the whole of an anchor of either kind, and of what follows it in a frame.
template <class File>
void SealAnchor(std::span<std::byte> bytes) {
  const uint32_t crc = Crc32cOfSealed(bytes, offsetof(File, crc));
  std::memcpy(bytes.data() + offsetof(File, crc), &crc, sizeof crc);
}
inline void SealFrame(std::span<std::byte> frame) {
  const uint32_t crc = Crc32c(frame.subspan(sizeof(format::BackupFrame::crc)));
  std::memcpy(frame.data(), &crc, sizeof crc);
}

// Makes the checksum of the struct that leads `bytes` right.
template <class File>
void Seal(std::vector<std::byte>& bytes) {
  File file;
  std::memcpy(&file, bytes.data(), sizeof file);
  file.crc = 0;
  file.crc = Crc32c(std::as_bytes(std::span(&file, 1)));
  std::memcpy(bytes.data(), &file, sizeof file);
}

// A block behind what `file` holds; `digest` goes on with its checksum.
inline void AppendBlock(std::vector<std::byte>& file, uint32_t kind, uint32_t rows, std::span<const std::byte> body,
                        uint32_t& digest) {
  const size_t start = file.size();
  const auto length = static_cast<uint32_t>(sizeof(format::CheckpointBlock) + body.size());
  const format::CheckpointBlock block{0, length, kind, rows};
  const auto head = std::as_bytes(std::span(&block, 1));
  file.insert(file.end(), head.begin(), head.end());
  file.insert(file.end(), body.begin(), body.end());
  const uint32_t crc = Crc32c(std::span(file).subspan(start + sizeof crc));
  std::memcpy(file.data() + start, &crc, sizeof crc);
  digest = Crc32cExtend(digest, std::span(file).subspan(start, sizeof crc));
  file.resize((file.size() + format::kBlockBytes - 1) / format::kBlockBytes * format::kBlockBytes);
}

// A checkpoint with a sound header and a sound end; its blocks are the input's.
inline std::vector<std::byte> CheckpointOf(Input& input) {
  format::CheckpointHeader header{};
  std::memcpy(header.magic, format::kCheckpointMagic, sizeof header.magic);
  header.version = format::kVersion;
  header.part = input.Take<uint8_t>();
  header.part_count = input.Take<uint8_t>();
  std::vector<std::byte> file(format::kBlockBytes);
  std::memcpy(file.data(), &header, sizeof header);
  Seal<format::CheckpointHeader>(file);
  format::CheckpointEnd end{};
  uint32_t digest = 0;
  while (!input.empty()) {
    const size_t length = input.Take<uint16_t>();
    const uint32_t kind = input.Take<uint8_t>(), rows = input.Take<uint8_t>();
    AppendBlock(file, kind, rows, input.TakeBytes(length), digest);
    end.rows += rows;
  }
  end.digest = digest;
  AppendBlock(file, format::kCheckpointEnd, 0, std::as_bytes(std::span(&end, 1)), digest);
  return file;
}

}  // namespace dbx::fuzz
