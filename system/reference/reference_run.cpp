#include "system/reference/reference_run.h"

#include <string>

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

// What an anchor says of logs that were truncated below what its checkpoint needs: of each log, where reading begins.
struct Truncation {
  std::vector<uint64_t> needed, ended_below;
};
std::optional<Truncation> TruncationOf(const RunImage& run) {
  if (!run.anchor) return std::nullopt;
  const FileImage& anchor = *run.anchor;
  CheckSealed(anchor, "DBXANC\r\n", anchor.bytes.size());
  if (Load(anchor, 39, 1) > 1) Bad(anchor, 39, "neither of whole logs nor of others");
  if (Load(anchor, 39, 1) == 0) return std::nullopt;
  Truncation truncation;
  const uint64_t logs = Load(anchor, 44, 4), tables = Load(anchor, 48, 4), workers = Load(anchor, 52, 4);
  for (uint64_t i = 0; i < logs && i < LsnVector().size(); ++i)
    truncation.needed.push_back(Load(anchor, 320 + 8 * i, 8));
  for (uint64_t i = 0; i < workers; ++i) truncation.ended_below.push_back(Load(anchor, 448 + 16 * tables + 8 * i, 8));
  return truncation;
}

}  // namespace

ReferenceLogs ReadRun(const RunImage& run) {
  const std::optional<Truncation> truncation = TruncationOf(run);
  const std::vector<uint64_t>* const needed = truncation ? &truncation->needed : nullptr;
  if (!run.frozen) {
    ReferenceLogs logs = ReadLogs(run.logs, nullptr, needed);
    if (truncation) logs.ended_below = truncation->ended_below;
    CheckCommitted(run, logs.run_id);
    if (run.frontier) logs.stamp_end = DurableStamp(*run.frontier, logs);
    return logs;
  }
  const FileImage& frozen = *run.frozen;
  CheckSealed(frozen, "DBXFRZ\r\n", kBlockBytes);
  std::vector<uint64_t> frontier;
  for (uint64_t i = 0; i < Load(frozen, 32, 4) && i < 16; ++i) frontier.push_back(Load(frozen, 72 + 8 * i, 8));
  ReferenceLogs logs = ReadLogs(run.logs, &frontier, needed);
  if (truncation) logs.ended_below = truncation->ended_below;
  CheckCommitted(run, logs.run_id);
  logs.stamp_end = Load(frozen, 208, 8);
  if (Load(frozen, 24, 8) != logs.run_id) Bad(frozen, 24, "it is of another run", ExitStatus::kMismatch);
  if (Load(frozen, 36, 4) == 1) logs.frozen_digest.emplace(Load(frozen, 40, 8), Load(frozen, 48, 8));
  return logs;
}

std::optional<std::pair<uint64_t, uint64_t>> LoadCheckpoint(const RunImage& run, Database& database) {
  const FileImage& manifest = run.manifest.value();
  CheckSealed(manifest, "DBXMAN\r\n", kBlockBytes);
  if (Load(manifest, 44, 4) != run.checkpoint.size()) Bad(manifest, 44, "another number of checkpoint files");
  for (uint64_t part = 0; part < run.checkpoint.size(); ++part) {
    const FileImage& file = run.checkpoint[part];
    const uint64_t entry = 64 + 24 * part;
    const bool named =
        Load(manifest, entry, 8) == file.bytes.size() && Load(manifest, entry + 16, 4) == Crc32c(file.bytes);
    if (!named) Bad(file, 0, "it is not the one that the manifest names", ExitStatus::kMismatch);
    CheckSealed(file, "DBXCKP\r\n", 48);
    if (Load(file, 24, 8) != Load(manifest, 24, 8)) Bad(file, 24, "it is of another run", ExitStatus::kMismatch);
    uint64_t rows = 0, at = kBlockBytes;
    uint32_t digest = 0;
    while (const auto more = LoadBlock(file, at, rows, digest, database)) rows += *more;
    if (rows != Load(manifest, entry + 8, 8)) Bad(file, at, "it holds another number of rows");
  }
  if (Load(manifest, 1600, 4) != 1) return std::nullopt;
  return std::pair{Load(manifest, 1608, 8), Load(manifest, 1616, 8)};
}

}  // namespace dbx::reference
