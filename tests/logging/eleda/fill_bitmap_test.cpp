// The bitmap knows exactly what is filled up to the first hole, over many laps of the ring.
#include "logging/eleda/fill_bitmap.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace dbx {
namespace {

TEST(FillBitmap, StopsAtTheFirstHoleOverManyLaps) {
  constexpr uint64_t kRing = 4096;
  constexpr Lsn kStart(3 * 4096 + 1024);
  std::mt19937_64 random(7);
  FillBitmap bitmap(kRing, kStart);
  struct Place {
    LogPlace place;
    bool filled;
  };
  std::deque<Place> places;
  Lsn reserved = kStart, expected = kStart;
  while (reserved < Lsn(200 * kRing)) {
    const auto bytes = static_cast<uint32_t>(40 + random() % 900 / 8 * 8);
    if (reserved + bytes <= expected + kRing) places.push_back({{reserved, bytes}, false}), reserved += bytes;
    Place& some = places[random() % places.size()];
    if (!some.filled) bitmap.Filled(some.place), some.filled = true;
    for (; !places.empty() && places.front().filled; places.pop_front()) expected = places.front().place.end();
    bitmap.CatchUp();
    ASSERT_EQ(bitmap.FilledUntil(), expected);
    if (places.empty()) places.push_back({{reserved, 40}, false}), reserved += 40;
  }
}

}  // namespace
}  // namespace dbx
