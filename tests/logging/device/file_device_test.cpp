#include "logging/device/file_device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <tuple>
#include <vector>

#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

constexpr size_t kBlock = 4096;

// Page-aligned bytes, each block with its own contents.
class Blocks {
 public:
  explicit Blocks(size_t blocks, uint64_t seed = 1)
      : bytes_(blocks * kBlock), data_(static_cast<std::byte*>(std::aligned_alloc(kBlock, bytes_)), &std::free) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < bytes_; ++i) data_.get()[i] = static_cast<std::byte>(random());
  }
  std::span<const std::byte> all() const { return {data_.get(), bytes_}; }
  std::span<const std::byte> block(size_t i) const { return all().subspan(i * kBlock, kBlock); }

 private:
  size_t bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> data_;
};

std::vector<std::byte> Contents(const std::string& path) {
  auto device = OpenFileDevice(path);
  std::vector<std::byte> bytes(device->SizeBytes() + 100);
  bytes.resize(device->Read(0, bytes));
  return bytes;
}

template <class Action>
ExitStatus StatusOf(Action action, std::string* what = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (what != nullptr) *what = error.what();
    return error.status();
  }
  return ExitStatus::kOk;
}

// Files of this process end at `bytes` while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

using EngineAndDirect = std::tuple<IoEngine, bool, bool>;  // engine, O_DIRECT, sync

class FileDeviceTest : public ::testing::TestWithParam<EngineAndDirect> {
 protected:
  void SetUp() override {
    std::tie(options_.engine, options_.direct, options_.sync) = GetParam();
    options_.preallocate_bytes = 64 * kBlock;
    std::string what;
    if (StatusOf([&] { CreateFileDevice(dir_ / "probe", options_); }, &what) != ExitStatus::kOk) GTEST_SKIP() << what;
  }
  std::unique_ptr<FileDevice> Create() { return CreateFileDevice(dir_ / "log-00.log", options_); }

  TempDir dir_;
  DeviceOptions options_;
};

TEST_P(FileDeviceTest, WhatWasCompletedIsInTheFile) {
  const Blocks blocks(40);
  auto device = Create();
  for (size_t i = 0; i < 40; ++i) device->StartWrite(i * kBlock, blocks.block(i));
  EXPECT_EQ(device->Complete(true), 40 * kBlock);
  std::vector<std::byte> contents = Contents(device->path());
  contents.resize(40 * kBlock);
  EXPECT_TRUE(std::equal(contents.begin(), contents.end(), blocks.all().begin()));
}

TEST_P(FileDeviceTest, CompleteWithoutWaitComesForwardInOrder) {
  const Blocks blocks(64);
  auto device = Create();
  uint64_t last = device->Complete(false);
  EXPECT_EQ(last, 0u);
  for (size_t i = 0; i < 64; ++i) {
    device->StartWrite(8192 + i * kBlock, blocks.block(i));
    const uint64_t end = device->Complete(false);
    ASSERT_GE(end, last);
    ASSERT_LE(end, 8192 + (i + 1) * kBlock);
    ASSERT_EQ(end % kBlock, 0u);
    last = end;
  }
  EXPECT_EQ(device->Complete(true), 8192 + 64 * kBlock);
}

TEST_P(FileDeviceTest, TheFileIsPreallocatedAndZeroAndMayGrow) {
  const Blocks blocks(2);
  auto device = Create();
  EXPECT_EQ(device->SizeBytes(), 64 * kBlock);
  EXPECT_EQ(Contents(device->path()), std::vector<std::byte>(64 * kBlock));
  struct stat status {};
  ASSERT_EQ(::stat(device->path().c_str(), &status), 0);
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, 64 * kBlock);
  device->StartWrite(63 * kBlock, blocks.all());
  EXPECT_EQ(device->Complete(true), 65 * kBlock);
  EXPECT_EQ(device->SizeBytes(), 65 * kBlock);
}

TEST_P(FileDeviceTest, ReadIsShortOnlyAtTheEndAndNeedsNoAlignment) {
  const Blocks blocks(64);
  auto device = Create();
  device->StartWrite(0, blocks.all());
  device->Complete(true);
  std::vector<std::byte> some(1000);
  EXPECT_EQ(device->Read(4001, std::span(some).subspan(3, 990)), 990u);
  EXPECT_TRUE(std::equal(some.begin() + 3, some.begin() + 993, blocks.all().begin() + 4001));
  EXPECT_EQ(device->Read(64 * kBlock - 10, some), 10u);
  EXPECT_EQ(device->Read(64 * kBlock + 10, some), 0u);
}

