// The files of a backup: what is written comes back, page by page, and what is not that page is refused with its place.
#include "logging/backup/backup_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <random>

#include "base/crc32c.h"
#include "storage/heap/page_space.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;
constexpr uint64_t kRunId = 77;

BackupShape Shape(std::vector<std::string> directories = {"a", "b", "c"}, uint64_t run_id = kRunId) {
  return {run_id, {{40, 16}, {7, 1000}}, std::move(directories)};
}

// A backup of two tables in three parts, written as number 4 into copy 1.
class BackupFilesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCopy = 1;
  static constexpr uint32_t kNumber = 4;
  BackupFilesTest() {
    for (const char* directory : {"a", "b", "c"}) files_.MakeDirectory(directory);
    writer_ = std::make_unique<BackupWriter>(files_, Shape(), true);
    for (const char* directory : {"a", "b", "c", "."}) files_.SyncDirectory(directory);
  }
  static std::vector<std::byte> Images(uint32_t table, uint32_t page) {
    std::mt19937_64 random(table * 1000 + page);
    std::vector<std::byte> images(Shape().ImageBytes(table));
    for (std::byte& byte : images) byte = static_cast<std::byte>(random());
    return images;
  }
  // Frames of `count` pages of one part, the bytes around the images not zero.
  static std::vector<std::byte> Frames(uint32_t table, uint32_t page, uint32_t count = 1) {
    const size_t frame_bytes = Shape().FrameBytes(table);
    std::vector<std::byte> frames(count * frame_bytes, std::byte{0xee});
    for (uint32_t i = 0; i < count; ++i) {
      std::ranges::copy(Images(table, page + i * Shape().parts()),
                        frames.begin() + static_cast<ptrdiff_t>(i * frame_bytes + sizeof(format::BackupFrame)));
    }
    return frames;
  }
  void Write(uint32_t table, uint32_t page, uint32_t count = 1, uint32_t number = kNumber, uint32_t copy = kCopy) {
    std::vector<std::byte> frames = Frames(table, page, count);
    writer_->Write(copy, TableId(static_cast<uint16_t>(table)), page, number, frames);
  }
  void WriteAll(uint32_t pages) {
    for (uint32_t table = 0; table < 2; ++table) {
      for (uint32_t page = 0; page < pages; ++page) Write(table, page);
    }
    writer_->Sync(kCopy);
  }
  BackupReader Reader(uint32_t pages, uint32_t number = kNumber, uint32_t copy = kCopy) {
    return {files_, Shape(), copy, number, {pages, pages}};
  }
  // That each page comes back once, in ascending order within its part.
  void ExpectAll(const BackupReader& reader, uint32_t pages) {
    for (const bool read_ahead : {false, true}) {
      for (uint16_t table = 0; table < 2; ++table) {
        uint32_t seen = 0;
        for (uint32_t part = 0; part < reader.parts(); ++part)
          seen += ExpectPart(reader, TableId(table), part, read_ahead);
        EXPECT_EQ(seen, pages);
      }
    }
  }
  static uint32_t ExpectPart(const BackupReader& reader, TableId table, uint32_t part, bool read_ahead) {
    uint32_t seen = 0;
    const auto visit = [&](uint32_t page, const std::byte* images) {
      EXPECT_EQ(page, part + seen++ * reader.parts());
      const std::vector<std::byte> expected = Images(table.value(), page);
      EXPECT_EQ(std::memcmp(images, expected.data(), expected.size()), 0);
    };
    reader.ReadPart(table, part, visit, read_ahead);
    return seen;
  }
  // What reading part 1 of table 0 says, which has pages 1, 4, 7, ...
  ExitStatus Read(uint32_t pages, uint32_t number = kNumber) {
    return Caught([&] { Reader(pages, number).ReadPart(TableId(0), 1, [](uint32_t, const std::byte*) {}); }, what_);
  }
  // Changes the header of the frame of page 4 of table 0, and makes its checksum right.
  void ChangeHeader(const std::function<void(format::BackupFrame&)>& change) {
    const size_t frame_bytes = Shape().FrameBytes(0);
    files_.Change("b/backup-b-00-01.bak", [&](SparseBytes& file) {
      std::vector<std::byte> frame(frame_bytes);
      file.Read(frame_bytes, frame);
      format::BackupFrame header;
      std::memcpy(&header, frame.data(), sizeof header);
      change(header);
      std::memcpy(frame.data(), &header, sizeof header);
      header.crc = Crc32c(std::span(frame).subspan(sizeof header.crc));
      std::memcpy(frame.data(), &header, sizeof header);
      file.Write(frame_bytes, frame);
    });
  }

  FaultyFileSystem files_;
  std::unique_ptr<BackupWriter> writer_;
  std::string what_;
};

