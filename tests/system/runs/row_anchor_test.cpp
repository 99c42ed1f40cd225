#include "system/runs/row_anchor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>

#include "base/crc32c.h"
#include "system/command_line/parse_options.h"
#include "system/runs/old_runs.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/log_builder.h"

namespace dbx {
namespace {

using format::RowAnchorFile;

RowAnchor Some() {
  RowAnchor anchor;
  anchor.database_id = 11, anchor.run_id = 12;
  anchor.number = 5, anchor.copy = 1;
  anchor.parts = {{8192, 100, 0xABCD, 0}, {4096, 0, 0xEF, 0}};
  anchor.start = {Lsn(8192), Lsn(400)};
  anchor.end = {Lsn(9001), Lsn(400)};
  anchor.sequences = {7, 0, uint64_t{1} << TxnId::kSequenceBits};
  return anchor;
}

// Before a checkpoint is complete.
RowAnchor None() {
  RowAnchor anchor = Some();
  anchor.number = 0, anchor.copy = 0;
  anchor.parts.clear();
  anchor.end = anchor.start;
  return anchor;
}

bool PartsAreEqual(const RowAnchor& a, const RowAnchor& b) {
  const auto fields = [](const format::CheckpointPart& part) { return std::tuple(part.bytes, part.rows, part.crc); };
  return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [&](const auto& x, const auto& y) { return fields(x) == fields(y); });
}

class RowAnchorTest : public ::testing::Test {
 protected:
  static void Seal(std::vector<std::byte>& bytes) {
    uint32_t crc = 0;
    std::memcpy(bytes.data() + offsetof(RowAnchorFile, crc), &crc, sizeof crc);
    crc = Crc32c(bytes);
    std::memcpy(bytes.data() + offsetof(RowAnchorFile, crc), &crc, sizeof crc);
  }
  ExitStatus Decoded(std::span<const std::byte> bytes) {
    return Caught([&] { decoded_ = DecodeRowAnchor(bytes, "row-anchor"); }, what_);
  }
  // What is said of an anchor whose head is changed, and whose checksum is right.
  ExitStatus After(const std::function<void(RowAnchorFile&)>& change, const RowAnchor& anchor = Some()) {
    std::vector<std::byte> bytes = EncodeRowAnchor(anchor);
    RowAnchorFile file;
    std::memcpy(&file, bytes.data(), sizeof file);
    change(file);
    std::memcpy(bytes.data(), &file, sizeof file);
    Seal(bytes);
    return Decoded(bytes);
  }

