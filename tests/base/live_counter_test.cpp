// Counters that are read while their thread goes on.
#include "base/live_counter.h"

#include <gtest/gtest.h>

#include <thread>

namespace dbx {
namespace {

TEST(LiveCounter, NoReadingIsAboveTheEndNorBelowTheOneBefore) {
  constexpr uint64_t kAdditions = 200'000;
  uint64_t counter = 0;
  std::jthread writer([&] {
    for (uint64_t i = 0; i < kAdditions; ++i) AddLive(counter, 1);
  });
  for (uint64_t last = 0, now = 0; last < kAdditions; last = now) {
    now = ReadLive(counter);
    ASSERT_GE(now, last);
    ASSERT_LE(now, kAdditions);
  }
}

TEST(LiveWaits, AWaitCountsFromItsBeginning) {
  LiveWaits waits;
  EXPECT_EQ(waits.Read(90).count, 0u);
  waits.Begin(100);
  EXPECT_EQ(waits.Read(130).count, 1u);
  EXPECT_EQ(waits.Read(130).ticks, 30u);
  waits.End(150);
  EXPECT_EQ(waits.Read(1000).ticks, 50u);
  waits.Begin(2000);
  EXPECT_EQ(waits.Read(2001).ticks, 51u);
  // The reader took the time before the wait began.
  EXPECT_EQ(waits.Read(1999).ticks, 50u);
  EXPECT_EQ(waits.Read(1999).count, 2u);
}

// Its thread waits without a pause, by a clock that moves on with each wait: a reader at `now` never finds more.
TEST(LiveWaits, NoWaitIsCountedTwice) {
  constexpr uint64_t kWaits = 100'000;
  LiveWaits waits;
  uint64_t clock = 1;
  std::jthread waiter([&] {
    for (uint64_t i = 0; i < kWaits; ++i) {
      waits.Begin(clock);
      AddLive(clock, 1);
      waits.End(clock);
    }
  });
  for (uint64_t count = 0; count < kWaits;) {
    const LiveWaits::Reading reading = waits.Read(ReadLive(clock));
    count = reading.count;
    // The clock moved on after it was read, at most until now.
    ASSERT_LE(reading.ticks, ReadLive(clock) - 1);
  }
}

}  // namespace
}  // namespace dbx
