#include "system/reference/reference_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "system/reference/reference_file.h"

namespace dbx::reference {
namespace {

// The block at `at`; adds its rows and returns their number, or none for the last block, which must agree with them.
std::optional<uint64_t> LoadBlock(const FileImage& file, uint64_t& at, uint64_t rows_before, uint32_t& digest,
                                  Database& database) {
  const uint64_t crc = Load(file, at, 4), length = Load(file, at + 4, 4), kind = Load(file, at + 8, 4);
  const uint64_t rows = Load(file, at + 12, 4), start = at;
  if (length < 16 || length > file.bytes.size() - at) Bad(file, at, "impossible length of a block");
  if (Crc32c(file.bytes.subspan(at + 4, length - 4)) != crc) Bad(file, at, "bad checksum of a block");
  at += (length + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  if (kind == 2) {
    if (Load(file, start + 16, 8) != rows_before || Load(file, start + 24, 8) != digest) Bad(file, start, "other rows");
    return std::nullopt;
  }
  digest = Crc32c(file.bytes.subspan(start, 4), digest);
  ReferenceContext context;
  Record record;
  record.payload = file.bytes.subspan(start + 16, length - 16);
  Log log;
  log.path = file.path;
  ApplyImages(log, record, context, database);
  return rows;
}

// How far the run was durable, by the last whole block of its frontier: the stamp; and that the logs are that long.
uint64_t DurableStamp(const FileImage& file, const ReferenceLogs& logs) {
  uint64_t stamp = 0, number = 0;
  LsnVector lsns{};
  for (; (number + 1) * kBlockBytes <= file.bytes.size(); ++number) {
    const FileImage block{file.path, file.bytes.subspan(number * kBlockBytes, kBlockBytes), nullptr};
    try {
      CheckSealed(block, "DBXDUR\r\n", kBlockBytes);
    } catch (const Error&) {
      if (number == 0) throw;
      break;
    }
    if (Load(block, 16, 8) != logs.run_id) Bad(file, 16, "it is of another run", ExitStatus::kMismatch);
    if (Load(block, 24, 8) != number) break;
    const auto ascend = [&](uint64_t& last, uint64_t at) {
      if (Load(block, at, 8) < last) Bad(file, number * kBlockBytes, "it goes back");
      last = Load(block, at, 8);
    };
    ascend(stamp, 32);
    for (size_t i = 0; i < lsns.size(); ++i) ascend(lsns[i], 48 + 8 * i);
    for (size_t i = 0; i < logs.logs.size(); ++i) {
      if (logs.logs[i].end < lsns[i]) Bad(file, number * kBlockBytes, "a log ends before it");
    }
  }
  return stamp;
}

// That each `committed` says "run ID" and a line feed, and zeros up to its end.
void CheckCommitted(const RunImage& run, uint64_t run_id) {
  const std::string expected = "run " + std::to_string(run_id) + "\n";
  for (const FileImage& file : run.committed) {
    const std::string text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
    if (text.substr(0, text.find('\0')) != expected) Bad(file, 0, "it names another run", ExitStatus::kMismatch);
    if (text.find_first_not_of('\0', expected.size()) != text.npos) Bad(file, expected.size(), "not zeros");
  }
}

// `row-anchor`: what is known of the newest complete row checkpoint.
struct RowAnchor {
  static constexpr size_t kHeadBytes = 1856, kPartsAt = 320, kPartBytes = 24, kPartsMax = 64;

  uint64_t database_id = 0, run_id = 0;
  uint64_t number = 0, part_count = 0;  // 0: no checkpoint yet
  std::vector<uint64_t> start, end;     // by log
  std::vector<uint64_t> sequences;      // by worker: lower ones had ended before the checkpoint began
};

RowAnchor ReadRowAnchor(const FileImage& file) {
  CheckSealed(file, "DBXRAN\r\n", std::max(file.bytes.size(), RowAnchor::kHeadBytes));
  RowAnchor anchor;
  anchor.database_id = Load(file, 16, 8);
  anchor.run_id = Load(file, 24, 8);
  anchor.number = Load(file, 32, 4);
  anchor.part_count = Load(file, 40, 4);
  const uint64_t logs = Load(file, 44, 4), workers = Load(file, 48, 4), bytes = RowAnchor::kHeadBytes + 8 * workers;
  if ((anchor.number == 0) != (anchor.part_count == 0))
    Bad(file, 32, "a checkpoint without a number, or without parts");
  if (Load(file, 36, 2) > 1) Bad(file, 36, "a row checkpoint has two copies");
  if (Load(file, 38, 1) > 1) Bad(file, 38, "neither of whole logs nor of others");
  if (anchor.part_count > RowAnchor::kPartsMax) Bad(file, 40, "impossible number of parts");
  if (logs == 0 || logs > LsnVector().size()) Bad(file, 44, "impossible number of logs");
  if (Load(file, 56, 8) != bytes || file.bytes.size() != (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes) {
    Bad(file, 56, "another size than that of what it says it holds");
  }
  for (uint64_t i = 0; i < logs; ++i) {
    anchor.start.push_back(Load(file, 64 + 8 * i, 8));
    anchor.end.push_back(Load(file, 192 + 8 * i, 8));
    if (anchor.start[i] > anchor.end[i]) Bad(file, 64 + 8 * i, "replay begins behind what is durable");
    if (anchor.number == 0 && anchor.start[i] != anchor.end[i]) {
      Bad(file, 64 + 8 * i, "rows up to a position, and no checkpoint");
    }
    if (anchor.start[i] % 8 != 0) Bad(file, 64 + 8 * i, "an LSN at which no record starts");
  }
  for (uint64_t i = 0; i < workers; ++i) anchor.sequences.push_back(Load(file, RowAnchor::kHeadBytes + 8 * i, 8));
  return anchor;
}

// What an anchor says of where reading begins in each log: of logs that were truncated below what its checkpoint needs,
// or whose checkpoint of rows has what is below.
struct Beginning {
  std::vector<uint64_t> needed, ended_below;
};
std::optional<Beginning> BeginningOf(const RunImage& run) {
  if (run.row_anchor) {
    RowAnchor rows = ReadRowAnchor(*run.row_anchor);
    if (rows.number == 0) return std::nullopt;
    return Beginning{std::move(rows.start), std::move(rows.sequences)};
  }
  if (!run.anchor) return std::nullopt;
  const FileImage& anchor = *run.anchor;
  CheckSealed(anchor, "DBXANC\r\n", anchor.bytes.size());
  if (Load(anchor, 39, 1) > 1) Bad(anchor, 39, "neither of whole logs nor of others");
  if (Load(anchor, 39, 1) == 0) return std::nullopt;
  Beginning beginning;
  const uint64_t logs = Load(anchor, 44, 4), tables = Load(anchor, 48, 4), workers = Load(anchor, 52, 4);
  for (uint64_t i = 0; i < logs && i < LsnVector().size(); ++i) {
    beginning.needed.push_back(Load(anchor, 320 + 8 * i, 8));
  }
  for (uint64_t i = 0; i < workers; ++i) beginning.ended_below.push_back(Load(anchor, 448 + 16 * tables + 8 * i, 8));
  return beginning;
}

// That the row checkpoint is of the run whose logs these are, which are of rows, and that each log has all that was
// durable when the checkpoint was complete: its rows may be those of any transaction up to there.
void CheckRowAnchor(const FileImage& file, ReferenceLogs& logs) {
  constexpr uint64_t kData = 1;
  const RowAnchor anchor = ReadRowAnchor(file);
  if (anchor.database_id != LoadUint(logs.common_header, 16, 8)) {
    Bad(file, 16, "it is of another database", ExitStatus::kMismatch);
  }
  if (anchor.run_id != logs.run_id) Bad(file, 24, "it is of another run", ExitStatus::kMismatch);
  if (anchor.start.size() != logs.logs.size()) Bad(file, 44, "it is of another number of logs", ExitStatus::kMismatch);
  const bool has_stamps = logs.by_partition() || logs.newest_wins();
  if (has_stamps || logs.by_changes() || LoadUint(logs.common_header, 65, 1) != kData) {
    Bad(file, 0, "its run's records are not replayed over the rows of a checkpoint", ExitStatus::kMismatch);
  }
  for (size_t i = 0; i < logs.logs.size(); ++i) {
    Log& log = logs.logs[i];
    if (log.end >= anchor.end[i] || log.verdict == Verdict::kDamaged) continue;
    log.verdict = Verdict::kDamaged;
    log.reason = (log.reason.empty() ? "the log ends" : log.reason) + ", but the run's row-anchor shows that it was " +
                 "durable up to LSN " + std::to_string(anchor.end[i]);
  }
}

// Puts the rows of a part over those that are there. Its size, rows and checksum are named at `entry` of `namer`.
void LoadPart(const FileImage& file, const FileImage& namer, uint64_t entry, uint64_t run_id, Database& database) {
  const bool named = Load(namer, entry, 8) == file.bytes.size() && Load(namer, entry + 16, 4) == Crc32c(file.bytes);
  if (!named) Bad(file, 0, "it is not the one that " + namer.path + " names", ExitStatus::kMismatch);
  CheckSealed(file, "DBXCKP\r\n", 48);
  if (Load(file, 24, 8) != run_id) Bad(file, 24, "it is of another run", ExitStatus::kMismatch);
  uint64_t rows = 0, at = kBlockBytes;
  uint32_t digest = 0;
  while (const auto more = LoadBlock(file, at, rows, digest, database)) rows += *more;
  if (rows != Load(namer, entry + 8, 8)) Bad(file, at, "it holds another number of rows");
}

}  // namespace

ReferenceLogs ReadRun(const RunImage& run) {
  const std::optional<Beginning> beginning = BeginningOf(run);
  std::vector<uint64_t> frontier;
  if (run.frozen) {
    CheckSealed(*run.frozen, "DBXFRZ\r\n", kBlockBytes);
    for (uint64_t i = 0; i < Load(*run.frozen, 32, 4) && i < 16; ++i) {
      frontier.push_back(Load(*run.frozen, 72 + 8 * i, 8));
    }
  }
  ReferenceLogs logs = ReadLogs(run.logs, run.frozen ? &frontier : nullptr, beginning ? &beginning->needed : nullptr);
  if (beginning) logs.ended_below = beginning->ended_below;
  constexpr uint64_t kHasRowAnchor = 4;
  if (run.row_anchor.has_value() != ((LoadUint(logs.common_header, 32, 4) & kHasRowAnchor) != 0)) {
    Bad(run.logs.front(), 32, "a row-anchor that is missing, or of a run without", ExitStatus::kMismatch);
  }
  if (run.row_anchor) CheckRowAnchor(*run.row_anchor, logs);
  CheckCommitted(run, logs.run_id);
  if (!run.frozen) {
    if (run.frontier) logs.stamp_end = DurableStamp(*run.frontier, logs);
    return logs;
  }
  const FileImage& frozen = *run.frozen;
  logs.stamp_end = Load(frozen, 208, 8);
  if (Load(frozen, 24, 8) != logs.run_id) Bad(frozen, 24, "it is of another run", ExitStatus::kMismatch);
  if (Load(frozen, 36, 4) == 1) logs.frozen_digest.emplace(Load(frozen, 40, 8), Load(frozen, 48, 8));
  return logs;
}

std::optional<std::pair<uint64_t, uint64_t>> LoadCheckpoint(const RunImage& run, Database& database) {
  const auto check_count = [&run](const FileImage& namer, uint64_t at, uint64_t count) {
    if (count != run.checkpoint.size()) Bad(namer, at, "another number of checkpoint files");
  };
  if (run.row_anchor) {
    const RowAnchor anchor = ReadRowAnchor(*run.row_anchor);
    if (anchor.number != 0) {
      check_count(*run.row_anchor, 40, anchor.part_count);
      for (uint64_t part = 0; part < run.checkpoint.size(); ++part) {
        const uint64_t entry = RowAnchor::kPartsAt + RowAnchor::kPartBytes * part;
        LoadPart(run.checkpoint[part], *run.row_anchor, entry, anchor.run_id, database);
      }
      return std::nullopt;
    }
  }
  if (!run.manifest) return std::nullopt;
  const FileImage& manifest = *run.manifest;
  CheckSealed(manifest, "DBXMAN\r\n", kBlockBytes);
  check_count(manifest, 44, Load(manifest, 44, 4));
  for (uint64_t part = 0; part < run.checkpoint.size(); ++part) {
    LoadPart(run.checkpoint[part], manifest, 64 + 24 * part, Load(manifest, 24, 8), database);
  }
  if (Load(manifest, 1600, 4) != 1) return std::nullopt;
  return std::pair{Load(manifest, 1608, 8), Load(manifest, 1616, 8)};
}

}  // namespace dbx::reference
