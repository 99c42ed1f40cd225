// The records of a log, forward and a second time: each once, whatever blocks they cross, and nothing that has changed
// since it was checked.
#include "logging/differential/forward_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/logging/caught.h"
#include "tests/logging/gated_device.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

using format::RecordHeader;

constexpr size_t kBlock = 4096;

LogSource SourceOf(BlockDevice& device) { return {&device, kRunId, 1 << 20, 0, 1}; }

// Reads the log to its end.
class ReadLog {
 public:
  explicit ReadLog(BlockDevice& device, size_t block_bytes = kBlock) : reader_(SourceOf(device), block_bytes, 2) {
    RecordBatch batch;
    while (reader_.Cut(batch) == LogReader::Result::kBatch) batch.buffer->Release();
  }
  Lsn end() const { return reader_.position(); }
  std::span<const Lsn> starts() const { return reader_.block_starts(); }

 private:
  LogReader reader_;
};

// The starts of the records in a range, as they are visited.
std::vector<uint64_t> Visit(BlockDevice& device, const ReadLog& log, Lsn low, Lsn high, bool read_ahead = true) {
  ForwardReader reader(SourceOf(device), log.starts(), {low, high}, read_ahead);
  RecordHeader header;
  std::span<const std::byte> body;
  std::vector<uint64_t> visited;
  while (reader.Next(header, body)) {
    EXPECT_EQ(header.length, sizeof header + body.size());
    visited.push_back(header.lsn);
  }
  EXPECT_FALSE(reader.Next(header, body));
  return visited;
}

// Records of all lengths, some longer than several blocks.
LogImage LogOf(size_t records, uint64_t seed) {
  std::mt19937_64 random(seed);
  LogImage log(0, 1);
  for (size_t i = 0; i < records; ++i) {
    const size_t words = random() % 20 == 0 ? random() % 3000 : random() % 60;
    log.Txn(format::RecordKind::kCommand, i, 0, {}, std::vector<uint64_t>(words, i));
  }
  return log;
}

TEST(ForwardReader, VisitsEveryRecordOnceWhateverTheBlocks) {
  for (const uint64_t seed : {1, 2, 3}) {
    const LogImage image = LogOf(400, seed);
    ImageDevice device("log", image.bytes());
    for (const size_t block_bytes : {size_t{4096}, size_t{65536}, size_t{1} << 20}) {
      const ReadLog log(device, block_bytes);
      EXPECT_EQ(Visit(device, log, Lsn(0), log.end(), true), image.starts()) << seed << " " << block_bytes;
      EXPECT_EQ(Visit(device, log, Lsn(0), log.end(), false), image.starts()) << seed << " " << block_bytes;
    }
  }
}

TEST(ForwardReader, VisitsARange) {
  const LogImage image = LogOf(200, 5);
  ImageDevice device("log", image.bytes());
  const ReadLog log(device);
  const std::vector<uint64_t>& starts = image.starts();
  for (size_t from = 0; from < starts.size(); from += 7) {
    for (size_t to = from; to < starts.size(); to += 31) {
      const std::vector<uint64_t> expected(starts.begin() + from, starts.begin() + to);
      EXPECT_EQ(Visit(device, log, Lsn(starts[from]), Lsn(starts[to])), expected) << from << " " << to;
    }
  }
  EXPECT_TRUE(Visit(device, log, log.end(), log.end()).empty());
}

TEST(ForwardReader, RecordsAheadAreThoseThatFollow) {
  const LogImage image = LogOf(100, 3);
  ImageDevice device("log", image.bytes());
  const ReadLog log(device, 1 << 20);
  ForwardReader reader(SourceOf(device), log.starts(), {Lsn(0), log.end()}, true);
  RecordHeader header, ahead;
  std::span<const std::byte> body;
  EXPECT_FALSE(reader.Ahead(0, ahead, body));
  for (size_t i = 0; i < image.starts().size(); ++i) {
    ASSERT_TRUE(reader.Next(header, body));
    ASSERT_EQ(reader.Ahead(8, ahead, body), i + 9 < image.starts().size());
    if (i + 9 < image.starts().size()) {
      EXPECT_EQ(ahead.lsn, image.starts()[i + 9]);
    }
  }
}

TEST(ForwardReader, TheChunkBehindIsReadMeanwhileOnlyIfItIsToBe) {
  LogImage image(0, 1);
  while (image.end() < 5 * kBlock) image.Void(20);
  GatedDevice device("log", image.bytes());
  device.LetThrough(GatedDevice::kAll);
  const ReadLog log(device);
  RecordHeader header;
  std::span<const std::byte> body;
  const size_t before = device.begun();
  ForwardReader in_turn(SourceOf(device), log.starts(), {Lsn(0), log.end()}, false);
  ASSERT_TRUE(in_turn.Next(header, body));
  EXPECT_EQ(device.begun(), before + 1);
  ForwardReader ahead(SourceOf(device), log.starts(), {Lsn(0), log.end()}, true);
  ASSERT_TRUE(ahead.Next(header, body));
  EXPECT_TRUE(device.AwaitBegun(before + 3));
}

TEST(ForwardReader, BytesThatHaveChangedSinceTheyWereCheckedAreRefused) {
  const LogImage image = LogOf(100, 4);
  const uint64_t at = FileOffset(image.starts()[50]);
  ImageDevice device("log", image.bytes()), later("log", FlipBit(image.bytes(), at + 3));
  const ReadLog log(device);
  std::string what;
  EXPECT_EQ(Caught([&] { Visit(later, log, Lsn(0), log.end()); }, what), ExitStatus::kCorrupt);
  EXPECT_EQ(what, "damaged log log@" + std::to_string(at) +
                      ": header checksum, though the same record was whole when it was read before");
}

}  // namespace
}  // namespace dbx::recovery_test
