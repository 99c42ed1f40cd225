// The ring buffer and its positions: what may be flushed, when it counts as durable, wrap-around, failures.
#include "logging/log_stream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <exception>
#include <new>
#include <random>
#include <thread>

#include "base/error.h"
#include "logging/log_set.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

class LogStreamTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRing = 64 << 10;

  LogStreamTest() {
    auto device = files_.Create("log", {});
    std::vector<std::byte> header(format::kStreamOffset);
    device->StartWrite(0, header);
    device->Complete(true);
    stream_ = std::make_unique<LogStream>(0, 1234, kRing, kRing, 3, std::move(device), persistent_);
  }

  LogStream::Place Append(uint32_t worker, uint32_t bytes) {
    const LogStream::Place place = stream_->Reserve(worker, bytes);
    Fill(place);
    stream_->Submit(worker, place);
    return place;
  }
  void Fill(const LogStream::Place& place) {
    std::memset(stream_->at(place), 0xAB, place.bytes);
    format::RecordHeader header{};
    header.salt = stream_->salt();
    header.length = place.bytes;
    header.lsn = place.lsn.value();
    header.kind = static_cast<uint8_t>(format::RecordKind::kCommand);
    SealRecord(stream_->at(place), header);
  }
  void Flush() {
    stream_->AppendPad();
    stream_->StartFlush(1 << 20);
    stream_->CompleteFlush(true);
  }
  // Every record of the durable bytes is where it says it is, whole.
  Lsn CheckedPrefix() {
    const std::vector<std::byte> image = files_.CrashImage(FaultyFileSystem::Crash::kDurableOnly).files.at("log").All();
    uint64_t at = 0;
    while (format::kStreamOffset + at + sizeof(format::RecordHeader) <= image.size()) {
      format::RecordHeader header;
      const std::byte* record = image.data() + format::kStreamOffset + at;
      std::memcpy(&header, record, sizeof header);
      if (header.lsn != at || header.salt != stream_->salt() || header.header_crc != HeaderCrc(header)) break;
      if (format::kStreamOffset + at + header.length > image.size()) break;
      const std::span body(record + sizeof header, header.length - sizeof header);
      if (header.kind != static_cast<uint8_t>(format::RecordKind::kVoid) && header.body_crc != Crc32c(body)) break;
      at += header.length;
    }
    return Lsn(at);
  }

  uint64_t persistent_ = 0;
  FaultyFileSystem files_;
  std::unique_ptr<LogStream> stream_;
};

// With two words that both start at 0, a worker that never writes would pin the log at 0.
TEST_F(LogStreamTest, AnIdleWorkerDoesNotHoldTheLogBack) {
  const LogStream::Place place = Append(0, 64);
  EXPECT_EQ(stream_->ReadyUntil(), place.end());
}

TEST_F(LogStreamTest, NothingIsReadyBehindAPlaceThatIsBeingFilled) {
  const LogStream::Place open = stream_->Reserve(0, 64);
  Append(1, 64);
  EXPECT_EQ(stream_->ReadyUntil(), open.lsn);
  Fill(open);
  stream_->Submit(0, open);
  EXPECT_EQ(stream_->ReadyUntil(), stream_->reserved_until());
}

// Its last place is a lap behind; if that still counted, the writer could not free the space that it waits for.
TEST_F(LogStreamTest, AWorkerThatWaitsForSpaceHoldsBackOnlyWhatIsBehindItsPlace) {
  Append(0, 64);
  Flush();
  while (stream_->reserved_until() < stream_->persistent_until() + kRing) Append(1, 64);
  const LogStream::Place waiting = stream_->TakePlace(0, 64);
  EXPECT_EQ(stream_->ReadyUntil(), waiting.lsn);
  stream_->StartFlush(1 << 20);
  stream_->CompleteFlush(true);
  stream_->AwaitPlace(0, waiting);
  Fill(waiting);
  stream_->Submit(0, waiting);
  Flush();
  EXPECT_EQ(CheckedPrefix(), stream_->reserved_until());
}

TEST_F(LogStreamTest, AVoidedPlaceDoesNotHoldTheLogBack) {
  const LogStream::Place place = stream_->Reserve(0, 128);
  stream_->Void(0, place);
  Append(1, 64);
  Flush();
  EXPECT_EQ(CheckedPrefix(), stream_->reserved_until());
}

