#include "logging/device/posix_page_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "logging/device/posix_file_system.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

constexpr size_t kBlock = 4096;

std::vector<std::byte> Filled(size_t bytes, int value) { return std::vector<std::byte>(bytes, std::byte(value)); }

class PosixPageFileTest : public ::testing::Test {
 protected:
  std::vector<std::byte> Contents() {
    const FileBytes file = files_.Map(path_);
    return {file.bytes.begin(), file.bytes.end()};
  }

  PosixFileSystem files_;
  TempDir dir_;
  const std::string path_ = dir_ / "part";
  std::string what_;
};

TEST_F(PosixPageFileTest, PagesAreWrittenInPlaceAndTheFileGrowsAsNeedBe) {
  for (const bool durable : {true, false}) {
    const auto file = files_.CreatePages(path_, durable);
    EXPECT_EQ(file->path(), path_);
    file->WriteAt(2 * kBlock, Filled(kBlock, 3));
    file->WriteAt(0, Filled(2 * kBlock, 1));
    file->WriteAt(kBlock, Filled(kBlock, 2));
    file->Sync();
    for (size_t page = 0; page < 3; ++page) EXPECT_EQ(Contents()[page * kBlock], std::byte(page + 1));
    EXPECT_EQ(Contents().size(), 3 * kBlock);
    files_.Remove(path_);
  }
}

TEST_F(PosixPageFileTest, MemoryNeedsNoAlignment) {
  const auto file = CreatePageFile(path_, true);
  std::vector<std::byte> bytes = Filled(kBlock + 1, 7);
  file->WriteAt(0, std::span(bytes).subspan(1));
  EXPECT_EQ(Contents(), Filled(kBlock, 7));
}

TEST_F(PosixPageFileTest, AnExistingFileIsLeftAlone) {
  CreatePageFile(path_, true)->WriteAt(0, Filled(kBlock, 1));
  EXPECT_EQ(Caught([&] { CreatePageFile(path_, true); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot create " + path_ + ": File exists");
  EXPECT_EQ(Contents(), Filled(kBlock, 1));
}

TEST_F(PosixPageFileTest, AFailedWriteIsFinalAndNamesItsPlace) {
  const auto file = CreatePageFile(path_, true);
  file->WriteAt(0, Filled(kBlock, 1));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{3 * kBlock, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const ExitStatus status = Caught([&] { file->WriteAt(2 * kBlock, Filled(2 * kBlock, 2)); }, what_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status, ExitStatus::kNoSpace);
  const std::string first = what_;
  EXPECT_EQ(first, "cannot write " + path_ + "@12288: File too large");
  EXPECT_EQ(Caught([&] { file->Sync(); }, what_), ExitStatus::kNoSpace);
  EXPECT_EQ(Caught([&] { file->WriteAt(0, Filled(kBlock, 3)); }, what_), ExitStatus::kNoSpace);
  EXPECT_EQ(what_, first);
}

TEST_F(PosixPageFileTest, AMissingDirectoryIsNamed) {
  EXPECT_EQ(Caught([&] { CreatePageFile(dir_ / "d/part", true); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot create " + dir_ / "d/part" + ": No such file or directory");
}

}  // namespace
}  // namespace dbx
