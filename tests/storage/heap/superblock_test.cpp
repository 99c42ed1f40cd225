#include "storage/heap/superblock.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;

class SuperblockTest : public ::testing::Test {
 protected:
  SuperblockTest() {
    superblock_.heap_id = 11, superblock_.database_id = 12, superblock_.schema_hash = 13;
    superblock_.heap_bytes = kBytes, superblock_.extent_bytes = 64 << 10;
    superblock_.tables = {{7, 1000}, {1, 16, 9}};
  }

  Superblock Read() { return ReadSuperblock(memory_->bytes(), "heap.pm"); }
  void Flip(size_t at) { memory_->bytes()[at] ^= std::byte{4}; }

  static constexpr size_t kBytes = 1 << 20;
  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("heap.pm", {.create_bytes = kBytes});
  Superblock superblock_;
  std::string what_;
};

TEST_F(SuperblockTest, WhatIsWrittenIsDurableAndReadAgain) {
  WriteSuperblock(*memory_, superblock_);
  EXPECT_EQ(Read(), superblock_);
  FaultyFileSystem crashed(files_.CrashImage(Crash::kDurableOnly));
  EXPECT_EQ(ReadSuperblock(crashed.MapPersistent("heap.pm", {})->bytes(), "heap.pm"), superblock_);
}

TEST_F(SuperblockTest, ACrashInAChangeLeavesTheOldOneOrTheNewOne) {
  WriteSuperblock(*memory_, superblock_);
  Superblock loaded = superblock_;
  loaded.state = Superblock::State::kLoaded;
  // The power fails at the Drain of the first copy, or of the second one.
  for (const int drain : {1, 2}) {
    WriteSuperblock(*memory_, superblock_);
    files_.Fail(FaultyFileSystem::Operation::kSync, drain, EIO);
    EXPECT_EQ(Caught([&] { WriteSuperblock(*memory_, loaded); }, what_), ExitStatus::kIo);
    for (uint64_t seed = 0; seed < 50; ++seed) {
      FaultyFileSystem crashed(files_.CrashImage(Crash::kSubset, seed));
      const auto memory = crashed.MapPersistent("heap.pm", {});
      const Superblock found = ReadSuperblock(memory->bytes(), "heap.pm");
      EXPECT_TRUE(found == superblock_ || found == loaded);
    }
  }
}

TEST_F(SuperblockTest, OneDamagedCopyIsMadeUpForAndTwoAreRefused) {
  WriteSuperblock(*memory_, superblock_);
  Flip(100);
  EXPECT_EQ(Read(), superblock_);
  Flip(4096 + 30);
  EXPECT_EQ(Caught([&] { Read(); }, what_), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "heap.pm@0: both superblocks are damaged");
}

TEST_F(SuperblockTest, AHeapOfAnotherSizeOrOfAnImpossibleShapeIsRefused) {
  superblock_.heap_bytes = kBytes / 2;
  WriteSuperblock(*memory_, superblock_);
  EXPECT_EQ(Caught([&] { Read(); }, what_), ExitStatus::kCorrupt);
  EXPECT_EQ(what_, "heap.pm@0: the file has 1048576 bytes, and its superblock says 524288");
  for (const auto& spoil : std::initializer_list<void (*)(Superblock&)>{
           [](Superblock& block) { block.extent_bytes = 1000; },
           [](Superblock& block) { block.extent_bytes = kBytes * 2; },
           [](Superblock& block) { block.tables[0].partitions = 0; },
           [](Superblock& block) { block.tables[0].partitions = uint64_t{1} << 48; },
           [](Superblock& block) { block.tables[1].tuple_bytes = 1 << 20; },
           [](Superblock& block) { block.tables[1].range_bits = 64; },
           [](Superblock& block) { block.state = Superblock::State{3}; }}) {
    Superblock spoilt = superblock_;
    spoilt.heap_bytes = kBytes;
    spoil(spoilt);
    WriteSuperblock(*memory_, spoilt);
    EXPECT_EQ(Caught([&] { Read(); }, what_), ExitStatus::kCorrupt);
    EXPECT_EQ(what_, "heap.pm@0: no heap has this shape");
  }
  EXPECT_EQ(Caught([&] { ReadSuperblock(memory_->bytes().first(5000), "heap.pm"); }, what_), ExitStatus::kCorrupt);
}

}  // namespace
}  // namespace dbx
