#include "tests/reference/reference_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace dbx::reference {
namespace {

using Bytes = std::span<const std::byte>;
constexpr size_t kHeaderBytes = 4096;  // of one copy of the file header
constexpr size_t kRecordHeaderBytes = 32;
constexpr std::string_view kMagic = "DBXLOG\r\n";

uint64_t LoadUint(Bytes bytes, size_t at, size_t size) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, size);
  return value;
}

std::array<std::array<uint32_t, 256>, 8> MakeCrcTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}

uint32_t SaltOf(uint64_t run_id, uint32_t log) {
  uint64_t x = run_id + 0x9E3779B97F4A7C15u * (uint64_t{log} + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(x ^ (x >> 31));
}

[[noreturn]] void BadHeader(ExitStatus status, const std::string& path, uint64_t offset, const std::string& why) {
  throw Error(status, "bad log header " + path + "@" + std::to_string(offset) + ": " + why);
}

bool HeaderIsWhole(Bytes copy) {
  if (copy.size() < kHeaderBytes || std::memcmp(copy.data(), kMagic.data(), kMagic.size()) != 0) return false;
  constexpr std::array<std::byte, 4> kZero{};
  const uint32_t crc = Crc32c(copy.subspan(16, kHeaderBytes - 16), Crc32c(kZero, Crc32c(copy.first(12))));
  return crc == LoadUint(copy, 12, 4);
}

RunInfo ReadHeader(const std::string& path, Bytes file, uint32_t& log_index) {
  const Bytes first = file.first(std::min(file.size(), kHeaderBytes));
  const Bytes second = file.subspan(first.size());
  if (!HeaderIsWhole(first) && !HeaderIsWhole(second)) {
    BadHeader(ExitStatus::kCorrupt, path, 0, "neither copy checks out");
  }
  const Bytes copy = HeaderIsWhole(first) ? first : second.first(kHeaderBytes);
  const auto require = [&](bool condition, uint64_t offset, const char* why) {
    if (!condition) BadHeader(ExitStatus::kMismatch, path, offset, why);
  };
  require(LoadUint(copy, 8, 4) == 1, 8, "its version is not known");
  require(LoadUint(copy, 32, 4) == 0, 32, "it requires a feature that is not known");
  require(LoadUint(copy, 40, 8) == 0, 40, "its stream does not start at LSN 0");
  const uint64_t scheme = LoadUint(copy, 64, 1), config_bytes = LoadUint(copy, 68, 4);
  require(scheme == 1 || scheme == 2, 64, "its scheme is not known");
  require(config_bytes <= kHeaderBytes - 72, 68, "its configuration is too long");
  RunInfo run;
  log_index = static_cast<uint32_t>(LoadUint(copy, 36, 2));
  run.log_count = static_cast<uint32_t>(LoadUint(copy, 38, 2));
  require(run.log_count <= (scheme == 1 ? 1 : kMaxLogs) && log_index < run.log_count, 36, "bad number of logs");
  run.database_id = LoadUint(copy, 16, 8);
  run.run_id = LoadUint(copy, 24, 8);
  run.ring_bytes = LoadUint(copy, 48, 8);
  run.schema_hash = LoadUint(copy, 56, 8);
  run.scheme = Scheme{static_cast<uint8_t>(scheme)};
  run.payload = static_cast<uint8_t>(LoadUint(copy, 65, 1));
  run.config.assign(reinterpret_cast<const char*>(copy.data()) + 72, config_bytes);
  return run;
}

struct RecordHeader {
  uint32_t length, body_crc;
  uint8_t kind;
  uint16_t lv_mask, procedure;
};

// Why there is no record at `at`, or nullptr if there is one, which `header` then describes.
const char* CheckRecord(Bytes stream, uint64_t at, uint32_t salt, uint32_t log, RecordHeader& header) {
  if (stream.size() - at < kRecordHeaderBytes) return "the file ends within a record's header";
  const Bytes bytes = stream.subspan(at);
  if (LoadUint(bytes, 16, 8) != at) return "the record belongs to another position";
  if (LoadUint(bytes, 8, 4) != salt) return "the record belongs to another run or log";
  if (Crc32c(bytes.subspan(4, kRecordHeaderBytes - 4)) != LoadUint(bytes, 0, 4)) return "bad header checksum";
  header = {static_cast<uint32_t>(LoadUint(bytes, 12, 4)), static_cast<uint32_t>(LoadUint(bytes, 4, 4)),
            static_cast<uint8_t>(LoadUint(bytes, 24, 1)), static_cast<uint16_t>(LoadUint(bytes, 26, 2)),
            static_cast<uint16_t>(LoadUint(bytes, 28, 2))};
  if (header.kind < 1 || header.kind > 6) return "unknown kind of record";
  if (LoadUint(bytes, 25, 1) != log) return "the record belongs to another log";
  if (header.length < kRecordHeaderBytes || header.length % 8 != 0) return "impossible length";
  if (header.length > bytes.size()) return "the record ends behind the file";
  if (Kind{header.kind} == Kind::kVoid) return nullptr;
  if (Crc32c(bytes.subspan(kRecordHeaderBytes, header.length - kRecordHeaderBytes)) != header.body_crc) {
    return "bad body checksum";
  }
  return nullptr;
}

// Why a record whose checksums are right still says nothing, or nullptr. No crash writes such a record.
const char* CheckBody(Bytes body, const RecordHeader& header, size_t log_count) {
  const size_t lv_end = 8 + 8 * static_cast<size_t>(std::popcount(header.lv_mask));
  switch (Kind{header.kind}) {
    case Kind::kPad:
      return body.size() < 8 ? "a PAD without its durable LSN" : nullptr;
    case Kind::kAnchor:
      return body.size() != 8 * log_count ? "an anchor for another number of logs" : nullptr;
    case Kind::kRunEnd:
      return body.size() < 40 ? "RUN_END is too short" : nullptr;
    case Kind::kVoid:
      return nullptr;
    case Kind::kCommand:
    case Kind::kData:
      break;
  }
  if (header.lv_mask >> log_count != 0) return "an LSN vector element of a log that does not exist";
  if (body.size() < lv_end) return "the LSN vector is cut off";
  if (Kind{header.kind} == Kind::kCommand) return nullptr;
  for (size_t at = lv_end; at < body.size();) {
    if (body.size() - at < 16) return "a row image is cut off";
    const uint64_t length = LoadUint(body, at + 12, 4);
    const uint64_t op = LoadUint(body, at + 10, 1);
    if (op != 1 && op != 2) return "unknown kind of write";
    at += 16;
    if (length > body.size() - at) return "a row image is cut off";
    at += (length + 7) / 8 * 8;
  }
  return nullptr;
}

// That everything below `until` of a log had been durable, and the record that shows it.
struct Proof {
  uint64_t until = 0;
  uint32_t log = 0;
  uint64_t lsn = 0;
  const char* what = "";
};
using Proofs = std::array<Proof, kMaxLogs>;

void CollectProofs(const Record& record, uint64_t ring_bytes, size_t log_count, Proofs& proofs) {
  const auto prove = [&](uint32_t log, uint64_t until, const char* what) {
    if (until > proofs[log].until) proofs[log] = {until, record.log, record.lsn, what};
  };
  if (ring_bytes > 0 && record.end > ring_bytes) prove(record.log, record.end - ring_bytes, "the record");
  if (record.kind == Kind::kPad) prove(record.log, record.durable_lsn, "the PAD");
  if (record.kind == Kind::kRunEnd) prove(record.log, record.durable_lsn, "RUN_END");
  if (record.kind != Kind::kAnchor) return;
  for (uint32_t j = 0; j < log_count; ++j) prove(j, record.lv[j], "the anchor");
}

// The valid prefix, what is behind it, and what all of it proves about this and the other logs.
void ScanLog(ReferenceLogs& logs, uint32_t index, Proofs& proofs) {
  Log& log = logs.logs[index];
  const uint32_t salt = SaltOf(logs.run.run_id, index);
  const size_t log_count = logs.logs.size();
  RecordHeader header{};
  const auto body = [&](uint64_t at) {
    return log.stream.subspan(at + kRecordHeaderBytes, header.length - kRecordHeaderBytes);
  };
  while (log.end < log.stream.size() && !log.run_end) {
    const char* problem = CheckRecord(log.stream, log.end, salt, index, header);
    if (problem != nullptr) {
      log.stop_reason = problem;
      break;
    }
    if ((problem = CheckBody(body(log.end), header, log_count)) != nullptr) {
      log.stop_reason = problem;
      log.verdict = Verdict::kDamaged;
      log.damage = {log.path, kStreamOffset + log.end, problem};
      break;
    }
    const Record record = DecodeRecord(logs, index, log.end);
    CollectProofs(record, logs.run.ring_bytes, log_count, proofs);
    log.txn_count += record.IsTxn();
    log.run_end = record.kind == Kind::kRunEnd;
    if (log.run_end && LoadUint(record.payload, 8, 8) != log.txn_count) {
      log.verdict = Verdict::kDamaged;
      log.damage = {log.path, kStreamOffset + log.end, "RUN_END counts another number of transactions"};
    }
    if (log.run_end && LoadUint(record.payload, 16, 8) == 1) {
      log.has_digest = true;
      log.digest = {LoadUint(record.payload, 24, 8), LoadUint(record.payload, 32, 8)};
    }
    log.end = record.end;
  }
  uint64_t last = log.stream.size();  // the end of what is not zero
  while (last >= log.end + 8 && LoadUint(log.stream, last - 8, 8) == 0) last -= 8;
  while (last > log.end && log.stream[last - 1] == std::byte{0}) --last;
  log.tail_bytes = last - log.end;
  for (uint64_t at = (log.end + 7) / 8 * 8; at < last;) {
    const bool valid = CheckRecord(log.stream, at, salt, index, header) == nullptr &&
                       CheckBody(body(at), header, log_count) == nullptr;
    if (valid) CollectProofs(DecodeRecord(logs, index, at), logs.run.ring_bytes, log_count, proofs);
    at += valid ? header.length : 8;
  }
}

void Judge(Log& log, const ReferenceLogs& logs, const Proof& proof) {
  if (log.verdict == Verdict::kDamaged) return;
  if (proof.until > log.end) {
    log.verdict = Verdict::kDamaged;
    const std::string stop = log.stop_reason.empty() ? "the log ends" : log.stop_reason;
    log.damage = {log.path, kStreamOffset + log.end,
                  stop + ", but " + proof.what + " at " + logs.logs[proof.log].path + "@" +
                      std::to_string(kStreamOffset + proof.lsn) + " shows that it was durable up to LSN " +
                      std::to_string(proof.until)};
  } else if (!log.run_end && log.tail_bytes > 0) {
    log.verdict = Verdict::kTorn;
  }
}

struct File {
  std::string path;
  Bytes bytes;
};

ReferenceLogs Read(const std::vector<File>& files) {
  ReferenceLogs logs;
  for (const File& file : files) {
    uint32_t index = 0;
    const RunInfo run = ReadHeader(file.path, file.bytes, index);
    if (logs.logs.empty()) logs.run = run;
    logs.logs.resize(logs.run.log_count);
    if (run != logs.run) BadHeader(ExitStatus::kMismatch, file.path, 0, "it is of another run than " + files[0].path);
    Log& log = logs.logs[index];
    if (!log.path.empty()) BadHeader(ExitStatus::kMismatch, file.path, 36, "it is the same log as " + log.path);
    log.path = file.path;
    log.stream = file.bytes.subspan(std::min<size_t>(kStreamOffset, file.bytes.size()));
  }
  if (files.empty()) throw Error(ExitStatus::kMismatch, "no log files");
  for (size_t i = 0; i < logs.logs.size(); ++i) {
    if (!logs.logs[i].path.empty()) continue;
    BadHeader(ExitStatus::kMismatch, files[0].path, 36, "log " + std::to_string(i) + " of its run is missing");
  }
  Proofs proofs{};
  for (uint32_t i = 0; i < logs.logs.size(); ++i) ScanLog(logs, i, proofs);
  for (uint32_t i = 0; i < logs.logs.size(); ++i) Judge(logs.logs[i], logs, proofs[i]);
  return logs;
}

}  // namespace

