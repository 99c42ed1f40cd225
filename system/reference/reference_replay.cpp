#include "system/reference/reference_replay.h"

#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "system/reference/reference_file.h"

namespace dbx::reference {
namespace {

constexpr size_t kHeaderBytes = 4096;  // of one copy of the file header
constexpr size_t kRecordHeaderBytes = 32;
// By the number of the scheme: are all records of a run one sequence?
constexpr bool kHasOneLog[] = {
    false,  // none: it leaves no log
    true,   // serial
    false,  // taurus
    false,  // plover
    false,  // silo_r
    true,   // eleda
    false,  // differential
    true,   // write_behind: its changes are in a heap (reference_heap.h)
    true,   // instant
};

[[noreturn]] void BadHeader(ExitStatus status, const std::string& path, uint64_t offset, const std::string& why) {
  throw Error(status, "bad log header " + path + "@" + std::to_string(offset) + ": " + why);
}

// The first of the two copies that checks out.
std::vector<std::byte> ReadHeader(const std::string& path, Bytes file) {
  for (size_t at = 0; at + kHeaderBytes <= std::min(file.size(), kStreamOffset); at += kHeaderBytes) {
    std::vector<std::byte> copy(file.begin() + at, file.begin() + at + kHeaderBytes);
    const uint64_t crc = LoadUint(copy, 12, 4);
    std::fill_n(copy.begin() + 12, 4, std::byte{0});
    if (std::memcmp(copy.data(), "DBXLOG\r\n", 8) == 0 && Crc32c(copy) == crc) return copy;
  }
  BadHeader(ExitStatus::kCorrupt, path, 0, "neither of its copies checks out");
}

// Takes one file's header into what is known of the run, and the file into its place.
void AddLog(ReferenceLogs& logs, const std::string& path, Bytes file) {
  std::vector<std::byte> header = ReadHeader(path, file);
  const auto require = [&](bool condition, uint64_t offset, const std::string& why) {
    if (!condition) BadHeader(ExitStatus::kMismatch, path, offset, why);
  };
  const uint64_t index = LoadUint(header, 36, 2), count = LoadUint(header, 38, 2), scheme = LoadUint(header, 64, 1);
  require(LoadUint(header, 8, 4) == 1, 8, "its version is not known");
  const uint64_t features = LoadUint(header, 32, 4), start = LoadUint(header, 40, 8),
                 parent = LoadUint(header, 4080, 8), stripe = LoadUint(header, 4092, 4);
  require(features <= 7, 32, "it requires a feature that is not known");
  require(features % 2 == 1 || start == 0, 40, "its stream does not start at LSN 0");
  require((features / 2 % 2 == 1) == (stripe != 0) && stripe % 4096 == 0, 4092, "its stripe unit is impossible");
  require(start % 4096 == 0 && start <= uint64_t{1} << 62, 40, "its stream starts at an impossible LSN");
  require((features % 2 == 1) == (parent != 0), 4080, "it does not say which run it continues");
  require(scheme >= 1 && scheme < std::size(kHasOneLog), 64, "its scheme is not known");
  require(index < count && (count == 1 || !kHasOneLog[scheme] || stripe != 0) && count <= LsnVector().size(), 36,
          "its number of logs is impossible");
  std::fill_n(header.begin() + 36, 2, std::byte{0});
  if (logs.logs.empty()) {
    logs.run_id = LoadUint(header, 24, 8);
    logs.start_lsn = start;
    logs.ring_bytes = LoadUint(header, 48, 8);
    logs.scheme = scheme;
    logs.stripe_bytes = stripe;
    logs.many_versions = LoadUint(header, 65, 1) == 3;
    logs.logs.resize(count);
    logs.common_header = header;
  }
  require(header == logs.common_header, 0, "its run is not that of the other logs");
  Log& log = logs.logs[index];
  require(log.path.empty(), 36, "it is the same log as " + log.path);
  log.path = path;
  log.stream = file.subspan(std::min<size_t>(kStreamOffset, file.size()));
  log.start = log.first = log.end = start;
}

// Why there is no record at `at`, or nullptr if there is one.
const char* CheckRecord(const Log& from, uint64_t at, uint32_t salt, uint32_t log) {
  const Bytes bytes = from.From(at);
  if (bytes.size() < kRecordHeaderBytes) return "the file ends within a record's header";
  if (LoadUint(bytes, 16, 8) != at) return "the record belongs to another position";
  if (LoadUint(bytes, 8, 4) != salt) return "the record belongs to another run or log";
  if (Crc32c(bytes.subspan(4, kRecordHeaderBytes - 4)) != LoadUint(bytes, 0, 4)) return "bad header checksum";
  const uint64_t kind = LoadUint(bytes, 24, 1), length = LoadUint(bytes, 12, 4);
  if (kind < 1 || kind > 16) return "unknown kind of record";
  if (LoadUint(bytes, 25, 1) != log) return "the record belongs to another log";
  if (length < kRecordHeaderBytes || length % 8 != 0) return "impossible length";
  if (length > bytes.size()) return "the record ends behind the file";
  if (Kind{static_cast<uint8_t>(kind)} == Kind::kVoid) return nullptr;
  const Bytes body = bytes.subspan(kRecordHeaderBytes, length - kRecordHeaderBytes);
  return Crc32c(body) == LoadUint(bytes, 4, 4) ? nullptr : "bad body checksum";
}

// The same of the records of a log of changes, whose bodies are long enough.
const char* CheckBodyOfChanges(Bytes bytes, uint64_t body, uint64_t of_txn, size_t log_count) {
  const uint64_t flags = LoadUint(bytes, 30, 2), number = LoadUint(bytes, kRecordHeaderBytes, 4);
  const bool of_other_log = LoadUint(bytes, 26, 2) >> log_count != 0, is_abort = LoadUint(bytes, 24, 1) == 13;
  switch (Kind{static_cast<uint8_t>(LoadUint(bytes, 24, 1))}) {
    case Kind::kChange:
      if (flags > 63) return "a change with a flag that is not known";
      if ((flags & 32) != 0 && (flags & 18) != 18) return "a slot that is erased without images";
      if ((flags & 24) == 24) return "runs of two images";
      return (flags & 5) == 5 ? "a compensation that comes first" : nullptr;
    case Kind::kCommit:
    case Kind::kAbort:
      if (flags > 1) return "the end of a transaction with a flag that is not known";
      if (of_other_log) return "an LSN vector element of a log that does not exist";
      if (is_abort && flags == 0 && of_txn > 8) return "an ABORT that depends on others, without a stamp";
      return body != of_txn + 8 * flags ? "another length than that of its LSN vector" : nullptr;
    case Kind::kCheckpointBegin:
      return body != 8 || number == 0 ? "a checkpoint without a number" : nullptr;
    default:
      if (number == 0) return "a checkpoint without a number";
      return body != 8 + 8 * LoadUint(bytes, kRecordHeaderBytes + 4, 4) ? "another number of transactions" : nullptr;
  }
}

// Why the record at `at`, whose checksums are right, still says nothing, or nullptr. No crash leaves such a record.
const char* CheckBody(const Log& from, uint64_t at, size_t log_count) {
  const Bytes bytes = from.From(at);
  const uint64_t lv_mask = LoadUint(bytes, 26, 2), of_txn = 8 + 8 * static_cast<uint64_t>(std::popcount(lv_mask));
  const uint64_t of_change = (LoadUint(bytes, 30, 2) & 2) != 0 ? 24 : 16;  // with the key
  const uint64_t bytes_min[] = {0,         of_txn, of_txn, 0, 8, 8 * log_count, 40, 16, 16, of_txn + 16, 8,
                                of_change, of_txn, of_txn, 8, 8, of_txn};  // of the body, by kind
  const uint64_t body = LoadUint(bytes, 12, 4) - kRecordHeaderBytes, kind = LoadUint(bytes, 24, 1);
  if (body < bytes_min[kind]) return "the body is cut off";
  const bool of_changes = kind >= 11 && kind <= 15;
  if (of_changes) return CheckBodyOfChanges(bytes, body, of_txn, log_count);
  if (Kind{static_cast<uint8_t>(kind)} == Kind::kAnchor && body > 8 * log_count) return "an anchor of more logs";
  if (Kind{static_cast<uint8_t>(kind)} == Kind::kVersionedCommand) {
    const uint64_t read = LoadUint(bytes, kRecordHeaderBytes + of_txn, 8);
    const uint64_t end = LoadUint(bytes, kRecordHeaderBytes + of_txn + 8, 8);
    if (read >= end || end >= uint64_t{1} << 49) return "timestamps that no transaction has";
  }
  return lv_mask >> log_count != 0 ? "an LSN vector element of a log that does not exist" : nullptr;
}

// That everything of a log below `until` had been durable, and the record that shows it.
struct Proof {
  uint64_t until = 0;
  uint32_t log = 0;
  uint64_t lsn = 0;
  const char* what = "";
};
using Proofs = std::array<Proof, LsnVector().size()>;

void CollectProofs(const Record& record, ReferenceLogs& logs, Proofs& proofs) {
  const auto prove = [&](uint32_t log, uint64_t until, const char* what) {
    if (until > proofs[log].until) proofs[log] = {until, record.log, record.lsn, what};
  };
  const uint64_t ring = logs.ring_bytes;
  if (ring > 0 && record.end > ring) prove(record.log, record.end - ring, "the record");
  if (record.kind == Kind::kPad) prove(record.log, record.durable_lsn, "the PAD");
  if (record.kind == Kind::kRunEnd) prove(record.log, record.durable_lsn, "RUN_END");
  for (uint32_t j = 0; record.kind == Kind::kAnchor && j < proofs.size(); ++j) prove(j, record.lv[j], "the anchor");
  if (record.kind == Kind::kMark) logs.durable_stamp = std::max(logs.durable_stamp, record.durable_lsn);
}

// Finds the valid prefix, and whatever it and what is behind it prove about this and the other logs.
void ScanLog(ReferenceLogs& logs, uint32_t index, Proofs& proofs) {
  Log& log = logs.logs[index];
  const uint32_t salt = SaltOf(logs.run_id, index);
  uint64_t watermark = 0;
  while (log.end < log.start + log.stream.size() && !log.run_end && log.reason.empty()) {
    const char* problem = CheckRecord(log, log.end, salt, index);
    if (problem == nullptr && (problem = CheckBody(log, log.end, logs.logs.size())) != nullptr) {
      log.verdict = Verdict::kDamaged;
    }
    if (problem != nullptr) {
      log.reason = problem;
      break;
    }
    const Record record = DecodeRecord(logs, index, log.end);
    if (record.kind == Kind::kWatermark) watermark = std::max(watermark, record.read);
    if (record.kind == Kind::kVersionedCommand && record.read < watermark) {
      log.verdict = Verdict::kDamaged;
      log.reason = "the transaction reads below a watermark before it";
      break;
    }
    CollectProofs(record, logs, proofs);
    log.txn_count += record.IsTxn();
    log.run_end = record.kind == Kind::kRunEnd;
    const uint64_t counted = log.run_end ? LoadUint(record.payload, 8, 8) : 0;
    if (log.run_end && (log.is_cut() ? counted < log.txn_count : counted != log.txn_count)) {
      log.verdict = Verdict::kDamaged;
      log.reason = "RUN_END counts another number of transactions";
    } else {
      log.end = record.end;
    }
  }
  uint64_t last = log.start + log.stream.size();
  while (last >= log.end + 8 && LoadUint(log.From(last - 8), 0, 8) == 0) last -= 8;
  while (last > log.end && log.From(last - 1)[0] == std::byte{0}) --last;
  log.tail_bytes = last - log.end;
  // Nothing follows a RUN_END: whatever stands there is no record of this log.
  for (uint64_t at = log.end, step = 8; at < last && !log.run_end; at += step, step = 8) {
    if (CheckRecord(log, at, salt, index) != nullptr) continue;
    if (CheckBody(log, at, logs.logs.size()) != nullptr) continue;
    const Record record = DecodeRecord(logs, index, at);
    CollectProofs(record, logs, proofs);
    step = record.end - at;
  }
}

void Judge(const ReferenceLogs& logs, Log& log, const Proof& proof) {
  if (log.verdict == Verdict::kDamaged) return;
  if (proof.until > log.end) {
    log.verdict = Verdict::kDamaged;
    log.reason = (log.reason.empty() ? "the log ends" : log.reason) + ", but " + proof.what + " at " +
                 logs.logs[proof.log].path + "@" + std::to_string(logs.logs[proof.log].OffsetOf(proof.lsn)) +
                 " shows that it was durable up to LSN " + std::to_string(proof.until);
  } else if (!log.run_end && log.tail_bytes > 0) {
    log.verdict = Verdict::kTorn;
  }
}

// Makes one log of the stripes: unit u of its stream is the next one of file u mod n; what a file lacks is zeros.
void JoinStripes(ReferenceLogs& logs) {
  const size_t unit = logs.stripe_bytes, count = logs.logs.size();
  Log joined = logs.logs.front();
  for (size_t i = 0; i < count; ++i) {
    const Bytes stripe = logs.logs[i].stream;
    for (size_t at = 0; at < stripe.size(); at += unit) {
      const size_t bytes = std::min(unit, stripe.size() - at), to = (at / unit * count + i) * unit;
      if (joined.joined.size() < to + bytes) joined.joined.resize(to + bytes);
      std::copy_n(stripe.begin() + static_cast<ptrdiff_t>(at), bytes,
                  joined.joined.begin() + static_cast<ptrdiff_t>(to));
    }
  }
  logs.logs.clear();
  logs.logs.push_back(std::move(joined));
  logs.logs.front().stream = logs.logs.front().joined;
}

// Reading begins at a record; what is below is not looked at.
void CutLog(Log& log, uint64_t needed) {
  const uint64_t file_end = log.start + log.stream.size();
  log.first = log.end = std::clamp(needed, log.start, file_end);
  if (needed <= file_end) return;
  log.verdict = Verdict::kDamaged;
  log.reason = "the log ends before what recovery needs of it";
}

void FinishReading(ReferenceLogs& logs, const std::vector<uint64_t>* frontier, const std::vector<uint64_t>* needed) {
  for (size_t i = 0; i < logs.logs.size(); ++i) {
    if (logs.logs[i].path.empty()) {
      throw Error(ExitStatus::kMismatch, "log " + std::to_string(i) + " of the run is missing");
    }
  }
  if (logs.logs.empty()) throw Error(ExitStatus::kMismatch, "the run has no log files");
  if (logs.stripe_bytes != 0) JoinStripes(logs);
  Proofs proofs{};
  if (frontier != nullptr && frontier->size() != logs.logs.size()) {
    throw Error(ExitStatus::kMismatch, "the run was frozen with another number of logs");
  }
  for (uint32_t i = 0; frontier != nullptr && i < logs.logs.size(); ++i) {
    Log& log = logs.logs[i];
    if ((*frontier)[i] - log.start < log.stream.size()) log.stream = log.stream.first((*frontier)[i] - log.start);
  }
  if (needed != nullptr && needed->size() != logs.logs.size()) {
    throw Error(ExitStatus::kMismatch, "the run's anchor is of another number of logs");
  }
  for (uint32_t i = 0; needed != nullptr && i < logs.logs.size(); ++i) CutLog(logs.logs[i], (*needed)[i]);
  for (uint32_t i = 0; i < logs.logs.size(); ++i) ScanLog(logs, i, proofs);
  for (uint32_t i = 0; i < logs.logs.size(); ++i) Judge(logs, logs.logs[i], proofs[i]);
  for (uint32_t i = 0; frontier != nullptr && i < logs.logs.size(); ++i) {
    Log& log = logs.logs[i];
    if (log.end == (*frontier)[i]) continue;
    log.verdict = Verdict::kDamaged;
    log.reason += ", but the run was continued from what its log held up to LSN " + std::to_string((*frontier)[i]);
  }
}

// The first log that ends before what `record` needs of it, or the number of logs.
uint32_t FirstLostLog(const Record& record, const std::vector<uint64_t>& frontier) {
  uint32_t j = 0;
  while (j < frontier.size() && record.lv[j] <= frontier[j]) ++j;
  return j;
}

// Have other logs been replayed up to the record's LSN vector, and can its own log be?
bool IsReady(const Record& record, const std::vector<Cursor>& heads, const std::vector<uint64_t>& frontier) {
  for (uint32_t j = 0; j < heads.size(); ++j) {
    const uint64_t replayed = heads[j].AtEnd() ? frontier[j] : heads[j].record().lsn;
    if (record.lv[j] > (j == record.log ? record.end : replayed)) return false;
  }
  return true;
}

// Consumes the log's head while it is ready; returns whether it consumed any. What is no recovered
// transaction counts as replayed once it is the head.
bool Advance(std::vector<Cursor>& heads, uint32_t log, RecoveredSet& set) {
  Cursor& head = heads[log];
  bool advanced = false;
  for (; !head.AtEnd(); head.Next(), advanced = true) {
    const Record& record = head.record();
    set.voids += record.kind == Kind::kVoid;
    if (!record.IsTxn()) continue;
    const uint32_t lost = FirstLostLog(record, set.frontier);
    if (lost < heads.size()) {
      set.dropped.push_back({TxnId{record.txn_id}, {record.log, record.lsn}, lost, record.lv[lost]});
      continue;
    }
    if (!IsReady(record, heads, set.frontier)) break;
    set.order.push_back({record.log, record.lsn});
    set.txn_ids.push_back(record.txn_id);
  }
  return advanced;
}

void SortByEnd(const ReferenceLogs& logs, std::vector<TxnRef>& order) {
  std::vector<std::pair<uint64_t, TxnRef>> ends;
  for (const TxnRef& at : order) ends.emplace_back(DecodeRecord(logs, at.log, at.lsn).stamp, at);
  std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < order.size(); ++i) order[i] = ends[i].second;
}

}  // namespace

