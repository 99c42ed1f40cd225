// How the reference recovery reads bytes of files: integers, seals, salts. Its own, written from logging/README.md.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "system/reference/reference_replay.h"

namespace dbx::reference {

inline constexpr size_t kBlockBytes = 4096;

// `size` bytes of `bytes`, which has them.
inline uint64_t LoadUint(Bytes bytes, size_t at, size_t size) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, size);
  return value;
}

// Of log `log` of a run.
inline uint32_t SaltOf(uint64_t run_id, uint32_t log) {
  uint64_t x = run_id + 0x9E3779B97F4A7C15u * (uint64_t{log} + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(x ^ (x >> 31));
}

[[noreturn]] inline void Bad(const FileImage& file, uint64_t offset, const std::string& why,
                             ExitStatus status = ExitStatus::kCorrupt) {
  throw Error(status, "bad file " + file.path + "@" + std::to_string(offset) + ": " + why);
}

inline uint64_t Load(const FileImage& file, uint64_t at, size_t bytes) {
  if (at + bytes > file.bytes.size()) Bad(file, at, "it ends here");
  return LoadUint(file.bytes, at, bytes);
}

// That `bytes` from the start of the file are what was written under this magic: version 1, and the CRC at offset 12,
// which counts as zero itself.
inline void CheckSealed(const FileImage& file, std::string_view magic, size_t bytes) {
  if (file.bytes.size() < bytes) Bad(file, 0, "it is too short");
  if (std::memcmp(file.bytes.data(), magic.data(), 8) != 0) Bad(file, 0, "wrong magic");
  std::vector<std::byte> copy(file.bytes.begin(), file.bytes.begin() + static_cast<ptrdiff_t>(bytes));
  std::memset(copy.data() + 12, 0, 4);
  if (Crc32c(copy) != Load(file, 12, 4)) Bad(file, 12, "bad checksum");
  if (Load(file, 8, 4) != 1) Bad(file, 8, "its version is not known", ExitStatus::kMismatch);
}

}  // namespace dbx::reference
