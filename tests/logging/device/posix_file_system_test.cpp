// What the operating system's errors mean: absent is only what is known to be absent, and a file that cannot be read is
// an Error.
#include "logging/device/posix_file_system.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "logging/device/file_device.h"
#include "logging/device/posix_file.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

namespace fs = std::filesystem;
using Entry = FileSystem::Entry;

class PosixFileSystemTest : public ::testing::Test {
 protected:
  PosixFileSystem files_;
  TempDir dir_;
  std::string what_;
};

TEST_F(PosixFileSystemTest, OnlyWhatIsNotThereIsAbsent) {
  std::ofstream(dir_ / "file") << "x";
  fs::create_symlink(dir_ / "nowhere", dir_ / "link");
  EXPECT_EQ(files_.KindOf(dir_ / "missing"), Entry::kNone);
  EXPECT_EQ(files_.KindOf(dir_ / "file/below"), Entry::kNone);
  EXPECT_EQ(files_.KindOf(dir_ / "file"), Entry::kFile);
  EXPECT_EQ(files_.KindOf(dir_ / "link"), Entry::kOther);
  EXPECT_EQ(files_.KindOf(dir_ / ""), Entry::kDirectory);
}

TEST_F(PosixFileSystemTest, WhatCannotBeLookedAtIsAnError) {
  const std::string path = dir_ / std::string(300, 'x');
  EXPECT_EQ(Caught([&] { files_.KindOf(path); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot look at " + path + ": File name too long");
}

// As after chmod 444: names can be listed, and nothing behind them looked at.
TEST_F(PosixFileSystemTest, ADirectoryThatCannotBeSearchedIsAnError) {
  fs::create_directory(dir_ / "d");
  std::ofstream(dir_ / "d/file") << "x";
  fs::permissions(dir_ / "d", fs::perms::owner_read);
  struct stat status {};
  if (::lstat((dir_ / "d/file").c_str(), &status) == 0) GTEST_SKIP() << "this user may search everything";
  EXPECT_EQ(Caught([&] { files_.KindOf(dir_ / "d/file"); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot look at " + dir_ / "d/file" + ": Permission denied");
  fs::permissions(dir_ / "d", fs::perms::owner_all);
}

TEST_F(PosixFileSystemTest, AFileIsReadWhole) {
  constexpr uint64_t kBytes = (uint64_t{3} << 20) + 5;
  for (const uint64_t at : {uint64_t{0}, uint64_t{1} << 20, kBytes - 1}) {
    std::ofstream file(dir_ / "f");
    file.seekp(static_cast<std::streamoff>(at)).put('x');
    file.close();
    fs::resize_file(dir_ / "f", kBytes);
    const FileBytes file_bytes = files_.Map(dir_ / "f");
    ASSERT_EQ(file_bytes.bytes.size(), kBytes);
    EXPECT_EQ(file_bytes.bytes[at], std::byte{'x'});
    EXPECT_EQ(std::count(file_bytes.bytes.begin(), file_bytes.bytes.end(), std::byte{0}), kBytes - 1);
  }
}

TEST_F(PosixFileSystemTest, DiscardedBlocksAreZerosAndTakeNoSpace) {
  constexpr uint64_t kBlock = 4096, kBlocks = 64;
  const auto device = files_.Create(dir_ / "log", {.write_zeros = false});
  const std::unique_ptr<std::byte, decltype(&std::free)> bytes(
      static_cast<std::byte*>(std::aligned_alloc(kBlock, kBlocks * kBlock)), &std::free);
  std::fill_n(bytes.get(), kBlocks * kBlock, std::byte{7});
  device->StartWrite(0, {bytes.get(), kBlocks * kBlock});
  device->Complete(true);
  const auto blocks = [&] {
    struct stat status {};
    EXPECT_EQ(::stat((dir_ / "log").c_str(), &status), 0);
    return status.st_blocks;
  };
  const auto before = blocks();
  if (!files_.Discard(dir_ / "log", 2 * kBlock, 50 * kBlock)) GTEST_SKIP() << "no holes on this file system";
  EXPECT_EQ(device->SizeBytes(), kBlocks * kBlock);
  EXPECT_LT(blocks(), before);
  const FileBytes file = files_.Map(dir_ / "log");
  for (uint64_t at = 0; at < kBlocks * kBlock; at += kBlock / 2) {
    ASSERT_EQ(file.bytes[at], std::byte(at < 2 * kBlock || at >= 50 * kBlock ? 7 : 0)) << at;
  }
  // What is written meanwhile, and later, is untouched.
  device->StartWrite(kBlocks * kBlock, {bytes.get(), kBlock});
  EXPECT_TRUE(files_.Discard(dir_ / "log", 2 * kBlock, 64 * kBlock));
  device->Complete(true);
  EXPECT_EQ(files_.Map(dir_ / "log").bytes[64 * kBlock], std::byte{7});
}

TEST_F(PosixFileSystemTest, BlocksOfAFileThatIsNotThereCannotBeDiscarded) {
  EXPECT_EQ(Caught([&] { files_.Discard(dir_ / "none", 0, 4096); }, what_), ExitStatus::kIo);
  EXPECT_TRUE(what_.starts_with("cannot open " + (dir_ / "none"))) << what_;
}

// A file of the kernel's that says how large it is and cannot be read.
TEST_F(PosixFileSystemTest, AFileThatCannotBeReadIsAnErrorAndNotASignal) {
  const std::string path = "/sys/class/net/lo/speed";
  char byte;
  std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "r"), &std::fclose);
  if (!file || std::fread(&byte, 1, 1, file.get()) == 1) GTEST_SKIP() << path << " is missing, or can be read";
  EXPECT_EQ(Caught([&] { files_.Map(path); }, what_), ExitStatus::kIo);
  EXPECT_TRUE(what_.starts_with("cannot read " + path + "@0: ")) << what_;
  EXPECT_EQ(Caught([&] { files_.Map(dir_ / ""); }, what_), ExitStatus::kIo);
}

TEST_F(PosixFileSystemTest, ASyncedWriteIsBelievedOnlyWhereItIsKnownToSync) {
  for (const uint32_t known :
       std::initializer_list<uint32_t>{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC}) {
    EXPECT_TRUE(HonoursDsync(known)) << known;
  }
  for (const uint32_t other :
       std::initializer_list<uint32_t>{FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, V9FS_MAGIC}) {
    EXPECT_FALSE(HonoursDsync(other)) << other;
  }
  const bool honoured = FileSystemTypeOf(dir_ / "").honours_dsync;
  const auto device = CreateFileDevice(dir_ / "f", {});
  EXPECT_TRUE(honoured || device->io_engine().ends_with(", fdatasync")) << device->io_engine();
}

TEST_F(PosixFileSystemTest, AFileThatIsToBeRenamedNamesItsLaterPath) {
  EXPECT_EQ(files_.Create(dir_ / "f.tmp", {.named = "f"})->path(), "f");
}

}  // namespace
}  // namespace dbx
