#include "tests/logging/device/faulty_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;
using Operation = FaultyFileSystem::Operation;
constexpr size_t kSector = FaultyFileSystem::kSectorBytes;

std::vector<std::byte> Filled(size_t bytes, int value) { return std::vector<std::byte>(bytes, std::byte(value)); }

ExitStatus StatusOf(const std::function<void()>& action, std::string* what = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (what != nullptr) *what = error.what();
    return error.status();
  }
  return ExitStatus::kOk;
}

class FaultyFileSystemTest : public ::testing::Test {
 protected:
  FaultyFileSystemTest() { device_ = files_.Create("m", {}); }
  void Write(uint64_t offset, size_t bytes, int value) { device_->StartWrite(offset, Filled(bytes, value)); }
  std::vector<std::byte> Crashed(Crash crash = Crash::kDurableOnly, uint64_t seed = 0) {
    return files_.CrashImage(crash, seed).files.at("m").All();
  }
  // The names that a crash leaves in the root.
  std::set<std::string> Names(Crash crash, uint64_t seed = 0) {
    std::set<std::string> names;
    for (const auto& [name, bytes] : files_.CrashImage(crash, seed).files) names.insert(name);
    return names;
  }

  FaultyFileSystem files_;
  std::unique_ptr<BlockDevice> device_;
};

TEST_F(FaultyFileSystemTest, WhatWasNotSyncedIsLost) {
  Write(0, 4096, 1);
  EXPECT_TRUE(Crashed().empty());
  EXPECT_EQ(device_->Complete(true), 4096u);
  Write(4096, 4096, 2);
  EXPECT_EQ(Crashed(), Filled(4096, 1));
  EXPECT_EQ(device_->SizeBytes(), 8192u);
}

TEST_F(FaultyFileSystemTest, ReadSeesPendingWritesAndEndsWithTheFile) {
  Write(0, 1000, 9);
  Write(1000, 24, 2);
  std::vector<std::byte> to(100);
  EXPECT_EQ(device_->Read(990, to), 34u);
  EXPECT_EQ(to[9], std::byte{9});
  EXPECT_EQ(to[10], std::byte{2});
  EXPECT_EQ(device_->Read(1024, to), 0u);
}

TEST_F(FaultyFileSystemTest, PollingCompletesOneWriteAtATime) {
  for (uint64_t i = 0; i < 3; ++i) Write(4096 * i, 4096, 1);
  EXPECT_EQ(device_->Complete(false), 4096u);
  EXPECT_EQ(Crashed().size(), 4096u);
  EXPECT_EQ(device_->Complete(true), 3 * 4096u);
}

TEST_F(FaultyFileSystemTest, ATornImageKeepsWhatIsDurableAndMixesPendingSectors) {
  Write(0, 64 * kSector, 7);
  device_->Complete(true);
  Write(64 * kSector, 56 * kSector, 2);
  std::set<int> fates;
  const std::vector<std::byte> image = Crashed(Crash::kTorn, 42);
  EXPECT_TRUE(std::all_of(image.begin(), image.begin() + 64 * kSector, [](std::byte b) { return b == std::byte{7}; }));
  for (size_t sector = 64; (sector + 1) * kSector <= image.size(); ++sector) {
    const auto begin = image.begin() + static_cast<ptrdiff_t>(sector * kSector);
    const bool uniform = std::all_of(begin, begin + kSector, [&](std::byte b) { return b == *begin; });
    fates.insert(uniform ? static_cast<int>(*begin) : 255);
  }
  EXPECT_EQ(fates, (std::set<int>{0, 2, 255}));  // old or zeroed, new, garbage
}

TEST_F(FaultyFileSystemTest, TheSameSeedGivesTheSameImage) {
  Write(0, 64 * kSector, 2);
  EXPECT_EQ(Crashed(Crash::kTorn, 1), Crashed(Crash::kTorn, 1));
  EXPECT_NE(Crashed(Crash::kTorn, 1), Crashed(Crash::kTorn, 2));
}

