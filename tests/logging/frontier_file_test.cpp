// The file that says how far a run is durable: the last whole block counts, and nothing may follow a torn one.
#include "logging/frontier_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

constexpr uint64_t kRunId = 77;
constexpr size_t kBlock = sizeof(format::FrontierBlock);

// Three steps of the frontier of two logs.
std::vector<std::byte> ThreeSteps() {
  FaultyFileSystem files;
  FrontierFile file(files.Create("f", {.preallocate_bytes = 8 * kBlock}), kRunId);
  for (const uint64_t stamp : {10, 20, 30}) file.Append(Stamp(stamp), std::array{Lsn(stamp * 100), Lsn(stamp * 200)});
  const FileBytes bytes = files.Map("f");
  return {bytes.bytes.begin(), bytes.bytes.end()};
}

ExitStatus StatusOf(std::span<const std::byte> bytes, uint64_t run_id = kRunId) {
  try {
    ReadFrontier(bytes, run_id, "f");
  } catch (const Error& error) {
    return error.status();
  }
  return ExitStatus::kOk;
}

TEST(FrontierFileTest, TheLastStepCounts) {
  const DurableFrontier frontier = ReadFrontier(ThreeSteps(), kRunId, "f");
  EXPECT_EQ(frontier.stamp, Stamp(30));
  EXPECT_EQ(frontier.lsns, (std::vector<Lsn>{Lsn(3000), Lsn(6000)}));
}

TEST(FrontierFileTest, EachStepIsDurableWhenAppendReturns) {
  FaultyFileSystem files;
  FrontierFile file(files.Create("f", {}), kRunId);
  file.Append(Stamp(10), std::array{Lsn(100)});
  FaultyFileSystem after(files.CrashImage(FaultyFileSystem::Crash::kDurableOnly, 1));
  EXPECT_EQ(ReadFrontier(after.Map("f").bytes, kRunId, "f").stamp, Stamp(10));
}

TEST(FrontierFileTest, ATornStepIsNotTaken) {
  for (size_t bit = 0; bit < 8 * kBlock; bit += 61) {
    std::vector<std::byte> bytes = ThreeSteps();
    bytes[2 * kBlock + bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_EQ(ReadFrontier(bytes, kRunId, "f").stamp, Stamp(20)) << "bit " << bit;
  }
}

TEST(FrontierFileTest, ADamagedStepThatOthersFollowIsRefused) {
  for (const size_t block : {0, 1}) {
    std::vector<std::byte> bytes = ThreeSteps();
    bytes[block * kBlock + 40] ^= std::byte{1};
    EXPECT_EQ(StatusOf(bytes), ExitStatus::kCorrupt);
  }
}

TEST(FrontierFileTest, ABlockInAnothersPlaceIsNone) {
  std::vector<std::byte> bytes = ThreeSteps();
  std::copy_n(bytes.begin(), kBlock, bytes.begin() + 2 * kBlock);
  EXPECT_EQ(ReadFrontier(bytes, kRunId, "f").stamp, Stamp(20));
}

// Sealed well, by an engine that is not in its right mind.
TEST(FrontierFileTest, OneThatGoesBackIsRefused) {
  for (const auto& [stamp, lsn] : {std::pair{19, 2000}, {20, 1999}}) {
    FaultyFileSystem files;
    FrontierFile file(files.Create("f", {}), kRunId);
    file.Append(Stamp(20), std::array{Lsn(1000), Lsn(2000)});
    file.Append(Stamp(20), std::array{Lsn(1000), Lsn(2000)});
    EXPECT_EQ(StatusOf(files.Map("f").bytes), ExitStatus::kOk);
    file.Append(Stamp(static_cast<uint64_t>(stamp)), std::array{Lsn(1000), Lsn(static_cast<uint64_t>(lsn))});
    EXPECT_EQ(StatusOf(files.Map("f").bytes), ExitStatus::kCorrupt);
  }
}

TEST(FrontierFileTest, AnotherRunsAndEmptyFilesAreRefused) {
  EXPECT_EQ(StatusOf(ThreeSteps(), kRunId + 1), ExitStatus::kMismatch);
  EXPECT_EQ(StatusOf(std::vector<std::byte>(kBlock)), ExitStatus::kCorrupt);
  EXPECT_EQ(StatusOf({}), ExitStatus::kCorrupt);
}

}  // namespace
}  // namespace dbx
