// What a restart makes of the slots of a heap, partition by partition, and that it may crash in the middle of that.
#include "storage/heap/adoption.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;

constexpr size_t kHeapBytes = 1 << 20, kExtentBytes = 2048;  // 16 slots of a line and a line of tuple
constexpr uint32_t kWorkers = 3, kTupleBytes = 40;
constexpr uint64_t kStampsEnd = 1000;
constexpr WorkerId kWorker{0};

// A database of one table over the heap of a file system.
struct Mapped {
  explicit Mapped(FaultyFileSystem& files, bool create = false, bool ordered = false)
      : memory(files.MapPersistent("heap.pm", {.create_bytes = create ? kHeapBytes : 0})),
        heap(*memory, kExtentBytes, kWorkers) {
    database.ExpectVersionHeap();
    Schema schema;
    schema.name = "T";
    schema.tuple_bytes = kTupleBytes;
    schema.expected_rows = 400;
    schema.ordered = ordered;
    table = &database.CreateTable(schema);
    constexpr heap_format::KeySpread kPartitions[] = {{.partitions = 8, .range_bits = 4}};
    database.KeepVersionsIn(heap, kPartitions);
  }
  void Restart(const GapSet& losers = {}) { adoption.emplace(database, losers, kStampsEnd); }
  std::map<Key, uint64_t> Rows() {
    std::map<Key, uint64_t> rows;
    table->ForEachRow([&](const Row& row) {
      uint64_t value;
      std::memcpy(&value, table->tuple(&row), sizeof value);
      rows[row.key] = value;
    });
    return rows;
  }

  const std::unique_ptr<PersistentMemory> memory;
  VersionHeap heap;
  Database database{RowLayout{.cc_bytes = sizeof(RowVersions)}, kWorkers};
  Table* table;
  std::optional<Adoption> adoption;
};

class AdoptionTest : public ::testing::Test {
 protected:
  // A version, durable but for `begin` where `stamp` is 0.
  HeapSlot* Write(Key key, uint64_t stamp, uint64_t value, bool absent = false) {
    HeapSlot* const slot = old_.table->versions()->Take(kWorker, key, TxnId{7});
    std::memset(slot->tuple(), 0, kTupleBytes);
    std::memcpy(slot->tuple(), &value, sizeof value);
    if (absent) slot->flags = HeapSlot::kAbsent, slot->tuple_bytes = 0;
    slot->checksum = heap_format::ChecksumOf(*slot);
    slot->begin.store(stamp);
    PersistentWriter& writer = old_.heap.writer(kWorker);
    writer.WriteBack(reinterpret_cast<const std::byte*>(slot), old_.table->versions()->slot_bytes());
    writer.Drain();
    return slot;
  }
  uint64_t Offset(const HeapSlot* slot) const {
    return static_cast<uint64_t>(reinterpret_cast<const std::byte*>(slot) - old_.memory->bytes().data());
  }
  std::unique_ptr<FaultyFileSystem> Image(Crash crash = Crash::kDurableOnly, uint64_t seed = 0) {
    return std::make_unique<FaultyFileSystem>(files_.CrashImage(crash, seed));
  }
  void Restart(const GapSet& losers = {}, uint32_t threads = 2) {
    image_ = Image();
    new_.reset();
    new_.emplace(*image_);
    new_->Restart(losers);
    new_->adoption->CheckAll(threads, /*checksums=*/true);
    new_->adoption->AdoptAll(threads);
  }
  std::string RefusalOf(const GapSet& losers = {}, bool checksums = true) {
    image_ = Image();
    new_.reset();
    new_.emplace(*image_);
    EXPECT_EQ(Caught(
                  [&] {
                    new_->Restart(losers);
                    new_->adoption->CheckAll(2, checksums);
                  },
                  what_),
              ExitStatus::kCorrupt);
    return what_;
  }
  // Slots of a heap with a stamp.
  static uint64_t Stamped(const Mapped& mapped) {
    uint64_t stamped = 0;
    for (uint32_t extent = 0; extent < mapped.heap.extent_count(); ++extent) {
      if (mapped.heap.directory()[extent].load() == 0) continue;
      for (uint32_t i = 0; i < mapped.table->versions()->slots_per_extent(); ++i) {
        stamped += mapped.table->versions()->SlotAt(extent, i)->begin.load() != 0;
      }
    }
    return stamped;
  }

