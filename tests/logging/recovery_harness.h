// What the recovery tests share: log images, a workload whose writes do not commute, a generator of
// histories with dependencies, and an oracle that replays what must be recovered, one transaction at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "logging/format.h"
#include "logging/serial/serial_recovery.h"
#include "logging/taurus/taurus_recovery.h"
#include "system/replay/recovery.h"
#include "tests/logging/log_builder.h"

namespace dbx::recovery_test {

inline constexpr uint64_t kRunId = 0x1234;

// A device that can only be read.
class ImageDevice : public BlockDevice {
 public:
  ImageDevice(std::string path, std::vector<std::byte> bytes) : path_(std::move(path)), bytes_(std::move(bytes)) {}
  void StartWrite(uint64_t, std::span<const std::byte>) override {
    throw Error(ExitStatus::kIo, path_ + ": read only");
  }
  uint64_t Complete(bool) override { return 0; }
  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    if (offset == fail_at_) throw Error(ExitStatus::kIo, path_ + ": read error");
    const size_t bytes = offset >= bytes_.size() ? 0 : std::min<size_t>(to.size(), bytes_.size() - offset);
    if (bytes > 0) std::memcpy(to.data(), bytes_.data() + offset, bytes);
    return bytes;
  }
  uint64_t SizeBytes() override { return bytes_.size(); }
  const std::string& path() const override { return path_; }
  void FailAt(uint64_t offset) { fail_at_ = offset; }

 private:
  std::string path_;
  std::vector<std::byte> bytes_;
  uint64_t fail_at_ = UINT64_MAX;
};

// A log of 8-byte words. An LSN vector is given as {log, LSN} pairs in ascending order of log.
using LvElements = std::vector<std::pair<uint32_t, uint64_t>>;

class LogImage {
 public:
  LogImage(uint32_t index, uint32_t count)
      : index_(index), count_(count), log_(kRunId, index, count, format::Scheme::kTaurus) {}

  // Returns the commit LSN.
  uint64_t Append(format::RecordKind kind, std::span<const uint64_t> body, uint16_t lv_mask = 0,
                  uint16_t procedure = 0) {
    format::RecordHeader header = log_.HeaderOf(kind);
    header.lv_mask = lv_mask;
    header.procedure = procedure;
    log_.Raw(header, {reinterpret_cast<const char*>(body.data()), body.size_bytes()});
    return end();
  }
  uint64_t Txn(format::RecordKind kind, uint64_t id, uint16_t procedure, const LvElements& lv,
               std::span<const uint64_t> rest) {
    std::vector<uint64_t> body{id};
    uint16_t mask = 0;
    for (const auto& [log, lsn] : lv) {
      mask = static_cast<uint16_t>(mask | 1u << log);
      body.push_back(lsn);
    }
    body.insert(body.end(), rest.begin(), rest.end());
    ++txn_count_;
    return Append(kind, body, mask, procedure);
  }
  // `rest` starts with the stamp.
  uint64_t Stamped(uint64_t id, uint16_t parts, std::span<const uint64_t> rest) {
    std::vector<uint64_t> body{id};
    body.insert(body.end(), rest.begin(), rest.end());
    ++txn_count_;
    return Append(format::RecordKind::kStamped, body, parts);
  }
  uint64_t Void(size_t words) { return Append(format::RecordKind::kVoid, std::vector<uint64_t>(words, 0xABABABAB)); }
  uint64_t Pad(uint64_t durable, size_t words = 0) {
    std::vector<uint64_t> body(words + 1);
    body[0] = durable;
    return Append(format::RecordKind::kPad, body);
  }
  uint64_t Anchor(const std::vector<uint64_t>& durable) { return Append(format::RecordKind::kAnchor, durable); }
  uint64_t Watermark(uint64_t timestamp) { return Append(format::RecordKind::kWatermark, {{timestamp}}); }
  uint64_t RunEnd() { return RunEnd(txn_count_); }
  uint64_t RunEnd(uint64_t txn_count) {
    log_.RunEnd(end(), txn_count);
    return end();
  }