ReferenceLogs ReadLogs(std::vector<FileImage> files, const std::vector<uint64_t>* frontier,
                       const std::vector<uint64_t>* needed) {
  ReferenceLogs logs;
  for (FileImage& file : files) {
    AddLog(logs, file.path, file.bytes);
    logs.owners.push_back(std::move(file.owner));
  }
  FinishReading(logs, frontier, needed);
  return logs;
}

ReferenceLogs ReadLogs(const std::vector<std::vector<std::byte>>& files) {
  std::vector<FileImage> images;
  for (size_t i = 0; i < files.size(); ++i) {
    auto copy = std::make_shared<std::vector<std::byte>>(files[i]);
    const Bytes bytes(*copy);
    images.push_back({"file " + std::to_string(i), bytes, std::move(copy)});
  }
  return ReadLogs(std::move(images));
}

void Cursor::Load(uint64_t position) {
  position_ = position;
  if (AtEnd()) return;
  record_ = DecodeRecord(*logs_, log_, position_, anchor_);
  if (record_.kind == Kind::kAnchor) anchor_ = record_.lv;
}

Record DecodeRecord(const ReferenceLogs& logs, uint32_t log, uint64_t lsn, const LsnVector& anchor) {
  const Bytes bytes = logs.logs[log].From(lsn);
  Record record;
  record.kind = Kind{static_cast<uint8_t>(LoadUint(bytes, 24, 1))};
  record.procedure = static_cast<uint16_t>(LoadUint(bytes, 28, 2));
  record.log = log;
  record.lsn = lsn;
  record.end = lsn + LoadUint(bytes, 12, 4);
  record.payload = bytes.subspan(kRecordHeaderBytes, record.end - lsn - kRecordHeaderBytes);
  const auto take = [&] {
    const uint64_t value = LoadUint(record.payload, 0, 8);
    record.payload = record.payload.subspan(8);
    return value;
  };
  if (record.kind == Kind::kPad || record.kind == Kind::kRunEnd) {
    record.durable_lsn = LoadUint(record.payload, 0, 8);
  } else if (record.kind == Kind::kAnchor) {
    for (size_t j = 0; j < logs.logs.size(); ++j) record.lv[j] = take();
  } else if (record.kind == Kind::kMark) {
    record.stamp = take();
    record.durable_lsn = take();
  } else if (record.kind == Kind::kWatermark) {
    record.read = take();
  } else if (record.kind == Kind::kChange) {
    record.table = static_cast<uint16_t>(LoadUint(bytes, 26, 2));
    record.flags = static_cast<uint16_t>(LoadUint(bytes, 30, 2));
    record.txn_id = take();
    const uint64_t place = take();
    record.page = static_cast<uint32_t>(place);
    record.number = static_cast<uint32_t>(place >> 32);
  } else if (record.kind == Kind::kAbort) {
    record.flags = static_cast<uint16_t>(LoadUint(bytes, 30, 2));
    record.txn_id = take();
  } else if (record.kind == Kind::kCheckpointBegin || record.kind == Kind::kCheckpointEnd) {
    record.number = static_cast<uint32_t>(take());
  } else if (record.IsTxn()) {
    record.txn_id = take();
    record.lv = anchor;
    uint64_t lv_mask = LoadUint(bytes, 26, 2);
    if (record.kind == Kind::kCommit) record.flags = static_cast<uint16_t>(LoadUint(bytes, 30, 2));
    if (record.kind == Kind::kStamped) {
      record.stamp = take();
      record.parts = std::exchange(lv_mask, 0);
    }
    for (size_t j = 0; j < record.lv.size(); ++j) record.lv[j] = (lv_mask >> j & 1) != 0 ? take() : anchor[j];
    if (record.kind == Kind::kVersionedCommand) {
      record.read = take();
      record.stamp = take();
    }
  }
  return record;
}

