#include "logging/gaps/gap_log.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;
constexpr uint64_t kHeap = 77;

GapRecord RecordOf(uint64_t sequence, size_t gaps = 2, size_t workers = 3) {
  GapRecord record;
  record.heap_id = kHeap, record.life = 4, record.sequence = sequence;
  record.c_p = 100 * sequence, record.c_d = 100 * sequence + 50;
  record.clean = sequence % 2 == 0;
  if (record.clean) record.digest.emplace(sequence, ~sequence);
  for (size_t i = 0; i < gaps; ++i) record.gaps.Add({10 * i + 1, 10 * i + 5});
  record.long_runners = {{100 * sequence - 3}};
  record.last_sequences.assign(workers, sequence);
  return record;
}
void ExpectSame(const std::optional<GapRecord>& found, const GapRecord& expected) {
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->sequence, expected.sequence);
  EXPECT_EQ(found->life, expected.life);
  EXPECT_EQ(found->c_p, expected.c_p);
  EXPECT_EQ(found->c_d, expected.c_d);
  EXPECT_EQ(found->clean, expected.clean);
  EXPECT_EQ(found->digest, expected.digest);
  EXPECT_EQ(found->gaps.gaps(), expected.gaps.gaps());
  EXPECT_EQ(found->long_runners, expected.long_runners);
  EXPECT_EQ(found->last_sequences, expected.last_sequences);
}

class GapLogTest : public ::testing::Test {
 protected:
  GapLog Opened() { return {*memory_, kHeap}; }
  // What a restart from an image finds.
  std::optional<GapRecord> FoundIn(const FaultyFileSystem::Image& image) {
    FaultyFileSystem files(image);
    const auto memory = files.MapPersistent("gaps.log", {});
    return GapLog(*memory, kHeap).newest();
  }

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("gaps.log", {.create_bytes = GapLog::kBytes});
  std::string what_;
};

TEST_F(GapLogTest, TheNewestRecordIsFoundAgain) {
  EXPECT_FALSE(Opened().newest().has_value());
  GapLog log = Opened();
  for (uint64_t sequence = 1; sequence <= 300; ++sequence) {
    // Of one block up to sixteen.
    const GapRecord record = RecordOf(sequence, sequence * 37 % 4000);
    log.Append(record);
    ExpectSame(log.newest(), record);
    ExpectSame(FoundIn(files_.CrashImage(Crash::kDurableOnly)), record);
  }
}

TEST_F(GapLogTest, TheFirstRecordOfALifeIsDurableAsAnyOther) {
  GapLog log = Opened();
  log.Append(RecordOf(1));
  GapRecord next = RecordOf(2);
  next.life += 1;
  log.Append(next);
  ExpectSame(FoundIn(files_.CrashImage(Crash::kDurableOnly)), next);
}

TEST_F(GapLogTest, AnotherHeapsRecordsAreNone) {
  Opened().Append(RecordOf(1));
  EXPECT_FALSE(GapLog(*memory_, kHeap + 1).newest().has_value());
}

TEST_F(GapLogTest, ARecordThatIsTornLeavesTheOneBefore) {
  GapLog log = Opened();
  Random random(3);
  uint64_t torn = 0;
  for (uint64_t sequence = 1; sequence <= 150; ++sequence) {
    const GapRecord record = RecordOf(sequence, random.Next() % 4000);
    // The power fails before the record's Drain.
    files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
    GapLog other = Opened();
    EXPECT_EQ(Caught([&] { other.Append(record); }, what_), ExitStatus::kIo);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto found = FoundIn(files_.CrashImage(Crash::kSubset, seed));
      if (sequence == 1 && !found) continue;
      ASSERT_TRUE(found.has_value());
      ASSERT_TRUE(found->sequence == sequence || found->sequence == sequence - 1);
      torn += found->sequence == sequence - 1;
    }
    log.Append(record);
  }
  EXPECT_GT(torn, 100u);
}

TEST_F(GapLogTest, RecordsOfAnySizeUpToTheLargestFit) {
  EXPECT_TRUE(GapLog::Fits(1024, 1024));
  EXPECT_FALSE(GapLog::Fits(4096, 0));
}

TEST(LosersTest, AreWhatIsListedAndWhatWasPromisedBeyondCp) {
  GapRecord record = FirstRecordOf(kHeap, 2, 100);
  EXPECT_EQ(LosersOf(record).gaps(), (std::vector<GapSet::Gap>{{2, 102}}));
  record.c_p = 50, record.c_d = 150;
  record.gaps.Add({10, 20});
  record.long_runners = {{40}, {49}};
  EXPECT_EQ(LosersOf(record).gaps(), (std::vector<GapSet::Gap>{{10, 20}, {40, 41}, {49, 50}, {51, 150}}));
}

TEST(NextLifeTest, BeginsAboveAllStampsThatWerePromisedAndCarriesTheLosers) {
  GapRecord record = FirstRecordOf(kHeap, 2, 100);
  record.c_p = 50, record.c_d = 150, record.sequence = 7, record.clean = true;
  record.digest.emplace(1, 2);
  record.gaps.Add({10, 20});
  record.long_runners = {{40}};
  const GapRecord next = NextLifeOf(record, 3, 1000, /*drop_gaps=*/false, 60);
  EXPECT_EQ(next.life, 2u);
  EXPECT_EQ(next.sequence, 8u);
  EXPECT_EQ(next.c_p, 149u);
  EXPECT_EQ(next.c_d, 210u);
  EXPECT_EQ(next.gaps.gaps(), LosersOf(record).gaps());
  EXPECT_TRUE(next.long_runners.empty());
  EXPECT_FALSE(next.clean || next.digest);
  EXPECT_EQ(next.last_sequences, (std::vector<uint64_t>{1000, 1000, 1000}));
  EXPECT_TRUE(NextLifeOf(record, 3, 1000, /*drop_gaps=*/true, 60).gaps.empty());
}

TEST_F(GapLogTest, NoByteOfARecordMayChange) {
  Opened().Append(RecordOf(1));
  std::vector<std::byte> bytes(memory_->bytes().begin(), memory_->bytes().begin() + GapLog::kBlockBytes);
  uint32_t length;
  std::memcpy(&length, bytes.data() + 4, sizeof length);
  ASSERT_TRUE(GapLog::Decode(bytes, kHeap).has_value());
  for (size_t at = 0; at < length; ++at) {
    bytes[at] ^= std::byte{0x10};
    EXPECT_FALSE(GapLog::Decode(bytes, kHeap).has_value()) << at;
    bytes[at] ^= std::byte{0x10};
  }
  EXPECT_FALSE(GapLog::Decode(std::span(bytes).first(length - 1), kHeap).has_value());
}

TEST_F(GapLogTest, MemoryThatIsTooSmallIsRefused) {
  const auto small = files_.MapPersistent("small", {.create_bytes = 4096});
  EXPECT_EQ(Caught([&] { GapLog(*small, kHeap); }, what_), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "the log of the heap has 4096 bytes and not 262144");
}

}  // namespace
}  // namespace dbx