ReferenceLogs ReadLogs(const std::vector<std::string>& paths) {
  std::vector<File> files;
  std::vector<std::shared_ptr<const void>> owners;
  for (const std::string& path : paths) {
    const auto fail = [&] { throw Error(ExitStatus::kIo, "cannot read " + path + "@0: " + std::strerror(errno)); };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || ::fstat(fd, &info) != 0) fail();
    const auto size = static_cast<size_t>(info.st_size);
    void* at = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) fail();
    ::close(fd);
    if (size > 0) owners.emplace_back(at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
    files.push_back({path, Bytes(static_cast<const std::byte*>(at), size)});
  }
  ReferenceLogs logs = Read(files);
  logs.owners = std::move(owners);
  return logs;
}

ReferenceLogs ReadLogs(const std::vector<std::vector<std::byte>>& contents) {
  auto copy = std::make_shared<const std::vector<std::vector<std::byte>>>(contents);
  std::vector<File> files;
  for (const auto& content : *copy) files.push_back({"log " + std::to_string(files.size()), content});
  ReferenceLogs logs = Read(files);
  logs.owners.push_back(std::move(copy));
  return logs;
}

Cursor::Cursor(const ReferenceLogs& logs, uint32_t log) : logs_(&logs), log_(log) { Load(); }