TEST_F(LogStreamTest, NothingIsPersistentBeforeTheSync) {
  Append(0, 64);
  stream_->AppendPad();
  ASSERT_TRUE(stream_->StartFlush(1 << 20));
  EXPECT_EQ(stream_->persistent_until(), Lsn(0));
  stream_->CompleteFlush(true);
  EXPECT_EQ(stream_->persistent_until(), stream_->reserved_until());
}

TEST_F(LogStreamTest, AFailedSyncPublishesNothing) {
  Append(0, 64);
  stream_->AppendPad();
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  stream_->StartFlush(1 << 20);
  EXPECT_THROW(stream_->CompleteFlush(true), Error);
  EXPECT_EQ(stream_->persistent_until(), Lsn(0));
  EXPECT_THROW(stream_->CompleteFlush(true), Error);
}

// Several writes in flight: only the contiguous prefix counts.
TEST_F(LogStreamTest, PersistentFollowsTheContiguousPrefixOfWrites) {
  for (int i = 0; i < 200; ++i) Append(0, 64);
  stream_->AppendPad();
  ASSERT_TRUE(stream_->StartFlush(format::kBlockBytes));
  stream_->CompleteFlush(false);
  EXPECT_EQ(stream_->persistent_until(), Lsn(format::kBlockBytes));  // 64 records of 64 bytes
  stream_->CompleteFlush(true);
  EXPECT_EQ(stream_->persistent_until(), stream_->reserved_until());
}

TEST_F(LogStreamTest, APadAlwaysEndsABlockAndIsNeverTooShort) {
  for (uint32_t bytes = 40; bytes < 2 * format::kBlockBytes; bytes += 8) {
    Append(0, bytes);
    Flush();
    ASSERT_EQ(stream_->reserved_until().value() % format::kBlockBytes, 0u) << bytes;
    ASSERT_EQ(stream_->persistent_until(), stream_->reserved_until());
  }
  EXPECT_EQ(CheckedPrefix(), stream_->reserved_until());
}

TEST_F(LogStreamTest, AFlushWithoutPadTakesWholeBlocksOnly) {
  for (int i = 0; i < 100; ++i) Append(0, 64);
  stream_->StartFlush(1 << 20);
  stream_->CompleteFlush(true);
  EXPECT_EQ(stream_->persistent_until(), Lsn(100 * 64 / format::kBlockBytes * format::kBlockBytes));
}

// The frontier that a recovery finds is the end of a record, so an anchor that named a position inside one would claim
// more than a crash keeps, and what depends on the anchor would be lost.
TEST_F(LogStreamTest, PersistentIsAlwaysTheEndOfARecord) {
  for (int i = 0; i < 50; ++i) Append(0, 104);
  stream_->StartFlush(1 << 20);
  stream_->CompleteFlush(true);
  EXPECT_EQ(stream_->persistent_until(), Lsn(4096 / 104 * 104));
  EXPECT_EQ(CheckedPrefix(), stream_->persistent_until());
  Append(1, 104);
  Flush();
  EXPECT_EQ(stream_->persistent_until(), stream_->reserved_until());
}

TEST_F(LogStreamTest, RecordsAreWholeAcrossManyLapsOfTheRing) {
  std::mt19937 random(3);
  while (stream_->reserved_until() < Lsn(20 * kRing)) {
    Append(random() % 3, 40 + 8 * (random() % 200));
    if (random() % 8 == 0) Flush();
  }
  Flush();
  EXPECT_EQ(CheckedPrefix(), stream_->reserved_until());
}

TEST_F(LogStreamTest, AnAnchorThatDoesNotFitIsNotAppended) {
  while (stream_->reserved_until() + 4096 <= Lsn(kRing)) Append(0, 4096);
  const uint64_t durable[1] = {0};
  EXPECT_FALSE(stream_->AppendOwn(format::RecordKind::kAnchor, {durable, 1}));
  EXPECT_EQ(stream_->counters().anchor_bytes, 0u);
}

// Positions are 64 bits wide: nothing wraps at 4 GiB.
TEST(LogPositions, AreWiderThan32Bits) {
  MirroredBuffer ring(1 << 16);
  const uint64_t far = (uint64_t{1} << 32) + 24;
  EXPECT_EQ(ring.at(far), ring.at(24));
  static_assert(sizeof(LogStream::Place{}.lsn) == 8);
  static_assert(sizeof(format::RecordHeader{}.lsn) == 8);
}