TEST_P(FileDeviceTest, AfterAFailedWriteEveryCallThrowsTheSame) {
  const Blocks blocks(8);
  options_.preallocate_bytes = 0;
  auto device = Create();
  device->StartWrite(0, blocks.block(0));
  EXPECT_EQ(device->Complete(true), kBlock);
  std::string first;
  {
    const FileSizeLimit limit(2 * kBlock);
    EXPECT_EQ(StatusOf([&] { device->StartWrite(kBlock, blocks.all()), device->Complete(true); }, &first),
              ExitStatus::kNoSpace);
  }
  // The write was cut short at the limit, and what had gone before the error counts in its offset.
  EXPECT_EQ(first, "cannot write " + device->path() + "@8192: File too large");
  std::vector<std::byte> to(10);
  for (auto call : {+[](FileDevice& d) { d.Complete(true); }, +[](FileDevice& d) { d.Complete(false); },
                    +[](FileDevice& d) { d.SizeBytes(); }}) {
    std::string again;
    EXPECT_EQ(StatusOf([&] { call(*device); }, &again), ExitStatus::kNoSpace);
    EXPECT_EQ(again, first);
  }
  EXPECT_THROW(device->StartWrite(9 * kBlock, blocks.block(0)), Error);
  EXPECT_THROW(device->Read(0, to), Error);
}

TEST_P(FileDeviceTest, AShortWriteIsContinued) {
  const Blocks blocks(8);
  options_.preallocate_bytes = 0;
  auto device = Create();
  {
    const FileSizeLimit limit(3 * kBlock);
    EXPECT_THROW((device->StartWrite(0, blocks.all()), device->Complete(true)), Error);
  }
  std::vector<std::byte> contents = Contents(dir_ / "log-00.log");
  ASSERT_EQ(contents.size(), 3 * kBlock);
  EXPECT_TRUE(std::equal(contents.begin(), contents.end(), blocks.all().begin()));
}

TEST_P(FileDeviceTest, ItSaysWhatItUses) {
  const auto [engine, direct, sync] = GetParam();
  const std::string text = Create()->io_engine();
  EXPECT_EQ(text.starts_with("io_uring"), engine == IoEngine::kUring) << text;
  EXPECT_TRUE(direct || text.find("buffered") != std::string::npos) << text;
  EXPECT_EQ(text.ends_with("no sync"), !sync) << text;
  EXPECT_EQ(Describe(dir_.path(), options_).io_engine, text);
}

std::string EngineName(const ::testing::TestParamInfo<EngineAndDirect>& info) {
  const auto& [engine, direct, sync] = info.param;
  return std::string(engine == IoEngine::kUring ? "Uring" : "Pwrite") + (direct ? "Direct" : "Buffered") +
         (sync ? "" : "NoSync");
}
INSTANTIATE_TEST_SUITE_P(Engines, FileDeviceTest,
                         ::testing::Combine(::testing::Values(IoEngine::kUring, IoEngine::kPwrite), ::testing::Bool(),
                                            ::testing::Bool()),
                         EngineName);

TEST(FileDeviceCreateTest, AnExistingFileIsRefusedAndNotTouched) {
  const TempDir dir;
  const Blocks blocks(1);
  auto device = CreateFileDevice(dir / "log", {});
  device->StartWrite(0, blocks.all());
  device->Complete(true);
  std::string what;
  EXPECT_EQ(StatusOf([&] { CreateFileDevice(dir / "log", {}); }, &what), ExitStatus::kIo);
  EXPECT_EQ(what, "cannot create " + dir / "log" + ": File exists");
  EXPECT_EQ(Contents(dir / "log").size(), kBlock);
}

TEST(FileDeviceCreateTest, TellsOfEveryZeroThatItWrites) {
  const TempDir dir;
  if (Describe(dir.path()).kind == "ram") GTEST_SKIP() << "in RAM no zeros are written";
  DeviceOptions options;
  options.preallocate_bytes = (5 << 20) + kBlock;
  uint64_t told = 0;
  options.zeros_written = [&told](uint64_t bytes) { told += bytes; };
  CreateFileDevice(dir / "log", options);
  EXPECT_EQ(told, options.preallocate_bytes);
}

TEST(FileDeviceCreateTest, MoreThanTheDiskHoldsIsNoSpaceAndLeavesNoFile) {
  const TempDir dir;
  struct statvfs disk {};
  ASSERT_EQ(::statvfs(dir.path().c_str(), &disk), 0);
  DeviceOptions options;
  options.preallocate_bytes = (disk.f_bfree + 1) * disk.f_frsize + (uint64_t{1} << 30);
  options.write_zeros = false;
  std::string what;
  EXPECT_EQ(StatusOf([&] { CreateFileDevice(dir / "log", options); }, &what), ExitStatus::kNoSpace) << what;
  EXPECT_TRUE(what.starts_with("cannot allocate " + dir / "log@")) << what;
  EXPECT_FALSE(std::filesystem::exists(dir / "log"));
}

