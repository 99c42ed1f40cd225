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
#include "logging/gaps/gap_log.h"
#include "logging/records/record_type.h"
#include "storage/heap/superblock.h"
#include "storage/heap/version_heap.h"
#include "system/reference/reference_pages.h"
#include "system/runs/file_header.h"
#include "system/runs/heap_run.h"
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

// Of persistent memory nothing is written here.
std::unique_ptr<PersistentMemory> MemoryOf(const FaultyFileSystem::Image& image, const std::string& path) {
  FaultyFileSystem files(FaultyFileSystem::Image{image.directories, {{path, image.files.at(path)}}});
  return files.MapPersistent(path, {.copy_on_write = true});
}

// The newest record beside the heap, and where that is; none: there is none yet.
std::optional<GapRecord> RecordBeside(const FaultyFileSystem::Image& image, const std::string& heap_path,
                                      const Superblock& superblock) {
  const std::string path = heap_path.substr(0, heap_path.rfind('/') + 1) + kGapsFileName;
  if (!image.files.contains(path)) return std::nullopt;
  const auto memory = MemoryOf(image, path);
  return GapLog(*memory, superblock.heap_id).newest();
}

// Of the slots that are in use; stamps of losers are among them, and names that a crash has torn.
void ReadHeap(const FaultyFileSystem::Image& image, const std::string& path, LogsOnDisk& found) {
  const auto memory = MemoryOf(image, path);
  const Superblock superblock = ReadSuperblock(memory->bytes(), path);
  const auto record = RecordBeside(image, path, superblock);
  if (!record) return;
  found.newest_life = record->life;
  const VersionHeap heap(*memory, superblock.extent_bytes, 1);
  for (uint32_t extent = 0; extent < heap.extent_count(); ++extent) {
    const uint64_t word = heap.directory()[extent];
    if (word == 0) continue;
    const size_t slot_bytes =
        heap_format::SlotBytes(superblock.tables.at(heap_format::TableOf(word).value()).tuple_bytes);
    for (size_t i = 0; i < superblock.extent_bytes / slot_bytes; ++i) {
      const HeapSlot& slot = *heap.SlotAt(extent, i, slot_bytes);
      const uint64_t begin = slot.begin;
      if (begin <= heap_format::kLoadStamp) continue;
      found.names.push_back(slot.txn.value);
      found.highest_stamp = std::max(found.highest_stamp, begin);
      const bool is_of_life = slot.txn.sequence() >= HeapRun::FirstSequenceOf(record->life);
      if (is_of_life) found.newest_lowest_stamp = std::min(found.newest_lowest_stamp, begin);
    }
  }
}

// The path of the heap of the newest run.
std::optional<std::string> NewestHeap(const FaultyFileSystem::Image& image, uint32_t run) {
  for (const auto& [path, bytes] : image.files) {
    if (RunOf(path) == run && path.ends_with(std::string("/") + kHeapFileName)) return path;
  }
  return std::nullopt;
}

}  // namespace

std::vector<uint64_t> EndedBelow(std::vector<uint64_t> last_sequences, uint64_t life) {
  constexpr size_t kWorkersMax = 8;
  last_sequences.resize(std::max(kWorkersMax, last_sequences.size()), HeapRun::FirstSequenceOf(life));
  return last_sequences;
}

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
  if (const auto heap = NewestHeap(image, newest)) {
    const auto memory = MemoryOf(image, *heap);
    const auto record = RecordBeside(image, *heap, ReadSuperblock(memory->bytes(), *heap));
    if (!record) return {};
    return {{}, EndedBelow(record->last_sequences, record->life)};
  }
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
    if (!path.ends_with(".log") || path.ends_with(std::string("/") + kGapsFileName)) continue;
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
    if (const auto heap = NewestHeap(image, run)) ReadHeap(image, *heap, found);
  }
  return found;
}

}  // namespace dbx::sim
