#include "tests/simulation/logs_on_disk.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "base/error.h"
#include "logging/file_header.h"
#include "logging/format.h"

namespace dbx::sim {
namespace {

using format::RecordHeader;
using format::RecordKind;

std::optional<format::FileHeader> HeaderOf(std::span<const std::byte> file, const std::string& path) {
  try {
    return DecodeHeader(file.first(std::min(file.size(), size_t{format::kStreamOffset})), path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<RecordHeader> RecordAt(std::span<const std::byte> bytes, uint32_t salt) {
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.salt != salt || header.length < sizeof header || header.length > bytes.size()) return std::nullopt;
  const size_t crc_bytes = sizeof header.header_crc;
  if (Crc32c(bytes.subspan(crc_bytes, sizeof header - crc_bytes)) != header.header_crc) return std::nullopt;
  if (header.kind == static_cast<uint8_t>(RecordKind::kVoid)) return header;
  if (Crc32c(bytes.subspan(sizeof header, header.length - sizeof header)) != header.body_crc) return std::nullopt;
  return header;
}

bool IsTransaction(const RecordHeader& header) {
  return header.kind == static_cast<uint8_t>(RecordKind::kCommand) ||
         header.kind == static_cast<uint8_t>(RecordKind::kData);
}

void ReadLog(std::span<const std::byte> file, const format::FileHeader& header, LogsOnDisk& found) {
  const uint32_t salt = format::Salt(header.run_id, header.log_index);
  for (size_t at = format::kStreamOffset; at + sizeof(RecordHeader) <= file.size(); at += format::kRecordAlignment) {
    const auto record = RecordAt(file.subspan(at), salt);
    if (!record) continue;
    found.lsns_end = std::max(found.lsns_end, record->lsn + record->length);
    if (!IsTransaction(*record)) continue;
    uint64_t& name = found.names.emplace_back();
    std::memcpy(&name, file.data() + at + sizeof(RecordHeader), sizeof name);
  }
}

}  // namespace

uint32_t RunOf(const std::string& path) {
  const size_t at = path.find("/run-");
  return at == std::string::npos ? 0 : static_cast<uint32_t>(std::stoul(path.substr(at + 5)));
}

LogsOnDisk ReadLogsOnDisk(const FaultyFileSystem::Image& image) {
  LogsOnDisk found;
  for (const auto& [path, bytes] : image.files) {
    if (!path.ends_with(".log")) continue;
    const std::vector<std::byte> file = bytes.All();
    const auto header = HeaderOf(file, path);
    if (!header) continue;
    if (RunOf(path) > found.newest_run) {
      found.newest_run = RunOf(path);
      found.newest_start = header->start_lsn;
      found.logs_with_header = 0;
    }
    found.logs_with_header += RunOf(path) == found.newest_run;
    ReadLog(file, *header, found);
  }
  return found;
}

}  // namespace dbx::sim