TEST_F(FaultyFileSystemTest, AReorderedImageHasWholeWritesInAnyOrder) {
  for (uint64_t i = 0; i < 2; ++i) Write(4096 * i, 4096, 1 + static_cast<int>(i));
  bool second_without_first = false;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    std::vector<std::byte> image = Crashed(Crash::kReordered, seed);
    image.resize(8192);
    const bool first = image[0] == std::byte{1}, second = image[4096] == std::byte{2};
    EXPECT_EQ(image[4095], std::byte(first ? 1 : 0));
    second_without_first |= second && !first;
  }
  EXPECT_TRUE(second_without_first);
}

TEST_F(FaultyFileSystemTest, AFailedSyncMakesNothingDurableAndIsFinal) {
  files_.Fail(Operation::kSync, 2, EIO);
  Write(0, 512, 1);
  EXPECT_EQ(device_->Complete(true), 512u);
  Write(512, 512, 1);
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::string what;
    EXPECT_EQ(StatusOf([&] { device_->Complete(true); }, &what), ExitStatus::kIo);
    EXPECT_EQ(what, "cannot sync m@512: Input/output error");
  }
  EXPECT_EQ(Crashed().size(), 512u);
}

// As Linux: the pages are clean after it, and no later sync writes them.
TEST_F(FaultyFileSystemTest, WhatAFailedSyncWasForIsSeenUntilTheCachesAreDroppedAndNeverDurable) {
  Write(0, 512, 1);
  device_->Complete(true);
  files_.Fail(Operation::kSync, 1, EIO);
  Write(512, 512, 2);
  EXPECT_THROW(device_->Complete(true), Error);
  const auto again = files_.AfterKill();
  EXPECT_EQ(again->Map("m").bytes.size(), 1024u);
  EXPECT_EQ(again->VisibleImage().files.at("m").size(), 1024u);
  again->SyncDirectory(".");
  again->Rewrite("m", 0, 512);
  for (const Crash crash : FaultyFileSystem::kCrashes) {
    EXPECT_EQ(again->CrashImage(crash).files.at("m").All(), Filled(512, 1));
  }
  again->DropCaches();
  EXPECT_EQ(again->Map("m").bytes.size(), 512u);
}

TEST_F(FaultyFileSystemTest, WhatIsRewrittenIsDurableAndNeverTorn) {
  files_.Fail(Operation::kSync, 2, EIO);
  Write(0, 2 * kSector, 1);
  device_->Complete(true);
  Write(2 * kSector, 2 * kSector, 2);
  EXPECT_THROW(device_->Complete(true), Error);
  files_.Fail(Operation::kSync, 1, EIO);
  EXPECT_THROW(files_.Rewrite("m", 0, 4 * kSector), Error);
  EXPECT_EQ(Crashed(), Filled(2 * kSector, 1));
  files_.Rewrite("m", 2 * kSector, 4 * kSector);
  std::vector<std::byte> all = Crashed();
  EXPECT_EQ(all.size(), 4 * kSector);
  EXPECT_EQ(all[4 * kSector - 1], std::byte{2});
}

TEST_F(FaultyFileSystemTest, ARewriteThatIsCutOffLeavesEachSectorOldOrNew) {
  const FaultyFileSystem::Image start = files_.CrashImage(Crash::kAllPending);
  for (uint64_t seed = 0; seed < 32; ++seed) {
    FaultyFileSystem files(start);
    files.Change("m", [](SparseBytes& file) { file.Write(0, Filled(8 * kSector, 7)); });
    files.CutPowerBefore(1);  // the write comes through, its sync does not
    EXPECT_THROW(files.Rewrite("m", 0, 8 * kSector), Error);
    EXPECT_EQ(files.CrashImage(Crash::kTorn, seed).files.at("m").All(), Filled(8 * kSector, 7));
  }
}