RecoveredSet Recover(const ReferenceLogs& logs) {
  if (logs.by_partition() || logs.newest_wins()) return RecoverStamped(logs);
  RecoveredSet set;
  std::vector<Cursor> heads;
  for (const Log& log : logs.logs) {
    heads.emplace_back(logs, static_cast<uint32_t>(heads.size()));
    set.frontier.push_back(log.end);
    if (log.verdict == Verdict::kDamaged && set.damage.empty()) set.damage = log.Complaint(log.end, log.reason);
  }
  for (bool advanced = set.damage.empty(); advanced;) {
    advanced = false;
    for (uint32_t i = 0; i < heads.size(); ++i) advanced |= Advance(heads, i, set);
  }
  for (const Cursor& head : heads) {
    if (head.AtEnd() || !set.damage.empty()) continue;
    const Record& record = head.record();
    set.damage = logs.logs[record.log].Complaint(record.lsn, "the transaction waits for one that waits for it");
  }
  if (logs.many_versions) SortByEnd(logs, set.order);
  std::sort(set.txn_ids.begin(), set.txn_ids.end());
  const auto twice = std::adjacent_find(set.txn_ids.begin(), set.txn_ids.end());
  if (twice != set.txn_ids.end()) set.damage = "transaction " + std::to_string(*twice) + " is in the logs twice";
  return set;
}

