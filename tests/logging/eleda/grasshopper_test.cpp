// GRASSHOPPER against a model that knows every filled byte: single-threaded steps of the roles in random and in chosen
// orders, and producers on threads of their own.
#include "logging/eleda/grasshopper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>

namespace dbx {
namespace {

constexpr uint64_t kStart = 12288;  // no multiple of the distances

// A log without bytes: places are taken and filled by steps of single producers, as LogStream and its users do it.
class Field {
 public:
  Field(uint32_t producers, uint64_t distance, uint64_t ring, size_t nodes_max = 1 << 12)
      : ring_(ring),
        index_(distance, ring, kStart),
        lists_(MakeLists(producers, nodes_max)),
        open_(producers),
        grasshopper_(index_, lists_, kStart) {}

  bool CanReserve(uint32_t producer, uint32_t bytes) {
    Collect(producer);
    return !open_[producer] && lists_[producer]->HasSpace() && reserved_ + bytes <= sdl_ + ring_;
  }
  LogPlace Reserve(uint32_t producer, uint32_t bytes) {
    const LogPlace place{reserved_, bytes};
    reserved_ += bytes;
    places_.push_back({place.end(), false});
    open_[producer] = place;
    return place;
  }
  void Fill(uint32_t producer) {
    const LogPlace place = *std::exchange(open_[producer], std::nullopt);
    lists_[producer]->Enqueue(place, true);
    awaited_ += 1;
    for (Place& known : places_) {
      if (known.end == place.end()) known.filled = true;
    }
  }
  void FillAll() {
    for (uint32_t p = 0; p < open_.size(); ++p) {
      if (open_[p]) Fill(p);
    }
  }
  // What SBL must be after an Advance: everything up to the first hole, and nothing behind it.
  void AdvanceAndCheck() {
    grasshopper_.Advance(reserved_);
    while (!places_.empty() && places_.front().filled) {
      expected_ = places_.front().end;
      places_.pop_front();
    }
    ASSERT_EQ(grasshopper_.sbl(), expected_);
  }
  // All that is filled becomes durable, at once or in part.
  void Flush(uint64_t sdl) {
    ASSERT_LE(sdl, grasshopper_.sbl());
    sdl_ = std::max(sdl_, sdl);
  }
  void Collect(uint32_t producer) {
    lists_[producer]->Collect(sdl_, [&](uint64_t end) {
      EXPECT_LE(end, sdl_);
      ++called_back_;
    });
  }
  void CollectAll() {
    for (uint32_t p = 0; p < lists_.size(); ++p) Collect(p);
  }

  bool is_open(uint32_t producer) const { return open_[producer].has_value(); }
  uint64_t reserved() const { return reserved_; }
  uint64_t sdl() const { return sdl_; }
  uint64_t awaited() const { return awaited_; }
  uint64_t called_back() const { return called_back_; }
  Grasshopper& grasshopper() { return grasshopper_; }
  GrasshopperList& list(uint32_t producer) { return *lists_[producer]; }
  HoppingIndex& index() { return index_; }

 private:
  struct Place {
    uint64_t end;
    bool filled;
  };
  std::vector<std::unique_ptr<GrasshopperList>> MakeLists(uint32_t producers, size_t nodes_max) {
    std::vector<std::unique_ptr<GrasshopperList>> lists;
    for (uint32_t p = 0; p < producers; ++p) lists.push_back(std::make_unique<GrasshopperList>(index_, nodes_max));
    return lists;
  }

  const uint64_t ring_;
  HoppingIndex index_;
  std::vector<std::unique_ptr<GrasshopperList>> lists_;
  std::vector<std::optional<LogPlace>> open_;
  Grasshopper grasshopper_;
  std::deque<Place> places_;
  uint64_t reserved_ = kStart, sdl_ = kStart, expected_ = kStart;
  uint64_t awaited_ = 0, called_back_ = 0;
};

TEST(Grasshopper, CrawlsOverWhatIsFilledAndStopsAtAHole) {
  Field field(2, 1 << 20, 1 << 22);
  field.Reserve(0, 64);
  field.Reserve(1, 128);
  field.Fill(1);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), kStart);
  field.Fill(0);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
  EXPECT_EQ(field.grasshopper().counters().hopped_bytes, 0u);
}

TEST(Grasshopper, HopsOverCompleteRangesAndCrawlsTheRest) {
  Field field(3, 4096, 1 << 16);
  for (int i = 0; i < 100; ++i) field.Reserve(i % 3, 104), field.Fill(i % 3);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
  const CentralCounters counters = field.grasshopper().counters();
  EXPECT_EQ(counters.hopped_bytes + counters.crawled_bytes, 10400u);
  EXPECT_GE(counters.hopped_bytes, 8192u);
  EXPECT_EQ(counters.hopped_records + counters.crawled_records, 100u);
}

