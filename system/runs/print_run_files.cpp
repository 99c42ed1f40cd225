#include "system/runs/print_run_files.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/device/posix_file_system.h"
#include "logging/format.h"
#include "logging/frontier_file.h"
#include "system/runs/checkpoint.h"
#include "system/runs/continuation.h"
#include "system/runs/log_directory.h"
#include "system/runs/print_heap.h"
#include "system/runs/row_anchor.h"

namespace dbx {
namespace {

void PrintFrozen(const std::string& path, std::span<const std::byte> bytes) {
  const FrozenRun frozen = DecodeFrozen(bytes, path);
  std::printf("%s\n  frozen: database %016" PRIx64 ", run %016" PRIx64 ", next sequence %" PRIu64
              ", highest LSN %" PRIu64 ", highest stamp %" PRIu64 ", frontier",
              path.c_str(), frozen.database_id, frozen.run_id, frozen.next_sequence, frozen.highest_lsn.value(),
              frozen.highest_stamp.value());
  for (const Lsn lsn : frozen.frontier) std::printf(" %" PRIu64, lsn.value());
  if (frozen.digest) std::printf(", digest %016" PRIx64 "%016" PRIx64, frozen.digest->second, frozen.digest->first);
  std::printf("\n");
}

void PrintSuccessor(const std::string& path, std::span<const std::byte> bytes) {
  const RunSuccessor successor = DecodeSuccessor(bytes, path);
  std::printf("%s\n  successor: database %016" PRIx64 ", run %016" PRIx64 ", continued by run-%04" PRIu32
              " (%016" PRIx64 ")\n",
              path.c_str(), successor.database_id, successor.run_id, successor.child_run, successor.child_run_id);
}

void PrintManifest(const std::string& path, std::span<const std::byte> bytes) {
  const RunManifest manifest = DecodeManifest(bytes, path);
  std::printf("%s\n  manifest: database %016" PRIx64 ", run %016" PRIx64 ", continues run-%04" PRIu32 " (%016" PRIx64
              "), starts at LSN %" PRIu64 ", sequence %" PRIu64 " and stamp %" PRIu64 "\n",
              path.c_str(), manifest.database_id, manifest.run_id, manifest.parent_run, manifest.parent_run_id,
              manifest.start_lsn.value(), manifest.first_sequence, manifest.first_stamp.value());
  for (size_t i = 0; i < manifest.parts.size(); ++i) {
    std::printf("  checkpoint %zu: %" PRIu64 " bytes, %" PRIu64 " rows, CRC %08" PRIx32 "\n", i,
                manifest.parts[i].bytes, manifest.parts[i].rows, manifest.parts[i].crc);
  }
  if (!manifest.digest) return;
  std::printf("  digest %016" PRIx64 "%016" PRIx64 "\n", manifest.digest->second, manifest.digest->first);
}

void PrintCheckpoint(PosixFileSystem& files, const std::string& path) {
  const CheckpointSummary summary = InspectCheckpointPart(files, path);
  std::printf("%s\n  checkpoint: database %016" PRIx64 ", run %016" PRIx64 ", schema %016" PRIx64
              ", part %u of %u, %" PRIu64 " bytes, CRC %08" PRIx32 "\n",
              path.c_str(), summary.identity.database_id, summary.identity.run_id, summary.identity.schema_hash,
              summary.identity.part, summary.identity.part_count, summary.part.bytes, summary.part.crc);
  for (size_t i = 0; i < summary.rows.size(); ++i) std::printf("  table %zu: %" PRIu64 " rows\n", i, summary.rows[i]);
}

void PrintFrontier(const std::string& path, std::span<const std::byte> bytes) {
  format::FrontierBlock first;
  if (bytes.size() < sizeof first) throw Error(ExitStatus::kCorrupt, "cannot read " + path + "@0: no durable frontier");
  std::memcpy(&first, bytes.data(), sizeof first);
  const DurableFrontier frontier = ReadFrontier(bytes, first.run_id, path);
  std::printf("%s\n  frontier: run %016" PRIx64 ", durable up to stamp %" PRIu64 ", logs up to", path.c_str(),
              first.run_id, frontier.stamp.value());
  for (const Lsn lsn : frontier.lsns) std::printf(" %" PRIu64, lsn.value());
  std::printf("\n");
}

void PrintSequences(std::span<const uint64_t> sequences) {
  std::printf("  below these sequences all transactions of a worker had ended:");
  for (const uint64_t sequence : sequences) std::printf(" %" PRIu64, sequence);
  std::printf("\n");
}

void PrintAnchor(const std::string& path, std::span<const std::byte> bytes) {
  const BackupAnchor anchor = DecodeAnchor(bytes, path);
  std::printf("%s\n  anchor: database %016" PRIx64 ", run %016" PRIx64 ", checkpoint %" PRIu32 " in copy %c, %" PRIu32
              " parts of each table, method %s%s\n",
              path.c_str(), anchor.database_id, anchor.run_id, anchor.number, anchor.copy == 0 ? 'a' : 'b',
              anchor.parts, NameOf(anchor.method).data(),
              anchor.truncates ? ", logs truncated below what is needed" : "");
  for (size_t i = 0; i < anchor.begin.size(); ++i) {
    std::printf("  log %zu: begins at LSN %" PRIu64 ", ends at %" PRIu64 ", nothing is needed below %" PRIu64 "\n", i,
                anchor.begin[i].value(), anchor.end[i].value(), anchor.needed[i].value());
  }
  for (size_t i = 0; i < anchor.tables.size(); ++i) {
    const BackupAnchor::OfTable& table = anchor.tables[i];
    std::printf("  table %zu: %" PRIu32 " pages of %" PRIu32 " rows of %" PRIu32 " bytes\n", i, table.pages,
                table.rows_per_page, table.tuple_bytes);
  }
  PrintSequences(anchor.sequences);
}

void PrintRowAnchor(const std::string& path, std::span<const std::byte> bytes) {
  const RowAnchor anchor = DecodeRowAnchor(bytes, path);
  std::printf("%s\n  row anchor: database %016" PRIx64 ", run %016" PRIx64 ", ", path.c_str(), anchor.database_id,
              anchor.run_id);
  if (anchor.names_checkpoint()) {
    std::printf("checkpoint %" PRIu32 " in copy %c, %zu parts%s\n", anchor.number, anchor.copy == 0 ? 'a' : 'b',
                anchor.parts.size(), anchor.truncates ? ", logs truncated below what is needed" : "");
  } else {
    std::printf("no checkpoint yet\n");
  }
  for (uint32_t i = 0; i < anchor.parts.size(); ++i) {
    std::printf("  %s: %" PRIu64 " bytes, %" PRIu64 " rows, CRC %08" PRIx32 "\n", RowFileName(anchor.copy, i).c_str(),
                anchor.parts[i].bytes, anchor.parts[i].rows, anchor.parts[i].crc);
  }
  for (size_t i = 0; i < anchor.start.size(); ++i) {
    std::printf("  log %zu: replay begins at LSN %" PRIu64 ", durable up to %" PRIu64 "\n", i, anchor.start[i].value(),
                anchor.end[i].value());
  }
  PrintSequences(anchor.sequences);
}

// Of a page of a backup, behind its frame's header.
uint64_t PresentRows(const format::BackupFrame& frame, const std::byte* images) {
  uint64_t rows = 0;
  for (uint32_t slot = 0; slot < frame.rows_per_page; ++slot) {
    rows += std::to_integer<unsigned>(images[slot / 8]) >> slot % 8 & 1;
  }
  return rows;
}

// The bytes of the frame at `at`, if it is intact; 0: it is not.
uint64_t IntactFrameBytes(std::span<const std::byte> bytes, uint64_t at, format::BackupFrame& frame) {
  constexpr uint64_t kFrameBytesMax = uint64_t{1} << 30;
  if (bytes.size() - at < sizeof frame) return 0;
  std::memcpy(&frame, bytes.data() + at, sizeof frame);
  if (uint64_t{frame.rows_per_page} * (uint64_t{frame.tuple_bytes} + 16) > kFrameBytesMax) return 0;
  BackupShape shape;
  shape.tables.push_back({frame.rows_per_page, frame.tuple_bytes});
  const uint64_t frame_bytes = shape.FrameBytes(0);
  if (frame_bytes > bytes.size() - at) return 0;
  const auto checked = bytes.subspan(at + sizeof frame.crc, frame_bytes - sizeof frame.crc);
  return Crc32c(checked) == frame.crc ? frame_bytes : 0;
}

// All frames of a part have the same size; that of a block, if none is intact.
uint64_t FrameBytesIn(std::span<const std::byte> bytes) {
  format::BackupFrame frame{};
  for (uint64_t at = 0; at < bytes.size(); at += format::kBlockBytes) {
    if (const uint64_t found = IntactFrameBytes(bytes, at, frame)) return found;
  }
  return format::kBlockBytes;
}

// Prints the intact pages of a part of a backup. A page of zeros has never been written.
void PrintBackup(const std::string& path, const BackupPart& name, std::span<const std::byte> bytes,
                 const std::function<void(const Error&)>& report) {
  std::printf("%s\n  backup: copy %c, table %" PRIu32 ", part %" PRIu32 ", %zu bytes\n", path.c_str(),
              name.copy == 0 ? 'a' : 'b', name.table, name.part, bytes.size());
  const auto complain = [&](uint64_t at, const char* why) {
    report(Error(ExitStatus::kCorrupt, "damaged backup " + path + "@" + std::to_string(at) + ": " + why));
  };
  const uint64_t frame_bytes = FrameBytesIn(bytes);
  uint64_t pages = 0, rows = 0, unwritten = 0;
  for (uint64_t at = 0; at < bytes.size(); at += frame_bytes) {
    format::BackupFrame frame{};
    const auto whole = bytes.subspan(at, std::min<uint64_t>(frame_bytes, bytes.size() - at));
    if (AllZero(whole)) {
      ++unwritten;
    } else if (IntactFrameBytes(bytes, at, frame) != frame_bytes) {
      complain(at, "bad checksum of a page");
    } else if (frame.copy != name.copy || frame.table != name.table) {
      complain(at, "a page of another copy or table");
    } else {
      const uint64_t present = PresentRows(frame, bytes.data() + at + sizeof frame);
      std::printf("  page %" PRIu32 ": checkpoint %" PRIu32 ", %" PRIu64 " of %" PRIu32 " rows of %" PRIu32 " bytes\n",
                  frame.page, frame.number, present, frame.rows_per_page, frame.tuple_bytes);
      ++pages;
      rows += present;
    }
  }
  std::printf("  %" PRIu64 " pages with %" PRIu64 " rows, %" PRIu64 " never written\n", pages, rows, unwritten);
}

void PrintCommitted(const std::string& path, std::span<const std::byte> bytes) {
  const std::optional<uint64_t> run_id = RunIdOfCommitted(bytes);
  if (!run_id) throw Error(ExitStatus::kCorrupt, "cannot read " + path + "@0: it names no run");
  std::printf("%s\n  committed: run %016" PRIx64 "\n", path.c_str(), *run_id);
}

}  // namespace

bool PrintRunFile(const std::string& path, const std::function<void(const Error&)>& report) {
  PosixFileSystem files;
  std::byte start[8] = {};
  files.Open(path)->Read(0, start);
  const auto begins_with = [&start](const char(&magic)[8]) { return std::memcmp(start, magic, sizeof magic) == 0; };
  if (begins_with(format::kFrozenMagic)) {
    PrintFrozen(path, files.Map(path).bytes);
  } else if (begins_with(format::kSuccessorMagic)) {
    PrintSuccessor(path, files.Map(path).bytes);
  } else if (begins_with(format::kFrontierMagic)) {
    PrintFrontier(path, files.Map(path).bytes);
  } else if (begins_with(format::kManifestMagic)) {
    PrintManifest(path, files.Map(path).bytes);
  } else if (begins_with(format::kCheckpointMagic)) {
    PrintCheckpoint(files, path);
  } else if (begins_with(format::kAnchorMagic)) {
    PrintAnchor(path, files.Map(path).bytes);
  } else if (begins_with(format::kRowAnchorMagic)) {
    PrintRowAnchor(path, files.Map(path).bytes);
  } else if (const auto part = ParseBackupFileName(BaseNameOf(path))) {
    PrintBackup(path, *part, files.Map(path).bytes, report);
  } else if (BaseNameOf(path) == kHeapFileName) {
    PrintHeap(path, report);
  } else if (BaseNameOf(path) == kGapsFileName) {
    PrintGaps(path, report);
  } else if (BaseNameOf(path) == kIndexesFileName) {
    PrintIndexes(path, files.Map(path).bytes);
  } else if (BaseNameOf(path) == kCommittedFileName) {
    PrintCommitted(path, files.Map(path).bytes);
  } else {
    return false;
  }
  return true;
}

}  // namespace dbx
