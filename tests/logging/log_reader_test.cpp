// Cutting a log's stream into batches.

#include "logging/log_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "logging/log_tail.h"
#include "tests/logging/caught.h"
#include "tests/logging/gated_device.h"

namespace dbx::recovery_test {
namespace {

using format::RecordKind;

template <class Device>
struct LogOn {
  explicit LogOn(const LogImage& image, size_t block_bytes = 4096, uint32_t buffers = 4, uint64_t ring_bytes = 1 << 20)
      : device("log", image.bytes()),
        source{&device, kRunId, ring_bytes, image.index(), image.count()},
        reader(source, block_bytes, buffers) {}
  Device device;
  LogSource source;
  LogReader reader;
};
using OpenLog = LogOn<ImageDevice>;
using GatedLog = LogOn<GatedDevice>;

// Some ten blocks of 4096 bytes.
LogImage TenBlocks() {
  LogImage image(0, 1);
  while (image.end() < 40000) image.Void(20);
  return image;
}

// Adds the batch to what was cut before, and releases it.
void AddTo(std::vector<std::byte>& all, const RecordBatch& batch) {
  EXPECT_EQ(batch.first.value(), all.size());
  all.insert(all.end(), batch.bytes, batch.bytes + (batch.end.value() - batch.first.value()));
  batch.buffer->Release();
}

// Cuts to the end; the concatenated bytes, behind those of `all`.
std::vector<std::byte> CutAll(LogReader& reader, std::vector<std::byte> all = {}) {
  RecordBatch batch;
  while (reader.Cut(batch) == LogReader::Result::kBatch) AddTo(all, batch);
  EXPECT_TRUE(reader.ended());
  return all;
}

TEST(LogReader, BatchesAddUpToTheStreamWhateverTheBlockSize) {
  LogImage image(0, 1);
  for (uint64_t i = 0; i < 300; ++i) image.Void(i * 7 % 90);
  image.Pad(0, 5000);  // longer than a block
  for (uint64_t i = 0; i < 300; ++i) image.Pad(0, i);
  for (const size_t block_bytes : {1, 4096, 8192, 1 << 20}) {
    OpenLog log(image, block_bytes);
    EXPECT_EQ(CutAll(log.reader), image.stream()) << "blocks of " << block_bytes;
    EXPECT_STREQ(log.reader.end_reason(), "end of file");
  }
}

// Records that end anywhere, reach over several blocks, or leave more behind than there is room for by default.
TEST(LogReader, RecordsOfAnyLengthCrossTheEndsOfBlocks) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    LogImage image(0, 1);
    for (int i = 0; i < 100; ++i) {
      const size_t bytes_max = random() % 4 == 0 ? 12000 : 400;
      image.Pad(0, random() % bytes_max);
    }
    for (const size_t block_bytes : {4096, 32 << 10, 64 << 10}) {
      for (const uint32_t buffers : {2, 5}) {
        OpenLog log(image, block_bytes, buffers);
        EXPECT_EQ(CutAll(log.reader), image.stream()) << "seed " << seed << ", blocks of " << block_bytes;
      }
    }
  }
}

TEST(LogReader, TheNextBlockIsReadWhileOneIsCut) {
  const LogImage image = TenBlocks();
  GatedLog log(image);
  log.device.LetThrough(1);
  RecordBatch batch;
  std::vector<std::byte> all;
  ASSERT_EQ(log.reader.Cut(batch), LogReader::Result::kBatch);
  ASSERT_TRUE(log.device.AwaitBegun(2));
  LogReader::Result last = LogReader::Result::kBatch;
  for (; last == LogReader::Result::kBatch; last = log.reader.Cut(batch, /*wait=*/false)) AddTo(all, batch);
  EXPECT_EQ(last, LogReader::Result::kNotYet) << "the second block has not come";
  EXPECT_LE(log.reader.position().value(), 4096u);
  EXPECT_EQ(log.device.begun(), 2u) << "one block ahead, no more";
  log.device.LetThrough(GatedDevice::kAll);
  EXPECT_EQ(CutAll(log.reader, all), image.stream());
}

