// Files on emulated devices: the claims of a profile in virtual time, and that nothing else changes.
#include "logging/device/emulated_file_system.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/device/jumping_clock.h"

namespace dbx {
namespace {

constexpr size_t kBlock = 4096;
constexpr size_t kMebi = size_t{1} << 20;

const DeviceProfile kDisk{"disk", 100'000'000, 2'000'000, 8'000'000, 8};

// Each kilobyte its own.
std::vector<std::byte> Pattern(size_t bytes, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i % 1024 == 0 ? random() : i);
  return data;
}

class EmulatedFileSystemTest : public ::testing::Test {
 protected:
  EmulatedFileSystemTest() { MakeDirectories(memory_); }
  static void MakeDirectories(FileSystem& files) {
    for (const char* name : {"a/run", "b", "aa"}) CreateDirectories(files, name);
  }
  EmulatedFileSystem Make(const DeviceProfile& profile) { return {memory_, profile, {"a", "b"}, &clock_}; }
  double SecondsOf(auto&& action) {
    const uint64_t begin = clock_.now_nanos;
    action();
    return static_cast<double>(clock_.now_nanos - begin) * 1e-9;
  }
  // Writes of `part` bytes, `in_flight` of them before each wait.
  static void WriteAll(BlockDevice& file, size_t bytes, size_t part, size_t in_flight) {
    const std::vector<std::byte> data = Pattern(part);
    for (size_t at = 0, n = 1; at < bytes; at += part, ++n) {
      file.StartWrite(at, data);
      if (n % in_flight != 0 && at + part < bytes) continue;
      EXPECT_EQ(file.Complete(true), at + part);
    }
  }

  FaultyFileSystem memory_;
  JumpingClock clock_;
};

TEST_F(EmulatedFileSystemTest, WritesComeToTheBandwidthThatIsClaimed) {
  DeviceProfile profile = kDisk;
  profile.flush_nanos = profile.seek_nanos = 0;
  EmulatedFileSystem files = Make(profile);
  const auto file = files.Create("a/run/log", {});
  const double seconds = SecondsOf([&] { WriteAll(*file, 64 * kMebi, kMebi / 2, 1); });
  EXPECT_NEAR(seconds, 64.0 * kMebi / 100e6, 1e-6);
}

TEST_F(EmulatedFileSystemTest, ADirectoryIsOneDeviceAndAnotherDirectoryAnotherOne) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 0, 0, 8});
  const auto one = files.Create("a/1", {}), other = files.Create("a/run/2", {}), apart = files.Create("b/3", {});
  const std::vector<std::byte> data = Pattern(kMebi);
  const double alone = kMebi / 100e6;
  EXPECT_NEAR(SecondsOf([&] {
                for (const auto& file : {&one, &apart}) (*file)->StartWrite(0, data);
                for (const auto& file : {&one, &apart}) (*file)->Complete(true);
              }),
              alone, 1e-6);
  EXPECT_NEAR(SecondsOf([&] {
                for (const auto& file : {&one, &other}) (*file)->StartWrite(file == &one ? kMebi : 0, data);
                for (const auto& file : {&one, &other}) (*file)->Complete(true);
              }),
              2 * alone, 1e-6);
}

TEST_F(EmulatedFileSystemTest, TwoDirectoriesAtOnceShareTheChannelExactly) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 0, 0, 8, 160'000'000});
  const auto one = files.Create("a/1", {}), other = files.Create("b/2", {});
  const std::vector<std::byte> data = Pattern(kMebi);
  const uint64_t begin = clock_.now_nanos;
  for (size_t i = 0; i < 8; ++i) {
    for (const auto& file : {&one, &other}) (*file)->StartWrite(i * kMebi, data);
    for (const auto& file : {&one, &other}) EXPECT_EQ((*file)->Complete(true), (i + 1) * kMebi);
    EXPECT_EQ(clock_.now_nanos - begin, (i + 1) * 2 * kMebi * 1000 / 160);
  }
}

TEST_F(EmulatedFileSystemTest, OneDirectoryAloneHasItsOwnBandwidthOrTheChannels) {
  for (const auto& [rate, channel_rate] : {std::pair(100u, 160u), {160u, 100u}, {0u, 100u}}) {
    EmulatedFileSystem files = Make({"disk", rate * 1'000'000, 0, 0, 8, channel_rate * 1'000'000});
    const auto file = files.Create("a/" + std::to_string(rate), {});
    EXPECT_NEAR(SecondsOf([&] { WriteAll(*file, 64 * kMebi, kMebi / 2, 8); }), 64.0 * kMebi / 100e6, 1e-9);
  }
}

