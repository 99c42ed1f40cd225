// What a power failure leaves of memory that is mapped.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;

class FaultyMemoryTest : public ::testing::Test {
 protected:
  static constexpr size_t kWords = 1024;

  FaultyMemoryTest() : memory_(files_.MapPersistent("heap", {.create_bytes = kWords * 8})) {}

  uint64_t* words() { return reinterpret_cast<uint64_t*>(memory_->bytes().data()); }
  const std::byte* At(size_t word) { return memory_->bytes().data() + word * 8; }
  static uint64_t WordOf(const FaultyFileSystem::Image& image, size_t word) {
    uint64_t value = 0;
    image.files.at("heap").Read(word * 8, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // The values that crashes leave of a word.
  std::set<uint64_t> Left(size_t word, Crash crash = Crash::kSubset) {
    std::set<uint64_t> values;
    for (uint64_t seed = 0; seed < 40; ++seed) values.insert(WordOf(files_.CrashImage(crash, seed), word));
    return values;
  }
  static std::set<uint64_t> Values(std::initializer_list<uint64_t> values) { return values; }

  FaultyFileSystem files_;
  std::unique_ptr<PersistentMemory> memory_;
  std::string what_;
};

TEST_F(FaultyMemoryTest, AStoreIsLostOrNotUntilItIsDrained) {
  const auto writer = memory_->NewWriter();
  words()[3] = 1;
  EXPECT_EQ(Left(3), Values({0, 1}));
  EXPECT_EQ(Left(3, Crash::kDurableOnly), Values({0}));
  EXPECT_EQ(Left(3, Crash::kAllPending), Values({1}));
  writer->WriteBack(At(3), 8);
  EXPECT_EQ(Left(3), Values({0, 1}));
  writer->Drain();
  EXPECT_EQ(Left(3), Values({1}));
}

TEST_F(FaultyMemoryTest, WordsOfALineAreLostEachByItself) {
  words()[0] = words()[1] = 1;
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto image = files_.CrashImage(Crash::kTorn, seed);
    pairs.emplace(WordOf(image, 0), WordOf(image, 1));
  }
  EXPECT_EQ(pairs.size(), 4u);
}

TEST_F(FaultyMemoryTest, WhatIsDrainedIsWhatWasThereWhenItWasWrittenBack) {
  const auto writer = memory_->NewWriter();
  words()[3] = 1;
  writer->WriteBack(At(3), 8);
  words()[3] = 2;
  writer->Drain();
  EXPECT_EQ(Left(3), Values({1, 2}));
}

TEST_F(FaultyMemoryTest, ADrainCoversItsOwnWriteBacksAlone) {
  const auto one = memory_->NewWriter(), other = memory_->NewWriter();
  words()[3] = 1;
  one->WriteBack(At(3), 8);
  other->Drain();
  EXPECT_EQ(Left(3), Values({0, 1}));
}

TEST_F(FaultyMemoryTest, ALateDrainDoesNotUndoALaterWriteBack) {
  const auto one = memory_->NewWriter(), other = memory_->NewWriter();
  words()[3] = 1;
  one->WriteBack(At(3), 8);
  words()[3] = 2;
  other->WriteBack(At(3), 8);
  other->Drain();
  one->Drain();
  EXPECT_EQ(Left(3), Values({2}));
}

TEST_F(FaultyMemoryTest, AWordThatIsEvictedIsDurable) {
  for (size_t word = 0; word < kWords; ++word) words()[word] = 1;
  files_.EvictWords(7, 1000);
  for (size_t word = 0; word < kWords; ++word) words()[word] = 2;
  size_t evicted = 0;
  const auto image = files_.CrashImage(Crash::kDurableOnly);
  for (size_t word = 0; word < kWords; ++word) {
    EXPECT_LE(WordOf(image, word), 1u);
    evicted += WordOf(image, word);
  }
  EXPECT_GT(evicted, kWords / 2);
  EXPECT_LT(evicted, kWords);
}

TEST_F(FaultyMemoryTest, TheEndOfTheProcessLosesNothingAndMakesNothingDurable) {
  words()[3] = 1;
  const auto after = files_.AfterKill();
  const auto memory = after->MapPersistent("heap", {});
  EXPECT_EQ(reinterpret_cast<uint64_t*>(memory->bytes().data())[3], 1u);
  EXPECT_EQ(WordOf(after->CrashImage(Crash::kDurableOnly), 3), 0u);
  EXPECT_EQ(WordOf(after->VisibleImage(), 3), 1u);
  words()[3] = 2;
  EXPECT_EQ(WordOf(after->VisibleImage(), 3), 1u);
}

TEST_F(FaultyMemoryTest, AnImageIsMappedAnew) {
  words()[3] = 1;
  FaultyFileSystem next(files_.CrashImage(Crash::kAllPending));
  const auto memory = next.MapPersistent("heap", {});
  EXPECT_EQ(memory->bytes().size(), kWords * 8);
  EXPECT_EQ(reinterpret_cast<uint64_t*>(memory->bytes().data())[3], 1u);
  EXPECT_EQ(WordOf(next.CrashImage(Crash::kDurableOnly), 3), 1u);
}

TEST_F(FaultyMemoryTest, ReadersSeeStoresAndAPrivateCopyHasItsOwn) {
  words()[3] = 1;
  const auto copy = files_.MapPersistent("heap", {.copy_on_write = true});
  auto* const copied = reinterpret_cast<uint64_t*>(copy->bytes().data());
  EXPECT_EQ(copied[3], 1u);
  copied[3] = 5;
  const auto writer = copy->NewWriter();
  writer->WriteBack(copy->bytes().data(), 64);
  writer->Drain();
  uint64_t read = 0;
  std::memcpy(&read, files_.Map("heap").bytes.data() + 24, 8);
  EXPECT_EQ(read, 1u);
  EXPECT_EQ(Left(3), Values({0, 1}));
}

TEST_F(FaultyMemoryTest, ADrainThatFailsOrLiesMakesNothingDurable) {
  const auto writer = memory_->NewWriter();
  words()[3] = 1;
  writer->WriteBack(At(3), 8);
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  EXPECT_EQ(Caught([&] { writer->Drain(); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot drain heap: Input/output error");
  EXPECT_EQ(Left(3), Values({0, 1}));
  files_.LieAboutSyncs();
  writer->WriteBack(At(3), 8);
  writer->Drain();
  EXPECT_EQ(Left(3), Values({0, 1}));
}

}  // namespace
}  // namespace dbx
