// The records of a log, backward: each once, whatever blocks they cross, and nothing that has changed since it was
// checked.
#include "logging/differential/backward_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "logging/record_builder.h"
#include "tests/logging/caught.h"
#include "tests/logging/gated_device.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

using format::RecordHeader;

constexpr size_t kBlock = 4096;

LogSource SourceOf(BlockDevice& device) { return {&device, kRunId, 1 << 20, 0, 1}; }

// A log that was read to its end, and what `kept` keeps of it.
class ReadLog {
 public:
  explicit ReadLog(BlockDevice& device, size_t block_bytes = kBlock, KeptLog* kept = nullptr)
      : reader_(SourceOf(device), block_bytes, 2) {
    RecordBatch batch;
    while (reader_.Cut(batch) == LogReader::Result::kBatch) {
      if (kept != nullptr) kept->Append(batch.first, {batch.bytes, batch.end - batch.first});
      batch.buffer->Release();
    }
  }
  Lsn end() const { return reader_.position(); }
  std::span<const Lsn> starts() const { return reader_.block_starts(); }

 private:
  LogReader reader_;
};

// The starts of the records in a range, as they are visited.
std::vector<uint64_t> Visit(BlockDevice& device, const ReadLog& log, Lsn low, Lsn high, bool read_ahead = true,
                            KeptLog* kept = nullptr) {
  BackwardReader reader(SourceOf(device), log.starts(), {low, high}, read_ahead, kept);
  RecordHeader header;
  std::span<const std::byte> body;
  std::vector<uint64_t> visited;
  while (reader.Previous(header, body)) {
    EXPECT_EQ(header.length, sizeof header + body.size());
    visited.push_back(header.lsn);
  }
  EXPECT_FALSE(reader.Previous(header, body));
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

TEST(BackwardReader, VisitsEveryRecordOnceWhateverTheBlocks) {
  for (const uint64_t seed : {1, 2, 3}) {
    const LogImage image = LogOf(400, seed);
    ImageDevice device("log", image.bytes());
    const std::vector<uint64_t> backward(image.starts().rbegin(), image.starts().rend());
    for (const size_t block_bytes : {size_t{4096}, size_t{8192}, size_t{65536}, size_t{1} << 20}) {
      const ReadLog log(device, block_bytes);
      ASSERT_EQ(log.end(), Lsn(image.end()));
      EXPECT_EQ(Visit(device, log, Lsn(0), log.end(), true), backward) << seed << " " << block_bytes;
      EXPECT_EQ(Visit(device, log, Lsn(0), log.end(), false), backward) << seed << " " << block_bytes;
    }
  }
}

TEST(BackwardReader, VisitsARange) {
  const LogImage image = LogOf(200, 5);
  ImageDevice device("log", image.bytes());
  const ReadLog log(device);
  const std::vector<uint64_t>& starts = image.starts();
  for (size_t from = 0; from < starts.size(); from += 7) {
    for (size_t to = from; to < starts.size(); to += 31) {
      const std::vector<uint64_t> expected(starts.rend() - to, starts.rend() - from);
      // A low end within a record leaves that record out.
      const Lsn low(from == 0 ? 0 : starts[from - 1] + 8);
      EXPECT_EQ(Visit(device, log, low, Lsn(starts[to])), expected) << from << " " << to;
    }
  }
}

// The bodies, too: those of a kept chunk, and of one in the file.
TEST(BackwardReader, WhatWasKeptIsNotReadAgain) {
  const LogImage image = LogOf(400, 6);
  const std::vector<uint64_t> backward(image.starts().rbegin(), image.starts().rend());
  for (const size_t budget : {size_t{1}, size_t{20'000}, size_t{100'000}, size_t{1} << 30}) {
    for (const bool read_ahead : {false, true}) {
      KeptLog kept(budget, /*chunk_bytes=*/9'000);
      ImageDevice device("log", image.bytes());
      const ReadLog log(device, kBlock, &kept);
      const Lsn from = *kept.begin();
      EXPECT_EQ(from == Lsn(0), budget > 1'000'000);
      // Behind it everything has changed.
      const uint64_t end = (from.value() + kBlock - 1) / kBlock * kBlock;
      ImageDevice later("log", Truncate(image.bytes(), std::min<uint64_t>(FileOffset(end), image.bytes().size())));
      EXPECT_EQ(Visit(later, log, Lsn(0), log.end(), read_ahead, &kept), backward) << budget;
    }
  }
}

TEST(BackwardReader, ARangeMayEndWithinWhatWasKept) {
  const LogImage image = LogOf(100, 6);
  ImageDevice device("log", image.bytes());
  for (const size_t first : {0, 1, 50, 99}) {
    KeptLog kept(1 << 30, /*chunk_bytes=*/9'000);
    const ReadLog log(device, kBlock, &kept);
    const std::vector<uint64_t> expected(image.starts().rbegin(), image.starts().rend() - first);
    EXPECT_EQ(Visit(device, log, Lsn(image.starts()[first]), log.end(), true, &kept), expected) << first;
  }
}

TEST(KeptLog, TheLastRecordsStay) {
  const std::vector<std::byte> bytes(100, std::byte{7}), longer(300, std::byte{8});
  KeptLog kept(250, /*chunk_bytes=*/100);
  EXPECT_FALSE(kept.begin());
  for (uint64_t at = 1000; at < 1400; at += 100) kept.Append(Lsn(at), bytes);
  EXPECT_EQ(kept.begin(), Lsn(1200));
  // One that is longer than all of the budget.
  kept.Append(Lsn(1400), longer);
  EXPECT_EQ(kept.begin(), Lsn(1400));
  kept.Append(Lsn(1700), std::span(bytes).first(60));
  kept.Append(Lsn(1760), std::span(bytes).first(40));
  const auto last = kept.TakeLast();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->begin, Lsn(1700));
  EXPECT_EQ(last->end, Lsn(1800));
  EXPECT_EQ(last->bytes[99], std::byte{7});
  EXPECT_FALSE(kept.TakeLast());
}

TEST(KeptLog, NothingIsKeptWithoutABudget) {
  KeptLog kept(0);
  kept.Append(Lsn(0), std::vector<std::byte>(8));
  EXPECT_FALSE(kept.begin());
}

TEST(BackwardReader, AnEmptyLogHasNoRecords) {
  ImageDevice device("log", LogImage(0, 1).bytes());
  const ReadLog log(device);
  EXPECT_TRUE(Visit(device, log, Lsn(0), Lsn(0)).empty());
}

TEST(BackwardReader, WhatLiesBehindTheEndIsNotRead) {
  LogImage image = LogOf(50, 1);
  const std::vector<uint64_t> backward(image.starts().rbegin(), image.starts().rend());
  image.Zeros(104);
  image.at(image.end() - 1) = std::byte{1};
  ImageDevice device("log", image.bytes());
  const ReadLog log(device);
  EXPECT_EQ(Visit(device, log, Lsn(0), log.end()), backward);
}

TEST(BackwardReader, ALogThatStartsLaterIsReadFromItsStart) {
  LogBuilder late(kRunId);
  late.Hole(2 * kBlock);
  const uint64_t start = late.End();
  for (int i = 0; i < 300; ++i) late.Abort(i);
  auto file = late.Bytes();
  file.erase(file.begin() + format::kStreamOffset, file.begin() + format::kStreamOffset + start);
  ImageDevice device("log", file);
  LogSource source = SourceOf(device);
  source.start = Lsn(start);
  LogReader reader(source, kBlock, 2);
  RecordBatch batch;
  while (reader.Cut(batch) == LogReader::Result::kBatch) batch.buffer->Release();
  BackwardReader backward(source, reader.block_starts(), {source.start, reader.position()}, true);
  RecordHeader header;
  std::span<const std::byte> body;
  size_t records = 0;
  while (backward.Previous(header, body)) EXPECT_EQ(header.lsn, late.Starts().rbegin()[records++]);
  EXPECT_EQ(records, 300u);
}

TEST(BackwardReader, RecordsAheadAreThoseThatFollow) {
  const LogImage image = LogOf(100, 3);
  ImageDevice device("log", image.bytes());
  const ReadLog log(device, 1 << 20);
  BackwardReader reader(SourceOf(device), log.starts(), {Lsn(0), log.end()}, true);
  RecordHeader header, ahead;
  std::span<const std::byte> body;
  const std::vector<uint64_t> backward(image.starts().rbegin(), image.starts().rend());
  EXPECT_FALSE(reader.Ahead(0, ahead, body));
  for (size_t i = 0; i < backward.size(); ++i) {
    ASSERT_TRUE(reader.Previous(header, body));
    ASSERT_EQ(reader.Ahead(8, ahead, body), i + 9 < backward.size());
    if (i + 9 < backward.size()) {
      EXPECT_EQ(ahead.lsn, backward[i + 9]);
    }
  }
}

TEST(BackwardReader, TheChunkBeforeIsReadMeanwhile) {
  LogImage image(0, 1);
  while (image.end() < 5 * kBlock) image.Void(20);
  GatedDevice device("log", image.bytes());
  device.LetThrough(GatedDevice::kAll);
  const ReadLog log(device);
  const size_t before = device.begun();
  BackwardReader reader(SourceOf(device), log.starts(), {Lsn(0), log.end()}, true);
  RecordHeader header;
  std::span<const std::byte> body;
  ASSERT_TRUE(reader.Previous(header, body));
  EXPECT_TRUE(device.AwaitBegun(before + 2));
}

// What is thrown when the file has changed between the passes.
std::string RefusalOf(const LogImage& image, const std::vector<std::byte>& changed) {
  ImageDevice device("log", image.bytes()), later("log", changed);
  const ReadLog log(device);
  std::string what;
  EXPECT_EQ(Caught([&] { Visit(later, log, Lsn(0), log.end()); }, what), ExitStatus::kCorrupt);
  return what;
}

TEST(BackwardReader, BytesThatHaveChangedSinceTheyWereCheckedAreRefused) {
  const LogImage image = LogOf(100, 4);
  const uint64_t start = image.starts()[50];
  const std::string place = "damaged log log@" + std::to_string(FileOffset(start)) + ": ";
  EXPECT_EQ(RefusalOf(image, FlipBit(image.bytes(), FileOffset(start + 3))),
            place + "header checksum, though the same record was whole when it was read before");
  EXPECT_EQ(RefusalOf(image, FlipBit(image.bytes(), FileOffset(start + sizeof(RecordHeader)))),
            place + "body checksum, though the same record was whole when it was read before");
}

TEST(BackwardReader, AFileThatBecameShorterIsRefused) {
  const LogImage image = LogOf(100, 4);
  const std::string what = RefusalOf(image, Truncate(image.bytes(), FileOffset(image.end() - 8)));
  EXPECT_NE(what.find("the file is shorter than before"), std::string::npos) << what;
}

// The last record of the first chunk becomes a longer one, whose body is the first record of the next chunk.
TEST(BackwardReader, AChainThatDoesNotMeetTheKnownStartIsRefused) {
  LogBuilder image(kRunId);
  while (image.End() < 3 * kBlock) image.Void(104);
  ImageDevice device("log", image.Bytes());
  const ReadLog log(device);
  const uint64_t last = log.starts()[1].value() - 104;
  auto changed = image.Bytes();
  RecordHeader header;
  std::memcpy(&header, changed.data() + FileOffset(last), sizeof header);
  header.length += 104;
  SealHeader(changed.data() + FileOffset(last), header);
  ImageDevice later("log", changed);
  std::string what;
  EXPECT_EQ(Caught([&] { Visit(later, log, Lsn(0), log.end()); }, what), ExitStatus::kCorrupt);
  EXPECT_EQ(what, "damaged log log@" + std::to_string(FileOffset(last)) +
                      ": records that do not lead to the next ones, though the same record was whole when it was read "
                      "before");
}

TEST(BackwardReader, AReadErrorIsReported) {
  const LogImage image = LogOf(100, 4);
  ImageDevice device("log", image.bytes());
  const ReadLog log(device);
  device.FailAt(FileOffset(0));
  for (const bool read_ahead : {true, false}) {
    std::string what;
    EXPECT_EQ(Caught([&] { Visit(device, log, Lsn(0), log.end(), read_ahead); }, what), ExitStatus::kIo);
    EXPECT_EQ(what, "log: read error");
  }
}

}  // namespace
}  // namespace dbx::recovery_test