TEST_F(FaultyFileSystemTest, ACrashKeepsAnyOfTheBlocksThatWereDiscarded) {
  Write(0, 4 * 4096, 7);
  device_->Complete(true);
  EXPECT_TRUE(files_.Discard("m", 4096, 3 * 4096));
  std::vector<std::byte> punched = Filled(4 * 4096, 7);
  std::fill(punched.begin() + 4096, punched.begin() + 3 * 4096, std::byte{0});
  EXPECT_EQ(files_.VisibleImage().files.at("m").All(), punched);
  EXPECT_EQ(Crashed(Crash::kDurableOnly), Filled(4 * 4096, 7));
  EXPECT_EQ(Crashed(Crash::kAllPending), punched);
  std::set<std::vector<bool>> kept;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    const std::vector<std::byte> all = Crashed(Crash::kReordered, seed);
    kept.insert({all[4096] == std::byte{7}, all[2 * 4096] == std::byte{7}});
    for (const std::byte byte : Crashed(Crash::kTorn, seed)) ASSERT_TRUE(byte == std::byte{0} || byte == std::byte{7});
  }
  EXPECT_EQ(kept.size(), 4u);
  Write(4 * 4096, 4096, 1);  // the sync of what follows makes them durable
  device_->Complete(true);
  punched.resize(5 * 4096, std::byte{1});
  EXPECT_EQ(Crashed(Crash::kDurableOnly), punched);
}

TEST_F(FaultyFileSystemTest, ADiscardThatFailsMayHaveTakenSomeBlocks) {
  Write(0, 4 * 4096, 7);
  device_->Complete(true);
  files_.Fail(Operation::kDiscard, 1, ENOSPC);
  EXPECT_EQ(StatusOf([&] { files_.Discard("m", 0, 4 * 4096); }), ExitStatus::kNoSpace);
  std::vector<std::byte> punched = Filled(4 * 4096, 7);
  std::fill(punched.begin(), punched.begin() + 2 * 4096, std::byte{0});
  EXPECT_EQ(Crashed(Crash::kAllPending), punched);
  files_.RefuseDiscards();
  EXPECT_FALSE(files_.Discard("m", 2 * 4096, 4 * 4096));
  EXPECT_EQ(Crashed(Crash::kAllPending), punched);
}

// As O_DIRECT writes do of which several are in flight.
TEST_F(FaultyFileSystemTest, AFailedSyncInPartKeepsAnyOfItsPagesAndNothingCallsThemDurable) {
  std::set<std::vector<bool>> kept;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    FaultyFileSystem files;
    const auto device = files.Create("m", {});
    files.FailSyncsInPart(seed);
    for (const uint64_t at : {0, 4096}) device->StartWrite(at, Filled(at == 0 ? 4096 : 8192, 1));
    EXPECT_EQ(device->Complete(false), 4096u);
    files.Fail(Operation::kSync, 1, EIO);
    EXPECT_THROW(device->Complete(true), Error);
    std::vector<std::byte> bytes = files.CrashImage(Crash::kDurableOnly).files.at("m").All();
    bytes.resize(3 * 4096);
    EXPECT_EQ(bytes[0], std::byte{1});
    kept.insert({bytes[4096] == std::byte{1}, bytes[8192] == std::byte{1}});
    EXPECT_EQ(files.hole_count(), bytes[4096] == std::byte{0} && bytes[8192] == std::byte{1} ? 1u : 0u);
  }
  EXPECT_EQ(kept.size(), 4u);
}

TEST_F(FaultyFileSystemTest, TheNthWriteFailsForLackOfSpaceAndMayBeTorn) {
  files_.Fail(Operation::kWrite, 2, ENOSPC);
  Write(0, 512, 1);
  EXPECT_EQ(StatusOf([&] { Write(512, 64 * kSector, 2); }), ExitStatus::kNoSpace);
  EXPECT_THROW(device_->Complete(true), Error);
  EXPECT_TRUE(Crashed().empty());
  EXPECT_GT(Crashed(Crash::kTorn, 3).size(), 512u);
}

