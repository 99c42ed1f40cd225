// GRASSHOPPER against a model that knows every filled byte: single-threaded steps of the roles in random and in chosen
// orders, and producers on threads of their own. And what it does for it, by its own counters.
#include "logging/eleda/grasshopper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>
#include <random>
#include <thread>

namespace dbx {
namespace {

constexpr Lsn kStart(12288);  // no multiple of the distances

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
  void Flush(Lsn sdl) {
    ASSERT_LE(sdl, grasshopper_.sbl());
    sdl_ = std::max(sdl_, sdl);
  }
  void Collect(uint32_t producer) {
    lists_[producer]->Collect(sdl_, [&](Lsn end) {
      EXPECT_LE(end, sdl_);
      ++called_back_;
    });
  }
  void CollectAll() {
    for (uint32_t p = 0; p < lists_.size(); ++p) Collect(p);
  }

  // A random role's.
  void Step(std::mt19937_64& random, uint32_t bytes_max) {
    const auto producer = static_cast<uint32_t>(random() % open_.size());
    const auto bytes = static_cast<uint32_t>(40 + random() % bytes_max / 8 * 8);
    const uint64_t step = random() % 64;
    if (step == 0) Flush(sdl_ + random() % (grasshopper_.sbl() - sdl_ + 1));
    if (step <= 1) AdvanceAndCheck();
    if (step == 2) FillAll();
    if (is_open(producer)) {
      Fill(producer);
    } else if (CanReserve(producer, bytes)) {
      Reserve(producer, bytes);
    }
  }

  bool is_open(uint32_t producer) const { return open_[producer].has_value(); }
  Lsn reserved() const { return reserved_; }
  Lsn sdl() const { return sdl_; }
  uint64_t awaited() const { return awaited_; }
  uint64_t called_back() const { return called_back_; }
  Grasshopper& grasshopper() { return grasshopper_; }
  GrasshopperList& list(uint32_t producer) { return *lists_[producer]; }
  HoppingIndex& index() { return index_; }