  uint64_t end() const { return log_.End(); }
  const std::vector<uint64_t>& starts() const { return log_.Starts(); }
  // The start of the record that holds `lsn`, also after a cut; 0 in an empty log.
  uint64_t StartAtOrBelow(uint64_t lsn) const {
    const auto above = std::upper_bound(starts().begin(), starts().end(), lsn);
    return above == starts().begin() ? 0 : *(above - 1);
  }
  std::byte& at(uint64_t lsn) { return log_.At(lsn); }
  // The largest in what is left; 0 where there is none.
  uint64_t LastStamp() const {
    uint64_t last = 0;
    for (const uint64_t start : starts()) {
      if (start >= end()) continue;
      const bool is_mark = stream()[start + 24] == std::byte{8};
      uint64_t stamp;
      std::memcpy(&stamp, &stream()[start + sizeof(format::RecordHeader) + (is_mark ? 0 : 8)], 8);
      last = std::max(last, stamp);
    }
    return last;
  }
  void Cut(uint64_t lsn) { log_.Cut(lsn); }
  void Zeros(size_t count) { log_.Hole(count); }
  const std::vector<std::byte>& stream() const { return log_.Stream(); }
  std::vector<std::byte> bytes() const { return log_.Bytes(); }
  uint32_t index() const { return index_; }
  uint32_t count() const { return count_; }

 private:
  uint32_t index_;
  uint32_t count_;
  LogBuilder log_;
  uint64_t txn_count_ = 0;
};

inline uint64_t Hash(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2))) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline constexpr uint64_t kLoadedKeys = 48;
inline constexpr uint64_t kKeys = 64;
using State = std::map<Key, uint64_t>;
inline State LoadedState() {
  State state;
  for (Key key = 0; key < kLoadedKeys; ++key) state[key] = key + 1;
  return state;
}

enum Procedure : uint16_t { kMix, kInsert, kDelete, kGiveUp };

// Arguments: transaction id, number of keys written, keys written and read. Mix reads all of them and writes hashes
// of all that it read, so that no two of them commute.
class MixWorkload {
 public:
  static constexpr std::array kProcedureNames = {"mix", "insert", "delete", "give up"};

  void CreateTables(Database& db) {
    Schema schema;
    schema.name = "mix";
    schema.columns = {{"value", 0, 8}};
    schema.tuple_bytes = 8;
    schema.expected_rows = kKeys;
    table_ = &db.CreateTable(schema);
  }
  void Load(Database&, uint64_t, uint32_t) {
    for (const auto& [key, value] : LoadedState()) {
      table_->LoadRow(WorkerId(0), key, std::as_bytes(std::span(&value, 1)));
    }
  }
  void Adopt(Database&, uint64_t) {}
  CallList Generate(WorkerId, uint64_t, uint64_t) const { return {}; }
  bool ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const {
    if (args.size() < 24 || procedure.value() > kGiveUp) return false;
    const size_t keys = args.size() / 8 - 2;
    if (procedure == ProcedureId(kMix)) return Word(args, 1) <= keys;
    return keys == 1;
  }
  void Prefault(WorkerId, uint64_t) {}
  void PrefetchBuckets(const Call& call) const { table_->PrefetchBucket(Word(call.args, 2)); }
  void PrefetchRows(const Call& call, WrittenRows) const { table_->PrefetchRow(Word(call.args, 2), sizeof(uint64_t)); }
  std::optional<std::string> Inconsistency(const Database&) const { return std::nullopt; }

