// Page files of the file system that crashes: what is durable, what may be torn, and what a failure leaves.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <thread>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;
constexpr size_t kBlock = 4096;
constexpr size_t kSector = FaultyFileSystem::kSectorBytes;

std::vector<std::byte> Filled(size_t bytes, int value) { return std::vector<std::byte>(bytes, std::byte(value)); }

class FaultyPageFilesTest : public ::testing::Test {
 protected:
  FaultyPageFilesTest() : pages_(files_.CreatePages("p", true)) {}
  void Write(uint64_t page, int value, size_t pages = 1) {
    pages_->WriteAt(page * kBlock, Filled(pages * kBlock, value));
  }
  std::vector<std::byte> Crashed(Crash crash = Crash::kDurableOnly, uint64_t seed = 0) {
    return files_.CrashImage(crash, seed).files.at("p").All();
  }
  std::vector<std::byte> Visible() { return files_.VisibleImage().files.at("p").All(); }
  // By sector: its byte, or 255 if it has several.
  static std::vector<int> Sectors(const std::vector<std::byte>& bytes) {
    std::vector<int> sectors;
    for (size_t at = 0; at + kSector <= bytes.size(); at += kSector) {
      const std::span sector = std::span(bytes).subspan(at, kSector);
      const bool uniform = std::ranges::all_of(sector, [&](std::byte byte) { return byte == sector[0]; });
      sectors.push_back(uniform ? static_cast<int>(sector[0]) : 255);
    }
    return sectors;
  }

  FaultyFileSystem files_;
  std::unique_ptr<PageFile> pages_;
  std::string what_;
};

TEST_F(FaultyPageFilesTest, AWriteIsSeenAtOnceAndDurableOnceItIsSynced) {
  Write(1, 1, 2);
  EXPECT_EQ(Visible().size(), 3 * kBlock);
  EXPECT_TRUE(Crashed().empty());
  pages_->Sync();
  EXPECT_EQ(Crashed().size(), 3 * kBlock);
  Write(1, 2);
  EXPECT_EQ(Visible()[kBlock], std::byte{2});
  EXPECT_EQ(Crashed()[kBlock], std::byte{1});
}

TEST_F(FaultyPageFilesTest, APageThatIsWrittenOverMayBeTornIntoOldAndNewSectors) {
  Write(0, 1, 2);
  pages_->Sync();
  Write(0, 2);
  std::set<int> seen;
  bool mixed = false;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    const std::vector<int> sectors = Sectors(Crashed(Crash::kTorn, seed));
    const std::set<int> of_page(sectors.begin(), sectors.begin() + kBlock / kSector);
    mixed |= of_page.size() > 1;
    seen.insert(of_page.begin(), of_page.end());
    for (size_t i = kBlock / kSector; i < sectors.size(); ++i) EXPECT_EQ(sectors[i], 1) << "of the other page";
  }
  EXPECT_TRUE(mixed);
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
}

TEST_F(FaultyPageFilesTest, WhatLiesBehindTheDurableEndMayBeAnything) {
  Write(0, 1);
  pages_->Sync();
  Write(0, 2, 8);
  std::set<int> before, behind;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    const std::vector<int> sectors = Sectors(Crashed(Crash::kTorn, seed));
    for (size_t i = 0; i < sectors.size(); ++i) (i < kBlock / kSector ? before : behind).insert(sectors[i]);
  }
  EXPECT_EQ(before, (std::set<int>{1, 2}));
  EXPECT_EQ(behind, (std::set<int>{0, 2, 255}));
}