TEST_F(FaultyFileSystemTest, ShortAndInterruptedWritesAreFinished) {
  files_.Shorten(2);
  files_.Interrupt(3);
  Write(0, 64 * kSector, 1);
  device_->Complete(true);
  EXPECT_EQ(Crashed(), Filled(64 * kSector, 1));
}

TEST_F(FaultyFileSystemTest, ShortAndInterruptedReadsAreFinished) {
  Write(0, 64 * kSector, 1);
  files_.Shorten(2);
  files_.Interrupt(3);
  std::vector<std::byte> bytes(64 * kSector);
  EXPECT_EQ(device_->Read(0, bytes), bytes.size());
  EXPECT_EQ(bytes, Filled(64 * kSector, 1));
  EXPECT_GT(files_.shortened_count(), 0u);
  EXPECT_GT(files_.interrupted_count(), 0u);
}

TEST_F(FaultyFileSystemTest, ASyncThatLiesKeepsNothing) {
  files_.LieAboutSyncs();
  Write(0, 512, 1);
  EXPECT_EQ(device_->Complete(true), 512u);
  EXPECT_TRUE(Crashed().empty());
}

TEST_F(FaultyFileSystemTest, AStalledFileCompletesNothingUntilItIsResumed) {
  files_.Stall("m");
  Write(0, 512, 1);
  EXPECT_EQ(device_->Complete(false), 0u);
  std::thread waiter([&] { EXPECT_EQ(device_->Complete(true), 512u); });
  EXPECT_TRUE(Crashed().empty());
  files_.Resume();
  waiter.join();
  EXPECT_EQ(Crashed().size(), 512u);
}

TEST_F(FaultyFileSystemTest, EntriesAreLostUntilTheirDirectoryIsSynced) {
  files_.MakeDirectory("d");
  files_.Create("d/log", {});
  EXPECT_TRUE(files_.CrashImage(Crash::kDurableOnly).directories.empty());
  files_.SyncDirectory(".");
  EXPECT_EQ(files_.CrashImage(Crash::kDurableOnly).directories, (std::vector<std::string>{"d"}));
  EXPECT_EQ(Names(Crash::kDurableOnly), (std::set<std::string>{"d/log", "m"}));
}

TEST_F(FaultyFileSystemTest, ARenameHappensWholeOrNotAtAll) {
  files_.Rename("m", "n");
  std::set<std::set<std::string>> seen;
  for (uint64_t seed = 0; seed < 32; ++seed) seen.insert(Names(Crash::kSubset, seed));
  EXPECT_EQ(seen, (std::set<std::set<std::string>>{{"m"}, {"n"}}));
  EXPECT_EQ(Names(Crash::kDurableOnly), (std::set<std::string>{"m"}));
}

TEST_F(FaultyFileSystemTest, ARemovedFileMayComeBack) {
  files_.Remove("m");
  EXPECT_EQ(Names(Crash::kDurableOnly), (std::set<std::string>{"m"}));
  files_.SyncDirectory(".");
  EXPECT_TRUE(Names(Crash::kAllPending).empty());
}

TEST_F(FaultyFileSystemTest, AnImageIsAFileSystemThatCrashesAgain) {
  Write(0, 512, 1);
  device_->Complete(true);
  FaultyFileSystem again(files_.CrashImage(Crash::kDurableOnly));
  EXPECT_EQ(again.Open("m")->SizeBytes(), 512u);
  again.Create("second", {.preallocate_bytes = 1 << 20})->StartWrite(0, Filled(512, 3));
  const FaultyFileSystem::Image image = again.CrashImage(Crash::kDurableOnly);
  EXPECT_EQ(image.files.at("second").All(), Filled(1 << 20, 0));
  EXPECT_EQ(image.files.at("m").All(), Filled(512, 1));
}