TEST_F(EmulatedFileSystemTest, AChannelAboveTheSumChangesNothing) {
  std::vector<uint64_t> done[2];
  for (const uint64_t channel_rate : {0, 200'000'000}) {
    DeviceProfile profile = kDisk;
    profile.channel_bytes_per_second = channel_rate;
    EmulatedFileSystem files = Make(profile);
    const std::string name = std::to_string(channel_rate);
    const auto one = files.Create("a/" + name, {}), other = files.Create("b/" + name, {});
    const uint64_t begin = clock_.now_nanos;
    for (size_t i = 0, at = 0; i < 64; ++i) {
      const std::vector<std::byte> data = Pattern(kBlock * (1 + i % 7));
      for (const auto& file : {&one, &other}) (*file)->StartWrite(at, data);
      for (const auto& file : {&one, &other}) (*file)->Complete(i % (file == &one ? 4 : 3) == 0);
      done[channel_rate != 0].push_back(clock_.now_nanos - begin);
      at += data.size();
    }
  }
  EXPECT_EQ(done[0], done[1]);
}

TEST_F(EmulatedFileSystemTest, ReadersShareTheChannelWithWriters) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 0, 0, 8, 100'000'000});
  WriteAll(*files.Create("a/log", {}), kMebi, kMebi, 1);
  const auto reader = files.Open("a/log"), writer = files.Create("b/log", {});
  const std::vector<std::byte> data = Pattern(kMebi);
  std::vector<std::byte> to(kMebi);
  EXPECT_NEAR(SecondsOf([&] {
                writer->StartWrite(0, data);
                reader->Read(0, to);
              }),
              2 * kMebi / 100e6, 1e-9);
}

TEST_F(EmulatedFileSystemTest, ADurableWriteTakesTheFlushAndSeveralInFlightTakeItOnce) {
  EmulatedFileSystem files = Make({"disk", 0, 2'000'000, 0, 8});
  const auto file = files.Create("a/log", {}), other = files.Create("a/other", {});
  EXPECT_NEAR(SecondsOf([&] { WriteAll(*file, 64 * kBlock, kBlock, 1); }), 64 * 2e-3, 1e-6);
  EXPECT_NEAR(SecondsOf([&] { WriteAll(*other, 64 * kBlock, kBlock, 8); }), 8 * 2e-3, 1e-6);
}