Row* ReferenceContext::FindPresent(Table& table, Key key) {
  Row* row = table.Find(key);
  return row == nullptr || (row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0 ? nullptr : row;
}

void ReferenceContext::Save(Table& table, Row* row) {
  const std::byte* tuple = table.tuple(row);
  saved_.push_back({&table, row, row->control.load(std::memory_order_relaxed), {tuple, tuple + table.tuple_bytes()}});
}

Outcome ReferenceContext::Insert(Table& table, Key key, Bytes tuple) {
  if (FindPresent(table, key) != nullptr) return Outcome::kExists;
  Put(table, key, tuple);
  return Outcome::kOk;
}

Outcome ReferenceContext::Delete(Table& table, Key key) {
  Row* row = FindPresent(table, key);
  if (row == nullptr) return Outcome::kNotFound;
  Save(table, row);
  row->control.fetch_or(Row::kAbsent, std::memory_order_relaxed);
  return Outcome::kOk;
}

void ReferenceContext::Put(Table& table, Key key, Bytes tuple) {
  Row* row = table.FindOrCreate(WorkerId(0), key, [](Row& fresh) { fresh.control = Row::kAbsent; });
  Save(table, row);
  std::copy(tuple.begin(), tuple.end(), table.tuple(row));
  row->control.fetch_and(~Row::kAbsent, std::memory_order_relaxed);
}

void ReferenceContext::Undo() {
  for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved) {
    std::copy(saved->tuple.begin(), saved->tuple.end(), saved->table->tuple(saved->row));
    saved->row->control.store(saved->control, std::memory_order_relaxed);
  }
}