  FaultyFileSystem files_;
  Mapped old_{files_, /*create=*/true};
  std::unique_ptr<FaultyFileSystem> image_;
  std::optional<Mapped> new_;
  std::string what_;
};

using Rows = std::map<Key, uint64_t>;

TEST_F(AdoptionTest, TheNewestVersionThatIsNoLosersIsTheRow) {
  Write(1, 5, 15), Write(1, 9, 19), Write(1, 7, 17);
  Write(2, 5, 25), Write(2, 20, 220);  // a loser
  Write(3, 21, 321);                   // a loser alone
  Write(4, 5, 45), Write(4, 8, 0, /*absent=*/true);
  Write(5, 8, 0, /*absent=*/true), Write(5, 9, 59);
  Write(6, 5, 65), Write(6, 22, 0, /*absent=*/true);  // a delete that is a loser's
  GapSet losers;
  losers.Add({20, 30});
  Restart(losers);
  EXPECT_EQ(new_->Rows(), (Rows{{1, 19}, {2, 25}, {5, 59}, {6, 65}}));
  EXPECT_EQ(Stamped(*new_), 4u);
  EXPECT_TRUE(new_->adoption->is_complete());
  EXPECT_FALSE(new_->table->has_rows_elsewhere());
}

TEST_F(AdoptionTest, BothEndsOfAGapAreAsTheySay) {
  Write(1, 19, 1), Write(2, 20, 2), Write(3, 29, 3), Write(4, 30, 4);
  GapSet losers;
  losers.Add({20, 30});
  Restart(losers);
  EXPECT_EQ(new_->Rows(), (Rows{{1, 1}, {4, 4}}));
}

TEST_F(AdoptionTest, WhatIsNotWantedIsDurablyFreeAndCountsAsFree) {
  for (Key key = 0; key < 100; ++key) Write(key, 5, key), Write(key, 6, key + 1000), Write(key, 500, 1);
  GapSet losers;
  losers.Add({400, 600});
  Restart(losers);
  const uint64_t slots = new_->heap.used_bytes() / 128;
  EXPECT_EQ(new_->table->versions()->free_slots(), slots - 100);
  // A further restart without the gap finds the same: nothing of the losers is left.
  FaultyFileSystem again(image_->CrashImage(Crash::kDurableOnly));
  Mapped third(again);
  third.Restart();
  third.adoption->AdoptAll(1);
  EXPECT_EQ(third.Rows(), new_->Rows());
  EXPECT_EQ(Stamped(third), 100u);
}

TEST_F(AdoptionTest, ACrashInTheMiddleLeavesTheSameRows) {
  Random random(5);
  for (Key key = 0; key < 60; ++key) {
    for (uint64_t stamp = 2 + random.Next() % 3; stamp < 30; stamp += 1 + random.Next() % 9) {
      Write(key, stamp, 100 * key + stamp, random.Next() % 4 == 0);
    }
  }
  GapSet losers;
  losers.Add({7, 9}), losers.Add({15, 21});
  Restart(losers);
  const Rows expected = new_->Rows();
  uint64_t other = 0;
  for (int drain = 1; drain < 40; ++drain) {
    const auto files = Image();
    Mapped cut(*files);
    cut.Restart(losers);
    files->Fail(FaultyFileSystem::Operation::kSync, drain, EIO);
    if (Caught([&] { cut.adoption->AdoptAll(1); }, what_) == ExitStatus::kOk) break;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      FaultyFileSystem crashed(files->CrashImage(Crash::kSubset, seed));
      Mapped next(crashed);
      next.Restart(losers);
      next.adoption->AdoptAll(1);
      ASSERT_EQ(next.Rows(), expected) << drain << " " << seed;
      ++other;
    }
  }
  EXPECT_GT(other, 20u);
}

// The process was killed before it drained what it had freed, or the word of an extent: the next one sees them.
TEST_F(AdoptionTest, WhatLooksFreeIsMadeDurablyFree) {
  HeapSlot* const slot = Write(1, 5, 15);
  Write(1, 6, 16);
  slot->begin.store(0);  // never written back
  const auto killed = files_.AfterKill();
  Mapped next(*killed);
  next.Restart();
  next.adoption->AdoptAll(1);
  ASSERT_EQ(next.Rows(), (Rows{{1, 16}}));
  FaultyFileSystem crashed(killed->CrashImage(Crash::kDurableOnly));
  Mapped last(crashed);
  EXPECT_EQ(Stamped(last), 1u);
}

