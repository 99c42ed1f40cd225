#include "storage/heap/version_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;

class VersionHeapTest : public ::testing::Test {
 protected:
  static constexpr size_t kExtentBytes = 1024;
  static constexpr WorkerId kWorker{0};

  void Make(size_t bytes) {
    memory_ = files_.MapPersistent("heap", {.create_bytes = bytes});
    heap_.emplace(*memory_, kExtentBytes, 2);
  }
  // The word of the extent's owner in what a power failure leaves.
  uint64_t DurableOwner(uint32_t extent) {
    uint64_t word = 0;
    const auto at = reinterpret_cast<const std::byte*>(&heap_->directory()[extent]) - memory_->bytes().data();
    files_.CrashImage(Crash::kDurableOnly)
        .files.at("heap")
        .Read(static_cast<uint64_t>(at), std::as_writable_bytes(std::span(&word, 1)));
    return word;
  }

  FaultyFileSystem files_;
  std::unique_ptr<PersistentMemory> memory_;
  std::optional<VersionHeap> heap_;
  std::string what_;
};

TEST_F(VersionHeapTest, ExtentsLieBehindTheDirectoryWithinTheMemory) {
  for (const size_t bytes : {16 << 10, 64 << 10, 1 << 20}) {
    Make(bytes);
    const uint32_t count = heap_->extent_count();
    EXPECT_GE(count * (kExtentBytes + 8) + 3 * 4096 + kExtentBytes, bytes) << "no extent more would fit";
    const std::byte* const base = memory_->bytes().data();
    const auto* const first = reinterpret_cast<const std::byte*>(heap_->SlotAt(0, 0, 64));
    const auto* const last = reinterpret_cast<const std::byte*>(heap_->SlotAt(count - 1, kExtentBytes / 64 - 1, 64));
    EXPECT_GE(first, base + 8192 + count * 8);
    EXPECT_LE(last + 64, base + bytes);
    for (const uint32_t extent : {0u, count - 1}) {
      EXPECT_EQ(heap_->ExtentOf(heap_->SlotAt(extent, 3, 128)), extent);
      EXPECT_EQ(heap_->ExtentOf(heap_->SlotAt(extent, kExtentBytes / 64 - 1, 64)), extent);
    }
    heap_.reset();
    files_.Remove("heap");
  }
}

TEST_F(VersionHeapTest, AnOwnerIsDurableWhenTheExtentIsTakenAndNoneWhenItIsReturned) {
  Make(64 << 10);
  const uint32_t extent = heap_->TakeExtent(kWorker, TableId(3), 77);
  const uint64_t word = DurableOwner(extent);
  EXPECT_EQ(heap_format::TableOf(word), TableId(3));
  EXPECT_EQ(heap_format::PartitionOf(word), 77u);
  EXPECT_EQ(heap_->used_bytes(), kExtentBytes);
  heap_->ReturnExtent(kWorker, extent);
  EXPECT_EQ(DurableOwner(extent), 0u);
  EXPECT_EQ(heap_->used_bytes(), 0u);
  EXPECT_EQ(heap_->TakeExtent(WorkerId(1), TableId(0), 0), extent) << "it is taken again";
  EXPECT_EQ(DurableOwner(extent), heap_format::OwnerWord(TableId(0), 0));
}