  template <class Ctx>
  Outcome Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args) {
    const uint64_t key = Word(args, 2);
    if (procedure == ProcedureId(kInsert)) {
      const uint64_t value = Hash(Word(args, 0), key);
      return ctx.Insert(*table_, key, std::as_bytes(std::span(&value, 1)));
    }
    if (procedure == ProcedureId(kDelete)) return ctx.Delete(*table_, key);
    if (procedure == ProcedureId(kGiveUp)) return Outcome::kRollback;
    uint64_t digest = Word(args, 0);
    for (size_t i = 2; i < args.size() / 8; ++i) {
      uint64_t value = 0;
      const Outcome read =
          ctx.Read(*table_, Word(args, i), [&](const auto& tuple) { value = tuple.template GetAt<uint64_t>(0); });
      if (read != Outcome::kOk) return read;
      digest = Hash(digest, value);
    }
    for (size_t i = 2; i < 2 + Word(args, 1); ++i) {
      const uint64_t value = Hash(digest, Word(args, i));
      const Outcome written = ctx.Update(*table_, Word(args, i), [&](auto& tuple) { tuple.SetAt(0, value); });
      if (written != Outcome::kOk) return written;
    }
    return Outcome::kOk;
  }

  static uint64_t Word(std::span<const std::byte> bytes, size_t i) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + 8 * i, 8);
    return word;
  }

 private:
  Table* table_ = nullptr;
};

// A random serial history over some logs, with the LSN vectors that Taurus would have given it.
class History {
 public:
  struct Shape {
    uint64_t seed = 1;
    uint32_t logs = 2;
    uint32_t txns = 1000;
    bool data = false;
    bool compress = true;
    bool vectors = true;          // false: records store none, as in a serial log
    bool versions = false;        // commands have timestamps, and the log orders no writer after earlier readers
    uint32_t anchor_percent = 3;  // 0: no anchors, and nothing is ever known to be durable
  };
  struct Txn {
    uint64_t id;
    uint32_t log;
    uint64_t end;
    std::array<uint64_t, format::kMaxLogs> lv;  // without its own place
    uint16_t procedure;
    std::vector<uint64_t> keys;
    size_t writes;
  };

  explicit History(const Shape& shape) : shape_(shape), random_(shape.seed), state_(LoadedState()), key_lvs_(kKeys) {
    for (uint32_t j = 0; j < shape.logs; ++j) images_.emplace_back(j, shape.logs);
    anchors_.resize(shape.logs);
    for (uint32_t i = 0; i < shape.txns; ++i) {
      AddTxn(i);
      AddOther();
    }
  }

  const Shape& shape() const { return shape_; }
  std::vector<LogImage>& images() { return images_; }
  const std::vector<Txn>& txns() const { return txns_; }
  // What the logs say had been durable: cutting below is damage.
  uint64_t durable(uint32_t log) const { return durable_[log]; }

  // Which transactions survive when the logs end at `ends`, and what they leave.
  std::set<uint64_t> Survivors(const std::vector<uint64_t>& ends, State& state) const {
    std::set<uint64_t> survivors;
    state = LoadedState();
    for (const Txn& txn : txns_) {
      bool lives = txn.end <= ends[txn.log];
      for (uint32_t j = 0; j < shape_.logs; ++j) lives = lives && txn.lv[j] <= ends[j];
      if (!lives) continue;
      survivors.insert(txn.id);
      Apply(txn, state);
    }
    return survivors;
  }
  std::vector<uint64_t> Ends() const {
    std::vector<uint64_t> ends;
    for (const LogImage& image : images_) ends.push_back(image.end());
    return ends;
  }

 private:
  using Lv = std::array<uint64_t, format::kMaxLogs>;
  struct KeyLvs {
    Lv read{}, write{};
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  static void Raise(Lv& to, const Lv& from) {
    for (size_t j = 0; j < to.size(); ++j) to[j] = std::max(to[j], from[j]);
  }

  static uint64_t EndOf(uint64_t id) { return 10 + 2 * id; }

  static void Apply(const Txn& txn, State& state) {
    if (txn.procedure == kInsert) state[txn.keys[0]] = Hash(txn.id, txn.keys[0]);
    if (txn.procedure == kDelete) state.erase(txn.keys[0]);
    if (txn.procedure != kMix) return;
    uint64_t digest = txn.id;
    for (const uint64_t key : txn.keys) digest = Hash(digest, state.at(key));
    for (size_t i = 0; i < txn.writes; ++i) state[txn.keys[i]] = Hash(digest, txn.keys[i]);
  }