TEST(FileDeviceCreateTest, AFullDiskFailsTheWriteWithNoSpace) {
  for (IoEngine engine : {IoEngine::kUring, IoEngine::kPwrite}) {
    const TempDir dir;
    if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "may not mount";
    const Blocks blocks(20);
    std::string what;
    EXPECT_EQ(StatusOf(
                  [&] {
                    auto device = CreateFileDevice(dir / "log", {.engine = engine});
                    for (size_t i = 0; i < 20; ++i) device->StartWrite(i * kBlock, blocks.block(i));
                    device->Complete(true);
                  },
                  &what),
              ExitStatus::kNoSpace);
    EXPECT_EQ(what, "cannot write " + dir / "log@65536: No space left on device");
    ::umount(dir.path().c_str());
  }
}

TEST(FileDeviceCreateTest, MissingDirectoriesAndFilesAreNamed) {
  std::string what;
  EXPECT_EQ(StatusOf([&] { CreateFileDevice("/nonexistent/log", {}); }, &what), ExitStatus::kIo);
  EXPECT_EQ(what, "cannot create /nonexistent/log: No such file or directory");
  EXPECT_EQ(StatusOf([&] { OpenFileDevice("/nonexistent/log"); }, &what), ExitStatus::kIo);
  EXPECT_EQ(what, "cannot open /nonexistent/log: No such file or directory");
  EXPECT_EQ(StatusOf([&] { Describe("/nonexistent"); }, &what), ExitStatus::kIo);
}

// Two pages, the second of which cannot be read: a write of both ends halfway, or does not begin.
class HalfReadable {
 public:
  HalfReadable() : at_(::mmap(nullptr, 2 * kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
    std::memset(at_, 7, kBlock);
    EXPECT_EQ(::mprotect(static_cast<std::byte*>(at_) + kBlock, kBlock, PROT_NONE), 0);
  }
  ~HalfReadable() { ::munmap(at_, 2 * kBlock); }
  std::span<const std::byte> both() const { return {static_cast<const std::byte*>(at_), 2 * kBlock}; }
  std::span<const std::byte> second() const { return both().subspan(kBlock); }

 private:
  void* const at_;
};

// What the device says it is, of each engine that this machine has.
std::vector<std::unique_ptr<FileDevice>> DevicesOfEachEngine(const TempDir& dir) {
  std::vector<std::unique_ptr<FileDevice>> devices;
  for (const IoEngine engine : {IoEngine::kUring, IoEngine::kPwrite}) {
    const std::string name = "log-" + std::to_string(devices.size());
    const DeviceOptions options{.engine = engine, .preallocate_bytes = 64 * kBlock};
    StatusOf([&] { devices.push_back(CreateFileDevice(dir / name, options)); });
  }
  return devices;
}

TEST(FileDeviceFaultTest, OfSeveralWritesInFlightTheOneThatFailsEndsWhatIsDurable) {
  const TempDir dir;
  const Blocks blocks(8);
  const HalfReadable memory;
  for (const auto& device : DevicesOfEachEngine(dir)) {
    SCOPED_TRACE(device->io_engine());
    uint64_t durable = 0;
    std::string what;
    const auto write = [&] {
      for (size_t i = 0; i < 7; ++i) {
        device->StartWrite(i * kBlock, i == 3 ? memory.second() : blocks.block(i));
        durable = std::max(durable, device->Complete(false));
      }
      durable = device->Complete(true);
    };
    EXPECT_EQ(StatusOf(write, &what), ExitStatus::kIo);
    EXPECT_EQ(what, "cannot write " + device->path() + "@12288: Bad address");
    EXPECT_LE(durable, 3 * kBlock);
    EXPECT_THROW(device->Complete(false), Error);
  }
}

TEST(FileDeviceFaultTest, AWriteThatEndsHalfwayIsNotDurable) {
  const TempDir dir;
  const Blocks blocks(8);
  const HalfReadable memory;
  for (const auto& device : DevicesOfEachEngine(dir)) {
    SCOPED_TRACE(device->io_engine());
    std::string what;
    device->StartWrite(0, blocks.block(0));
    EXPECT_EQ(device->Complete(true), kBlock);
    const auto write = [&] {
      device->StartWrite(kBlock, memory.both());
      device->StartWrite(3 * kBlock, blocks.block(3));
      EXPECT_LE(device->Complete(true), kBlock);
    };
    EXPECT_EQ(StatusOf(write, &what), ExitStatus::kIo);
    EXPECT_TRUE(what.ends_with("@4096: Bad address") || what.ends_with("@8192: Bad address")) << what;
  }
}

// How many bytes this process has asked the kernel to write.
uint64_t BytesWritten() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    if (uint64_t bytes; name == "wchar:" && io >> bytes) return bytes;
  }
  return 0;
}

