#include "storage/heap/table_versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

class TableVersionsTest : public ::testing::Test {
 protected:
  static constexpr size_t kExtentBytes = 2048;  // 16 slots of a line and a line of tuple
  static constexpr uint32_t kSlots = 16;
  static constexpr WorkerId kWorker{0};

  HeapSlot* Take(Key key) { return versions_.Take(kWorker, key, TxnId{5}); }
  // Keys of the partition of key 0.
  std::vector<Key> Neighbours(size_t count) {
    std::vector<Key> keys;
    for (Key key = 0; keys.size() < count; ++key) {
      if (versions_.PartitionOf(key) == versions_.PartitionOf(0)) keys.push_back(key);
    }
    return keys;
  }

  FaultyFileSystem files_;
  const std::unique_ptr<PersistentMemory> memory_ = files_.MapPersistent("heap", {.create_bytes = 128 << 10});
  VersionHeap heap_{*memory_, kExtentBytes, 4};
  TableVersions versions_{heap_, TableId(2), 50, {8}};
  std::string what_;
};

TEST_F(TableVersionsTest, ASlotHasItsHeaderAndIsFreeInThePersistentSense) {
  HeapSlot* const slot = Take(7);
  EXPECT_EQ(slot->key, 7u);
  EXPECT_EQ(slot->txn, TxnId{5});
  EXPECT_EQ(slot->table, TableId(2));
  EXPECT_EQ(slot->tuple_bytes, 50u);
  EXPECT_FALSE(slot->absent());
  EXPECT_EQ(slot->begin.load(), 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slot) % 64, 0u);
}

TEST_F(TableVersionsTest, ThePartitionsOfKeysAreUsedAlikeAndOwnTheirExtents) {
  std::map<uint64_t, int> used;
  for (Key key = 0; key < 800; ++key) ++used[versions_.PartitionOf(key)];
  ASSERT_EQ(used.size(), 8u);
  for (const auto& [partition, keys] : used) EXPECT_NEAR(keys, 100, 40);
  for (Key key = 0; key < 200; ++key) {
    const uint64_t word = heap_.directory()[heap_.ExtentOf(Take(key))].load();
    EXPECT_EQ(heap_format::TableOf(word), TableId(2));
    EXPECT_EQ(heap_format::PartitionOf(word), versions_.PartitionOf(key));
  }
}

TEST_F(TableVersionsTest, AFreeSlotIsTakenAgainBeforeAnotherExtent) {
  std::set<HeapSlot*> slots;
  for (const Key key : Neighbours(kSlots)) slots.insert(Take(key));
  EXPECT_EQ(slots.size(), kSlots);
  EXPECT_EQ(heap_.used_bytes(), kExtentBytes);
  EXPECT_EQ(versions_.free_slots(), 0u);
  HeapSlot* const freed = *slots.begin();
  versions_.Free(kWorker, freed);
  EXPECT_EQ(Take(0), freed);
  Take(0);
  EXPECT_EQ(heap_.used_bytes(), 2 * kExtentBytes);
}

TEST_F(TableVersionsTest, AnExtentOfFreeSlotsServesAnyPartitionButForTheLast) {
  std::vector<HeapSlot*> slots;
  for (const Key key : Neighbours(2 * kSlots)) slots.push_back(Take(key));
  EXPECT_EQ(heap_.used_bytes(), 2 * kExtentBytes);
  for (HeapSlot* const slot : slots) versions_.Free(kWorker, slot);
  EXPECT_EQ(heap_.used_bytes(), kExtentBytes);
  EXPECT_EQ(versions_.free_slots(), kSlots);
  Key other = 0;
  while (versions_.PartitionOf(other) == versions_.PartitionOf(0)) ++other;
  HeapSlot* const slot = Take(other);
  EXPECT_EQ(heap_.used_bytes(), 2 * kExtentBytes);
  EXPECT_NE(std::find(slots.begin(), slots.end(), slot), slots.end()) << "the same memory";
  EXPECT_EQ(heap_format::PartitionOf(heap_.directory()[heap_.ExtentOf(slot)].load()), versions_.PartitionOf(other));
}

