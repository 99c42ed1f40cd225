#include "logging/backup/anchor_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/crc32c.h"
#include "tests/logging/caught.h"

namespace dbx {
namespace {

using format::AnchorFile;
using format::AnchorTable;

BackupAnchor Some() {
  BackupAnchor anchor;
  anchor.database_id = 11, anchor.run_id = 12;
  anchor.number = 5, anchor.copy = 1, anchor.parts = 2;
  anchor.tables = {{100, 16, 1000}, {0, 32768, 8}};
  anchor.begin = {Lsn(8192), Lsn(400)};
  anchor.end = {Lsn(9000), Lsn(400)};
  anchor.needed = {Lsn(8000), Lsn(0)};
  anchor.sequences = {7, 0, uint64_t{1} << TxnId::kSequenceBits};
  return anchor;
}

class AnchorFileTest : public ::testing::Test {
 protected:
  static void Seal(std::vector<std::byte>& bytes) {
    uint32_t crc = 0;
    std::memcpy(bytes.data() + offsetof(AnchorFile, crc), &crc, sizeof crc);
    crc = Crc32c(bytes);
    std::memcpy(bytes.data() + offsetof(AnchorFile, crc), &crc, sizeof crc);
  }
  ExitStatus Decoded(std::span<const std::byte> bytes) {
    return Caught([&] { decoded_ = DecodeAnchor(bytes, "anchor"); }, what_);
  }
  // What is said of an anchor whose head is changed, and whose checksum is right.
  ExitStatus After(const std::function<void(AnchorFile&)>& change) {
    std::vector<std::byte> bytes = EncodeAnchor(Some());
    AnchorFile file;
    std::memcpy(&file, bytes.data(), sizeof file);
    change(file);
    std::memcpy(bytes.data(), &file, sizeof file);
    Seal(bytes);
    return Decoded(bytes);
  }