TEST(BackupNamesTest, AreThoseOfPartsAndOfNothingElse) {
  EXPECT_EQ(BackupFileName(0, 3, 0), "backup-a-03-00.bak");
  EXPECT_EQ(BackupFileName(1, 12, 115), "backup-b-12-115.bak");
  for (const uint32_t number : {0, 7, 10, 99, 100, 65535}) {
    const auto of_table = ParseBackupFileName(BackupFileName(0, number, 1));
    const auto of_part = ParseBackupFileName(BackupFileName(1, 2, number));
    ASSERT_TRUE(of_table && of_part);
    EXPECT_TRUE(of_table->copy == 0 && of_table->table == number && of_table->part == 1);
    EXPECT_TRUE(of_part->copy == 1 && of_part->table == 2 && of_part->part == number);
  }
  for (const char* name : {"", "backup", "backup-a-", "backup-c-00-00.bak", "backup-a-0-00.bak",
                           "backup-a-00-00.bak.tmp", "backup-a-00-000.bak", "backup-a--1-00.bak", "backup-a-00-00",
                           "backup-a-00x00.bak", "backup-a-00-99999999999.bak", "xbackup-a-00-00.bak"}) {
    EXPECT_FALSE(ParseBackupFileName(name)) << name;
  }
}

TEST(BackupShapeTest, AFrameHoldsTheImagesOfAPage) {
  for (const size_t tuple_bytes : {1, 8, 13, 100, 1000, 20000}) {
    CheckpointClock clock;
    const size_t row_bytes = (sizeof(Row) + tuple_bytes + 15) / 16 * 16;
    const PageSpace pages(
        {.row_bytes = row_bytes, .tuple_offset = sizeof(Row), .tuple_bytes = tuple_bytes, .page_bytes_min = 4096},
        clock);
    const BackupShape shape{1, {{pages.rows_per_page(), pages.tuple_bytes()}}, {"d"}};
    EXPECT_EQ(shape.ImageBytes(0), pages.PageImageBytes());
    EXPECT_EQ(shape.FrameBytes(0) % format::kBlockBytes, 0u);
    EXPECT_GE(shape.FrameBytes(0), shape.ImageBytes(0) + sizeof(format::BackupFrame));
    EXPECT_LT(shape.FrameBytes(0), shape.ImageBytes(0) + sizeof(format::BackupFrame) + format::kBlockBytes);
  }
}

TEST_F(BackupFilesTest, EachPageComesBackOnceWhicheverTheirNumberAndOrder) {
  for (const uint32_t pages : {0u, 1u, 2u, 3u, 4u, 50u}) {
    WriteAll(pages);
    ExpectAll(Reader(pages), pages);
  }
  for (uint32_t page = 11; page >= 4; --page) Write(1, page);
  ExpectAll(Reader(50), 50);
}

TEST_F(BackupFilesTest, SeveralPagesOfAPartAreWrittenAtOnce) {
  for (uint32_t table = 0; table < 2; ++table) {
    for (uint32_t part = 0; part < 3; ++part) Write(table, part, /*count=*/5);
  }
  ExpectAll(Reader(15), 15);
  EXPECT_EQ(writer_->written_bytes(), 15 * (Shape().FrameBytes(0) + Shape().FrameBytes(1)));
}

// More than one block of a reader.
TEST_F(BackupFilesTest, APartLargerThanABlockIsReadWhole) {
  const auto pages = static_cast<uint32_t>(3 * (2 * kFramesBytesMax / Shape().FrameBytes(1) + 3));
  WriteAll(pages);
  ExpectAll(Reader(pages), pages);
}

TEST_F(BackupFilesTest, WhatIsSyncedSurvivesAndTheFilesThemselvesDoFromTheBeginning) {
  const FaultyFileSystem::Image empty = files_.CrashImage(Crash::kDurableOnly);
  EXPECT_EQ(empty.files.size(), 2u * 2 * 3);
  WriteAll(7);
  Write(0, 1, 1, kNumber + 1);
  FaultyFileSystem crashed(files_.CrashImage(Crash::kDurableOnly));
  ExpectAll(BackupReader(crashed, Shape(), kCopy, kNumber, {7, 7}), 7);
}