TEST_F(EmulatedFileSystemTest, LateWakesDoNotAddUp) {
  for (const uint64_t late_nanos : {20'000, 60'000, 100'000}) {
    EmulatedFileSystem files = Make({"disk", 0, 50'000, 0, 8});
    clock_.late_nanos = late_nanos;
    const auto file = files.Create("a/" + std::to_string(late_nanos), {});
    const double seconds = SecondsOf([&] { WriteAll(*file, 1000 * kBlock, kBlock, 1); });
    EXPECT_NEAR(seconds, 1000 * 50e-6, 0.01 * 1000 * 50e-6) << "late by " << late_nanos << " ns each time";
  }
}

TEST_F(EmulatedFileSystemTest, AWakeThatIsVeryLateIsNotMadeUpFor) {
  EmulatedFileSystem files = Make({"disk", 0, 1'000'000, 0, 8});
  clock_.late_nanos = 5'000'000;
  const auto file = files.Create("a/log", {});
  EXPECT_GT(SecondsOf([&] { WriteAll(*file, 100 * kBlock, kBlock, 1); }), 100 * (1e-3 + 5e-3) * 0.95);
}

TEST_F(EmulatedFileSystemTest, AlternatingFilesPayTheirSeeks) {
  EmulatedFileSystem files = Make({"disk", 0, 0, 8'000'000, 8});
  const auto one = files.Create("a/1", {}), other = files.Create("a/2", {});
  const std::vector<std::byte> data = Pattern(kBlock);
  EXPECT_NEAR(SecondsOf([&] {
                for (size_t i = 0; i < 50; ++i) {
                  for (BlockDevice* file : {one.get(), other.get()}) {
                    file->StartWrite(i * kBlock, data);
                    file->Complete(true);
                  }
                }
              }),
              100 * 8e-3, 1e-6);
}

TEST_F(EmulatedFileSystemTest, ReadsAreLimitedToo) {
  EmulatedFileSystem files = Make(kDisk);
  const auto file = files.Create("a/log", {});
  WriteAll(*file, 64 * kMebi, kMebi, 8);
  const auto reader = files.Open("a/log");
  std::vector<std::byte> to(kMebi);
  const double seconds = SecondsOf([&] {
    for (size_t at = 0; reader->Read(at, to) > 0; at += to.size()) {
    }
  });
  EXPECT_NEAR(seconds, 8e-3 + 64.0 * kMebi / 100e6, 1e-6) << "one seek, back to the beginning";
  EXPECT_EQ(to, Pattern(kMebi));
}

TEST_F(EmulatedFileSystemTest, WhatIsNotDoneYetIsNotDurableThoughTheDirectoryHasIt) {
  EmulatedFileSystem files = Make({"disk", 1'000'000'000, 1'000'000, 0, 8});
  const auto file = files.Create("a/log", {});
  const std::vector<std::byte> data = Pattern(kMebi);
  for (size_t at = 0; at < 3 * kMebi; at += kMebi) file->StartWrite(at, data);
  memory_.Rewrite("a/log", 0, 0);
  EXPECT_EQ(file->Complete(false), 0u);
  clock_.now_nanos += 1'000'000 + 1'048'576;
  EXPECT_LE(file->Complete(false), kMebi);
  clock_.now_nanos += 10'000'000;
  EXPECT_EQ(file->Complete(true), 3 * kMebi);
  EXPECT_EQ(clock_.waits, 0u);
}

TEST_F(EmulatedFileSystemTest, AStalledDirectoryHoldsTheDurablePrefixBackWhateverTheProfile) {
  EmulatedFileSystem files = Make({"disk", 0, 0, 0, 8});
  const auto file = files.Create("a/log", {});
  const std::vector<std::byte> data = Pattern(kBlock);
  memory_.Stall("a/log");
  file->StartWrite(0, data);
  clock_.now_nanos += 1'000'000'000;
  EXPECT_EQ(file->Complete(false), 0u);
  memory_.Resume();
  EXPECT_EQ(file->Complete(true), kBlock);
}

TEST_F(EmulatedFileSystemTest, ACrashLeavesWhatItWouldHaveLeftWithoutTheEmulation) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  FaultyFileSystem plain_memory;
  MakeDirectories(plain_memory);
  EmulatedFileSystem files = Make(kDisk);
  const auto emulated = files.Create("a/log", {}), plain = plain_memory.Create("a/log", {});
  std::mt19937_64 random(seed);
  uint64_t end = 0, completed = 0;
  for (int step = 0; step < 50; ++step) {
    const std::vector<std::byte> data = Pattern((1 + random() % 4) * kBlock, random());
    for (BlockDevice* device : {emulated.get(), plain.get()}) device->StartWrite(end, data);
    end += data.size();
    if (random() % 3 == 0) {
      completed = emulated->Complete(true);
      EXPECT_EQ(completed, plain->Complete(true));
    }
    const auto crash = FaultyFileSystem::kCrashes[random() % std::size(FaultyFileSystem::kCrashes)];
    const uint64_t crash_seed = random();
    ASSERT_EQ(memory_.CrashImage(crash, crash_seed).files.at("a/log").All(),
              plain_memory.CrashImage(crash, crash_seed).files.at("a/log").All());
  }
}

TEST_F(EmulatedFileSystemTest, AFailedWriteOrSyncIsTheCallersAndIsNotWaitedFor) {
  EmulatedFileSystem files = Make(kDisk);
  const auto file = files.Create("a/log", {});
  const std::vector<std::byte> data = Pattern(kBlock);
  memory_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  file->StartWrite(0, data);
  EXPECT_THROW(file->Complete(true), Error);
  EXPECT_THROW(file->Complete(true), Error) << "failed for good";
  EXPECT_THROW(file->StartWrite(kBlock, data), Error);
  EXPECT_EQ(clock_.waits, 0u);
}

TEST_F(EmulatedFileSystemTest, UnsyncedFilesPayForBytesAlone) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 50'000'000, 0, 8});
  const auto file = files.Create("a/log", {.sync = false});
  EXPECT_NEAR(SecondsOf([&] { WriteAll(*file, 8 * kMebi, kMebi, 1); }), 8.0 * kMebi / 100e6, 1e-6);
}

TEST_F(EmulatedFileSystemTest, ARewriteTakesAFlushAndTheTransferOfItsBytes) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 2'000'000, 0, 8});
  const auto file = files.Create("a/log", {});
  WriteAll(*file, 8 * kMebi, kMebi, 1);
  EXPECT_NEAR(SecondsOf([&] { files.Rewrite("a/log", 0, 0); }), 2e-3, 1e-9);
  EXPECT_NEAR(SecondsOf([&] { files.Rewrite("a/log", kMebi, 5 * kMebi); }), 2e-3 + 4.0 * kMebi / 100e6, 1e-6);
}