TEST(FileDeviceFaultTest, ARewriteWritesTheSameBytesAgain) {
  if (BytesWritten() == 0) GTEST_SKIP() << "/proc/self/io says nothing";
  const TempDir dir;
  const Blocks blocks(600);  // more than are written at once
  const auto device = CreateFileDevice(dir / "log", {.engine = IoEngine::kPwrite});
  device->StartWrite(0, blocks.all());
  device->Complete(true);
  const uint64_t before = BytesWritten();
  RewriteFile(device->path(), 5 * kBlock, 590 * kBlock);
  EXPECT_EQ(BytesWritten() - before, 585 * kBlock);
  RewriteFile(device->path(), 590 * kBlock, 700 * kBlock);  // as far as it goes
  EXPECT_EQ(BytesWritten() - before, 595 * kBlock);
  EXPECT_TRUE(std::ranges::equal(Contents(device->path()), blocks.all()));
  EXPECT_THROW(RewriteFile(dir / "none", 0, 1), Error);
}

TEST(FileDeviceOpenTest, HolesAreSkippedInRamAndNowhereElse) {
  const TempDir dir;
  const Blocks blocks(1);
  const auto device = CreateFileDevice(dir / "log", {.engine = IoEngine::kPwrite, .preallocate_bytes = 100 * kBlock});
  for (const size_t i : {0, 1}) device->StartWrite(i * kBlock, blocks.block(0));
  device->Complete(true);
  const auto reader = OpenFileDevice(device->path());
  EXPECT_EQ(reader->SkipHole(kBlock + 8), kBlock + 8);
  const uint64_t behind = reader->SkipHole(50 * kBlock);
  EXPECT_TRUE(behind == 50 * kBlock || (reader->is_memory() && behind == 100 * kBlock)) << behind;
}

TEST(FileDeviceOpenTest, OnlyRegularFilesAreOpenedAndNothingIsWritten) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(OpenFileDevice(dir / "pipe"), Error);
  EXPECT_THROW(OpenFileDevice(dir.path()), Error);
  CreateFileDevice(dir / "log", {});
  const Blocks blocks(1);
  EXPECT_THROW(OpenFileDevice(dir / "log")->StartWrite(0, blocks.all()), Error);
}

TEST(FileDeviceOpenTest, ADescribedDirectoryIsLeftAsItWas) {
  const TempDir dir;
  const DirectoryKind kind = Describe(dir.path());
  EXPECT_EQ(kind.path, dir.path());
  EXPECT_TRUE(kind.kind == "real" || kind.kind == "ram") << kind.kind;
  EXPECT_FALSE(kind.file_system.empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(FileDeviceOpenTest, ARamDiskIsToldFromADisk) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "/dev/shm is not writable";
  const TempDir dir("/dev/shm");
  const DirectoryKind kind = Describe(dir.path());
  if (kind.file_system != "tmpfs") GTEST_SKIP() << "/dev/shm is " << kind.file_system;
  EXPECT_EQ(kind.kind, "ram");
  EXPECT_EQ(kind.io_engine, "pwrite, buffered, fdatasync");
  DeviceOptions options;
  options.preallocate_bytes = 100 * kBlock;
  auto device = CreateFileDevice(dir / "log", options);
  EXPECT_EQ(Contents(device->path()), std::vector<std::byte>(100 * kBlock));
  EXPECT_TRUE(OpenFileDevice(device->path())->is_memory());
}

TEST(FileDeviceOpenTest, WhatItSaysOfAFileIsWhatItSaysOfItsDirectory) {
  const TempDir dir;
  const std::string path = CreateFileDevice(dir / "log", {})->path();
  EXPECT_EQ(OpenFileDevice(path)->is_memory(), Describe(dir.path()).kind == "ram");
}

TEST(FileDeviceDeathTest, GapsAndUnalignedMemoryAreBugsOfTheCaller) {
  const TempDir dir;
  const Blocks blocks(4);
  // Without io_uring: its kernel threads would be in the way of fork.
  auto device = CreateFileDevice(dir / "log", {.engine = IoEngine::kPwrite});
  device->StartWrite(0, blocks.block(0));
  EXPECT_EXIT(device->StartWrite(2 * kBlock, blocks.block(1)), ::testing::ExitedWithCode(7), "check failed");
  EXPECT_EXIT(device->StartWrite(kBlock, blocks.all().subspan(512, kBlock)), ::testing::ExitedWithCode(7), "check");
  EXPECT_EXIT(device->StartWrite(kBlock, blocks.all().subspan(0, 100)), ::testing::ExitedWithCode(7), "check");
}

}  // namespace
}  // namespace dbx