TEST(LogReader, WhoDoesNotWaitSeesTheSameStream) {
  const LogImage image = TenBlocks();
  GatedLog log(image);
  std::vector<std::byte> all;
  RecordBatch batch;
  LogReader::Result result = LogReader::Result::kNotYet;
  for (; result != LogReader::Result::kEnded; result = log.reader.Cut(batch, /*wait=*/false)) {
    if (result == LogReader::Result::kBatch) AddTo(all, batch);
    if (log.device.begun() > log.device.over()) log.device.LetThrough(1);
  }
  EXPECT_EQ(all, image.stream());
}

TEST(LogReader, ALogOfOneBlockIsReadByTheCaller) {
  LogImage image(0, 1);
  image.Void(1);
  OpenLog log(image);
  RecordBatch batch;
  EXPECT_EQ(log.reader.Cut(batch, /*wait=*/false), LogReader::Result::kBatch) << "there is nothing to wait for";
  batch.buffer->Release();
}

class MemoryDevice final : public ImageDevice {
 public:
  using ImageDevice::ImageDevice;
  bool is_memory() const override { return true; }
  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    readers.push_back(std::this_thread::get_id());
    return ImageDevice::Read(offset, to);
  }
  std::vector<std::thread::id> readers;
};

TEST(LogReader, ARamDiskIsReadByTheCallerAndNotAhead) {
  const LogImage image = TenBlocks();
  LogOn<MemoryDevice> log(image);
  RecordBatch batch;
  std::vector<std::byte> all;
  ASSERT_EQ(log.reader.Cut(batch, /*wait=*/false), LogReader::Result::kBatch);
  EXPECT_EQ(log.device.readers.size(), 1u);
  AddTo(all, batch);
  EXPECT_EQ(CutAll(log.reader, all), image.stream());
  EXPECT_EQ(log.device.readers, std::vector(10, std::this_thread::get_id()));
}

TEST(LogReader, WhatABackgroundReadThrowsCutThrows) {
  const LogImage image = TenBlocks();
  OpenLog log(image);
  log.device.FailAt(format::kStreamOffset + 3 * 4096);
  std::vector<std::byte> all;
  RecordBatch batch;
  std::string what;
  EXPECT_EQ(Caught(
                [&] {
                  while (log.reader.Cut(batch) == LogReader::Result::kBatch) AddTo(all, batch);
                },
                what),
            ExitStatus::kIo);
  EXPECT_EQ(what, "log: read error");
  EXPECT_GT(all.size(), 3 * 4096u - 200);
  EXPECT_LE(all.size(), 3 * 4096u);
  log.device.FailAt(UINT64_MAX);
  EXPECT_EQ(CutAll(log.reader, all), image.stream()) << "what failed once can be read again";
}

// A reader that goes on in that file will meet the error; it is not hidden from one that happened to find it.
TEST(LogReader, AReadThatFailsBehindTheEndIsAnError) {
  LogImage image(0, 1);
  const uint64_t end = image.RunEnd();
  image.Zeros(10000);
  OpenLog log(image);
  log.device.FailAt(format::kStreamOffset + 4096);
  RecordBatch batch;
  ASSERT_EQ(log.reader.Cut(batch), LogReader::Result::kBatch);
  EXPECT_EQ(batch.end.value(), end);
  EXPECT_FALSE(log.reader.ended());
  EXPECT_THROW(log.reader.Cut(batch), Error);
  EXPECT_TRUE(log.reader.ended());
}

TEST(LogReader, ItsDestructorWaitsForTheDevice) {
  GatedDevice device("log", TenBlocks().bytes());
  std::jthread opener;
  {
    LogReader reader({&device, kRunId, 4096, 0, 1}, 4096, 2);
    RecordBatch batch;
    EXPECT_EQ(reader.Cut(batch, /*wait=*/false), LogReader::Result::kNotYet);
    ASSERT_TRUE(device.AwaitBegun(1));
    opener = std::jthread([&device] { device.LetThrough(1); });
  }
  EXPECT_EQ(device.over(), 1u);
}