void ReferenceContext::Forget() {
  for (const Saved& saved : saved_) {
    const bool absent = (saved.row->control.load(std::memory_order_relaxed) & Row::kAbsent) != 0;
    const Key key = saved.row->key;
    if (!absent || !saved.table->ordered() || saved.table->Find(key) != saved.row) continue;
    saved.table->Unlink(saved.row);
    saved.table->UnlinkEmptyLeaf(key, stopped_clock_, WorkerId(0), [](BTreeLeaf&, BTreeLeaf&) {});
  }
  saved_.clear();
}

void ApplyImages(const Log& log, const Record& record, ReferenceContext& context, Database& database) {
  const auto require = [&](bool condition, const char* why) {
    if (!condition) throw Error(ExitStatus::kCorrupt, log.Complaint(record.lsn, why));
  };
  for (Bytes rest = record.payload; !rest.empty();) {
    require(rest.size() >= 16, "a row image is cut off");
    const uint64_t key = LoadUint(rest, 0, 8), id = LoadUint(rest, 8, 2), op = LoadUint(rest, 10, 1);
    const uint64_t length = LoadUint(rest, 12, 4), padded = (length + 7) / 8 * 8;
    require(op == 1 || op == 2, "unknown kind of write");
    require(padded <= rest.size() - 16, "a row image is cut off");
    require(id < database.table_count(), "a row of a table that does not exist");
    Table& table = database.table(TableId(static_cast<uint16_t>(id)));
    require(op == 2 || length == table.tuple_bytes(), "a row image of another size than its table's rows");
    if (op == 1) context.Put(table, key, rest.subspan(16, length));
    if (op == 2) context.Delete(table, key);
    rest = rest.subspan(16 + padded);
  }
}