TEST_F(EmulatedFileSystemTest, DiscardsTakeNoTime) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 2'000'000, 0, 8});
  const auto file = files.Create("a/log", {});
  WriteAll(*file, 8 * kMebi, kMebi, 1);
  EXPECT_EQ(SecondsOf([&] { EXPECT_TRUE(files.Discard("a/log", 0, 4 * kMebi)); }), 0);
  std::vector<std::byte> expected = Pattern(kMebi);
  EXPECT_TRUE(std::ranges::equal(files.Map("a/log").bytes.subspan(4 * kMebi, kMebi), expected));
  expected.assign(4 * kMebi, std::byte{0});
  EXPECT_TRUE(std::ranges::equal(files.Map("a/log").bytes.first(4 * kMebi), expected));
}

TEST_F(EmulatedFileSystemTest, PagesComeToTheBandwidthAndASyncToAFlush) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 2'000'000, 0, 8});
  const auto pages = files.CreatePages("a/run/part", true);
  clock_.late_nanos = 60'000;
  const double seconds = SecondsOf([&] {
    for (size_t at = 0; at < 64 * kMebi; at += kMebi) pages->WriteAt(at, Pattern(kMebi, at));
    pages->Sync();
  });
  EXPECT_NEAR(seconds, 64.0 * kMebi / 100e6 + 2e-3, 1e-4);
  EXPECT_EQ(memory_.CrashImage(FaultyFileSystem::Crash::kDurableOnly).files.at("a/run/part").size(), 64 * kMebi);
}

TEST_F(EmulatedFileSystemTest, APageElsewhereThanTheLastOneTakesASeek) {
  EmulatedFileSystem files = Make({"disk", 0, 0, 8'000'000, 8});
  const auto pages = files.CreatePages("a/part", true);
  const double adjacent = SecondsOf([&] {
    for (size_t i = 0; i < 50; ++i) pages->WriteAt(i * kBlock, Pattern(kBlock));
    pages->Sync();
  });
  EXPECT_NEAR(adjacent, 8e-3, 1e-6);
  const double scattered = SecondsOf([&] {
    for (size_t i = 0; i < 50; ++i) pages->WriteAt(i * 2 * kBlock, Pattern(kBlock));
    pages->Sync();
  });
  EXPECT_NEAR(scattered, 50 * 8e-3, 1e-6);
}

TEST_F(EmulatedFileSystemTest, PagesOfSeveralDevicesAreWrittenSideBySide) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 0, 0, 8});
  const auto one = files.CreatePages("a/part", true), other = files.CreatePages("b/part", true);
  const double seconds = SecondsOf([&] {
    for (size_t at = 0; at < 16 * kMebi; at += kMebi) {
      for (PageFile* pages : {one.get(), other.get()}) pages->WriteAt(at, Pattern(kMebi));
    }
    for (PageFile* pages : {one.get(), other.get()}) pages->Sync();
  });
  EXPECT_NEAR(seconds, 16.0 * kMebi / 100e6, 1e-6);
}

// A log's flush does not wait for all of a checkpoint.
TEST_F(EmulatedFileSystemTest, NoMoreThanTwoWritesOfPagesAreAheadOfALog) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 0, 0, 8});
  const auto pages = files.CreatePages("a/part", true);
  const auto log = files.Create("a/log", {});
  for (size_t at = 0; at < 16 * kMebi; at += kMebi) pages->WriteAt(at, Pattern(kMebi));
  EXPECT_LE(SecondsOf([&] { WriteAll(*log, kBlock, kBlock, 1); }), (2.0 * kMebi + kBlock) / 100e6 + 1e-6);
}

TEST_F(EmulatedFileSystemTest, PagesThatNeedNotBeDurablePayForBytesAlone) {
  EmulatedFileSystem files = Make({"disk", 100'000'000, 50'000'000, 0, 8});
  const auto pages = files.CreatePages("a/part", false);
  const double seconds = SecondsOf([&] {
    for (size_t at = 0; at < 8 * kMebi; at += kMebi) pages->WriteAt(at, Pattern(kMebi));
    pages->Sync();
  });
  EXPECT_NEAR(seconds, 8.0 * kMebi / 100e6, 1e-6);
}