TEST_F(BackupFilesTest, AChecksumIsOfTheFramesThatWereWrittenLast) {
  const auto read = [this](uint32_t pages) {
    uint32_t checksum = 0;
    for (uint32_t part = 0; part < 3; ++part) {
      checksum ^= Reader(pages).ReadPart(TableId(0), part, [](uint32_t, const std::byte*) {});
    }
    return checksum;
  };
  WriteAll(7);
  const uint32_t before = writer_->ChecksumOf(kCopy, TableId(0), 7);
  EXPECT_EQ(read(7), before);
  EXPECT_EQ(read(5), writer_->ChecksumOf(kCopy, TableId(0), 5));
  Write(0, 3, 1, kNumber - 1);
  EXPECT_NE(writer_->ChecksumOf(kCopy, TableId(0), 7), before);
  EXPECT_EQ(read(7), writer_->ChecksumOf(kCopy, TableId(0), 7));
  Write(0, 3);
  EXPECT_EQ(writer_->ChecksumOf(kCopy, TableId(0), 7), before);
}

TEST_F(BackupFilesTest, OnlyFilesThatWereWrittenAreSynced) {
  files_.Fail(Operation::kSync, 1, EIO, /*for_good=*/true, "-00.bak");
  files_.Fail(Operation::kSync, 1, EIO, /*for_good=*/true, "backup-a");
  Write(0, 1);
  Write(1, 2);
  writer_->Sync(kCopy);
  Write(0, 0);
  EXPECT_THROW(writer_->Sync(kCopy), Error);
}

TEST_F(BackupFilesTest, EveryByteOfAFrameCounts) {
  WriteAll(9);
  const size_t frame_bytes = Shape().FrameBytes(0);
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    // All of the header, then bytes anywhere; the last ones lie in the zeros behind the images.
    const size_t at = i < 32 ? static_cast<size_t>(i) : i == 32 ? frame_bytes - 1 : random() % frame_bytes;
    const auto flip = [&](SparseBytes& file) {
      std::byte byte{};
      file.Read(frame_bytes + at, {&byte, 1});
      byte ^= std::byte(1 << i % 8);
      file.Write(frame_bytes + at, {&byte, 1});
    };
    files_.Change("b/backup-b-00-01.bak", flip);
    EXPECT_EQ(Read(9), ExitStatus::kCorrupt) << at;
    EXPECT_EQ(what_, "cannot read b/backup-b-00-01.bak@" + std::to_string(frame_bytes) +
                         ": the checksum of the page does not match");
    files_.Change("b/backup-b-00-01.bak", flip);
  }
  EXPECT_EQ(Read(9), ExitStatus::kOk) << what_;
}

TEST_F(BackupFilesTest, AFrameOfAnythingElseIsRefusedWithItsPlace) {
  const std::pair<const char*, std::function<void(format::BackupFrame&)>> changes[] = {
      {"another run or copy", [](auto& frame) { frame.salt = format::Salt(kRunId + 1, format::kBackupSalt + kCopy); }},
      {"another run or copy", [](auto& frame) { frame.salt = format::Salt(kRunId, format::kBackupSalt); }},
      {"another run or copy", [](auto& frame) { frame.copy = 0; }},
      {"another page", [](auto& frame) { frame.table = 1; }},
      {"another page", [](auto& frame) { frame.page = 1; }},
      {"another shape", [](auto& frame) { frame.rows_per_page = 39; }},
      {"another shape", [](auto& frame) { frame.tuple_bytes = 15; }},
      {"later checkpoint", [](auto& frame) { frame.number = kNumber + 1; }},
      {"nothing belongs", [](auto& frame) { frame.unused = 1; }}};
  for (const auto& [why, change] : changes) {
    WriteAll(9);
    EXPECT_EQ(Read(9), ExitStatus::kOk);
    ChangeHeader(change);
    EXPECT_EQ(Read(9), ExitStatus::kCorrupt) << why;
    const std::string place = "cannot read b/backup-b-00-01.bak@" + std::to_string(Shape().FrameBytes(0)) + ": ";
    EXPECT_TRUE(what_.starts_with(place) && what_.find(why) != std::string::npos) << what_;
  }
}

TEST_F(BackupFilesTest, AnOlderPageIsTaken) {
  WriteAll(9);
  ChangeHeader([](format::BackupFrame& frame) { frame.number = kNumber - 1; });
  ExpectAll(Reader(9), 9);
}