TEST_F(AdoptionTest, AnOwnerThatWasNotDrainedIsMadeDurable) {
  auto& word = const_cast<Atomic<uint64_t>&>(old_.heap.directory()[3]);
  word.store(heap_format::OwnerWord(TableId(0), 2));  // never written back
  const auto killed = files_.AfterKill();
  Mapped next(*killed);
  next.Restart();
  next.adoption->AdoptAll(1);
  EXPECT_GT(next.table->versions()->free_slots(), 0u);
  FaultyFileSystem crashed(killed->CrashImage(Crash::kDurableOnly));
  Mapped last(crashed);
  EXPECT_EQ(last.heap.directory()[3].load(), word.load());
}

TEST_F(AdoptionTest, ATombstoneIsFreedAfterWhatItHides) {
  Write(1, 5, 15);
  Write(1, 9, 0, /*absent=*/true);
  const auto files = Image();
  Mapped cut(*files);
  cut.Restart();
  // The second Drain is that of tombstones.
  files->Fail(FaultyFileSystem::Operation::kSync, 2, EIO);
  EXPECT_EQ(Caught([&] { cut.adoption->AdoptAll(1); }, what_), ExitStatus::kIo);
  FaultyFileSystem crashed(files->CrashImage(Crash::kDurableOnly));
  Mapped next(crashed);
  EXPECT_EQ(Stamped(next), 1u);
  next.Restart();
  next.adoption->AdoptAll(1);
  EXPECT_TRUE(next.Rows().empty());
}

TEST_F(AdoptionTest, APartitionIsAdoptedWhenItIsNeededAndOnlyThen) {
  for (Key key = 0; key < 300; ++key) Write(key, 5, key);
  image_ = Image();
  new_.emplace(*image_);
  new_->Restart();
  Table& table = *new_->table;
  ASSERT_EQ(table.versions()->partition_count(), 8u);
  EXPECT_EQ(table.Find(17), nullptr);
  EXPECT_TRUE(table.has_rows_elsewhere());
  table.EnsureRow(kWorker, 17);
  ASSERT_NE(table.Find(17), nullptr);
  for (Key key = 0; key < 300; ++key) {
    EXPECT_EQ(table.Find(key) != nullptr, table.versions()->PartitionOf(key) == table.versions()->PartitionOf(17));
  }
  table.EnsureRow(kWorker, 17);
  std::set<uint64_t> partitions;
  for (Key key = 0; key < 300; ++key) partitions.insert(table.versions()->PartitionOf(key));
  uint64_t swept = 0;
  while (new_->adoption->SweepOne(kWorker)) ++swept;
  EXPECT_EQ(swept, partitions.size() - 1);
  EXPECT_TRUE(new_->adoption->is_complete());
  EXPECT_EQ(new_->Rows().size(), 300u);
}

TEST_F(AdoptionTest, AScanAdoptsTheRangesOfKeysThatItEntersAndNoOthers) {
  for (Key key = 0; key < 300; ++key) Write(key, 5, key);
  image_ = Image();
  for (const auto& [low, high] : {std::pair<Key, Key>{17, 17}, {15, 16}, {40, 90}, {0, 1000}, {5, ~Key{0}}}) {
    new_.reset();
    new_.emplace(*image_);
    new_->Restart();
    Table& table = *new_->table;
    std::set<uint64_t> entered;
    for (Key range = low / 16; range <= std::min<Key>(high / 16, 1000); ++range) {
      entered.insert(table.versions()->PartitionOf(range * 16));
    }
    table.EnsureRange(kWorker, low, high);
    for (Key key = 0; key < 300; ++key) {
      EXPECT_EQ(table.Find(key) != nullptr, entered.contains(table.versions()->PartitionOf(key))) << low << " " << key;
    }
  }
}

