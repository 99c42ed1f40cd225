#include "tests/simulation/logs_on_disk.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "base/error.h"
#include "logging/backup/anchor_file.h"
#include "logging/format.h"
#include "logging/frontier_file.h"
#include "logging/records/record_type.h"
#include "system/reference/reference_pages.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "system/runs/row_anchor.h"

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

bool BeginsWithName(const RecordHeader& record) {
  return IsTransaction(record) || record.kind == static_cast<uint8_t>(RecordKind::kChange) ||
         record.kind == static_cast<uint8_t>(RecordKind::kAbort);
}

// `lowest`: the run's lowest stamp so far.
void ReadLog(std::span<const std::byte> file, const format::FileHeader& header, LogsOnDisk& found, uint64_t& lowest) {
  const uint32_t salt = format::Salt(header.run_id, header.log_index);
  for (size_t at = format::kStreamOffset; at + sizeof(RecordHeader) <= file.size(); at += format::kRecordAlignment) {
    const auto record = RecordAt(file.subspan(at), salt);
    if (!record) continue;
    found.lsns_end = std::max(found.lsns_end, record->lsn + record->length);
    if (!BeginsWithName(*record)) continue;
    uint64_t& name = found.names.emplace_back();
    const std::byte* const body = file.data() + at + sizeof(RecordHeader);
    std::memcpy(&name, body, sizeof name);
    if (record->kind != static_cast<uint8_t>(RecordKind::kStamped)) continue;
    uint64_t stamp;
    std::memcpy(&stamp, body + sizeof name, sizeof stamp);
    found.highest_stamp = std::max(found.highest_stamp, stamp);
    lowest = std::min(lowest, stamp);
  }
}

struct LogFile {
  format::FileHeader header;
  std::vector<std::byte> bytes;
};

// The log that these stripes are of, as one file; what a stripe lacks is zeros.
LogFile Joined(const std::vector<LogFile>& stripes) {
  LogFile log{stripes.front().header, {}};
  const size_t unit = log.header.stripe_bytes, count = log.header.log_count;
  log.header.log_index = 0;
  for (const LogFile& stripe : stripes) {
    for (size_t at = format::kStreamOffset; at < stripe.bytes.size(); at += unit) {
      const size_t number = (at - format::kStreamOffset) / unit * count + stripe.header.log_index;
      const size_t to = format::kStreamOffset + number * unit, bytes = std::min(unit, stripe.bytes.size() - at);
      if (log.bytes.size() < to + bytes) log.bytes.resize(to + bytes);
      std::copy_n(stripe.bytes.begin() + static_cast<ptrdiff_t>(at), bytes,
                  log.bytes.begin() + static_cast<ptrdiff_t>(to));
    }
  }
  return log;
}

void ReadRun(uint32_t run, const std::vector<LogFile>& files, LogsOnDisk& found) {
  if (run > found.newest_run) {
    found.newest_run = run;
    found.newest_start = files.front().header.start_lsn;
    found.newest_lowest_stamp = UINT64_MAX;
  }
  uint64_t older = UINT64_MAX;
  uint64_t& lowest = run == found.newest_run ? found.newest_lowest_stamp : older;
  if (IsStripe(files.front().header)) {
    const LogFile log = Joined(files);
    return ReadLog(log.bytes, log.header, found, lowest);
  }
  for (const LogFile& log : files) ReadLog(log.bytes, log.header, found, lowest);
}

}  // namespace

uint32_t RunOf(const std::string& path) {
  const size_t at = path.find("/run-");
  return at == std::string::npos ? 0 : static_cast<uint32_t>(std::stoul(path.substr(at + 5)));
}

// A run whose frontier was not written yet has nothing that is durable.
bool LacksFrontier(const FaultyFileSystem::Image& image, uint32_t run, const format::FileHeader& header) {
  if (header.scheme != static_cast<uint8_t>(format::Scheme::kSiloR)) return false;
  for (const auto& [path, bytes] : image.files) {
    if (RunOf(path) != run || !path.ends_with(std::string("/") + kFrontierFileName)) continue;
    try {
      ReadFrontier(bytes.All(), header.run_id, path);
      return false;
    } catch (const Error&) {
    }
  }
  return true;
}

bool RecoverableNames::Has(TxnId id) const {
  const uint32_t worker = id.worker().value();
  if (worker < ended_below.size() && id.sequence() < ended_below[worker]) return true;
  return std::binary_search(names.begin(), names.end(), id.value);
}

RecoverableNames NamesInNewestRun(const FaultyFileSystem::Image& image) {
  uint32_t newest = 0;
  for (const auto& [path, bytes] : image.files) newest = std::max(newest, RunOf(path));
  reference::RunImage run;
  for (const auto& [path, bytes] : image.files) {
    if (RunOf(path) != newest) continue;
    const auto content = std::make_shared<std::vector<std::byte>>(bytes.All());
    const reference::FileImage file{path, *content, content};
    if (path.ends_with(".log")) run.logs.push_back(file);
    if (path.ends_with(std::string("/") + kCommittedFileName)) run.committed.push_back(file);
    if (path.ends_with(std::string("/") + kFrontierFileName)) run.frontier = file;
    if (path.ends_with(std::string("/") + kAnchorFileName)) run.anchor = file;
    if (path.ends_with(std::string("/") + kRowAnchorFileName)) run.row_anchor = file;
    if (path.ends_with(".bak")) run.backups.push_back(file);
  }
  const reference::ReferenceLogs logs = reference::ReadRun(run);
  const reference::RecoveredSet set = reference::Recover(logs);
  if (logs.by_changes()) reference::ReadPages(run, logs, set);
  return {set.txn_ids, logs.ended_below};
}

LogsOnDisk ReadLogsOnDisk(const FaultyFileSystem::Image& image) {
  std::map<uint32_t, std::vector<LogFile>> runs;
  for (const std::string& directory : image.directories) {
    if (const uint32_t run = RunOf(directory); run != 0) runs.try_emplace(run);
  }
  for (const auto& [path, bytes] : image.files) {
    if (!path.ends_with(".log")) continue;
    std::vector<std::byte> file = bytes.All();
    if (const auto header = HeaderOf(file, path)) runs[RunOf(path)].push_back({*header, std::move(file)});
  }
  LogsOnDisk found;
  if (!runs.empty()) found.fewest_logs = UINT32_MAX;
  for (const auto& [run, files] : runs) {
    found.fewest_logs = std::min(found.fewest_logs, static_cast<uint32_t>(files.size()));
    if (files.empty()) continue;
    ReadRun(run, files, found);
    found.lacks_frontier |= LacksFrontier(image, run, files.front().header);
  }
  return found;
}

}  // namespace dbx::sim