// Says that it is longer than it is.
class ShrinkingDevice final : public ImageDevice {
 public:
  using ImageDevice::ImageDevice;
  uint64_t SizeBytes() override { return ImageDevice::SizeBytes() + 10 * 4096; }
};

TEST(LogReader, AFileThatShrankEndsWhereItsBytesDo) {
  const LogImage whole = TenBlocks();
  for (const uint64_t end : {0, 100, 4096, 5000, 3 * 4096 + 8}) {
    LogImage image = whole;
    image.Cut(end);
    LogOn<ShrinkingDevice> log(image);
    const size_t cut = CutAll(log.reader).size();
    EXPECT_EQ(cut, end / 192 * 192) << "cut at " << end << ", of records of 192 bytes";
  }
}

TEST(LogReader, NothingBehindTheFirstBadRecordIsCut) {
  LogImage image(0, 1);
  for (int i = 0; i < 100; ++i) image.Pad(0, 3);
  image.at(image.starts()[40] + 33) ^= std::byte{4};
  OpenLog log(image);
  EXPECT_EQ(CutAll(log.reader).size(), image.starts()[40]);
  EXPECT_STREQ(log.reader.end_reason(), "body checksum");
}

TEST(LogReader, ReadsAheadNoFurtherThanItsBuffers) {
  LogImage image(0, 1);
  while (image.end() < 100000) image.Void(20);
  OpenLog log(image, 4096, 3);
  std::vector<RecordBatch> batches(1);
  while (log.reader.Cut(batches.back()) == LogReader::Result::kBatch) batches.emplace_back();
  EXPECT_LE(log.reader.position().value(), 3 * 4096u + 4096u);
  batches.front().buffer->Release();
  EXPECT_EQ(log.reader.Cut(batches.back()), LogReader::Result::kBatch);
}

TEST(LogReader, BytesOfAnotherRunOrLogAreNoRecords) {
  LogImage image(0, 1);
  image.Void(1);
  ImageDevice device("log", image.bytes());
  LogReader other_run({&device, kRunId + 1, 4096, 0, 1}, 4096, 2);
  EXPECT_EQ(CutAll(other_run).size(), 0u);
  LogReader other_log({&device, kRunId, 4096, 1, 2}, 4096, 2);
  EXPECT_EQ(CutAll(other_log).size(), 0u);
  EXPECT_STREQ(other_log.end_reason(), "salt of another run or log");
}

TEST(LogReader, AMisplacedRecordIsNoRecord) {
  LogImage image(0, 1);
  image.Void(1);
  image.Void(1);
  std::memcpy(&image.at(image.starts()[1]), &image.at(0), 40);
  OpenLog log(image);
  EXPECT_EQ(CutAll(log.reader).size(), 40u);
  EXPECT_STREQ(log.reader.end_reason(), "LSN of another place");
}

TEST(LogReader, ALengthBeyondTheFileNeverDrivesARead) {
  LogImage image(0, 1);
  image.Void(1000);
  image.Cut(image.end() - 8);
  OpenLog log(image);
  EXPECT_EQ(CutAll(log.reader).size(), 0u);
  EXPECT_STREQ(log.reader.end_reason(), "record longer than the file");
}

TEST(LogReader, NothingFollowsRunEnd) {
  LogImage image(0, 1);
  const uint64_t end = image.RunEnd();
  image.Void(1);
  OpenLog log(image);
  EXPECT_EQ(CutAll(log.reader).size(), end);
  EXPECT_TRUE(log.reader.run_end().has_value());
}

TEST(LogReader, FilesWithoutAStreamAreEmptyLogs) {
  for (const size_t bytes : {size_t{0}, size_t{100}, format::kStreamOffset, format::kStreamOffset + 31}) {
    ImageDevice device("log", std::vector<std::byte>(bytes));
    LogReader reader({&device, kRunId, 4096, 0, 1}, 4096, 2);
    EXPECT_EQ(CutAll(reader).size(), 0u);
    EXPECT_EQ(ExamineTail({&device, kRunId, 4096, 0, 1}, Lsn(0)).cut_bytes, 0u);
  }
}

}  // namespace
}  // namespace dbx::recovery_test