// The boundary lies within a record: SBL goes to the record's end, not to the boundary.
TEST(Grasshopper, AHopEndsBehindTheRecordThatStraddlesTheBoundary) {
  Field field(2, 4096, 1 << 16);
  field.Reserve(0, 4000), field.Fill(0);
  const LogPlace straddler = field.Reserve(1, 200);
  field.Fill(1);
  field.Reserve(0, 64);  // a hole right behind it
  field.Reserve(1, 64), field.Fill(1);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), straddler.end());
  EXPECT_GT(field.grasshopper().counters().hopped_bytes, 0u);
}

// Counted whole where it starts, the straddler's bytes would make up for the hole.
TEST(Grasshopper, AStraddlerDoesNotMakeUpForAHoleOfItsSize) {
  Field field(2, 4096, 1 << 16);
  field.Reserve(0, 104);  // the hole
  field.Reserve(1, 4096 - 104 - 96), field.Fill(1);
  field.Reserve(1, 96 + 104), field.Fill(1);
  field.Reserve(1, 4096), field.Fill(1);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), kStart);
  field.Fill(0);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
}

TEST(Grasshopper, ARecordMayBeLongerThanManyRanges) {
  Field field(2, 512, 1 << 16);
  for (int i = 0; i < 8; ++i) {
    field.Reserve(0, 40 + 8 * i), field.Reserve(1, 5000);
    field.Fill(1);
    field.AdvanceAndCheck();
    field.Fill(0);
    field.AdvanceAndCheck();
    field.Flush(field.grasshopper().sbl());
  }
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
}

// A filler stops after it has appended its node and before it adds to the index (section 4.1.2, between steps 1 and 3):
// its record is crawled over and durable when its bytes are counted, laps later.
TEST(Grasshopper, ACountThatComesLateOnlyDelaysHops) {
  constexpr uint64_t kRing = 1 << 14;
  HoppingIndex index(4096, kRing, kStart), elsewhere(4096, kRing, kStart);
  std::vector<std::unique_ptr<GrasshopperList>> lists;
  lists.push_back(std::make_unique<GrasshopperList>(index, 1 << 10));
  lists.push_back(std::make_unique<GrasshopperList>(elsewhere, 1 << 10));  // its counts do not reach `index`
  Grasshopper grasshopper(index, lists, kStart);
  lists[1]->Enqueue({kStart, 64}, true);
  uint64_t at = kStart + 64;
  for (; at < kStart + 64 + 3 * kRing; at += 256) {
    lists[0]->Enqueue({at, 256}, true);
    grasshopper.Advance(at + 256);
    ASSERT_EQ(grasshopper.sbl(), at + 256);
    lists[0]->Collect(at, [](uint64_t) {});
  }
  index.Add({kStart, 64});                    // now it comes, laps later
  lists[0]->Enqueue({at + 256, 8192}, true);  // behind a hole
  grasshopper.Advance(at + 256 + 8192);
  EXPECT_EQ(grasshopper.sbl(), at);
}

TEST(Grasshopper, AnIdleProducerHoldsNobodyBack) {
  Field field(32, 4096, 1 << 16);
  for (int i = 0; i < 200; ++i) field.Reserve(7, 128), field.Fill(7);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
  field.Reserve(31, 64), field.Fill(31);
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
}

TEST(Grasshopper, CallsBackOnceAndNotBeforeTheRecordsEndIsDurable) {
  Field field(1, 4096, 1 << 16);
  const LogPlace place = field.Reserve(0, 1000);
  field.Fill(0);
  field.AdvanceAndCheck();
  field.Flush(place.end() - 8);
  field.Collect(0);
  EXPECT_EQ(field.called_back(), 0u);
  field.Flush(place.end());
  field.Collect(0);
  field.Collect(0);
  EXPECT_EQ(field.called_back(), 1u);
}

TEST(Grasshopper, AFullListHasSpaceAgainOnceItsOldestPlaceIsDurable) {
  Field field(1, 4096, 1 << 16, 4);
  for (int i = 0; i < 4; ++i) field.Reserve(0, 64), field.Fill(0);
  EXPECT_FALSE(field.CanReserve(0, 64));
  field.AdvanceAndCheck();
  EXPECT_FALSE(field.CanReserve(0, 64));
  field.Flush(kStart + 64);
  EXPECT_TRUE(field.CanReserve(0, 64));
}

struct Shape {
  uint32_t producers;
  uint64_t distance;
  uint64_t ring;
  uint32_t bytes_max;
};
class GrasshopperShapes : public ::testing::TestWithParam<Shape> {};