 private:
  struct Place {
    Lsn end;
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
  Lsn reserved_ = kStart, sdl_ = kStart, expected_ = kStart;
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
  Lsn at = kStart + 64;
  for (; at < kStart + 64 + 3 * kRing; at += 256) {
    lists[0]->Enqueue({at, 256}, true);
    grasshopper.Advance(at + 256);
    ASSERT_EQ(grasshopper.sbl(), at + 256);
    lists[0]->Collect(at, [](Lsn) {});
  }
  index.Add({kStart, 64});                    // now it comes, laps later
  lists[0]->Enqueue({at + 256, 8192}, true);  // behind a hole
  grasshopper.Advance(at + 256 + 8192);
  EXPECT_EQ(grasshopper.sbl(), at);
}

// A filler stops between steps 1 and 2: of its node behind the boundary, the hopping list does not tell yet.
TEST(Grasshopper, AHopLeavesANodeBehindTheBoundaryThatHasNoHopYet) {
  HoppingIndex index(4096, 1 << 14, kStart);
  std::vector<std::unique_ptr<GrasshopperList>> lists;
  for (int i = 0; i < 2; ++i) lists.push_back(std::make_unique<GrasshopperList>(index, 1 << 10));
  Grasshopper grasshopper(index, lists, kStart);
  const uint64_t range = index.RangeOf(kStart) + 1;
  const Lsn boundary = index.BeginOf(range);
  lists[0]->Enqueue({kStart, static_cast<uint32_t>(boundary - kStart)}, true);
  const LogPlace behind_a_hole{boundary + 64, 128};
  lists[1]->AppendNode(behind_a_hole, true);
  grasshopper.Advance(behind_a_hole.end());
  EXPECT_EQ(grasshopper.sbl(), boundary);
  lists[1]->AppendHop(range);
  index.Add(behind_a_hole);
  lists[0]->Enqueue({boundary, 64}, true);
  grasshopper.Advance(behind_a_hole.end());
  EXPECT_EQ(grasshopper.sbl(), behind_a_hole.end());
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
  field.Flush(place.lsn + 992);
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
  while (field.reserved() < Lsn(40 * shape.ring)) {
    ASSERT_NO_FATAL_FAILURE(field.Step(random, shape.bytes_max));
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

// Producers on their threads over bytes that the sanitizers watch, and SDL that follows SBL.
class SharedField {
 public:
  static constexpr uint64_t kRing = 1 << 14, kEnd = 300 * kRing;

  explicit SharedField(uint32_t producers) {
    for (uint32_t p = 0; p < producers; ++p) lists_.push_back(std::make_unique<GrasshopperList>(index_, 1 << 10));
    grasshopper_ = std::make_unique<Grasshopper>(index_, lists_, Lsn(0));
    for (uint32_t p = 0; p < producers; ++p) threads_.emplace_back([this, p] { Produce(p); });
  }
  ~SharedField() {
    for (std::thread& thread : threads_) thread.join();
  }

  bool producing() const { return done_.load() < lists_.size(); }
  // Everything below SBL is filled, and becomes durable.
  void Advance() {
    grasshopper_->Advance(reserved());
    const uint64_t sbl = grasshopper_->sbl().value();
    for (uint64_t at = sdl_.load(); at < sbl; at += 8) unfilled_ += filled_[at % kRing / 8] != MarkOf(at);
    sdl_.store(sbl);
    std::this_thread::yield();
  }

  Lsn sbl() const { return grasshopper_->sbl(); }
  Lsn reserved() const { return Lsn(reserved_.load()); }
  uint64_t unfilled() const { return unfilled_; }
  uint64_t awaited() const { return awaited_.load(); }
  uint64_t called_back() const { return called_back_.load(); }

 private:
  static uint8_t MarkOf(uint64_t at) { return static_cast<uint8_t>(at / kRing); }

  void Produce(uint32_t p) {
    std::mt19937_64 random(p);
    while (reserved_.load() < kEnd) {
      const auto bytes = static_cast<uint32_t>(40 + random() % 2000 / 8 * 8);
      while (!lists_[p]->HasSpace()) Collect(p);
      const LogPlace taken{Lsn(reserved_.fetch_add(bytes)), bytes};
      const uint64_t end = taken.end().value();
      while (end > sdl_.load() + kRing) std::this_thread::yield();
      for (uint64_t at = taken.lsn.value(); at < end; at += 8) filled_[at % kRing / 8] = MarkOf(at);
      lists_[p]->Enqueue(taken, true);
      last_end_[p] = end;
      ++awaited_;
    }
    while (sdl_.load() < last_end_[p]) Collect(p);
    Collect(p);
    ++done_;
  }
  void Collect(uint32_t p) {
    lists_[p]->Collect(Lsn(sdl_.load()), [this](Lsn) { ++called_back_; });
    std::this_thread::yield();
  }

  HoppingIndex index_{1024, kRing, Lsn(0)};
  std::vector<std::unique_ptr<GrasshopperList>> lists_;
  std::unique_ptr<Grasshopper> grasshopper_;
  std::vector<uint8_t> filled_ = std::vector<uint8_t>(kRing / 8);  // in which lap
  std::array<uint64_t, 32> last_end_{};
  std::atomic<uint64_t> reserved_{0}, sdl_{0}, awaited_{0}, called_back_{0}, done_{0};
  uint64_t unfilled_ = 0;
  std::vector<std::thread> threads_;
};

// What Table 2 allows to run at once does.
TEST(GrasshopperThreads, SblReachesTheEndWhileAllRolesRun) {
  SharedField field(3);
  while (field.producing()) field.Advance();
  EXPECT_EQ(field.sbl(), field.reserved());
  EXPECT_EQ(field.unfilled(), 0u);
  EXPECT_EQ(field.called_back(), field.awaited());
}

struct Operations {
  uint64_t records = 0;
  uint64_t of_producers = 0;  // nodes and hops appended, ranges added to
  CentralCounters of_worker;

  // Of those that were hopped over.
  double PerRecord() const {
    return static_cast<double>(of_producers) / static_cast<double>(records) +
           static_cast<double>(of_worker.hop_operations) / static_cast<double>(of_worker.hopped_records);
  }
};

// Lists over a log without a ring that `producers` workers fill, which take turns at random.
class Turns {
 public:
  Turns(uint32_t producers, uint64_t records, uint64_t log_bytes, uint64_t distance)
      : index_(distance, std::max(std::bit_ceil(log_bytes), distance), Lsn(0)), random_(producers) {
    for (uint32_t p = 0; p < producers; ++p) {
      lists_.push_back(std::make_unique<GrasshopperList>(index_, std::bit_ceil(4 * records / producers)));
    }
    grasshopper_.emplace(index_, lists_, Lsn(0));
  }

  void Fill(uint32_t bytes) {
    GrasshopperList& list = *lists_[random_() % lists_.size()];
    const LogPlace place{filled_, bytes};
    const uint64_t hops = list.hop_tail();
    list.Enqueue(place, true);
    filled_ = place.end();
    const uint64_t ranges = index_.RangeOf(Lsn(filled_.value() - 1)) - index_.RangeOf(place.lsn) + 1;
    ++operations_.records;
    operations_.of_producers += 1 + ranges + (list.hop_tail() - hops);
  }
  void AdvanceTo(Lsn until) {
    grasshopper_->Advance(until);
    ASSERT_EQ(grasshopper_->sbl(), until);
  }

  Lsn filled() const { return filled_; }
  Operations operations() {
    operations_.of_worker = grasshopper_->counters();
    return operations_;
  }

 private:
  HoppingIndex index_;
  std::vector<std::unique_ptr<GrasshopperList>> lists_;
  std::optional<Grasshopper> grasshopper_;
  std::mt19937_64 random_;
  Lsn filled_;
  Operations operations_;
};

constexpr uint32_t kProducerCounts[] = {1, 2, 4, 8, 16, 32};
constexpr uint32_t kRecordSizes[] = {128, 512, 1024, 4096};
constexpr uint64_t kDistance = 4 << 20, kHoppedRanges = 4;  // the default distance

// Hops over one range at a time, as it is when it costs most; the producers are a range ahead.
Operations HopOverRanges(uint32_t producers, uint32_t bytes) {
  const uint64_t log_bytes = (kHoppedRanges + 1) * kDistance;
  Turns turns(producers, log_bytes / bytes, log_bytes, kDistance);
  while (turns.filled() < Lsn(log_bytes)) {
    turns.Fill(bytes);
    const Lsn filled = turns.filled();
    if (filled.value() % kDistance == 0 && filled > Lsn(kDistance)) turns.AdvanceTo(Lsn(filled.value() - kDistance));
  }
  return turns.operations();
}

// All that is done for a record, by its producer and by the worker, at the default distance.
TEST(GrasshopperOperations, HoppingCostsTheSamePerRecordForAnySizeAndProducers) {
  double least = INFINITY, most = 0;
  for (const uint32_t producers : kProducerCounts) {
    for (const uint32_t bytes : kRecordSizes) {
      const Operations operations = HopOverRanges(producers, bytes);
      ASSERT_EQ(operations.of_worker.hopped_bytes, kHoppedRanges * kDistance);
      least = std::min(least, operations.PerRecord()), most = std::max(most, operations.PerRecord());
    }
  }
  EXPECT_LE(most, 1.2 * least);
  EXPECT_LE(most, 2.4);
}

// What the worker does for a range is the same however many records lie in it. For each producer that wrote there it
// passes an entry of the hopping list, looks at two heads, and sorts one into the heap.
TEST(GrasshopperOperations, AHopCostsAFewOperationsForEachProducerHoweverManyRecordsItPasses) {
  for (const uint32_t producers : kProducerCounts) {
    for (const uint32_t bytes : kRecordSizes) {
      const Operations operations = HopOverRanges(producers, bytes);
      const double per_range = static_cast<double>(operations.of_worker.hop_operations) / kHoppedRanges;
      EXPECT_GE(per_range, 3 * producers) << producers << " producers, " << bytes << " bytes";
      EXPECT_LE(per_range, 5 * producers) << producers << " producers, " << bytes << " bytes";
    }
  }
}

// Beside the height of the heap a record's node; and once for each producer the one entry of its hopping list.
TEST(GrasshopperOperations, CrawlingCostsNoMorePerRecordThanTheHeightOfTheHeap) {
  constexpr uint64_t kRecords = 4096;
  for (const uint32_t producers : kProducerCounts) {
    for (const uint32_t bytes : kRecordSizes) {
      Turns turns(producers, kRecords, kRecords * bytes, 2 * std::bit_ceil(kRecords * bytes));
      for (uint64_t i = 0; i < kRecords; ++i) turns.Fill(bytes);
      turns.AdvanceTo(turns.filled());
      const CentralCounters counters = turns.operations().of_worker;
      EXPECT_EQ(counters.crawled_records, kRecords);
      const double per_record = static_cast<double>(counters.crawl_operations) / kRecords;
      EXPECT_LE(per_record, 1.01 + std::log2(producers)) << producers << " producers";
      EXPECT_GE(per_record, 1.0);
    }
  }
}

}  // namespace
}  // namespace dbx
