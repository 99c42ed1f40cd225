// The end of a log is found without reading the log, and never taken for durable where it was not.
#include "logging/differential/log_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

constexpr uint64_t kRing = 64 << 10;

// Counts what is read.
class CountedDevice final : public ImageDevice {
 public:
  using ImageDevice::ImageDevice;
  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    const size_t bytes = ImageDevice::Read(offset, to);
    bytes_ += bytes;
    return bytes;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

LogSource SourceOf(BlockDevice& device) { return {&device, kRunId, kRing, 0, 1}; }

LogBuilder LogOf(uint64_t bytes, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  LogBuilder log(kRunId);
  while (log.End() < bytes) log.Void(static_cast<uint32_t>(32 + random() % 100 * 8));
  return log;
}
bool IsStart(const LogBuilder& log, Lsn at) {
  return at == Lsn(log.End()) || std::ranges::binary_search(log.Starts(), at.value());
}

TEST(LogEnd, IsFoundWithoutReadingTheLog) {
  for (const uint64_t zeros : {uint64_t{0}, uint64_t{104}, uint64_t{1} << 20, uint64_t{40} << 20}) {
    LogBuilder log = LogOf(8 << 20);
    const uint64_t end = log.End();
    log.Hole(zeros);
    CountedDevice device("log", log.Bytes());
    const Lsn start = FindDurableStart(SourceOf(device), Lsn(0));
    EXPECT_TRUE(IsStart(log, start));
    EXPECT_LE(start.value() + kRing, end);
    EXPECT_GE(start.value() + 3 * kRing, end);
    EXPECT_LE(device.bytes(), 4u << 20);
    LogEnd found(SourceOf(device), Lsn(0), {.block_bytes = 1 << 16, .kept_bytes = 1 << 20});
    found.Run();
    EXPECT_EQ(found.end(), Lsn(end));
    EXPECT_EQ(found.begin(), start);
    EXPECT_EQ(found.kept().begin(), start);
  }
}

// The last ring's length of the file may have been written in part, in any order.
TEST(LogEnd, NothingThatWasNotDurableIsPassedOver) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    LogBuilder log = LogOf(random() % (1 << 20), random());
    const uint64_t end = log.End(), durable = end - std::min(end, random() % kRing);
    log.Hole(random() % (1 << 17) * 8);
    auto bytes = log.Bytes();
    uint64_t first_lost = end;
    for (uint64_t block = durable / 512 * 512; block < end; block += 512) {
      const uint64_t from = std::max(block, durable), to = std::min(block + 512, end);
      if (random() % 3 != 0 || from >= to) continue;
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(FileOffset(from)),
                bytes.begin() + static_cast<ptrdiff_t>(FileOffset(to)), std::byte{0});
      first_lost = std::min(first_lost, from);
    }
    ImageDevice device("log", bytes);
    LogEnd found(SourceOf(device), Lsn(0), {.block_bytes = 4096});
    found.Run();
    EXPECT_LE(found.begin(), Lsn(durable));
    EXPECT_LE(found.end(), Lsn(end));
    EXPECT_TRUE(IsStart(log, found.begin()));
    // The record that lost bytes, unless these were zeros before.
    const auto behind = std::ranges::upper_bound(log.Starts(), first_lost);
    EXPECT_GE(found.end(), Lsn(behind == log.Starts().begin() ? 0 : *(behind - 1)));
  }
}

TEST(LogEnd, APadShowsWhatWasDurableCloserToTheEnd) {
  LogBuilder log = LogOf(1 << 20);
  log.Pad();
  const uint64_t padded = log.End();
  log.Void();
  ImageDevice device("log", log.Bytes());
  LogSource source = SourceOf(device);
  source.ring_bytes = 512 << 10;
  const Lsn start = FindDurableStart(source, Lsn(0));
  EXPECT_LE(start, Lsn(padded));
  EXPECT_GE(start.value() + format::kBlockBytes, padded);
  EXPECT_TRUE(IsStart(log, start));
}

TEST(LogEnd, AFrozenEndIsTakenForGranted) {
  LogBuilder log = LogOf(1 << 20);
  CountedDevice device("log", log.Bytes());
  LogSource source = SourceOf(device);
  source.frozen_end = Lsn(log.Start(log.Starts().size() - 100));
  LogEnd found(source, Lsn(0), {.block_bytes = 4096});
  found.Run();
  EXPECT_EQ(found.end(), source.frozen_end);
  EXPECT_GE(found.begin().value() + kRing, source.frozen_end.value());
  EXPECT_LE(device.bytes(), 300u << 10);
}

TEST(LogEnd, TheSearchBeginsWhereTheLogIsKnownToReach) {
  LogBuilder log = LogOf(1 << 20);
  auto bytes = log.Bytes();
  const Lsn known(log.Start(log.Starts().size() / 2));
  // What is below is not looked at.
  std::fill_n(bytes.begin() + format::kStreamOffset, known.value(), std::byte{0x5a});
  ImageDevice device("log", bytes);
  EXPECT_GT(FindDurableStart(SourceOf(device), known), known);
  const Lsn last(log.Starts().back());
  EXPECT_EQ(FindDurableStart(SourceOf(device), last), last);
  EXPECT_EQ(FindDurableStart(SourceOf(device), Lsn(log.End())), Lsn(log.End()));
  EXPECT_EQ(FindDurableStart(SourceOf(device), Lsn(log.End() + 4096)), Lsn(log.End() + 4096));
}

// A record that is longer than a probe hides the log behind it: more is read forward.
TEST(LogEnd, LongRecordsEndTheSearchEarly) {
  LogBuilder log = LogOf(200 << 10);
  for (int i = 0; i < 20; ++i) log.Void(120 << 10).Void(64);
  ImageDevice device("log", log.Bytes());
  LogSource source = SourceOf(device);
  source.ring_bytes = 256 << 10;
  LogEnd found(source, Lsn(0), {.block_bytes = 4096});
  found.Run();
  EXPECT_EQ(found.end(), Lsn(log.End()));
  EXPECT_TRUE(IsStart(log, found.begin()));
}

TEST(LogEnd, AnEmptyLogEndsWhereItStarts) {
  LogBuilder log(kRunId);
  log.Hole(1 << 20);
  ImageDevice device("log", log.Bytes());
  LogEnd found(SourceOf(device), Lsn(0), {.block_bytes = 4096});
  found.Run();
  EXPECT_EQ(found.end(), Lsn(0));
}

}  // namespace
}  // namespace dbx::recovery_test