TEST_F(VersionHeapTest, OwnersAndTuplesOfALoadAreDurableAtItsEnd) {
  Make(64 << 10);
  heap_->BeginLoad();
  std::vector<uint32_t> extents;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    extents.push_back(heap_->TakeExtent(WorkerId(worker), TableId(1), worker));
    HeapSlot* const slot = heap_->SlotAt(extents[worker], 0, 128);
    slot->begin.store(heap_format::kLoadStamp);
    heap_->writer(WorkerId(worker)).WriteBack(reinterpret_cast<const std::byte*>(slot), 128);
  }
  for (const uint32_t extent : extents) EXPECT_EQ(DurableOwner(extent), 0u);
  heap_->EndLoad();
  const auto image = files_.CrashImage(Crash::kDurableOnly).files.at("heap").All();
  for (uint32_t worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(DurableOwner(extents[worker]), heap_format::OwnerWord(TableId(1), worker));
    const auto* const slot = reinterpret_cast<const std::byte*>(heap_->SlotAt(extents[worker], 0, 128));
    EXPECT_EQ(image.at(slot - memory_->bytes().data()), std::byte{heap_format::kLoadStamp});
  }
  EXPECT_EQ(DurableOwner(heap_->TakeExtent(kWorker, TableId(1), 7)), heap_format::OwnerWord(TableId(1), 7));
}

TEST_F(VersionHeapTest, PrefaultChangesNothingAndEndsWithTheHeap) {
  Make(64 << 10);
  const uint32_t first = heap_->TakeExtent(kWorker, TableId(3), 0);
  std::memset(reinterpret_cast<std::byte*>(heap_->SlotAt(first, 0, 0)), 0x55, kExtentBytes);
  for (const size_t bytes : {size_t{1}, kExtentBytes + 1, size_t{1} << 20, size_t{1} << 20}) heap_->Prefault(bytes);
  EXPECT_EQ(heap_->used_bytes(), kExtentBytes);
  const auto* const bytes = reinterpret_cast<const std::byte*>(heap_->SlotAt(first, 0, 0));
  for (size_t at = 0; at < kExtentBytes; ++at) ASSERT_EQ(bytes[at], std::byte{0x55}) << at;
  for (size_t at = kExtentBytes; at < 2 * kExtentBytes; ++at) ASSERT_EQ(bytes[at], std::byte{0}) << at;
  EXPECT_EQ(heap_->TakeExtent(kWorker, TableId(3), 0), first + 1);
}

TEST_F(VersionHeapTest, AnExtentThatIsReturnedIsDurablyZero) {
  Make(64 << 10);
  const uint32_t extent = heap_->TakeExtent(kWorker, TableId(3), 77);
  std::byte* const bytes = reinterpret_cast<std::byte*>(heap_->SlotAt(extent, 0, 0));
  std::memset(bytes, 0x55, kExtentBytes);
  heap_->writer(kWorker).WriteBack(bytes, kExtentBytes);
  heap_->writer(kWorker).Drain();
  heap_->ReturnExtent(kWorker, extent);
  const auto image = files_.CrashImage(Crash::kDurableOnly).files.at("heap").All();
  const std::byte* const durable = image.data() + (bytes - memory_->bytes().data());
  for (size_t at = 0; at < kExtentBytes; ++at) ASSERT_EQ(durable[at], std::byte{0}) << at;
}

TEST_F(VersionHeapTest, AFullHeapIsAnErrorThatNamesTheSwitch) {
  Make(16 << 10);
  std::set<uint32_t> taken;
  for (uint32_t i = 0; i < heap_->extent_count(); ++i) taken.insert(heap_->TakeExtent(kWorker, TableId(0), i));
  EXPECT_EQ(taken.size(), heap_->extent_count());
  EXPECT_EQ(Caught([&] { heap_->TakeExtent(kWorker, TableId(0), 0); }, what_), ExitStatus::kNoSpace);
  EXPECT_EQ(what_, "the heap is full: all " + std::to_string(taken.size()) +
                       " extents are in use; a larger --heap_bytes has more");
  heap_->ReturnExtent(kWorker, 1);
  EXPECT_EQ(heap_->TakeExtent(kWorker, TableId(0), 0), 1u);
}

TEST_F(VersionHeapTest, MemoryWithoutRoomForAnExtentIsRefused) {
  EXPECT_EQ(Caught([&] { Make(12 << 10); }, what_), ExitStatus::kUsage);
  EXPECT_EQ(what_, "a heap of 12288 bytes is too small for an extent of 1024 bytes");
}

}  // namespace
}  // namespace dbx