// Before any step of an atomic write the file is there whole or not at all.
TEST_F(FaultyFileSystemTest, AKillLeavesWhatIsPendingVisibleAndPending) {
  Write(0, 4096, 1);
  device_->Complete(true);
  Write(4096, 4096, 2);
  device_->Complete(true);
  files_.Rename("m", "n");
  const auto killed = files_.AfterKill();
  Write(8192, 4096, 3);
  EXPECT_EQ(killed->Map("n").bytes.size(), 8192u);
  EXPECT_EQ(killed->CrashImage(Crash::kDurableOnly).files.count("m"), 1u);
  killed->SyncDirectory(".");
  EXPECT_EQ(killed->CrashImage(Crash::kDurableOnly).files.count("n"), 1u);
  EXPECT_EQ(Names(Crash::kDurableOnly), std::set<std::string>{"m"});
}

TEST_F(FaultyFileSystemTest, AfterAKillAWriteUnderWayIsUnSyncedOrGone) {
  Write(0, 4096, 1);
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto killed = files_.AfterKill(seed);
    sizes.insert(killed->Map("m").bytes.size());
    EXPECT_TRUE(killed->CrashImage(Crash::kDurableOnly).files.at("m").All().empty());
    killed->Rewrite("m", 0, 0);
    EXPECT_EQ(killed->CrashImage(Crash::kDurableOnly).files.at("m").size(), killed->Map("m").bytes.size());
  }
  EXPECT_EQ(sizes, (std::set<size_t>{0, 4096}));
}

TEST_F(FaultyFileSystemTest, AFileThatIsWrittenAtomicallyIsWholeOrMissing) {
  const auto write = [](FileSystem& files) { WriteFileAtomically(files, "small", Filled(5000, 4)); };
  const FaultyFileSystem::Image start = files_.CrashImage(Crash::kDurableOnly);
  uint64_t steps = 0;
  for (bool done = false; !done; ++steps) {
    FaultyFileSystem files(start);
    files.CutPowerBefore(steps);
    done = StatusOf([&] { write(files); }) == ExitStatus::kOk;
    for (const Crash crash : FaultyFileSystem::kCrashes) {
      for (uint64_t seed = 0; seed < 8; ++seed) {
        const FaultyFileSystem::Image image = files.CrashImage(crash, seed);
        const auto file = image.files.find("small");
        EXPECT_TRUE(!done || file != image.files.end());
        if (file == image.files.end()) continue;
        EXPECT_EQ(file->second.size(), 8192u) << "step " << steps;
        EXPECT_EQ(std::to_integer<int>(file->second.All()[4999]), 4) << "step " << steps;
      }
    }
  }
  EXPECT_GE(steps, 7u);  // create, sync, sync of the directory, write, sync, rename, sync of the directory
}

TEST_F(FaultyFileSystemTest, ImagesTakenDuringARunHoldEverythingThatWasComplete) {
  std::atomic<uint64_t> complete{0};
  std::thread writer([&] {
    for (uint64_t i = 0; i < 500; ++i) {
      Write(i * 4096, 4096, 3);
      complete.store(device_->Complete(true));
    }
  });
  for (uint64_t seed = 0; complete.load() < 500 * 4096; ++seed) {
    const uint64_t before = complete.load();
    const std::vector<std::byte> image = Crashed(Crash::kTorn, seed);
    ASSERT_GE(image.size(), before);
    ASSERT_TRUE(before == 0 || image[before - 1] == std::byte{3});
  }
  writer.join();
}

TEST(SparseBytesTest, CopiesAreIndependentAndShrinkingForgets) {
  SparseBytes bytes;
  bytes.Write(5000, Filled(10, 1));
  SparseBytes copy = bytes;
  copy.Write(5001, Filled(1, 2));
  EXPECT_EQ(bytes.All()[5001], std::byte{1});
  EXPECT_EQ(copy.All()[5001], std::byte{2});
  bytes.Resize(5003);
  bytes.Resize(6000);
  EXPECT_EQ(bytes.All()[5004], std::byte{0});
  EXPECT_EQ(bytes.All()[5002], std::byte{1});
  EXPECT_EQ(bytes.All()[4999], std::byte{0});
}

}  // namespace
}  // namespace dbx