// Every step is a random role's: reserve, fill, advance, flush a part, collect.
TEST_P(GrasshopperShapes, NeverPassesAHoleAndReachesTheEnd) {
  const Shape shape = GetParam();
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Field field(shape.producers, shape.distance, shape.ring);
  while (field.reserved() < 40 * shape.ring) {
    const auto producer = static_cast<uint32_t>(random() % shape.producers);
    const auto bytes = static_cast<uint32_t>(40 + random() % shape.bytes_max / 8 * 8);
    const uint64_t step = random() % 64;
    if (step == 0) field.Flush(field.sdl() + random() % (field.grasshopper().sbl() - field.sdl() + 1));
    if (step <= 1) {
      ASSERT_NO_FATAL_FAILURE(field.AdvanceAndCheck());
    }
    if (step == 2) field.FillAll();
    if (field.is_open(producer)) {
      field.Fill(producer);
    } else if (field.CanReserve(producer, bytes)) {
      field.Reserve(producer, bytes);
    }
  }
  field.FillAll();
  field.AdvanceAndCheck();
  EXPECT_EQ(field.grasshopper().sbl(), field.reserved());
  field.Flush(field.reserved());
  field.CollectAll();
  EXPECT_EQ(field.called_back(), field.awaited());
}
INSTANTIATE_TEST_SUITE_P(All, GrasshopperShapes,
                         ::testing::Values(Shape{1, 512, 1 << 14, 400}, Shape{2, 512, 1 << 14, 4000},
                                           Shape{3, 4096, 1 << 15, 200}, Shape{4, 1 << 14, 1 << 15, 2000},
                                           Shape{8, 1024, 1 << 16, 1500}, Shape{16, 1 << 15, 1 << 16, 300},
                                           Shape{32, 2048, 1 << 17, 600}, Shape{32, 512, 1 << 17, 4000}));

// What Table 2 allows to run at once does: producers on their threads, the worker, and SDL that follows SBL.
TEST(GrasshopperThreads, SblReachesTheEndWhileAllRolesRun) {
  constexpr uint32_t kProducers = 3;
  constexpr uint64_t kRing = 1 << 14, kEnd = 300 * kRing;
  HoppingIndex index(1024, kRing, 0);
  std::vector<std::unique_ptr<GrasshopperList>> lists;
  for (uint32_t p = 0; p < kProducers; ++p) lists.push_back(std::make_unique<GrasshopperList>(index, 1 << 10));
  Grasshopper grasshopper(index, lists, 0);
  std::vector<uint8_t> filled(kRing / 8);  // by whom: plain bytes, which the sanitizers watch
  std::atomic<uint64_t> reserved{0}, sdl{0}, awaited{0}, called_back{0};
  const auto produce = [&](uint32_t p) {
    std::mt19937_64 random(p);
    uint64_t mine = 0, called = 0;
    while (reserved.load() < kEnd) {
      const LogPlace place{0, static_cast<uint32_t>(40 + random() % 2000 / 8 * 8)};
      while (!lists[p]->HasSpace())
        lists[p]->Collect(sdl.load(), [&](uint64_t) { ++called; }), std::this_thread::yield();
      const LogPlace taken{reserved.fetch_add(place.bytes), place.bytes};
      while (taken.end() > sdl.load() + kRing) std::this_thread::yield();
      for (uint64_t at = taken.lsn; at < taken.end(); at += 8)
        filled[at % kRing / 8] = static_cast<uint8_t>(at / kRing);
      lists[p]->Enqueue(taken, true);
      ++mine;
    }
    while (called < mine) lists[p]->Collect(sdl.load(), [&](uint64_t) { ++called; }), std::this_thread::yield();
    awaited += mine, called_back += called;
  };
  std::vector<std::thread> threads;
  for (uint32_t p = 0; p < kProducers; ++p) threads.emplace_back(produce, p);
  while (sdl.load() < kEnd) {
    grasshopper.Advance(reserved.load());
    const uint64_t sbl = grasshopper.sbl();
    for (uint64_t at = sdl.load(); at < sbl; at += 8)
      ASSERT_EQ(filled[at % kRing / 8], static_cast<uint8_t>(at / kRing));
    sdl.store(sbl);
    std::this_thread::yield();
  }
  std::atomic<bool> over{false};
  std::thread last([&] {
    while (!over) grasshopper.Advance(reserved.load()), sdl.store(grasshopper.sbl()), std::this_thread::yield();
  });
  for (std::thread& thread : threads) thread.join();
  over = true;
  last.join();
  EXPECT_EQ(grasshopper.sbl(), reserved.load());
  EXPECT_EQ(called_back.load(), awaited.load());
}

}  // namespace
}  // namespace dbx