  void Choose(Txn& txn) {
    const uint64_t key = Below(kKeys);
    txn.writes = 1;
    if (!state_.contains(key) || Below(8) == 0) {
      txn.procedure = state_.contains(key) ? kDelete : kInsert;
      txn.keys = {key};
      return;
    }
    txn.procedure = kMix;
    std::set<uint64_t> keys{key};
    for (uint64_t more = Below(4); more > 0; --more) {
      const uint64_t other = Below(kKeys);
      if (state_.contains(other)) keys.insert(other);
    }
    txn.keys.assign(keys.begin(), keys.end());
    std::shuffle(txn.keys.begin(), txn.keys.end(), random_);
    txn.writes = 1 + Below(txn.keys.size());
  }

  void AddTxn(uint64_t id) {
    Txn txn{id, static_cast<uint32_t>(Below(shape_.logs)), 0, {}, 0, {}, 0};
    Choose(txn);
    for (size_t i = 0; i < txn.keys.size(); ++i) {
      Raise(txn.lv, key_lvs_[txn.keys[i]].write);
      if (i < txn.writes && !shape_.data && !shape_.versions) Raise(txn.lv, key_lvs_[txn.keys[i]].read);
    }
    Apply(txn, state_);
    Write(txn);
    Lv published = txn.lv;
    published[txn.log] = txn.end;
    for (size_t i = 0; i < txn.keys.size(); ++i) {
      Raise(key_lvs_[txn.keys[i]].read, published);
      if (i < txn.writes) key_lvs_[txn.keys[i]].write = published;
    }
    txns_.push_back(txn);
  }

  void Write(Txn& txn) {
    LvElements elements;
    for (uint32_t j = 0; j < shape_.logs; ++j) {
      const bool stored = shape_.vectors && (!shape_.compress || txn.lv[j] > anchors_[txn.log][j]);
      if (stored) elements.emplace_back(j, txn.lv[j]);
    }
    std::vector<uint64_t> rest;
    if (shape_.versions) rest = {EndOf(txn.id) - 1, EndOf(txn.id)};
    if (shape_.data) {
      for (size_t i = 0; i < txn.writes; ++i) {
        const bool put = state_.contains(txn.keys[i]);
        format::WriteEntry entry{txn.keys[i], 0, static_cast<uint8_t>(put ? 1 : 2), 0, put ? 8u : 0u};
        uint64_t words[2];
        std::memcpy(words, &entry, sizeof entry);
        rest.insert(rest.end(), words, words + 2);
        if (put) rest.push_back(state_[txn.keys[i]]);
      }
    } else {
      rest.push_back(txn.writes);
      rest.insert(rest.end(), txn.keys.begin(), txn.keys.end());
    }
    const auto kind = shape_.data       ? format::RecordKind::kData
                      : shape_.versions ? format::RecordKind::kVersionedCommand
                                        : format::RecordKind::kCommand;
    txn.end = images_[txn.log].Txn(kind, txn.id, txn.procedure, elements, rest);
  }

  void AddOther() {
    const auto log = static_cast<uint32_t>(Below(shape_.logs));
    const uint64_t dice = Below(100);
    // Every later transaction reads at the end of the last one, or later.
    if (shape_.versions && Below(20) == 0) images_[log].Watermark(EndOf(txns_.back().id) - Below(3));
    if (dice < 4) images_[log].Void(Below(9));
    if (dice >= 4 && dice < 8 && !shape_.vectors) durable_[log] = images_[log].end();
    if (dice >= 4 && dice < 8) images_[log].Pad(durable_[log], Below(9));
    if (dice < 8 || dice >= 8 + shape_.anchor_percent) return;
    std::vector<uint64_t> anchor;
    for (uint32_t j = 0; j < shape_.logs; ++j) {
      const uint64_t at = durable_[j] + Below(images_[j].end() - durable_[j] + 1);
      durable_[j] = std::max(durable_[j], images_[j].StartAtOrBelow(at));
      anchor.push_back(durable_[j]);
      anchors_[log][j] = durable_[j];
    }
    images_[log].Anchor(anchor);
  }