  BackupAnchor decoded_;
  std::string what_;
};

TEST_F(AnchorFileTest, WhatIsEncodedIsDecoded) {
  BackupAnchor large = Some();
  large.tables.assign(1000, {1, 2, 3});
  large.sequences.assign(500, 9);
  large.begin.assign(format::kMaxLogs, Lsn(64));
  large.end = large.needed = large.begin;
  BackupAnchor first = Some();
  first.number = first.copy = 0;
  first.begin = first.end;
  BackupAnchor truncating = Some();
  truncating.truncates = true;
  for (const BackupAnchor& anchor : {Some(), large, first, truncating}) {
    const std::vector<std::byte> bytes = EncodeAnchor(anchor);
    EXPECT_EQ(bytes.size() % format::kBlockBytes, 0u);
    EXPECT_EQ(Decoded(bytes), ExitStatus::kOk) << what_;
    EXPECT_EQ(decoded_, anchor);
  }
}

TEST_F(AnchorFileTest, EveryBitCounts) {
  std::vector<std::byte> bytes = EncodeAnchor(Some());
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += bit < 8 * 600 ? 1 : 61) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_EQ(Decoded(bytes), ExitStatus::kCorrupt) << bit;
    EXPECT_TRUE(what_.starts_with("cannot read anchor@")) << what_;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST_F(AnchorFileTest, AFileOfAnotherSizeIsRefused) {
  const std::vector<std::byte> bytes = EncodeAnchor(Some());
  for (const size_t size : {size_t{0}, size_t{1}, sizeof(AnchorFile), bytes.size() - 1}) {
    EXPECT_EQ(Decoded(std::span(bytes).first(size)), ExitStatus::kCorrupt);
    EXPECT_EQ(what_, "cannot read anchor@0: the file has another size");
  }
  std::vector<std::byte> longer = bytes;
  longer.resize(bytes.size() + format::kBlockBytes);
  Seal(longer);
  EXPECT_EQ(Decoded(longer), ExitStatus::kCorrupt);
}

TEST_F(AnchorFileTest, AnotherVersionIsAMismatch) {
  EXPECT_EQ(After([](AnchorFile& file) { ++file.version; }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot read anchor@8: its version is not known");
}

TEST_F(AnchorFileTest, AMethodThatIsNotKnownIsAMismatch) {
  EXPECT_EQ(After([](AnchorFile& file) { file.method = 2; }), ExitStatus::kOk);
  EXPECT_EQ(decoded_.method, DiffMethod::kPl2p);
  EXPECT_EQ(After([](AnchorFile& file) { file.method = 3; }), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot read anchor@38: its method of logging is not known");
}

TEST_F(AnchorFileTest, ImpossibleFieldsAreRefusedWithTheirPlaces) {
  const std::pair<size_t, std::function<void(AnchorFile&)>> changes[] = {
      {offsetof(AnchorFile, magic), [](auto& file) { file.magic[0] = 'X'; }},
      {offsetof(AnchorFile, copy), [](auto& file) { file.copy = 2; }},
      {offsetof(AnchorFile, copy), [](auto& file) { file.number = 0; }},
      {offsetof(AnchorFile, truncates), [](auto& file) { file.truncates = 2; }},
      {offsetof(AnchorFile, part_count), [](auto& file) { file.part_count = 0; }},
      {offsetof(AnchorFile, part_count), [](auto& file) { file.part_count = 65; }},
      {offsetof(AnchorFile, log_count), [](auto& file) { file.log_count = 0; }},
      {offsetof(AnchorFile, log_count), [](auto& file) { file.log_count = 17; }},
      {offsetof(AnchorFile, bytes), [](auto& file) { ++file.table_count; }},
      {offsetof(AnchorFile, bytes), [](auto& file) { file.worker_count = UINT32_MAX; }},
      {offsetof(AnchorFile, bytes), [](auto& file) { file.bytes += 8; }},
      {offsetof(AnchorFile, end), [](auto& file) { file.end[0] = format::kLsnMax + 8; }},
      {offsetof(AnchorFile, begin) + 8, [](auto& file) { file.begin[1] = 408; }},
      {offsetof(AnchorFile, begin), [](auto& file) { file.begin[0] += 4; }},
      {offsetof(AnchorFile, begin), [](auto& file) { file.number = file.copy = 0; }},
      {offsetof(AnchorFile, needed) + 8, [](auto& file) { file.needed[1] = 408; }},
      {0, [](auto& file) { file.needed[2] = 8; }}};
  for (const auto& [at, change] : changes) {
    EXPECT_EQ(After(change), ExitStatus::kCorrupt) << at;
    EXPECT_TRUE(what_.starts_with("cannot read anchor@" + std::to_string(at) + ": ")) << at << ": " << what_;
  }
}

TEST_F(AnchorFileTest, ImpossibleTablesAndSequenceNumbersAreRefused) {
  const size_t table_1 = sizeof(AnchorFile) + sizeof(AnchorTable), workers = table_1 + sizeof(AnchorTable);
  const auto after = [&](size_t at, auto value) {
    std::vector<std::byte> bytes = EncodeAnchor(Some());
    std::memcpy(bytes.data() + at, &value, sizeof value);
    Seal(bytes);
    return Decoded(bytes);
  };
  EXPECT_EQ(after(table_1, uint32_t{77}), ExitStatus::kOk) << "any number of pages may be: " << what_;
  for (const size_t at :
       {table_1 + offsetof(AnchorTable, rows_per_page), table_1 + offsetof(AnchorTable, tuple_bytes)}) {
    EXPECT_EQ(after(at, uint32_t{1} << 30), ExitStatus::kCorrupt);
    EXPECT_TRUE(what_.starts_with("cannot read anchor@" + std::to_string(at) + ": ")) << what_;
  }
  EXPECT_EQ(after(table_1 + offsetof(AnchorTable, checksum), uint32_t{1}), ExitStatus::kOk) << "any may be: " << what_;
  EXPECT_EQ(after(workers + 8, (uint64_t{1} << TxnId::kSequenceBits) + 1), ExitStatus::kCorrupt);
  EXPECT_TRUE(what_.starts_with("cannot read anchor@" + std::to_string(workers + 8) + ": ")) << what_;
  EXPECT_EQ(after(workers + 24, std::byte{1}), ExitStatus::kCorrupt) << "behind the last worker";
}

TEST_F(AnchorFileTest, TheShapeOfItsBackupFollowsFromIt) {
  const BackupShape shape = ShapeOf(Some(), {"a", "b"});
  EXPECT_EQ(shape.run_id, 12u);
  EXPECT_EQ(shape.parts(), 2u);
  ASSERT_EQ(shape.tables.size(), 2u);
  EXPECT_EQ(shape.tables[1].rows_per_page, 32768u);
  EXPECT_EQ(PagesOf(Some()), (std::vector<uint32_t>{100, 0}));
}

}  // namespace
}  // namespace dbx