TEST_F(FaultyPageFilesTest, WritesMayReachTheDiskInAnyOrder) {
  Write(0, 1, 2);
  pages_->Sync();
  Write(0, 2);
  Write(1, 2);
  std::set<std::pair<std::byte, std::byte>> seen;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const std::vector<std::byte> image = Crashed(Crash::kReordered, seed);
    seen.insert({image[0], image[kBlock]});
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(FaultyPageFilesTest, AFailedSyncIsFinalAndItsPagesAreLost) {
  Write(0, 1);
  pages_->Sync();
  files_.Fail(Operation::kSync, 1, ENOSPC);
  Write(0, 2);
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(Caught([&] { pages_->Sync(); }, what_), ExitStatus::kNoSpace);
    EXPECT_EQ(what_, "cannot sync p: No space left on device");
  }
  EXPECT_THROW(Write(1, 3), Error);
  EXPECT_EQ(Visible(), Filled(kBlock, 2));
  for (const Crash crash : FaultyFileSystem::kCrashes) EXPECT_EQ(Crashed(crash), Filled(kBlock, 1));
  files_.DropCaches();
  EXPECT_EQ(Visible(), Filled(kBlock, 1));
}

TEST_F(FaultyPageFilesTest, AFailedWriteIsFinalAndItsBytesMayArrive) {
  Write(0, 1);
  pages_->Sync();
  files_.Fail(Operation::kWrite, 1, EIO, false, "p");
  EXPECT_EQ(Caught([&] { Write(0, 2); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot write p@0: Input/output error");
  EXPECT_THROW(pages_->Sync(), Error);
  EXPECT_EQ(Visible(), Filled(kBlock, 1));
  EXPECT_EQ(Crashed(Crash::kAllPending), Filled(kBlock, 2));
}

TEST_F(FaultyPageFilesTest, ShortAndInterruptedWritesAreFinished) {
  files_.Shorten(2);
  files_.Interrupt(3);
  for (uint64_t page = 0; page < 8; ++page) Write(page, 1);
  pages_->Sync();
  EXPECT_GT(files_.shortened_count() * files_.interrupted_count(), 0u);
  EXPECT_EQ(Crashed(), Filled(8 * kBlock, 1));
}

TEST_F(FaultyPageFilesTest, ASyncThatLiesOrIsNotWantedKeepsNothing) {
  files_.CreatePages("q", false)->WriteAt(0, Filled(kBlock, 1));
  files_.LieAboutSyncs();
  Write(0, 1);
  pages_->Sync();
  EXPECT_TRUE(Crashed().empty());
  EXPECT_TRUE(files_.CrashImage(Crash::kDurableOnly).files.at("q").All().empty());
}

TEST_F(FaultyPageFilesTest, AStalledFileIsNotSyncedUntilItIsResumed) {
  files_.Stall("p");
  Write(0, 1);
  std::thread waiter([&] { pages_->Sync(); });
  EXPECT_TRUE(Crashed().empty());
  files_.Resume();
  waiter.join();
  EXPECT_EQ(Crashed(), Filled(kBlock, 1));
}

TEST_F(FaultyPageFilesTest, AFileThatCannotBeCreatedIsNotThere) {
  for (const Operation operation : {Operation::kCreate, Operation::kSync, Operation::kSyncDirectory}) {
    files_.Fail(operation, 1, ENOSPC);
    EXPECT_EQ(Caught([&] { files_.CreatePages("q", true); }, what_), ExitStatus::kNoSpace);
    EXPECT_EQ(files_.KindOf("q"), FileSystem::Entry::kNone);
  }
  files_.CreatePages("q", true);
  EXPECT_EQ(files_.CrashImage(Crash::kDurableOnly).files.count("q"), 1u);
}

TEST_F(FaultyPageFilesTest, AKillLeavesThePagesThatWereWrittenAndNotSynced) {
  Write(0, 1);
  const auto killed = files_.AfterKill();
  EXPECT_EQ(killed->Map("p").bytes.size(), kBlock);
  EXPECT_TRUE(killed->CrashImage(Crash::kDurableOnly).files.at("p").All().empty());
}

TEST_F(FaultyPageFilesTest, WithoutPowerNothingIsWrittenOrSynced) {
  Write(0, 1);
  files_.CutPowerBefore(0);
  EXPECT_EQ(Caught([&] { pages_->Sync(); }, what_), ExitStatus::kIo);
  EXPECT_TRUE(Crashed().empty());
}

}  // namespace
}  // namespace dbx