  RowAnchor decoded_;
  std::string what_;
};

TEST_F(RowAnchorTest, WhatIsEncodedIsDecoded) {
  RowAnchor large = Some();
  large.parts.assign(format::kMaxCheckpointParts, {4096, 7, 8, 0});
  large.start.assign(format::kMaxLogs, Lsn(64));
  large.end.assign(format::kMaxLogs, Lsn(format::kLsnMax));
  large.sequences.assign(500, 9);
  RowAnchor truncating = Some();
  truncating.truncates = true, truncating.copy = 0;
  truncating.sequences.clear();
  RowAnchor truncating_none = None();
  truncating_none.truncates = true;
  for (const RowAnchor& anchor : {Some(), large, truncating, None(), truncating_none}) {
    const std::vector<std::byte> bytes = EncodeRowAnchor(anchor);
    EXPECT_EQ(bytes.size() % format::kBlockBytes, 0u);
    EXPECT_EQ(Decoded(bytes), ExitStatus::kOk) << what_;
    const auto fields = [](const RowAnchor& of) {
      return std::tie(of.database_id, of.run_id, of.number, of.copy, of.truncates, of.start, of.end, of.sequences);
    };
    EXPECT_EQ(fields(decoded_), fields(anchor));
    EXPECT_TRUE(PartsAreEqual(decoded_, anchor));
    EXPECT_EQ(decoded_.names_checkpoint(), !anchor.parts.empty());
  }
}

TEST_F(RowAnchorTest, EveryBitCounts) {
  std::vector<std::byte> bytes = EncodeRowAnchor(Some());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_EQ(Decoded(bytes), ExitStatus::kCorrupt) << bit;
    EXPECT_TRUE(what_.starts_with("cannot read row-anchor@")) << what_;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST_F(RowAnchorTest, AFileOfAnotherSizeIsRefused) {
  const std::vector<std::byte> bytes = EncodeRowAnchor(Some());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(Decoded(std::span(bytes).first(size)), ExitStatus::kCorrupt);
    EXPECT_EQ(what_, "cannot read row-anchor@0: the file has another size");
  }
  std::vector<std::byte> longer = bytes;
  longer.resize(bytes.size() + format::kBlockBytes);
  Seal(longer);
  EXPECT_EQ(Decoded(longer), ExitStatus::kCorrupt);
  RowAnchor many = Some();
  many.sequences.assign(500, 9);
  std::vector<std::byte> shorter = EncodeRowAnchor(many);
  shorter.resize(shorter.size() - format::kBlockBytes);
  Seal(shorter);
  EXPECT_EQ(Decoded(shorter), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "cannot read row-anchor@56: it counts another number of workers than it holds");
}

TEST_F(RowAnchorTest, AChecksumThatIsWrongIsRefused) {
  std::vector<std::byte> bytes = EncodeRowAnchor(Some());
  bytes[offsetof(RowAnchorFile, number)] ^= std::byte{1};
  EXPECT_EQ(Decoded(bytes), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "cannot read row-anchor@12: the checksum does not match");
}

TEST_F(RowAnchorTest, AnotherVersionIsAMismatch) {
  EXPECT_EQ(After([](RowAnchorFile& file) { ++file.version; }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot read row-anchor@8: its version is not known");
}

TEST_F(RowAnchorTest, ImpossibleFieldsAreRefusedWithTheirPlaces) {
  using File = RowAnchorFile;
  const std::tuple<size_t, const char*, std::function<void(File&)>> changes[] = {
      {offsetof(File, magic), "wrong magic bytes", [](auto& file) { file.magic[0] = 'X'; }},
      {offsetof(File, number), "a checkpoint without a number, or without parts", [](auto& file) { file.number = 0; }},
      {offsetof(File, copy), "impossible copy of the checkpoint", [](auto& file) { file.copy = 2; }},
      {offsetof(File, truncates), "neither with whole logs nor without", [](auto& file) { file.truncates = 2; }},
      {offsetof(File, number), "a checkpoint without a number, or without parts",
       [](auto& file) { file.part_count = 0; }},
      {offsetof(File, part_count), "impossible number of parts", [](auto& file) { file.part_count = 65; }},
      {offsetof(File, log_count), "impossible number of logs", [](auto& file) { file.log_count = 0; }},
      {offsetof(File, log_count), "impossible number of logs", [](auto& file) { file.log_count = 17; }},
      {offsetof(File, bytes), "it counts another number of workers than it holds",
       [](auto& file) { ++file.worker_count; }},
      {offsetof(File, bytes), "it counts another number of workers than it holds",
       [](auto& file) { file.worker_count = UINT32_MAX; }},
      {offsetof(File, bytes), "it counts another number of workers than it holds", [](auto& file) { file.bytes += 8; }},
      {offsetof(File, end), "impossible LSN", [](auto& file) { file.end[0] = format::kLsnMax + 8; }},
      {offsetof(File, start) + 8, "replay begins behind what is durable", [](auto& file) { file.start[1] = 408; }},
      {offsetof(File, start), "an LSN at which no record starts", [](auto& file) { file.start[0] += 4; }}};
  for (const auto& [at, why, change] : changes) {
    EXPECT_EQ(After(change), ExitStatus::kCorrupt) << at;
    EXPECT_EQ(what_, "cannot read row-anchor@" + std::to_string(at) + ": " + why);
  }
}

TEST_F(RowAnchorTest, WithoutACheckpointThereIsNothingThatItWouldHave) {
  using File = RowAnchorFile;
  const std::tuple<size_t, const char*, std::function<void(File&)>> changes[] = {
      {offsetof(File, number), "a checkpoint without a number, or without parts", [](auto& file) { file.number = 1; }},
      {offsetof(File, number), "a checkpoint without a number, or without parts",
       [](auto& file) { file.part_count = 1; }},
      {offsetof(File, start) + 8, "rows up to a position, and no checkpoint", [](auto& file) { file.end[1] += 8; }},
      {offsetof(File, start), "replay begins behind what is durable", [](auto& file) { file.start[0] += 8; }},
      {offsetof(File, start), "an LSN at which no record starts", [](auto& file) { file.start[0] = file.end[0] = 4; }},
      {0, "something stands where nothing belongs", [](auto& file) { file.parts[0].bytes = 4096; }}};
  for (const auto& [at, why, change] : changes) {
    EXPECT_EQ(After(change, None()), ExitStatus::kCorrupt) << at;
    EXPECT_EQ(what_, "cannot read row-anchor@" + std::to_string(at) + ": " + why);
  }
}

TEST_F(RowAnchorTest, SomethingWhereNothingBelongsIsRefused) {
  const std::function<void(RowAnchorFile&)> changes[] = {[](auto& file) { file.unused_after_truncates = 1; },
                                                         [](auto& file) { file.unused_after_workers = 1; },
                                                         [](auto& file) { file.start[2] = 8; },
                                                         [](auto& file) { file.end[15] = 8; },
                                                         [](auto& file) { file.parts[2].rows = 1; },
                                                         [](auto& file) { file.parts[63].unused = 1; }};
  for (const auto& change : changes) {
    EXPECT_EQ(After(change), ExitStatus::kCorrupt);
    EXPECT_EQ(what_, "cannot read row-anchor@0: something stands where nothing belongs");
  }
  std::vector<std::byte> bytes = EncodeRowAnchor(Some());
  bytes[sizeof(RowAnchorFile) + 24] = std::byte{1};  // behind the last worker
  Seal(bytes);
  EXPECT_EQ(Decoded(bytes), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "cannot read row-anchor@0: something stands where nothing belongs");
}

TEST_F(RowAnchorTest, ImpossibleSequenceNumbersAreRefused) {
  std::vector<std::byte> bytes = EncodeRowAnchor(Some());
  const size_t at = sizeof(RowAnchorFile) + 8;
  const uint64_t sequence = (uint64_t{1} << TxnId::kSequenceBits) + 1;
  std::memcpy(bytes.data() + at, &sequence, sizeof sequence);
  Seal(bytes);
  EXPECT_EQ(Decoded(bytes), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "cannot read row-anchor@" + std::to_string(at) + ": impossible sequence number");
}

// ---- The anchor beside the logs of its run ---------------------------------------------------------------

// A Taurus run of two logs, made by hand, as recovery opens it.
class RowAnchorOfRunTest : public ::testing::Test {
 protected:
  RowAnchorOfRunTest() {
    image_.directories = {"a", kRun};
    Take("committed", std::as_bytes(std::span(std::string_view("run 12\n"))));
    for (uint32_t log = 0; log < 2; ++log) TakeLog(log, format::kFeatureRowCheckpoints);
  }
  void Take(const std::string& name, std::span<const std::byte> bytes) {
    image_.files[kRun + "/" + name].Write(0, bytes);
  }
  void TakeLog(uint32_t log, uint32_t features) {
    LogBuilder builder(12, log, 2, format::Scheme::kTaurus);
    builder.PayloadIs(format::Payload::kData).header().required_features = features;
    Take("log-0" + std::to_string(log) + ".log", builder.Data(1, {Put(0, 1, "row")}, {0, 0}).RunEnd().Bytes());
  }
  void TakeAnchor(RowAnchor anchor) { Take(kRowAnchorFileName, EncodeRowAnchor(anchor)); }
  static RowAnchor Of(RowAnchor anchor) {
    anchor.database_id = 0xDB;
    return anchor;
  }

  // Opens the run, which no other process uses.
  ExitStatus Opened() {
    FaultyFileSystem files(image_);
    Options options = DefaultOptions();
    options.log_dirs = {"a"};
    return Caught([&] { Look(OpenOldRuns(files, options).newest()); }, what_);
  }
  void Look(const OldRun& run) {
    has_anchor_ = run.row_anchor.has_value();
    has_rows_ = run.rows() != nullptr;
    checkpoint_paths_ = run.checkpoint_paths;
  }

  const std::string kRun = "a/run-0001";
  FaultyFileSystem::Image image_;
  bool has_anchor_ = false, has_rows_ = false;
  std::vector<std::string> checkpoint_paths_;
  std::string what_;
};

TEST_F(RowAnchorOfRunTest, TheFilesThatItNamesAreTaken) {
  TakeAnchor(Of(Some()));
  EXPECT_EQ(Opened(), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "a/run-0001/row-anchor@0: names rows-b-00.ckp, which is missing");
  for (const char* name : {"rows-b-00.ckp", "rows-b-01.ckp"}) Take(name, std::vector<std::byte>(format::kBlockBytes));
  EXPECT_EQ(Opened(), ExitStatus::kOk) << what_;
  EXPECT_TRUE(has_anchor_ && has_rows_);
  EXPECT_EQ(checkpoint_paths_, (std::vector{kRun + "/rows-b-00.ckp", kRun + "/rows-b-01.ckp"}));
}

TEST_F(RowAnchorOfRunTest, WithoutACheckpointThereIsNoFileOfRows) {
  TakeAnchor(Of(None()));
  EXPECT_EQ(Opened(), ExitStatus::kOk) << what_;
  EXPECT_TRUE(has_anchor_);
  EXPECT_FALSE(has_rows_);
  EXPECT_TRUE(checkpoint_paths_.empty());
}

TEST_F(RowAnchorOfRunTest, ARunThatHasLostItIsRefused) {
  EXPECT_EQ(Opened(), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover run-0001: a/run-0001/row-anchor is missing");
}

TEST_F(RowAnchorOfRunTest, ARunWithoutHasNone) {
  for (uint32_t log = 0; log < 2; ++log) TakeLog(log, 0);
  EXPECT_EQ(Opened(), ExitStatus::kOk) << what_;
  EXPECT_FALSE(has_anchor_);
  TakeAnchor(Of(None()));
  EXPECT_EQ(Opened(), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover run-0001: a/run-0001/row-anchor is there, and its logs are those of a run without");
}

TEST_F(RowAnchorOfRunTest, LogsThatDisagreeAreRefused) {
  TakeAnchor(Of(None()));
  TakeLog(1, 0);
  EXPECT_EQ(Opened(), ExitStatus::kMismatch);
  EXPECT_TRUE(what_.ends_with("differ in row checkpoints")) << what_;
}

TEST_F(RowAnchorOfRunTest, ThatOfAnotherRunIsRefused) {
  RowAnchor of_another_run = Of(None()), of_one_log = Of(None());
  ++of_another_run.run_id;
  of_one_log.start.pop_back(), of_one_log.end.pop_back();
  for (const RowAnchor& anchor : {None(), of_another_run, of_one_log}) {
    TakeAnchor(anchor);
    EXPECT_EQ(Opened(), ExitStatus::kMismatch);
    EXPECT_TRUE(what_.starts_with("a/run-0001/row-anchor@0: the anchor of another ")) << what_;
  }
}

}  // namespace
}  // namespace dbx