TEST_F(TableVersionsTest, SlotsOfEveryExtentAreTakenAgain) {
  std::vector<HeapSlot*> slots;
  const std::vector<Key> keys = Neighbours(3 * kSlots);
  for (const Key key : keys) slots.push_back(Take(key));
  ASSERT_EQ(heap_.used_bytes(), 3 * kExtentBytes);
  std::set<HeapSlot*> freed;
  // Of each extent half; the last is the one that slots are taken from.
  for (size_t i = 0; i < slots.size(); i += 2) freed.insert(slots[i]), versions_.Free(kWorker, slots[i]);
  EXPECT_EQ(versions_.free_slots(), freed.size());
  for (size_t i = 0; i < slots.size(); i += 2) EXPECT_EQ(freed.erase(Take(keys[i])), 1u);
  EXPECT_EQ(heap_.used_bytes(), 3 * kExtentBytes);
  EXPECT_EQ(versions_.free_slots(), 0u);
}

TEST_F(TableVersionsTest, TheExtentThatSlotsAreTakenFromIsReturnedToo) {
  std::vector<HeapSlot*> slots;
  for (const Key key : Neighbours(2 * kSlots)) slots.push_back(Take(key));
  // First one of the first extent, so that the other, once it is free, is not needed.
  versions_.Free(kWorker, slots[0]);
  for (size_t i = kSlots; i < 2 * kSlots; ++i) versions_.Free(kWorker, slots[i]);
  EXPECT_EQ(heap_.used_bytes(), kExtentBytes);
  EXPECT_EQ(versions_.free_slots(), 1u);
  EXPECT_EQ(Take(0), slots[0]);
}

// Each return is a walk along the list.
TEST_F(TableVersionsTest, ExtentsThatAreAllFreeAreReturnedTogetherOnceTheyAreHalfOfTheFreeSlots) {
  std::vector<HeapSlot*> slots;
  const std::vector<Key> keys = Neighbours(6 * kSlots);
  for (const Key key : keys) slots.push_back(Take(key));
  const auto free = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) versions_.Free(kWorker, slots[i]);
  };
  for (size_t extent = 0; extent < 5; ++extent) free(extent * kSlots, extent * kSlots + kSlots / 2);
  free(5 * kSlots, 6 * kSlots);
  EXPECT_EQ(heap_.used_bytes(), 6 * kExtentBytes);
  free(4 * kSlots + kSlots / 2, 5 * kSlots);
  EXPECT_EQ(heap_.used_bytes(), 4 * kExtentBytes);
  EXPECT_EQ(versions_.free_slots(), 2 * kSlots);
  std::set<HeapSlot*> taken;
  for (size_t i = 0; i < 2 * kSlots; ++i) taken.insert(Take(keys[i]));
  EXPECT_EQ(taken.size(), 2 * kSlots);
  EXPECT_EQ(heap_.used_bytes(), 4 * kExtentBytes);
  EXPECT_EQ(versions_.free_slots(), 0u);
}

TEST_F(TableVersionsTest, NoSlotIsTakenByTwoThreads) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      Random random(t);
      std::vector<HeapSlot*> mine;
      for (int i = 0; i < 20'000; ++i) {
        if (mine.size() < 50 && random.Next() % 2 == 0) {
          mine.push_back(versions_.Take(WorkerId(t), random.Next() % 100, TxnId{t}));
          *reinterpret_cast<uint64_t*>(mine.back()->tuple()) = t;
        } else if (!mine.empty()) {
          std::swap(mine[random.Next() % mine.size()], mine.back());
          HeapSlot* const slot = mine.back();
          mine.pop_back();
          ASSERT_EQ(*reinterpret_cast<uint64_t*>(slot->tuple()), t);
          ASSERT_EQ(slot->txn, TxnId{t});
          versions_.Free(WorkerId(t), slot);
        }
      }
      for (HeapSlot* const slot : mine) versions_.Free(WorkerId(t), slot);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(versions_.free_slots() * heap_format::SlotBytes(50), heap_.used_bytes());
  EXPECT_LE(heap_.used_bytes(), 8 * kExtentBytes) << "one for each partition";
}

TEST_F(TableVersionsTest, TuplesThatAreTooLargeForTheExtentsAreRefused) {
  EXPECT_EQ(Caught([&] { TableVersions(heap_, TableId(0), 65, {1}); }, what_), ExitStatus::kUsage);
  EXPECT_EQ(
      what_,
      "tuples of 65 bytes are too large for a heap with extents of 2048 bytes, which are to hold 16 versions each");
}

}  // namespace
}  // namespace dbx
