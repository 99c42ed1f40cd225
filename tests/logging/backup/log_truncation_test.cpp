// Truncation of logs: which blocks of their files are freed, once each, and what a file system that cannot free them
// leaves.
#include "logging/backup/log_truncation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>

#include "logging/device/striped_device.h"
#include "logging/format.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Operation = FaultyFileSystem::Operation;

constexpr uint64_t kBlock = format::kBlockBytes;
constexpr uint64_t kHeaderBlocks = format::kStreamOffset / kBlock;

class LogTruncationTest : public ::testing::Test {
 protected:
  // A file of headers and this many blocks of a stream, none of whose bytes is zero.
  std::string Filled(const std::string& path, uint64_t blocks) {
    const auto device = files_.Create(path, {});
    bytes_[path].assign((kHeaderBlocks + blocks) * kBlock, std::byte{0xA5});
    device->StartWrite(0, bytes_[path]);
    device->Complete(true);
    return path;
  }
  LogTruncation Truncating(TruncatedLogs logs) {
    return {files_, std::move(logs), [this](uint64_t bytes) { counted_.push_back(bytes); }};
  }
  // Whether blocks [0, freed) of the file's stream are zeros, and all else is as it was.
  bool IsFreed(const std::string& path, uint64_t freed) {
    std::vector<std::byte> expected = bytes_.at(path);
    std::fill_n(expected.begin() + format::kStreamOffset, freed * kBlock, std::byte{0});
    return files_.VisibleImage().files.at(path).All() == expected;
  }

  FaultyFileSystem files_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::vector<uint64_t> counted_;
};

TEST_F(LogTruncationTest, WholeBlocksBelowWhatIsNeededAreFreed) {
  Filled("0", 8), Filled("1", 8);
  LogTruncation truncation = Truncating({{"0", "1"}, {Lsn(0), Lsn(0)}});
  EXPECT_TRUE(truncation.wanted());
  truncation.Truncate({Lsn(kBlock - 8), Lsn(0)});
  EXPECT_TRUE(IsFreed("0", 0));
  EXPECT_TRUE(IsFreed("1", 0));
  EXPECT_TRUE(counted_.empty());
  truncation.Truncate({Lsn(3 * kBlock + 8), Lsn(kBlock)});
  EXPECT_TRUE(IsFreed("0", 3));
  EXPECT_TRUE(IsFreed("1", 1));
  truncation.Truncate({Lsn(8 * kBlock), Lsn(8 * kBlock - 8)});
  EXPECT_TRUE(IsFreed("0", 8));
  EXPECT_TRUE(IsFreed("1", 7));
  EXPECT_EQ(counted_, (std::vector<uint64_t>{3 * kBlock, kBlock, 5 * kBlock, 6 * kBlock}));
}

TEST_F(LogTruncationTest, PositionsCountFromTheStartOfTheStream) {
  Filled("0", 8), Filled("1", 8);
  LogTruncation truncation = Truncating({{"0", "1"}, {Lsn(100 * kBlock), Lsn(200 * kBlock)}});
  truncation.Truncate({Lsn(100 * kBlock), Lsn(200 * kBlock)});
  EXPECT_TRUE(counted_.empty());
  truncation.Truncate({Lsn(102 * kBlock + 16), Lsn(205 * kBlock)});
  EXPECT_TRUE(IsFreed("0", 2));
  EXPECT_TRUE(IsFreed("1", 5));
}

TEST_F(LogTruncationTest, NoBlockIsFreedTwice) {
  Filled("0", 8);
  LogTruncation truncation = Truncating({{"0"}, {Lsn(0)}});
  truncation.Truncate({Lsn(4 * kBlock)});
  EXPECT_EQ(counted_, std::vector<uint64_t>{4 * kBlock});
  // What stands there now is none of its business.
  files_.Change("0", [&](SparseBytes& bytes) { bytes.Write(0, bytes_.at("0")); });
  files_.Fail(Operation::kDiscard, 1, EIO, /*for_good=*/true);
  truncation.Truncate({Lsn(4 * kBlock)});
  truncation.Truncate({Lsn(5 * kBlock - 8)});
  EXPECT_EQ(files_.failed_count(), 0u);
  EXPECT_EQ(counted_.size(), 1u);
}

TEST_F(LogTruncationTest, NothingBelowIsFreedAgainWithWhatIsFreedNext) {
  Filled("0", 8);
  LogTruncation truncation = Truncating({{"0"}, {Lsn(0)}});
  truncation.Truncate({Lsn(2 * kBlock)});
  files_.Change("0", [&](SparseBytes& bytes) { bytes.Write(0, bytes_.at("0")); });
  truncation.Truncate({Lsn(3 * kBlock)});
  std::vector<std::byte> expected = bytes_.at("0");
  std::fill_n(expected.begin() + static_cast<ptrdiff_t>((kHeaderBlocks + 2) * kBlock), kBlock, std::byte{0});
  EXPECT_EQ(files_.VisibleImage().files.at("0").All(), expected);
  EXPECT_EQ(counted_, (std::vector<uint64_t>{2 * kBlock, kBlock}));
}