TEST(MirroredBufferTest, ARecordThatCrossesTheEndIsContiguous) {
  MirroredBuffer ring(4096);
  std::memset(ring.at(4090), 0x5A, 12);
  EXPECT_EQ(std::to_integer<int>(*ring.at(0)), 0x5A);
  EXPECT_EQ(std::to_integer<int>(*ring.at(5)), 0x5A);
}

TEST(MirroredBufferTest, MoreThanTheAddressSpaceIsNoMemory) {
  try {
    MirroredBuffer ring(size_t{1} << 46);
    ADD_FAILURE() << "two halves of 2^46 bytes were mapped";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kNoSpace);
  }
}

class LogWriterTest : public ::testing::Test {
 protected:
  void Open(uint64_t ring_bytes) {
    auto device = files_.Create("log", {});
    std::vector<std::byte> header(format::kStreamOffset);
    device->StartWrite(0, header);
    device->Complete(true);
    std::vector<LogSet::Target> targets;
    targets.push_back({std::move(device), 0});
    LogSetOptions options;
    options.ring_bytes = ring_bytes;
    options.workers = 2;
    logs_ = std::make_unique<LogSet>(std::move(targets), options);
    logs_->Start(hooks_);
  }
  void Append(uint32_t worker, uint32_t bytes) {
    const LogStream::Place place = logs_->stream(0).Reserve(worker, bytes);
    BuildVoid(logs_->stream(0).at(place), place.lsn, bytes, 1, 0);
    logs_->stream(0).Submit(worker, place);
  }
  FaultyFileSystem files_;
  FlushHooks hooks_;
  std::unique_ptr<LogSet> logs_;
};

TEST_F(LogWriterTest, TheLastRecordOfAnIdleSystemBecomesDurable) {
  Open(1 << 20);
  Append(0, 64);
  for (int i = 0; i < 5000 && logs_->stream(0).persistent_until() < Lsn(64); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(logs_->stream(0).persistent_until(), Lsn(64));
}

// Long enough for the writer to go to sleep without a timeout.
TEST_F(LogWriterTest, ASleepingWriterIsWoken) {
  Open(1 << 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  Append(0, 64);
  for (int i = 0; i < 5000 && logs_->stream(0).persistent_until() < Lsn(64); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(logs_->stream(0).persistent_until(), Lsn(64));
}

TEST_F(LogWriterTest, WorkersWaitForRingSpaceAndGoOn) {
  Open(64 << 10);
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < 2; ++w) {
    threads.emplace_back([this, w] {
      for (int i = 0; i < 2000; ++i) Append(w, 1024);
    });
  }
  for (std::thread& thread : threads) thread.join();
  logs_->Stop();
  EXPECT_GE(logs_->stream(0).persistent_until(), Lsn(2u * 2000 * 1024));
}

// Fail-stop: each thread that waits for the log learns of it, and nothing later becomes durable.
TEST_F(LogWriterTest, AFailedDeviceIsReportedToWhoeverWaits) {
  Open(64 << 10);
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  EXPECT_THROW(
      {
        for (int i = 0; i < 1000; ++i) Append(0, 1024);
      },
      Error);
  EXPECT_THROW(logs_->ThrowIfFailed(), Error);
  EXPECT_THROW(logs_->Stop(), Error);
}

// The worker may have left a place that no thread will fill, behind which nothing becomes durable.
TEST_F(LogWriterTest, TheErrorThatEndedAWorkerIsReportedToWhoeverWaits) {
  Open(64 << 10);
  (void)logs_->stream(0).Reserve(0, 1024);
  std::thread waiting([this] {
    EXPECT_THROW(
        {
          for (int i = 0; i < 1000; ++i) Append(1, 1024);
        },
        std::bad_alloc);
  });
  logs_->Fail(std::make_exception_ptr(std::bad_alloc()));
  logs_->Fail(std::make_exception_ptr(Error(ExitStatus::kIo, "a later one")));
  waiting.join();
  EXPECT_THROW(logs_->ThrowIfFailed(), std::bad_alloc);
  EXPECT_EQ(logs_->stream(0).persistent_until(), Lsn(0));
}

}  // namespace
}  // namespace dbx
