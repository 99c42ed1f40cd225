#include "system/runs/continuation.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/refusal.h"
#include "base/types.h"

namespace dbx {
namespace {

using format::FrozenFile;
using format::ManifestFile;
using format::SuccessorFile;

constexpr uint64_t kSequenceMax = uint64_t{1} << TxnId::kSequenceBits;

template <class File>
uint32_t CrcOf(File file) {
  file.crc = 0;
  return Crc32c(std::as_bytes(std::span(&file, 1)));
}

template <class File>
std::vector<std::byte> Sealed(File& file, const char (&magic)[8]) {
  std::memcpy(file.magic, magic, sizeof file.magic);
  file.version = format::kVersion;
  file.crc = CrcOf(file);
  const auto bytes = std::as_bytes(std::span(&file, 1));
  return {bytes.begin(), bytes.end()};
}

template <class File>
File Opened(std::span<const std::byte> bytes, const char (&magic)[8], const Refusal& refuse) {
  File file{};
  refuse.Unless(bytes.size() == sizeof file, 0, "the file has another size");
  std::memcpy(&file, bytes.data(), sizeof file);
  refuse.Unless(std::memcmp(file.magic, magic, sizeof file.magic) == 0, 0, "wrong magic bytes");
  refuse.Unless(file.crc == CrcOf(file), offsetof(File, crc), "the checksum does not match");
  refuse.Unless(file.version == format::kVersion, offsetof(File, version), "its version is not known",
                ExitStatus::kMismatch);
  return file;
}

}  // namespace

std::vector<std::byte> EncodeFrozen(const FrozenRun& frozen) {
  CHECK(!frozen.frontier.empty() && frozen.frontier.size() <= format::kMaxLogs);
  FrozenFile file{};
  file.database_id = frozen.database_id;
  file.run_id = frozen.run_id;
  file.log_count = static_cast<uint32_t>(frozen.frontier.size());
  file.has_digest = frozen.digest.has_value();
  if (frozen.digest) {
    file.digest[0] = frozen.digest->first;
    file.digest[1] = frozen.digest->second;
  }
  file.next_sequence = frozen.next_sequence;
  file.highest_lsn = frozen.highest_lsn.value();
  file.highest_stamp = frozen.highest_stamp.value();
  file.stamp_end = frozen.stamp_end.value();
  std::ranges::transform(frozen.frontier, file.frontier, &Lsn::value);
  return Sealed(file, format::kFrozenMagic);
}

FrozenRun DecodeFrozen(std::span<const std::byte> bytes, const std::string& path) {
  const Refusal refuse(path);
  const auto file = Opened<FrozenFile>(bytes, format::kFrozenMagic, refuse);
  refuse.Unless(file.log_count >= 1 && file.log_count <= format::kMaxLogs, offsetof(FrozenFile, log_count),
                "impossible number of logs");
  refuse.Unless(file.has_digest <= 1, offsetof(FrozenFile, has_digest), "neither with a digest nor without");
  refuse.Unless(file.next_sequence <= kSequenceMax, offsetof(FrozenFile, next_sequence), "impossible sequence number");
  refuse.Unless(file.highest_lsn <= format::kLsnMax, offsetof(FrozenFile, highest_lsn), "impossible LSN");
  FrozenRun frozen;
  frozen.database_id = file.database_id;
  frozen.run_id = file.run_id;
  for (uint32_t log = 0; log < file.log_count; ++log) {
    refuse.Unless(file.frontier[log] <= file.highest_lsn, offsetof(FrozenFile, frontier),
                  "a frontier behind the end of the logs");
    frozen.frontier.emplace_back(file.frontier[log]);
  }
  if (file.has_digest == 1) frozen.digest.emplace(file.digest[0], file.digest[1]);
  frozen.next_sequence = file.next_sequence;
  frozen.highest_lsn = Lsn(file.highest_lsn);
  frozen.highest_stamp = Stamp(file.highest_stamp);
  frozen.stamp_end = Stamp(file.stamp_end);
  refuse.Unless(std::ranges::equal(EncodeFrozen(frozen), bytes), 0, "something stands where nothing belongs");
  return frozen;
}

std::vector<std::byte> EncodeSuccessor(const RunSuccessor& successor) {
  SuccessorFile file{};
  file.database_id = successor.database_id;
  file.run_id = successor.run_id;
  file.child_run_id = successor.child_run_id;
  file.child_run = successor.child_run;
  return Sealed(file, format::kSuccessorMagic);
}

RunSuccessor DecodeSuccessor(std::span<const std::byte> bytes, const std::string& path) {
  const Refusal refuse(path);
  const auto file = Opened<SuccessorFile>(bytes, format::kSuccessorMagic, refuse);
  refuse.Unless(file.child_run_id != 0 && file.child_run != 0, offsetof(SuccessorFile, child_run_id),
                "it does not name the run that continues this one");
  const RunSuccessor successor{file.database_id, file.run_id, file.child_run_id, file.child_run};
  refuse.Unless(std::ranges::equal(EncodeSuccessor(successor), bytes), 0, "something stands where nothing belongs");
  return successor;
}

std::vector<std::byte> EncodeManifest(const RunManifest& manifest) {
  CHECK(manifest.parts.size() <= format::kMaxCheckpointParts);
  ManifestFile file{};
  file.database_id = manifest.database_id;
  file.run_id = manifest.run_id;
  file.parent_run_id = manifest.parent_run_id;
  file.parent_run = manifest.parent_run;
  file.part_count = static_cast<uint32_t>(manifest.parts.size());
  file.start_lsn = manifest.start_lsn.value();
  file.first_sequence = manifest.first_sequence;
  file.first_stamp = manifest.first_stamp.value();
  std::copy(manifest.parts.begin(), manifest.parts.end(), file.parts);
  file.has_digest = manifest.digest.has_value();
  if (manifest.digest) {
    file.digest[0] = manifest.digest->first;
    file.digest[1] = manifest.digest->second;
  }
  return Sealed(file, format::kManifestMagic);
}

RunManifest DecodeManifest(std::span<const std::byte> bytes, const std::string& path) {
  const Refusal refuse(path);
  const auto file = Opened<ManifestFile>(bytes, format::kManifestMagic, refuse);
  refuse.Unless(file.parent_run_id != 0 && file.parent_run != 0, offsetof(ManifestFile, parent_run_id),
                "it does not name the run that it continues");
  refuse.Unless(file.part_count <= format::kMaxCheckpointParts, offsetof(ManifestFile, part_count),
                "impossible number of checkpoint files");
  refuse.Unless(file.start_lsn % format::kBlockBytes == 0 && file.start_lsn <= format::kLsnMax,
                offsetof(ManifestFile, start_lsn), "impossible LSN");
  refuse.Unless(file.first_sequence <= kSequenceMax, offsetof(ManifestFile, first_sequence),
                "impossible sequence number");
  refuse.Unless(file.has_digest <= 1, offsetof(ManifestFile, has_digest), "neither with a digest nor without");
  RunManifest manifest;
  manifest.database_id = file.database_id;
  manifest.run_id = file.run_id;
  manifest.parent_run_id = file.parent_run_id;
  manifest.parent_run = file.parent_run;
  manifest.start_lsn = Lsn(file.start_lsn);
  manifest.first_sequence = file.first_sequence;
  manifest.first_stamp = Stamp(file.first_stamp);
  manifest.parts.assign(file.parts, file.parts + file.part_count);
  if (file.has_digest == 1) manifest.digest.emplace(file.digest[0], file.digest[1]);
  refuse.Unless(std::ranges::equal(EncodeManifest(manifest), bytes), 0, "something stands where nothing belongs");
  return manifest;
}

}  // namespace dbx
