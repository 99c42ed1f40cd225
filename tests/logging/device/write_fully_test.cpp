#include "logging/device/write_fully.h"

#include <gtest/gtest.h>

#include <vector>

namespace dbx {
namespace {

// What each call of the system call in turn returns, and where it was asked to write or to read.
struct Script {
  std::vector<int64_t> results;
  std::vector<uint64_t> offsets;

  int Run(size_t bytes, size_t& done) {
    const std::vector<std::byte> data(bytes);
    return WriteFully(100, data, done, [&](uint64_t at, std::span<const std::byte> part) {
      EXPECT_EQ(part.size(), bytes - (at - 100));
      offsets.push_back(at);
      return results.at(offsets.size() - 1);
    });
  }

  int Read(size_t bytes, size_t& done) {
    std::vector<std::byte> data(bytes);
    return ReadFully(100, data, done, [&](uint64_t at, std::span<std::byte> part) {
      EXPECT_EQ(part.data(), data.data() + (at - 100));
      offsets.push_back(at);
      return results.at(offsets.size() - 1);
    });
  }
};

TEST(WriteFullyTest, ShortWritesGoOnWhereTheyStopped) {
  Script script{{3, 1, 6}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Run(10, done), 0);
  EXPECT_EQ(done, 10u);
  EXPECT_EQ(script.offsets, (std::vector<uint64_t>{100, 103, 104}));
}

TEST(WriteFullyTest, AnInterruptedWriteIsTriedAgain) {
  Script script{{-EINTR, 4, -EINTR, 6}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Run(10, done), 0);
  EXPECT_EQ(script.offsets, (std::vector<uint64_t>{100, 100, 104, 104}));
}

TEST(WriteFullyTest, AnErrorEndsItAndSaysHowFarItCame) {
  Script script{{4, -ENOSPC}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Run(10, done), ENOSPC);
  EXPECT_EQ(done, 4u);
}

TEST(WriteFullyTest, AWriteThatNeverComesForwardIsAnError) {
  Script script{{0}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Run(10, done), EIO);
}

TEST(ReadFullyTest, ShortAndInterruptedReadsGoOnWhereTheyStopped) {
  Script script{{3, -EINTR, 1, 6}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Read(10, done), 0);
  EXPECT_EQ(done, 10u);
  EXPECT_EQ(script.offsets, (std::vector<uint64_t>{100, 103, 103, 104}));
}

TEST(ReadFullyTest, TheEndOfTheFileEndsIt) {
  Script script{{4, 0}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Read(10, done), 0);
  EXPECT_EQ(done, 4u);
}

TEST(ReadFullyTest, AnErrorEndsItAndSaysHowFarItCame) {
  Script script{{4, -EIO}, {}};
  size_t done = 0;
  EXPECT_EQ(script.Read(10, done), EIO);
  EXPECT_EQ(done, 4u);
}

}  // namespace
}  // namespace dbx
