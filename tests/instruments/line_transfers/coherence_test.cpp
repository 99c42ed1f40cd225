#include "tests/instruments/line_transfers/coherence.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace dbx::lines {
namespace {

constexpr uintptr_t kAddress = 0x1000;
constexpr CacheShape kUnlimited{};

// Events of some accesses, by what they find.
struct Counts {
  uint32_t hits = 0, memory = 0, clean = 0, dirty = 0, upgrades = 0;
  uint32_t invalidated = 0, false_sharing = 0;

  void Add(const Event& event) {
    uint32_t* const of[] = {&hits, &memory, &clean, &dirty, &upgrades};
    ++*of[static_cast<size_t>(event.found)];
    invalidated += event.invalidated;
    false_sharing += event.is_false_sharing;
  }
};

class LineTransfers : public ::testing::Test {
 protected:
  explicit LineTransfers(uint32_t cores = 2, CacheShape shape = kUnlimited) : model_(cores, shape) {}

  Event Read(uint32_t core, uintptr_t address = kAddress) { return Note(model_.AccessBytes(core, address, 8, false)); }
  Event Write(uint32_t core, uintptr_t address = kAddress) { return Note(model_.AccessBytes(core, address, 8, true)); }

  Coherence model_;
  Counts counts_;

 private:
  Event Note(const Event& event) {
    counts_.Add(event);
    return event;
  }
};

TEST_F(LineTransfers, APingPongLineIsTransferredAtEveryWrite) {
  Write(0);
  counts_ = {};
  for (int i = 0; i < 100; ++i) Write(1), Write(0);
  EXPECT_EQ(counts_.dirty, 200u);
  EXPECT_EQ(counts_.invalidated, 200u);
  EXPECT_EQ(counts_.hits + counts_.memory + counts_.clean + counts_.upgrades + counts_.false_sharing, 0u);
}

TEST_F(LineTransfers, AReadAndAWriteOfALineThatAnotherCoreWroteAreOneTransferAndOneUpgrade) {
  Write(0);
  counts_ = {};
  Read(1);
  Write(1);
  EXPECT_EQ(counts_.dirty, 1u);
  EXPECT_EQ(counts_.upgrades, 1u);
  EXPECT_EQ(counts_.invalidated, 1u);
}

TEST_F(LineTransfers, APrivateLineIsFetchedOnceAndNeverTransferred) {
  for (int i = 0; i < 100; ++i) Read(0), Write(0), Write(1, kAddress + kLineBytes);
  EXPECT_EQ(counts_.memory, 2u);
  EXPECT_EQ(counts_.hits, 298u);
}

TEST_F(LineTransfers, WordsOfTwoCoresOnOneLineAreFalseSharing) {
  for (int i = 0; i < 10; ++i) Write(0), Write(1, kAddress + 8);
  EXPECT_EQ(counts_.dirty, 19u);
  EXPECT_EQ(counts_.false_sharing, 19u);
}

TEST_F(LineTransfers, AWordThatBothCoresWriteIsTrueSharingBesideOneThatIsNot) {
  for (int i = 0; i < 10; ++i) Write(0), Write(1);
  EXPECT_EQ(counts_.false_sharing, 0u);
  EXPECT_TRUE(Write(0, kAddress + 16).is_false_sharing);
}

TEST_F(LineTransfers, AReaderOfAWordThatNoOtherCoreWritesIsFalselyShared) {
  Read(1);
  for (int i = 0; i < 10; ++i) Write(0, kAddress + 8), Read(1);
  EXPECT_EQ(counts_.dirty, 10u);
  EXPECT_EQ(counts_.false_sharing, 20u);
}

TEST_F(LineTransfers, ALineWrittenByItsOnlyReaderNeedsNoUpgrade) {
  Read(0);
  EXPECT_EQ(Write(0).found, Found::kHit);
  EXPECT_EQ(Read(1).found, Found::kDirty);
}

TEST_F(LineTransfers, AnAccessBelongsToTheWordsThatItTouches) {
  model_.AccessBytes(0, kAddress + 12, 8, true);
  EXPECT_FALSE(model_.AccessBytes(1, kAddress + 8, 1, true).is_false_sharing);
  EXPECT_FALSE(model_.AccessBytes(0, kAddress + 8, 1, true).is_false_sharing);
  EXPECT_TRUE(model_.AccessBytes(1, kAddress + 63, 1, true).is_false_sharing);
}

class LineTransfersOf64Cores : public LineTransfers {
 protected:
  LineTransfersOf64Cores() : LineTransfers(64) {}
};

TEST_F(LineTransfersOf64Cores, ReadOnlySharingInvalidatesNothing) {
  for (int i = 0; i < 10; ++i) {
    for (uint32_t core = 0; core < 64; ++core) Read(core);
  }
  EXPECT_EQ(counts_.memory, 1u);
  EXPECT_EQ(counts_.clean, 63u);
  EXPECT_EQ(counts_.hits, 576u);
  EXPECT_EQ(counts_.invalidated, 0u);
}

TEST_F(LineTransfersOf64Cores, AnUpgradeInvalidatesAllOtherCopies) {
  for (uint32_t core = 0; core < 64; ++core) Read(core);
  EXPECT_EQ(Write(63).invalidated, 63u);
  for (uint32_t core = 0; core < 63; ++core) Read(core);
  EXPECT_EQ(counts_.dirty, 1u);
  EXPECT_EQ(counts_.clean, 63u + 62u);
}

TEST(LineTransfersOfAllCores, TheLastCoreIsACoreOfItsOwn) {
  Coherence model(kCoresMax, kUnlimited);
  model.AccessBytes(kCoresMax - 1, kAddress, 8, true);
  EXPECT_EQ(model.AccessBytes(0, kAddress, 8, true).found, Found::kDirty);
  EXPECT_EQ(model.AccessBytes(kCoresMax - 1, kAddress, 8, false).found, Found::kDirty);
}

// Four lines in two sets.
class LineTransfersOfSmallCaches : public LineTransfers {
 protected:
  LineTransfersOfSmallCaches() : LineTransfers(2, {2, 2}) {}
};

TEST_F(LineTransfersOfSmallCaches, LinesThatFitStay) {
  for (int i = 0; i < 10; ++i) {
    for (uintptr_t line = 0; line < 4; ++line) Write(0, kAddress + line * kLineBytes);
  }
  EXPECT_EQ(counts_.memory, 4u);
}

TEST_F(LineTransfersOfSmallCaches, AWrittenLineThatWasEvictedComesFromMemoryAndNotFromItsWriter) {
  for (uintptr_t line = 0; line < 64; ++line) Write(0, kAddress + line * kLineBytes);
  counts_ = {};
  for (uintptr_t line = 0; line < 64; ++line) Read(1, kAddress + line * kLineBytes);
  EXPECT_EQ(counts_.dirty, 4u);
  EXPECT_EQ(counts_.memory, 60u);
}

TEST_F(LineTransfersOfSmallCaches, AnInvalidatedLineLeavesItsWay) {
  Write(0);
  Write(0, kAddress + 2 * kLineBytes);  // the same set
  Write(1);
  Write(0, kAddress + 4 * kLineBytes);
  EXPECT_EQ(Write(0, kAddress + 2 * kLineBytes).found, Found::kHit);
}

}  // namespace
}  // namespace dbx::lines
