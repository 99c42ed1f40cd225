// The reference recovery of runs with row checkpoints: the rows that `row-anchor` names, and the logs from there on.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "base/crc32c.h"
#include "system/reference/reference_apply.h"
#include "system/reference/reference_file.h"
#include "system/reference/reference_run.h"
#include "tests/logging/caught.h"
#include "tests/logging/log_builder.h"

namespace dbx::reference {
namespace {

constexpr uint64_t kRun = 0xB0B;
constexpr uint64_t kFirstOfWorker1 = uint64_t{1} << TxnId::kSequenceBits;

template <class T>
std::string Raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

FileImage FileOf(const std::string& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  auto owner = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  return {path, *owner, owner};
}
FileImage FileOf(const std::string& path, const LogBytes& bytes) {
  return FileOf(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void PadToBlock(std::string& bytes) { bytes.resize((bytes.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes); }

// The checksum of a file with `crc`, which is zero, at 12.
void Seal(std::string& bytes, size_t sealed) {
  const uint32_t crc = dbx::Crc32c(std::as_bytes(std::span(bytes).first(sealed)));
  std::memcpy(&bytes[12], &crc, sizeof crc);
}

using Rows = std::vector<std::pair<Key, uint64_t>>;

// A block of a part, behind whose header `body` stands.
std::string BlockOf(uint32_t kind, size_t rows, const std::string& body, std::string& crcs) {
  format::CheckpointBlock block{0, static_cast<uint32_t>(sizeof block + body.size()), kind,
                                static_cast<uint32_t>(rows)};
  std::string bytes = Raw(block) + body;
  block.crc = dbx::Crc32c(std::as_bytes(std::span(bytes).subspan(sizeof block.crc)));
  std::memcpy(bytes.data(), &block.crc, sizeof block.crc);
  crcs += Raw(block.crc);
  PadToBlock(bytes);
  return bytes;
}

// A part of a checkpoint, with a block for each of `blocks`.
std::string PartOf(uint32_t part, uint32_t parts, const std::vector<Rows>& blocks, uint64_t run_id = kRun) {
  format::CheckpointHeader header{};
  std::memcpy(header.magic, format::kCheckpointMagic, sizeof header.magic);
  header.version = format::kVersion;
  header.database_id = 0xDB, header.run_id = run_id;
  header.part = part, header.part_count = parts;
  std::string bytes = Raw(header), crcs;
  Seal(bytes, sizeof header);
  PadToBlock(bytes);
  uint64_t rows = 0;
  for (const Rows& block : blocks) {
    std::string body;
    for (const auto& [key, value] : block) {
      format::WriteEntry entry{};
      entry.key = key;
      entry.op = static_cast<uint8_t>(format::WriteOp::kPut);
      entry.length = sizeof value;
      body += Raw(entry) + Raw(value);
    }
    bytes += BlockOf(format::kCheckpointRows, block.size(), body, crcs);
    rows += block.size();
  }
  const format::CheckpointEnd end{rows, dbx::Crc32c(std::as_bytes(std::span(crcs)))};
  return bytes + BlockOf(format::kCheckpointEnd, 0, Raw(end), crcs);
}

// A run of data records whose table has rows of 8 bytes.
class Example {
 public:
  explicit Example(uint32_t logs, format::Scheme scheme) {
    for (uint32_t i = 0; i < logs; ++i) {
      logs_.emplace_back(kRun, i, logs, scheme).PayloadIs(format::Payload::kData);
      logs_.back().header().required_features = format::kFeatureRowCheckpoints;
    }
    std::memcpy(anchor_.magic, format::kRowAnchorMagic, sizeof anchor_.magic);
    anchor_.version = format::kVersion;
    anchor_.database_id = 0xDB, anchor_.run_id = kRun;
    anchor_.log_count = logs;
  }
  static Example Serial() { return Example(1, format::Scheme::kSerial); }
  static Example Taurus() { return Example(2, format::Scheme::kTaurus); }

  Example& Put(uint32_t log, uint64_t txn, Key key, uint64_t value, const std::vector<uint64_t>& lv = {}) {
    logs_[log].Data(txn, {dbx::Put(0, key, Raw(value))}, lv);
    return *this;
  }
  Example& Delete(uint32_t log, uint64_t txn, Key key) {
    logs_[log].Data(txn, {dbx::Delete(0, key)});
    return *this;
  }
  // Replay begins at what now are the logs' ends.
  Example& Start() {
    for (size_t i = 0; i < logs_.size(); ++i) anchor_.start[i] = anchor_.end[i] = logs_[i].End();
    return *this;
  }
  Example& End() {
    for (size_t i = 0; i < logs_.size(); ++i) anchor_.end[i] = logs_[i].End();
    return *this;
  }
  // By block.
  Example& Part(const std::vector<Rows>& blocks, uint64_t run_id = kRun) {
    parts_.push_back([=](uint32_t part, uint32_t parts) { return PartOf(part, parts, blocks, run_id); });
    for (const Rows& rows : blocks) anchor_.parts[parts_.size() - 1].rows += rows.size();
    return *this;
  }
  // All blocks of a log below its start; what is in their place is no record.
  Example& OverwriteBelow() {
    for (size_t i = 0; i < logs_.size(); ++i) {
      for (uint64_t at = 0; at < anchor_.start[i]; ++at) logs_[i].At(at) = std::byte(at % 7 == 0 ? 0 : 0xA5);
    }
    return *this;
  }

  LogBuilder& log(uint32_t i) { return logs_[i]; }
  std::vector<uint64_t>& sequences() { return sequences_; }

  // `change` is made to the anchor before it is sealed. Without a part it names no checkpoint.
  RunImage Image(const std::function<void(format::RowAnchorFile&)>& change = {}) const {
    RunImage run;
    for (size_t i = 0; i < logs_.size(); ++i) run.logs.push_back(FileOf("log-" + std::to_string(i), logs_[i].Bytes()));
    format::RowAnchorFile anchor = anchor_;
    anchor.number = parts_.empty() ? 0 : 1;
    anchor.part_count = static_cast<uint32_t>(parts_.size());
    for (uint32_t i = 0; i < anchor.part_count; ++i) {
      const std::string part = parts_[i](i, anchor.part_count);
      anchor.parts[i].bytes = part.size();
      anchor.parts[i].crc = dbx::Crc32c(std::as_bytes(std::span(part)));
      run.checkpoint.push_back(FileOf("rows-a-" + std::to_string(i), part));
    }
    anchor.worker_count = static_cast<uint32_t>(sequences_.size());
    anchor.bytes = sizeof anchor + 8 * sequences_.size();
    if (change) change(anchor);
    std::string bytes = Raw(anchor);
    for (const uint64_t sequence : sequences_) bytes += Raw(sequence);
    PadToBlock(bytes);
    Seal(bytes, bytes.size());
    run.row_anchor = FileOf("row-anchor", bytes);
    return run;
  }

 private:
  std::vector<LogBuilder> logs_;
  std::vector<std::function<std::string(uint32_t, uint32_t)>> parts_;
  format::RowAnchorFile anchor_{};
  std::vector<uint64_t> sequences_ = {0, 0};
};

using Digest = std::pair<uint64_t, uint64_t>;

// The manifest of the run, with the checkpoint that these parts are, or with none.
FileImage ManifestOf(const std::vector<FileImage>& parts, const Digest& digest) {
  format::ManifestFile manifest{};
  std::memcpy(manifest.magic, format::kManifestMagic, sizeof manifest.magic);
  manifest.version = format::kVersion;
  manifest.database_id = 0xDB, manifest.run_id = kRun;
  manifest.part_count = static_cast<uint32_t>(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    manifest.parts[i] = {parts[i].bytes.size(), 1, dbx::Crc32c(parts[i].bytes), 0};  // each has one row
  }
  manifest.has_digest = 1;
  manifest.digest[0] = digest.first, manifest.digest[1] = digest.second;
  std::string bytes = Raw(manifest);
  Seal(bytes, bytes.size());
  return FileOf("manifest", bytes);
}

// Replay of data records runs no procedure.
struct NoWorkload {
  bool ValidArgs(ProcedureId, Bytes) const { return false; }
  Outcome Run(auto&, ProcedureId, Bytes) const { return Outcome::kRollback; }
};

struct Recovered {
  ReferenceLogs logs;
  RecoveredSet set;
  std::optional<Digest> digest;  // of the state that the checkpoint was made from
  std::map<Key, uint64_t> rows;

  explicit Recovered(const RunImage& run) : logs(ReadRun(run)), set(Recover(logs)) {
    Database database({}, 1);
    Schema schema;
    schema.name = "t";
    schema.tuple_bytes = 8;
    Table& table = database.CreateTable(schema);
    digest = LoadCheckpoint(run, database);
    NoWorkload workload;
    Replay(logs, set, workload, database);
    table.ForEachRow([&](const Row& row) {
      if ((row.control.load() & Row::kAbsent) != 0) return;
      std::memcpy(&rows[row.key], table.tuple(&row), 8);
    });
  }
};

// Of a run that is not even looked at, or whose rows are not.
std::pair<ExitStatus, std::string> RefusalOf(const RunImage& run) {
  std::string what;
  const ExitStatus status = Caught([&] { (void)Recovered(run); }, what);
  return {status, what};
}

TEST(ReferenceRows, ASerialLogIsReadFromTheStartOnWhateverIsBelow) {
  Example example = Example::Serial();
  example.Put(0, 1, 10, 100).Put(0, 2, 11, 110).Part({{{10, 100}, {11, 111}}}).Start();
  // The rows have transaction 3 already.
  example.Put(0, 3, 11, 111).Put(0, 4, 12, 120).Delete(0, 5, 10).Delete(0, 6, 77).OverwriteBelow();
  const Recovered recovered(example.Image());
  EXPECT_EQ(recovered.set.damage, "");
  EXPECT_EQ(recovered.digest, std::nullopt);
  EXPECT_EQ(recovered.set.txn_ids, (std::vector<uint64_t>{3, 4, 5, 6}));
  EXPECT_EQ(recovered.rows, (std::map<Key, uint64_t>{{11, 111}, {12, 120}}));
}

TEST(ReferenceRows, ReadingBeginsThereEvenIfTheLogIsWhole) {
  Example example = Example::Serial();
  example.Put(0, 1, 10, 1).Part({{{10, 2}}}).Start().log(0).RunEnd();
  const Recovered recovered(example.Image());
  EXPECT_TRUE(recovered.set.txn_ids.empty());
  EXPECT_EQ(recovered.rows, (std::map<Key, uint64_t>{{10, 2}}));
}

TEST(ReferenceRows, WhatALogHasBelowItsStartCountsAsReplayed) {
  Example example = Example::Taurus();
  example.Put(0, 1, 10, 1).Put(1, 2, 11, 1, {example.log(0).End(), 0}).Part({{{10, 1}, {11, 1}}}).Start();
  const uint64_t below_0 = example.log(0).End(), below_1 = example.log(1).End();
  example.Put(0, 3, 10, 3, {0, below_1});                     // on 2, which is below
  example.Put(1, 4, 10, 4, {example.log(0).End(), 0});        // on 3, which is above
  example.Put(0, 5, 10, 5, {below_0, example.log(1).End()});  // on 4
  example.OverwriteBelow();
  const Recovered recovered(example.Image());
  EXPECT_EQ(recovered.set.damage, "");
  EXPECT_EQ(recovered.set.order.size(), 3u);
  EXPECT_EQ(recovered.set.txn_ids, (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_TRUE(recovered.set.dropped.empty());
  EXPECT_EQ(recovered.rows, (std::map<Key, uint64_t>{{10, 5}, {11, 1}}));
}

TEST(ReferenceRows, WhatDependsOnALostTransactionBehindTheEndIsDropped) {
  Example example = Example::Taurus();
  example.Put(0, 1, 10, 1).Put(1, 2, 11, 1).Part({{{10, 1}, {11, 1}}}).Start().OverwriteBelow();
  example.Put(1, 3, 11, 3).End().Put(1, 4, 11, 4).Put(0, 5, 10, 5, {0, example.log(1).End()}).Put(0, 6, 12, 6);
  example.log(1).Cut(example.log(1).Start(2));
  const Recovered recovered(example.Image());
  EXPECT_EQ(recovered.set.txn_ids, (std::vector<uint64_t>{3, 6}));
  ASSERT_EQ(recovered.set.dropped.size(), 1u);
  EXPECT_EQ(recovered.set.dropped[0].id.value, 5u);
  EXPECT_EQ(recovered.rows, (std::map<Key, uint64_t>{{10, 1}, {11, 3}, {12, 6}}));
}

// Their elements that are not stored are those of an ANCHOR that is not read, and are below the start in every log.
TEST(ReferenceRows, ElementsThatAnAnchorBelowTheStartCoversAreSatisfied) {
  Example example = Example::Taurus();
  example.Put(0, 1, 10, 1).Put(1, 2, 11, 1);
  example.log(0).Anchor({example.log(0).End(), example.log(1).End()});
  example.Part({{{10, 1}, {11, 1}}}).Start();
  example.Put(0, 3, 10, 3, {0, example.log(1).End()}).OverwriteBelow();
  const RunImage run = example.Image();
  const ReferenceLogs logs = ReadRun(run);
  EXPECT_EQ(Cursor(logs, 0).record().lv, LsnVector{});
  EXPECT_EQ(Recovered(run).rows, (std::map<Key, uint64_t>{{10, 3}, {11, 1}}));
}

TEST(ReferenceRows, TheAnchorSaysWhatHadEndedBelowItsStart) {
  for (const bool truncates : {false, true}) {
    Example example = Example::Serial();
    example.Put(0, 6, 10, 1).Put(0, kFirstOfWorker1, 11, 1).Part({{{10, 1}, {11, 1}}}).Start().Put(0, 7, 10, 2);
    example.sequences() = {7, 1};
    const Recovered recovered(example.Image([&](auto& anchor) { anchor.truncates = truncates ? 1 : 0; }));
    EXPECT_EQ(recovered.logs.ended_below, (std::vector<uint64_t>{7, 1}));
    EXPECT_EQ(recovered.set.txn_ids, std::vector<uint64_t>{7});
  }
}

TEST(ReferenceRows, ALogThatEndsBeforeWhatTheRowsMayHoldIsDamaged) {
  Example example = Example::Serial();
  example.Put(0, 1, 10, 1).Part({{{10, 2}}}).Start().Put(0, 2, 10, 2).Put(0, 3, 10, 3).End();
  EXPECT_EQ(Recovered(example.Image()).set.damage, "");
  const uint64_t end = example.log(0).End(), last = example.log(0).Start(2);
  example.log(0).Cut(last);
  EXPECT_EQ(Recovered(example.Image()).set.damage,
            "damaged log log-0@" + std::to_string(FileOffset(last)) +
                ": the log ends, but the run's row-anchor shows that it was durable up to LSN " + std::to_string(end));
  example.log(0).Cut(example.log(0).Start(1) - 8);
  EXPECT_NE(Recovered(example.Image()).set.damage, "");
}

TEST(ReferenceRows, AFrozenRunStillBeginsAtTheAnchor) {
  Example example = Example::Serial();
  example.Put(0, 1, 10, 1).Part({{{10, 1}}}).Start().Put(0, 2, 10, 2).OverwriteBelow();
  format::FrozenFile frozen{};
  std::memcpy(frozen.magic, format::kFrozenMagic, sizeof frozen.magic);
  frozen.version = format::kVersion;
  frozen.run_id = kRun;
  frozen.log_count = 1;
  frozen.frontier[0] = example.log(0).End();
  example.Put(0, 3, 10, 3);
  RunImage run = example.Image();
  std::string bytes = Raw(frozen);
  Seal(bytes, bytes.size());
  run.frozen = FileOf("frozen", bytes);
  const Recovered recovered(run);
  EXPECT_EQ(recovered.set.txn_ids, std::vector<uint64_t>{2});
  EXPECT_EQ(recovered.rows, (std::map<Key, uint64_t>{{10, 2}}));
}

TEST(ReferenceRows, TheLaterImageOfAKeyIsTaken) {
  Example example = Example::Serial();
  example.Part({{{10, 1}, {11, 1}, {10, 2}}, {{11, 3}}}).Part({{{12, 4}}}).Start();
  EXPECT_EQ(Recovered(example.Image()).rows, (std::map<Key, uint64_t>{{10, 2}, {11, 3}, {12, 4}}));
}

// The manifest's checkpoint, or the ancestors, are not read.
TEST(ReferenceRows, TheRowsAreTakenInsteadOfTheManifests) {
  RunImage run = Example::Serial().Part({{{10, 1}}}).Start().Image();
  run.manifest = FileOf("manifest", std::string(kBlockBytes, 'x'));
  EXPECT_EQ(Recovered(run).rows, (std::map<Key, uint64_t>{{10, 1}}));
}

TEST(ReferenceRows, WithoutACheckpointYetWholeLogsAreRead) {
  for (const bool truncates : {false, true}) {
    Example example = Example::Taurus();
    example.Put(0, 1, 10, 1).Put(1, 2, 11, 2, {example.log(0).End(), 0}).Put(0, 3, 10, 3, {0, example.log(1).End()});
    example.sequences() = {7, 7};
    const Recovered recovered(example.Image([&](auto& anchor) { anchor.truncates = truncates ? 1 : 0; }));
    EXPECT_EQ(recovered.set.damage, "");
    EXPECT_EQ(recovered.digest, std::nullopt);
    EXPECT_TRUE(recovered.logs.ended_below.empty());
    EXPECT_EQ(recovered.set.txn_ids, (std::vector<uint64_t>{1, 2, 3}));
    EXPECT_EQ(recovered.rows, (std::map<Key, uint64_t>{{10, 3}, {11, 2}}));
  }
}

TEST(ReferenceRows, WithoutACheckpointYetTheManifestsIsTaken) {
  const Example example = Example::Serial().Put(0, 1, 10, 2);
  RunImage run = example.Image();
  run.manifest = ManifestOf({}, {5, 6});
  EXPECT_EQ(Recovered(run).digest, std::optional(Digest(5, 6)));
  EXPECT_EQ(Recovered(run).rows, (std::map<Key, uint64_t>{{10, 2}}));
  run.checkpoint = {FileOf("checkpoint-00.ckp", PartOf(0, 2, {{{10, 1}}})),
                    FileOf("checkpoint-01.ckp", PartOf(1, 2, {{{13, 4}}}))};
  EXPECT_EQ(RefusalOf(run).first, ExitStatus::kCorrupt);  // they are not named
  run.manifest = ManifestOf(run.checkpoint, {5, 6});
  EXPECT_EQ(Recovered(run).digest, std::optional(Digest(5, 6)));
  EXPECT_EQ(Recovered(run).rows, (std::map<Key, uint64_t>{{10, 2}, {13, 4}}));
}

TEST(ReferenceRows, AnAnchorWithoutACheckpointIsCheckedAllTheSame) {
  const Example example = Example::Taurus().Put(0, 1, 10, 1);
  const auto status = [&](const auto& change) { return RefusalOf(example.Image(change)).first; };
  EXPECT_EQ(status([](auto&) {}), ExitStatus::kOk);
  EXPECT_EQ(status([](auto& anchor) { ++anchor.run_id; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& anchor) { ++anchor.database_id; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& anchor) { anchor.log_count = 1; }), ExitStatus::kMismatch);
  EXPECT_EQ(RefusalOf(example.Image([](auto& anchor) { anchor.end[1] = 8; })),
            (std::pair{ExitStatus::kCorrupt,
                       std::string("bad file row-anchor@72: rows up to a position, and no checkpoint")}));
}

// Such a log may be truncated: it would look like one that ends where it begins.
TEST(ReferenceRows, ARunThatHasLostItsAnchorIsRefused) {
  for (const bool truncated : {false, true}) {
    Example example = Example::Serial().Put(0, 1, 10, 1).Part({{{10, 1}}}).Start().Put(0, 2, 10, 2);
    if (truncated) example.OverwriteBelow();
    RunImage run = example.Image();
    run.row_anchor.reset();
    EXPECT_EQ(RefusalOf(run),
              (std::pair{ExitStatus::kMismatch,
                         std::string("bad file log-0@32: a row-anchor that is missing, or of a run without")}));
  }
}

TEST(ReferenceRows, AnAnchorOfARunWithoutRowCheckpointsIsRefused) {
  for (const bool has_checkpoint : {false, true}) {
    Example example = Example::Serial().Put(0, 1, 10, 1);
    if (has_checkpoint) example.Part({{{10, 1}}}).Start();
    example.log(0).header().required_features = 0;
    RunImage run = example.Image();
    EXPECT_EQ(RefusalOf(run).first, ExitStatus::kMismatch);
    run.row_anchor.reset(), run.checkpoint.clear();
    EXPECT_EQ(Recovered(run).rows, (std::map<Key, uint64_t>{{10, 1}}));
  }
}

TEST(ReferenceRows, TheAnchorOfAnotherRunIsAMismatch) {
  const Example example = Example::Serial().Part({{{10, 1}}}).Start();
  EXPECT_EQ(RefusalOf(example.Image([](auto& anchor) { ++anchor.run_id; })),
            (std::pair{ExitStatus::kMismatch, std::string("bad file row-anchor@24: it is of another run")}));
  EXPECT_EQ(RefusalOf(example.Image([](auto& anchor) { ++anchor.database_id; })),
            (std::pair{ExitStatus::kMismatch, std::string("bad file row-anchor@16: it is of another database")}));
  EXPECT_EQ(RefusalOf(example.Image([](auto& anchor) { anchor.log_count = 2; })).first, ExitStatus::kMismatch);
}

TEST(ReferenceRows, RecordsThatHoldNoRowsAreRefused) {
  for (const auto scheme : {format::Scheme::kSerial, format::Scheme::kSiloR}) {
    Example example = Example(1, scheme).Part({{{10, 1}}}).Start();
    if (scheme == format::Scheme::kSerial) example.log(0).PayloadIs(format::Payload::kCommand);
    EXPECT_EQ(RefusalOf(example.Image()).first, ExitStatus::kMismatch);
  }
}

TEST(ReferenceRows, ImpossibleFieldsOfTheAnchorAreRefused) {
  const Example example = Example::Serial().Put(0, 1, 10, 1).Part({{{10, 1}}}).Start();
  using File = format::RowAnchorFile;
  const std::pair<size_t, std::function<void(File&)>> changes[] = {
      {offsetof(File, number), [](auto& file) { file.number = 0; }},
      {offsetof(File, copy), [](auto& file) { file.copy = 2; }},
      {offsetof(File, truncates), [](auto& file) { file.truncates = 2; }},
      {offsetof(File, number), [](auto& file) { file.part_count = 0; }},
      {offsetof(File, part_count), [](auto& file) { file.part_count = 65; }},
      {offsetof(File, part_count), [](auto& file) { file.part_count = 2; }},
      {offsetof(File, log_count), [](auto& file) { file.log_count = 0; }},
      {offsetof(File, log_count), [](auto& file) { file.log_count = 17; }},
      {offsetof(File, bytes), [](auto& file) { file.worker_count = 1; }},
      {offsetof(File, bytes), [](auto& file) { file.worker_count = UINT32_MAX; }},
      {offsetof(File, start), [](auto& file) { file.start[0] += 8; }},
      {offsetof(File, start), [](auto& file) { file.start[0] -= 4; }}};
  for (const auto& [at, change] : changes) {
    const auto [status, what] = RefusalOf(example.Image(change));
    EXPECT_EQ(status, ExitStatus::kCorrupt) << at;
    EXPECT_TRUE(what.starts_with("bad file row-anchor@" + std::to_string(at) + ": ")) << what;
  }
}

TEST(ReferenceRows, PartsThatTheAnchorDoesNotNameAreRefused) {
  const Example example = Example::Serial().Part({{{10, 1}}}).Part({{{12, 4}}}).Start();
  const auto status = [&](const auto& change) { return RefusalOf(example.Image(change)).first; };
  EXPECT_EQ(status([](auto&) {}), ExitStatus::kOk);
  EXPECT_EQ(status([](auto& anchor) { anchor.parts[1].bytes += 4096; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& anchor) { ++anchor.parts[1].crc; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& anchor) { ++anchor.parts[1].rows; }), ExitStatus::kCorrupt);
  EXPECT_EQ(status([](auto& anchor) { std::swap(anchor.parts[0], anchor.parts[1]); }), ExitStatus::kMismatch);
  RunImage run = example.Image();
  run.checkpoint.pop_back();
  EXPECT_EQ(RefusalOf(run).first, ExitStatus::kCorrupt);
  const auto [foreign, what] = RefusalOf(Example::Serial().Part({{{10, 1}}}, kRun + 1).Start().Image());
  EXPECT_EQ(foreign, ExitStatus::kMismatch);
  EXPECT_EQ(what, "bad file rows-a-0@24: it is of another run");
}

TEST(ReferenceRows, EveryBitAndEveryByteOfAnchorAndPartsCounts) {
  const RunImage run = Example::Serial().Part({{{10, 1}}}).Start().Image();
  for (const bool in_anchor : {true, false}) {
    const FileImage& file = in_anchor ? *run.row_anchor : run.checkpoint[0];
    const std::string bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
    const auto refused = [&](const std::string& changed) {
      RunImage damaged = run;
      (in_anchor ? *damaged.row_anchor : damaged.checkpoint[0]) = FileOf(file.path, changed);
      return RefusalOf(damaged).first != ExitStatus::kOk;
    };
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += 13) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      ASSERT_TRUE(refused(changed)) << "bit " << bit << " of " << file.path;
    }
    for (size_t size = 0; size < bytes.size(); size += size < 64 ? 1 : 61) {
      ASSERT_TRUE(refused(bytes.substr(0, size))) << size << " bytes of " << file.path;
    }
  }
}

}  // namespace
}  // namespace dbx::reference
