// The words of a tuple that were touched, against a set of them.
#include "storage/touched_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace dbx {
namespace {

using Pieces = std::vector<std::pair<size_t, size_t>>;

Pieces PiecesOf(const TouchedWords& touched) {
  Pieces pieces;
  touched.ForEach([&](size_t at, size_t bytes) { pieces.emplace_back(at, bytes); });
  return pieces;
}

TEST(TouchedWords, AreThoseOfEachChangeInAscendingOrder) {
  std::mt19937 random(1);
  const std::vector<std::byte> tuple(TouchedWords::kTupleBytesMax);
  TouchedWords touched;  // of one tuple after the other
  for (int i = 0; i < 5'000; ++i) {
    const size_t bytes = 1 + random() % (i % 4 == 0 ? tuple.size() : 700);
    touched.Start(tuple.data(), bytes);
    std::set<size_t> words;
    for (auto changes = random() % 12; changes > 0; --changes) {
      const size_t at = random() % bytes, length = 1 + random() % std::min<size_t>(bytes - at, 200);
      touched.BeforeChange(tuple.data() + at, length);
      for (size_t byte = at; byte < at + length; ++byte) words.insert(byte / 8);
    }
    Pieces expected;
    for (const size_t word : words) expected.emplace_back(word * 8, std::min<size_t>(8, bytes - word * 8));
    ASSERT_EQ(PiecesOf(touched), expected) << bytes;
  }
}

TEST(TouchedWords, AllOfALongTupleCountsAsTouched) {
  const std::vector<std::byte> tuple(TouchedWords::kTupleBytesMax + 1);
  TouchedWords touched;
  touched.Start(tuple.data(), tuple.size());
  EXPECT_EQ(PiecesOf(touched), (Pieces{{0, tuple.size()}}));
  touched.BeforeChange(tuple.data() + tuple.size() - 1, 1);
  EXPECT_EQ(PiecesOf(touched), (Pieces{{0, tuple.size()}}));
}

}  // namespace
}  // namespace dbx