TEST_F(AdoptionTest, SeveralThreadsAdoptEachPartitionOnceAndMissNothing) {
  for (Key key = 0; key < 400; ++key) Write(key, 5, key), Write(key, 6, key);
  for (int round = 0; round < 20; ++round) {
    image_ = Image();
    new_.reset();
    new_.emplace(*image_);
    new_->Restart();
    std::vector<std::thread> threads;
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        Random random(worker + 10 * round);
        for (int i = 0; i < 200; ++i) {
          const Key key = random.Next() % 400;
          if (new_->table->Find(key) == nullptr) new_->table->EnsureRow(WorkerId(worker), key);
          EXPECT_NE(new_->table->Find(key), nullptr);
          if (i % 50 == 0) new_->adoption->SweepOne(WorkerId(worker));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    new_->table->EnsureRange(kWorker, 0, 400);
    ASSERT_EQ(new_->Rows().size(), 400u);
    ASSERT_EQ(new_->table->versions()->free_slots(), new_->heap.used_bytes() / 128 - 400);
  }
}

TEST_F(AdoptionTest, AfterAFailureNothingIsAdoptedTwiceAndAllThreadsHearOfIt) {
  for (Key key = 0; key < 20; ++key) Write(key, 5, key), Write(key, 6, key);
  image_ = Image();
  new_.emplace(*image_);
  new_->Restart();
  image_->Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Caught([&] { new_->table->EnsureRow(WorkerId(i), 3); }, what_), ExitStatus::kIo);
  }
  EXPECT_EQ(new_->table->Find(3), nullptr);
  EXPECT_FALSE(new_->adoption->is_complete());
}

TEST_F(AdoptionTest, SlotsThatNoTransactionLeavesAreRefused) {
  HeapSlot* const slot = Write(1, 5, 15);
  const std::string place = "heap.pm@" + std::to_string(Offset(slot)) + ": a slot of table T with stamp ";
  const auto refused_after = [&](auto&& spoil, const std::string& why) {
    alignas(HeapSlot) std::byte saved[sizeof(HeapSlot)];
    std::memcpy(saved, static_cast<const void*>(slot), sizeof saved);
    spoil();
    PersistentWriter& writer = old_.heap.writer(kWorker);
    writer.WriteBack(reinterpret_cast<const std::byte*>(slot), sizeof(HeapSlot));
    writer.Drain();
    EXPECT_EQ(RefusalOf(), place + why);
    std::memcpy(static_cast<void*>(slot), saved, sizeof saved);
  };
  refused_after([&] { slot->begin.store(kStampsEnd); }, "1000: its stamp was never promised");
  refused_after([&] { slot->table = TableId(3); }, "5: it says that it is of another table");
  refused_after([&] { slot->flags = 2; }, "5: its tuple has another size than its table's");
  refused_after([&] { slot->tuple_bytes = 8; }, "5: its tuple has another size than its table's");
  refused_after([&] { slot->flags = HeapSlot::kAbsent; }, "5: its tuple has another size than its table's");
  refused_after([&] { slot->txn.value ^= 1; }, "5: its checksum does not match");
  Key other = 2;
  while (old_.table->versions()->PartitionOf(other) == old_.table->versions()->PartitionOf(1)) ++other;
  refused_after([&] { slot->key = other; }, "5: its key is of another partition");
}

TEST_F(AdoptionTest, AStampTwiceOnAKeyIsRefused) {
  Write(1, 5, 15);
  Write(1, 5, 16);
  EXPECT_NE(RefusalOf().find("its stamp is twice on its key"), std::string::npos);
}

TEST_F(AdoptionTest, TheFieldsOfALoserMayBeAnything) {
  Write(1, 4, 14);
  HeapSlot* const loser = Write(1, 20, 15);
  loser->table = TableId(77), loser->flags = 0xFFFF, loser->tuple_bytes = ~0u, loser->key = 99;
  old_.heap.writer(kWorker).WriteBack(reinterpret_cast<const std::byte*>(loser), sizeof(HeapSlot));
  old_.heap.writer(kWorker).Drain();
  GapSet losers;
  losers.Add({20, 21});
  Restart(losers);
  EXPECT_EQ(new_->Rows(), (Rows{{1, 14}}));
}

TEST_F(AdoptionTest, ADirectoryThatNamesAPartitionThatIsNotThereIsRefused) {
  Write(1, 5, 15);
  old_.heap.TakeExtent(kWorker, TableId(0), 8);
  EXPECT_NE(RefusalOf().find("belongs to partition 8 of table 0, which has 8"), std::string::npos);
}

TEST_F(AdoptionTest, ADirectoryThatNamesATableThatIsNotThereIsRefused) {
  Write(1, 5, 15);
  old_.heap.TakeExtent(kWorker, TableId(1), 0);
  EXPECT_NE(RefusalOf().find("belongs to table 1, and there are 1"), std::string::npos);
}

}  // namespace
}  // namespace dbx