TEST_F(BackupFilesTest, APageThatIsMissingAtTheEndIsNamed) {
  WriteAll(9);
  EXPECT_EQ(Read(10), ExitStatus::kOk) << "page 9 is of part 0";
  EXPECT_EQ(Read(11), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "cannot read b/backup-b-00-01.bak@" + std::to_string(3 * Shape().FrameBytes(0)) +
                       ": the file ends before the page, which the anchor counts");
  files_.Change("b/backup-b-00-01.bak", [](SparseBytes& file) { file.Resize(file.size() - 1); });
  EXPECT_EQ(Read(9), ExitStatus::kCorrupt);
  EXPECT_NE(what_.find("@" + std::to_string(2 * Shape().FrameBytes(0)) + ": "), std::string::npos) << what_;
  EXPECT_EQ(Read(UINT32_MAX), ExitStatus::kCorrupt) << "and no memory is taken for what is not there";
}

// It was zeroed, or never written.
TEST_F(BackupFilesTest, AHoleIsDamage) {
  WriteAll(1);
  Write(0, 7);
  EXPECT_EQ(Read(9), ExitStatus::kCorrupt);
  EXPECT_TRUE(what_.starts_with("cannot read b/backup-b-00-01.bak@0: ")) << what_;
}

TEST_F(BackupFilesTest, PartsOfSeveralBlocksAreReadWhole) {
  const uint32_t pages = 3 * 3 * static_cast<uint32_t>(kFramesBytesMax / Shape().FrameBytes(1)) + 1;
  WriteAll(pages);
  ExpectAll(Reader(pages), pages);
}

// A checkpoint that failed may have left it, or one that counted more pages before the run was cut back.
TEST_F(BackupFilesTest, WhatLiesBehindTheLastPageIsNotRead) {
  WriteAll(9);
  for (uint32_t page = 9; page < 20; ++page) Write(0, page, 1, kNumber + 1);
  files_.Change("b/backup-b-00-01.bak", [](SparseBytes& file) { file.Write(file.size(), Frames(0, 1)); });
  ExpectAll(Reader(9), 9);
}

TEST_F(BackupFilesTest, AReadThatFailsIsThePlacesError) {
  WriteAll(9);
  const BackupReader reader = Reader(9);
  files_.Fail(Operation::kRead, 1, EIO);
  const auto read = [&] { reader.ReadPart(TableId(1), 2, [](uint32_t, const std::byte*) {}); };
  EXPECT_EQ(Caught(read, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot read c/backup-b-01-02.bak@0: Input/output error");
  read();
}

TEST_F(BackupFilesTest, AFileThatHasFailedIsRenewedEmptyAndTheOthersStay) {
  WriteAll(9);
  files_.Fail(Operation::kWrite, 1, ENOSPC);
  EXPECT_EQ(Caught([&] { Write(0, 4); }, what_), ExitStatus::kNoSpace);
  writer_->Renew(kCopy);
  EXPECT_EQ(files_.Map("b/backup-b-00-01.bak").bytes.size(), 0u);
  EXPECT_EQ(files_.CrashImage(Crash::kDurableOnly).files.at("b/backup-b-00-01.bak").size(), 0u);
  Write(0, 1, /*count=*/3);
  writer_->Sync(kCopy);
  ExpectAll(Reader(9), 9);
}

TEST_F(BackupFilesTest, ARenewalThatFailsIsTriedAgain) {
  WriteAll(9);
  files_.Fail(Operation::kSync, 1, ENOSPC);
  Write(1, 2);
  EXPECT_EQ(Caught([&] { writer_->Sync(kCopy); }, what_), ExitStatus::kNoSpace);
  for (const Operation operation :
       {Operation::kRemove, Operation::kCreate, Operation::kSync, Operation::kSyncDirectory}) {
    files_.Fail(operation, 1, ENOSPC);
    EXPECT_EQ(Caught([&] { writer_->Renew(kCopy); }, what_), ExitStatus::kNoSpace);
  }
  writer_->Renew(kCopy);
  Write(1, 2, /*count=*/3);
  writer_->Sync(kCopy);
  ExpectAll(Reader(9), 9);
}

TEST_F(BackupFilesTest, WithoutSpaceForItsFilesThereIsNoWriter) {
  for (const uint64_t nth : {1, 5, 12}) {
    FaultyFileSystem files;
    files.MakeDirectory("a");
    files.Fail(Operation::kCreate, nth, ENOSPC);
    EXPECT_EQ(Caught([&] { BackupWriter(files, Shape({"a", "a", "a"}), true); }, what_), ExitStatus::kNoSpace);
  }
}

}  // namespace
}  // namespace dbx