  Shape shape_;
  std::mt19937_64 random_;
  State state_;
  std::vector<KeyLvs> key_lvs_;
  std::vector<LogImage> images_;
  std::vector<Lv> anchors_;
  Lv durable_{};
  std::vector<Txn> txns_;
};

struct Recovered {
  ReplaySummary summary;
  State state;
  std::set<uint64_t> txns;

  // The summary's, as images and the reference have positions.
  std::vector<uint64_t> frontier() const {
    std::vector<uint64_t> ends;
    for (const Lsn end : summary.frontier) ends.push_back(end.value());
    return ends;
  }
};

struct RunSettings {
  uint32_t workers = 2;
  size_t block_bytes = 4096;
  ReplaySettings::Serially serially = ReplaySettings::Serially::kNever;
  uint64_t ring_bytes = 1 << 20;
  bool many_versions = false;
  Stamp stamp_end = Stamp(UINT64_MAX);  // of the run's frontier, as is the next
  Lsn durable_until{};
  std::vector<Lsn> durable_ends{};  // the same for each log; none: durable_until for all
};

// Recovers the logs into a freshly loaded database. Throws what Recover throws.
template <class Recovery>
Recovered RecoverSources(const std::vector<LogSource>& sources, const RunSettings& run) {
  Database db({.cc_bytes = run.many_versions ? kVersionChainBytes : 0}, run.workers);
  MixWorkload workload;
  workload.CreateTables(db);
  workload.Load(db, 0, 1);
  Recovery recovery({run.workers, run.block_bytes, run.serially});
  std::vector<std::vector<TxnId>> names;
  Recovered result;
  result.summary = Recover(recovery, sources, db, workload, run.workers, &names);
  for (const auto& list : names) {
    for (const TxnId id : list) result.txns.insert(id.value);
  }
  const Table& table = db.table(TableId(0));
  table.ForEachRow([&](const Row& row) {
    if ((row.control.load() & Row::kAbsent) != 0) return;
    uint64_t value;
    std::memcpy(&value, table.tuple(&row), sizeof value);
    result.state[row.key] = value;
  });
  return result;
}

template <class Recovery>
Recovered RecoverFiles(const std::vector<std::vector<std::byte>>& files, const RunSettings& run = {}) {
  std::vector<std::unique_ptr<ImageDevice>> devices;
  std::vector<LogSource> sources;
  const auto count = static_cast<uint32_t>(files.size());
  for (uint32_t index = 0; index < count; ++index) {
    devices.push_back(std::make_unique<ImageDevice>("log_" + std::to_string(index), files[index]));
    sources.push_back({devices.back().get(), kRunId, run.ring_bytes, index, count});
    sources.back().many_versions = run.many_versions;
    sources.back().stamp_end = run.stamp_end;
    sources.back().durable_until = run.durable_ends.empty() ? run.durable_until : run.durable_ends.at(index);
  }
  return RecoverSources<Recovery>(sources, run);
}

// Of all logs, in their order.
template <class Recovery = TaurusRecovery>
Recovered RecoverImages(const std::vector<LogImage>& images, const RunSettings& run = {}) {
  std::vector<std::vector<std::byte>> files;
  for (const LogImage& image : images) files.push_back(image.bytes());
  return RecoverFiles<Recovery>(files, run);
}

// The message of the Error(kCorrupt) that recovery ends in, or "" if it succeeds.
template <class Recovery = TaurusRecovery>
std::string Refusal(const std::vector<LogImage>& images, const RunSettings& run = {}) {
  try {
    RecoverImages<Recovery>(images, run);
  } catch (const Error& error) {
    return error.status() == ExitStatus::kCorrupt ? error.what() : std::string("not corrupt: ") + error.what();
  }
  return "";
}

}  // namespace dbx::recovery_test