void Cursor::Next() {
  position_ = record_.end;
  Load();
}

void Cursor::Load() {
  if (AtEnd()) return;
  record_ = DecodeRecord(*logs_, log_, position_, anchor_);
  if (record_.kind == Kind::kAnchor) anchor_ = record_.lv;
}

Record DecodeRecord(const ReferenceLogs& logs, uint32_t log, uint64_t lsn,
                    const std::array<uint64_t, kMaxLogs>& anchor) {
  const Bytes bytes = logs.logs[log].stream.subspan(lsn);
  Record record;
  record.kind = Kind{static_cast<uint8_t>(LoadUint(bytes, 24, 1))};
  record.log = log;
  record.lsn = lsn;
  record.end = lsn + LoadUint(bytes, 12, 4);
  const Bytes body = bytes.subspan(kRecordHeaderBytes, record.end - lsn - kRecordHeaderBytes);
  if (record.kind == Kind::kAnchor) {
    for (size_t j = 0; j < logs.logs.size(); ++j) record.lv[j] = LoadUint(body, 8 * j, 8);
  } else if (record.kind == Kind::kPad || record.kind == Kind::kRunEnd) {
    record.durable_lsn = LoadUint(body, 0, 8);
    record.payload = body;
  } else if (record.IsTxn()) {
    const uint64_t lv_mask = LoadUint(bytes, 26, 2);
    size_t at = 8;
    record.lv = anchor;
    for (size_t j = 0; j < kMaxLogs; ++j) {
      if ((lv_mask >> j & 1) == 0) continue;
      record.lv[j] = LoadUint(body, at, 8);
      at += 8;
    }
    record.txn_id = LoadUint(body, 0, 8);
    record.procedure = static_cast<uint16_t>(LoadUint(bytes, 28, 2));
    record.payload = body.subspan(at);
  }
  return record;
}

uint32_t Crc32c(Bytes bytes, uint32_t crc) {
  static const auto kTables = MakeCrcTables();
  crc = ~crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {  // eight table look-ups that do not wait for each other
    const uint64_t word = LoadUint(bytes, i, 8) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xFF];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<uint32_t>(bytes[i])) & 0xFF];
  return ~crc;
}

}  // namespace dbx::reference