TEST_F(EmulatedFileSystemTest, AFailedWriteOrSyncOfPagesIsNotWaitedFor) {
  EmulatedFileSystem files = Make(kDisk);
  const auto pages = files.CreatePages("a/part", true);
  memory_.Fail(FaultyFileSystem::Operation::kWrite, 1, ENOSPC);
  EXPECT_THROW(pages->WriteAt(0, Pattern(kBlock)), Error);
  EXPECT_THROW(pages->Sync(), Error) << "failed for good";
  EXPECT_EQ(clock_.waits, 0u);
}

// On the host's clock: the least time that must have passed, and nothing for ThreadSanitizer to find.
TEST_F(EmulatedFileSystemTest, ThreadsShareTheirDevice) {
  constexpr size_t kThreads = 4, kBytesEach = kMebi;
  EmulatedFileSystem files(memory_, {"disk", 100'000'000, 20'000, 0, 2}, {"a"});
  std::vector<std::unique_ptr<BlockDevice>> open;
  for (size_t i = 0; i < kThreads; ++i) open.push_back(files.Create("a/" + std::to_string(i), {}));
  const uint64_t begin = host::MonotonicNanos();
  {
    std::vector<Thread> threads;
    for (const auto& file : open) threads.emplace_back([&] { WriteAll(*file, kBytesEach, 16 * kBlock, 3); });
  }
  EXPECT_GE(static_cast<double>(host::MonotonicNanos() - begin), kThreads * kBytesEach * 10.0);
}

TEST_F(EmulatedFileSystemTest, ThreadsShareTheChannel) {
  constexpr size_t kBytesEach = kMebi;
  EmulatedFileSystem files(memory_, {"disk", 100'000'000, 20'000, 0, 2, 125'000'000}, {"a", "b"});
  std::vector<std::unique_ptr<BlockDevice>> open;
  for (const char* path : {"a/1", "a/2", "b/1", "b/2"}) open.push_back(files.Create(path, {}));
  const uint64_t begin = host::MonotonicNanos();
  {
    std::vector<Thread> threads;
    for (const auto& file : open) threads.emplace_back([&] { WriteAll(*file, kBytesEach, 16 * kBlock, 3); });
  }
  EXPECT_GE(static_cast<double>(host::MonotonicNanos() - begin), 4 * kBytesEach * 8.0);
}

TEST_F(EmulatedFileSystemTest, OtherDirectoriesAreLeftAlone) {
  EmulatedFileSystem files = Make(kDisk);
  const auto file = files.Create("aa/log", {});
  EXPECT_EQ(SecondsOf([&] { WriteAll(*file, kMebi, kBlock, 1); }), 0);
  EXPECT_FALSE(files.Describe("aa", {}).emulation.has_value());
}

TEST_F(EmulatedFileSystemTest, ADirectoryWithinAnotherIsADeviceOfItsOwn) {
  const std::vector<std::byte> data = Pattern(kMebi);
  for (const auto& directories : {std::vector<std::string>{"a", "a/run"}, std::vector<std::string>{"a/run", "a"}}) {
    EmulatedFileSystem files(memory_, {"disk", 100'000'000, 0, 0, 8}, directories, &clock_);
    const auto outer = files.Create("a/o", {}), inner = files.Create("a/run/i", {});
    EXPECT_NEAR(SecondsOf([&] {
                  for (const auto& file : {&outer, &inner}) (*file)->StartWrite(0, data);
                  for (const auto& file : {&outer, &inner}) (*file)->Complete(true);
                }),
                kMebi / 100e6, 1e-6);
    for (const char* name : {"a/o", "a/run/i"}) files.Remove(name);
  }
}

TEST_F(EmulatedFileSystemTest, ItIsDescribedWithItsProfileAndWhatLiesUnderneath) {
  DeviceProfile profile = kDisk;
  profile.channel_bytes_per_second = 160'000'000;
  EmulatedFileSystem files = Make(profile);
  const DirectoryKind kind = files.Describe("a/run", {}), below = memory_.Describe("a/run", {});
  EXPECT_EQ(kind.kind, "emulated");
  EXPECT_EQ(kind.file_system, below.file_system);
  EXPECT_EQ(kind.io_engine, below.io_engine);
  ASSERT_TRUE(kind.emulation.has_value());
  EXPECT_EQ(kind.emulation->profile.name, "disk");
  EXPECT_EQ(kind.emulation->profile.channel_bytes_per_second, 160'000'000u);
  EXPECT_EQ(kind.emulation->over, below.kind);
}

}  // namespace
}  // namespace dbx