TEST_F(LogTruncationTest, WithoutSpaceTheNextCallTriesAgain) {
  Filled("0", 8), Filled("1", 8);
  LogTruncation truncation = Truncating({{"0", "1"}, {Lsn(0), Lsn(0)}});
  files_.Fail(Operation::kDiscard, 1, ENOSPC);
  truncation.Truncate({Lsn(4 * kBlock), Lsn(3 * kBlock)});
  EXPECT_EQ(files_.failed_count(), 1u);
  EXPECT_FALSE(truncation.cannot_discard());
  EXPECT_EQ(counted_, std::vector<uint64_t>{3 * kBlock});
  EXPECT_TRUE(IsFreed("0", 2));  // it failed half-way
  EXPECT_TRUE(IsFreed("1", 3));
  truncation.Truncate({Lsn(4 * kBlock), Lsn(3 * kBlock)});
  EXPECT_EQ(counted_, (std::vector<uint64_t>{3 * kBlock, 4 * kBlock}));
  EXPECT_TRUE(IsFreed("0", 4));
  EXPECT_TRUE(IsFreed("1", 3));
}

TEST_F(LogTruncationTest, AnyOtherFailureIsThrown) {
  Filled("0", 8);
  LogTruncation truncation = Truncating({{"0"}, {Lsn(0)}});
  files_.Fail(Operation::kDiscard, 1, EIO);
  std::string what;
  EXPECT_EQ(Caught([&] { truncation.Truncate({Lsn(4 * kBlock)}); }, what), ExitStatus::kIo) << what;
  EXPECT_TRUE(counted_.empty());
}

TEST_F(LogTruncationTest, AFileSystemThatCannotIsNotAskedAgain) {
  Filled("0", 8), Filled("1", 8);
  LogTruncation truncation = Truncating({{"0", "1"}, {Lsn(0), Lsn(0)}});
  files_.RefuseDiscards();
  truncation.Truncate({Lsn(0), Lsn(0)});
  EXPECT_FALSE(truncation.cannot_discard());  // nothing was to be freed yet
  truncation.Truncate({Lsn(4 * kBlock), Lsn(4 * kBlock)});
  EXPECT_TRUE(truncation.cannot_discard());
  // A file that is not there would be noticed.
  files_.Remove("0");
  files_.Remove("1");
  truncation.Truncate({Lsn(5 * kBlock), Lsn(5 * kBlock)});
  EXPECT_TRUE(truncation.cannot_discard());
  EXPECT_TRUE(counted_.empty());
}

TEST_F(LogTruncationTest, WithoutLogsNothingIsWanted) {
  LogTruncation truncation = Truncating({});
  EXPECT_FALSE(truncation.wanted());
  truncation.Truncate({Lsn(5 * kBlock)});
  EXPECT_TRUE(counted_.empty());
}

// The stream is read through the device that a run writes it with.
TEST_F(LogTruncationTest, OfStripesAllThatIsNeededStays) {
  constexpr uint64_t kStripes = 3, kUnit = 2 * kBlock, kRound = kStripes * kUnit, kBytes = 4 * kRound;
  constexpr Lsn kStart(64 * kBlock);
  for (uint64_t needed = 0; needed <= kBytes; needed += kBlock / 2) {
    TruncatedLogs logs{{}, {kStart}, kUnit};
    std::vector<std::unique_ptr<BlockDevice>> devices;
    for (uint64_t i = 0; i < kStripes; ++i) {
      logs.paths.push_back(Filled(std::to_string(needed) + "-" + std::to_string(i), kBytes / kStripes / kBlock));
      devices.push_back(files_.Open(logs.paths.back()));
    }
    StripedDevice device(std::move(devices), format::kStreamOffset, kUnit);
    counted_.clear();
    LogTruncation truncation = Truncating(logs);
    truncation.Truncate({kStart + needed});
    const uint64_t rounds = needed / kRound;
    EXPECT_EQ(counted_, std::vector<uint64_t>(rounds == 0 ? 0 : kStripes, rounds * kUnit)) << needed;
    std::vector<std::byte> stream(kBytes), expected(kBytes, std::byte{0xA5});
    std::fill_n(expected.begin(), rounds * kRound, std::byte{0});
    ASSERT_EQ(device.Read(format::kStreamOffset, stream), kBytes);
    EXPECT_EQ(stream, expected) << needed;
    for (const std::string& path : logs.paths) EXPECT_TRUE(IsFreed(path, rounds * kUnit / kBlock));
  }
}

}  // namespace
}  // namespace dbx