std::byte* ReferenceContext::Change(Table& table, Key key) {
  Row* row = FindPresent(table, key);
  if (row == nullptr) return nullptr;
  Save(table, row);
  return table.tuple(row);
}

void ApplyChanges(const Log& log, const Record& record, ReferenceContext& context, Database& database,
                  LastRecords& last) {
  const auto require = [&](bool condition, const char* why) {
    if (!condition) throw Error(ExitStatus::kCorrupt, log.Complaint(record.lsn, why));
  };
  for (Bytes rest = record.payload; !rest.empty();) {
    require(rest.size() >= 24, "a change of a row is cut off");
    const uint64_t key = LoadUint(rest, 0, 8), previous = LoadUint(rest, 8, 8), id = LoadUint(rest, 16, 2),
                   op = LoadUint(rest, 18, 1), length = LoadUint(rest, 20, 4), padded = (length + 7) / 8 * 8;
    require(op >= 1 && op <= 3, "unknown kind of change");
    require(padded <= rest.size() - 24, "a change of a row is cut off");
    require(id < database.table_count(), "a change of a table that does not exist");
    uint64_t& expected = last[{id, key}];
    // Before an insert and a delete, of a row that was taken out of the index, there may be none.
    require(previous == expected || (op != 3 && previous == 0), "a change does not name its row's previous record");
    expected = record.lsn + 1;
    Table& table = database.table(TableId(static_cast<uint16_t>(id)));
    const Bytes what = rest.subspan(24, length);
    require(op != 1 || length == table.tuple_bytes(), "a tuple of another size than its table's rows");
    require(op != 2 || length == 0, "a delete that holds something");
    if (op == 1) context.Put(table, key, what);
    if (op == 2) context.Delete(table, key);
    if (op == 3) {
      std::byte* const tuple = context.Change(table, key);
      require(tuple != nullptr, "a change of a row that is not there");
      for (size_t at = 0, behind = 0; at < what.size();) {
        require(what.size() - at >= 8, "a run of changed bytes is cut off");
        const uint64_t offset = LoadUint(what, at, 4), bytes = LoadUint(what, at + 4, 4);
        require((bytes + 7) / 8 * 8 <= what.size() - at - 8, "a run of changed bytes is cut off");
        require(bytes > 0 && offset >= behind && offset + bytes <= table.tuple_bytes(), "an impossible run of bytes");
        std::copy_n(what.begin() + static_cast<ptrdiff_t>(at + 8), bytes, tuple + offset);
        behind = offset + bytes;
        at += 8 + (bytes + 7) / 8 * 8;
      }
    }
    rest = rest.subspan(24 + padded);
  }
}

uint32_t Crc32c(Bytes bytes, uint32_t crc) {
  static const auto kTables = [] {  // [k][b]: the effect of byte b when k bytes follow it
    std::array<std::array<uint32_t, 256>, 8> tables{};
    for (uint32_t b = 0; b < 256; ++b) {
      tables[0][b] = b;
      for (int bit = 0; bit < 8; ++bit) tables[0][b] = (tables[0][b] >> 1) ^ (tables[0][b] & 1) * 0x82F63B78u;
    }
    for (size_t i = 256; i < 8 * 256; ++i) {
      const uint32_t before = tables[i / 256 - 1][i % 256];
      tables[i / 256][i % 256] = (before >> 8) ^ tables[0][before & 0xFF];
    }
    return tables;
  }();
  crc = ~crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const uint64_t word = LoadUint(bytes, 0, 8) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xFF];
  }
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<uint32_t>(b)) & 0xFF];
  return ~crc;
}

}  // namespace dbx::reference
