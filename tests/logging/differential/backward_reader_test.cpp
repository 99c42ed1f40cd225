// The records of a log, backward: each once, whatever blocks they cross, and none where a part of the log is damaged.
#include "logging/differential/backward_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "logging/record_builder.h"
#include "tests/logging/caught.h"
#include "tests/logging/gated_device.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

using format::RecordHeader;

constexpr size_t kBlock = 4096;

LogSource SourceOf(BlockDevice& device) { return {&device, kRunId, 1 << 20, 0, 1}; }

// Keeps the end of the log.
void Keep(BlockDevice& device, KeptLog& kept) {
  LogReader reader(SourceOf(device), kBlock, 2);
  for (RecordBatch batch; reader.Cut(batch) == LogReader::Result::kBatch; batch.buffer->Release()) {
    kept.Append(batch.first, {batch.bytes, batch.end - batch.first});
  }
}

struct How {
  size_t chunk_bytes = kBlock;
  bool read_ahead = true;
  size_t filled_bytes = 0;
};
// The starts of the records in a range, as they are visited.
std::vector<uint64_t> Visit(BlockDevice& device, LogRange range, How how = {}, KeptLog* kept = nullptr) {
  BackwardReader reader(SourceOf(device), range, how.chunk_bytes, how.read_ahead, kept);
  RecordHeader header;
  std::span<const std::byte> body;
  std::vector<uint64_t> visited;
  if (how.filled_bytes > 0) reader.Fill(how.filled_bytes);
  while (reader.Previous(header, body)) {
    EXPECT_EQ(header.length, sizeof header + body.size());
    EXPECT_EQ(RecordCheck::BodyFault(header, body.data()), nullptr);
    visited.push_back(header.lsn);
  }
  EXPECT_FALSE(reader.Previous(header, body));
  // Each chunk begins with one of the records.
  EXPECT_TRUE(std::ranges::includes(visited, reader.starts(), std::greater<>(), {}, &Lsn::value));
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
    for (const size_t chunk_bytes : {size_t{4096}, size_t{8192}, size_t{65536}, size_t{1} << 20}) {
      for (const bool read_ahead : {true, false}) {
        for (const size_t filled_bytes : {size_t{0}, size_t{1}, size_t{50'000}, size_t{1} << 30}) {
          EXPECT_EQ(Visit(device, {Lsn(0), Lsn(image.end())}, {chunk_bytes, read_ahead, filled_bytes}), backward)
              << seed << " " << chunk_bytes;
        }
      }
    }
  }
}

TEST(BackwardReader, VisitsARange) {
  const LogImage image = LogOf(200, 5);
  ImageDevice device("log", image.bytes());
  const std::vector<uint64_t>& starts = image.starts();
  for (size_t from = 0; from < starts.size(); from += 7) {
    for (size_t to = from; to < starts.size(); to += 31) {
      const std::vector<uint64_t> expected(starts.rend() - to, starts.rend() - from);
      EXPECT_EQ(Visit(device, {Lsn(starts[from]), Lsn(starts[to])}), expected) << from << " " << to;
    }
  }
}

// The bodies, too: those of a kept chunk, and of one in the file.
TEST(BackwardReader, WhatWasKeptIsNotReadAgain) {
  const LogImage image = LogOf(400, 6);
  const std::vector<uint64_t> backward(image.starts().rbegin(), image.starts().rend());
  for (const size_t budget : {size_t{1}, size_t{20'000}, size_t{100'000}, size_t{1} << 30}) {
    for (const How how : {How{.read_ahead = false}, How{}, How{.filled_bytes = 50'000}}) {
      KeptLog kept(budget, /*chunk_bytes=*/9'000);
      ImageDevice device("log", image.bytes());
      Keep(device, kept);
      const Lsn from = *kept.begin();
      EXPECT_EQ(from == Lsn(0), budget > 1'000'000);
      // Behind it everything has changed.
      const uint64_t end = (from.value() + kBlock - 1) / kBlock * kBlock;
      ImageDevice later("log", Truncate(image.bytes(), std::min<uint64_t>(FileOffset(end), image.bytes().size())));
      EXPECT_EQ(Visit(later, {Lsn(0), Lsn(image.end())}, how, &kept), backward) << budget;
    }
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
  EXPECT_TRUE(Visit(device, {Lsn(0), Lsn(0)}).empty());
}

TEST(BackwardReader, WhatLiesBehindTheEndIsNotRead) {
  LogImage image = LogOf(50, 1);
  const std::vector<uint64_t> backward(image.starts().rbegin(), image.starts().rend());
  const Lsn end(image.end());
  image.Zeros(104);
  image.at(image.end() - 1) = std::byte{1};
  ImageDevice device("log", image.bytes());
  EXPECT_EQ(Visit(device, {Lsn(0), end}), backward);
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
  BackwardReader backward(source, {source.start, Lsn(late.End())}, kBlock, true);
  RecordHeader header;
  std::span<const std::byte> body;
  size_t records = 0;
  while (backward.Previous(header, body)) EXPECT_EQ(header.lsn, late.Starts().rbegin()[records++]);
  EXPECT_EQ(records, 300u);
}

TEST(BackwardReader, RecordsAheadAreThoseThatFollow) {
  const LogImage image = LogOf(100, 3);
  ImageDevice device("log", image.bytes());
  BackwardReader reader(SourceOf(device), {Lsn(0), Lsn(image.end())}, 1 << 20, true);
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
  BackwardReader reader(SourceOf(device), {Lsn(0), Lsn(image.end())}, kBlock, true);
  RecordHeader header;
  std::span<const std::byte> body;
  ASSERT_TRUE(reader.Previous(header, body));
  EXPECT_TRUE(device.AwaitBegun(2));
}

// What is thrown when the file has changed.
std::string RefusalOf(const LogImage& image, const std::vector<std::byte>& changed) {
  ImageDevice device("log", changed);
  std::string what;
  EXPECT_EQ(Caught([&] { Visit(device, {Lsn(0), Lsn(image.end())}); }, what), ExitStatus::kCorrupt);
  return what;
}

TEST(BackwardReader, DamageIsRefusedWhereItBegins) {
  const LogImage image = LogOf(100, 4);
  for (const size_t record : {1, 40, 50, 51, 98}) {
    const uint64_t start = image.starts()[record];
    const std::string place = "damaged log log@" + std::to_string(FileOffset(start)) + ": ";
    EXPECT_EQ(RefusalOf(image, FlipBit(image.bytes(), FileOffset(start + 3))),
              place + "header checksum, but there are valid records behind it");
    EXPECT_EQ(RefusalOf(image, FlipBit(image.bytes(), FileOffset(start + sizeof(RecordHeader)))),
              place + "body checksum, but there are valid records behind it");
  }
}

TEST(BackwardReader, AHoleIsRefusedWhereItBegins) {
  const LogImage image = LogOf(300, 4);
  for (const size_t record : {0, 20, 100}) {
    auto changed = image.bytes();
    const uint64_t start = image.starts()[record];
    std::fill_n(changed.begin() + static_cast<ptrdiff_t>(FileOffset(start)), 3 * kBlock, std::byte{0});
    EXPECT_EQ(RefusalOf(image, changed), "damaged log log@" + std::to_string(FileOffset(start)) +
                                             ": header checksum, but there are valid records behind it");
  }
}

// A hole that no record could fill is not read into memory.
TEST(BackwardReader, AHoleLongerThanARingIsRefusedWithinARing) {
  LogImage image(0, 1);
  while (image.end() < (6u << 20)) image.Void(100);
  auto changed = image.bytes();
  std::fill_n(changed.begin() + static_cast<ptrdiff_t>(FileOffset(1 << 20)), 4u << 20, std::byte{0});
  const std::string what = RefusalOf(image, changed);
  EXPECT_NE(what.find(": no record that leads to the valid ones behind it"), std::string::npos) << what;
}

TEST(BackwardReader, AFileThatBecameShorterIsRefused) {
  const LogImage image = LogOf(100, 4);
  const std::string what = RefusalOf(image, Truncate(image.bytes(), FileOffset(image.end() - 8)));
  EXPECT_NE(what.find("the file is shorter than before"), std::string::npos) << what;
}

// The last record of a chunk becomes a longer one, whose body is the first record of the next chunk.
TEST(BackwardReader, AChainThatDoesNotMeetTheKnownStartIsRefused) {
  LogBuilder image(kRunId);
  while (image.End() < 8 * kBlock) image.Void(104);
  // A chunk has four blocks.
  const uint64_t last = (RoundUp(image.End(), kBlock) - 4 * kBlock) / 104 * 104;
  auto changed = image.Bytes();
  RecordHeader header;
  std::memcpy(&header, changed.data() + FileOffset(last), sizeof header);
  header.length += 104;
  SealHeader(changed.data() + FileOffset(last), header);
  ImageDevice device("log", changed);
  std::string what;
  EXPECT_EQ(Caught([&] { Visit(device, {Lsn(0), Lsn(image.End())}); }, what), ExitStatus::kCorrupt);
  EXPECT_EQ(what, "damaged log log@" + std::to_string(FileOffset(last)) +
                      ": records that do not lead to the next ones, but there are valid records behind it");
}

// What is left of an older record in a VOID has the header of another place.
TEST(BackwardReader, AStaleHeaderIsNoRecord) {
  LogBuilder image(kRunId);
  for (int i = 0; i < 5; ++i) image.Void(104);
  image.Void(6 * kBlock + 104);  // longer than a chunk
  auto bytes = image.Bytes();
  for (uint64_t at = image.Start(5) + 104; at + 104 <= image.End(); at += 104) {
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(FileOffset(image.Start(1))), 104,
                bytes.begin() + static_cast<ptrdiff_t>(FileOffset(at)));
  }
  ImageDevice device("log", bytes);
  const std::vector<uint64_t> backward(image.Starts().rbegin(), image.Starts().rend());
  EXPECT_EQ(Visit(device, {Lsn(0), Lsn(image.End())}), backward);
}

TEST(BackwardReader, AReadErrorIsReported) {
  const LogImage image = LogOf(100, 4);
  ImageDevice device("log", image.bytes());
  device.FailAt(FileOffset(0));
  for (const bool read_ahead : {true, false}) {
    std::string what;
    EXPECT_EQ(Caught([&] { Visit(device, {Lsn(0), Lsn(image.end())}, {.read_ahead = read_ahead}); }, what),
              ExitStatus::kIo);
    EXPECT_EQ(what, "log: read error");
  }
}

}  // namespace
}  // namespace dbx::recovery_test
